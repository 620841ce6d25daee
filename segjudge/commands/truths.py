"""The choice of a truth: a phase of the challenge or a named truth, with common options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.system.errors import OptionError, UsageError

from .parser import PROGRAM, CommandParser, program
from .shared import RARELY, TRUTH, InputPath, PhaseName, ProgressBar, add_truth_options, mention

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.evaluation_script.families.base.truth import SplitTruth
    from segjudge.evaluation_script.scoring.phase import Phase
    from segjudge.families.truths import TruthSource
    from segjudge.scoring.request import ScoreRequest
    from segjudge.scoring.scores import Scores

#: The characters of words that need no quotes.
_PLAIN = frozenset("%+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")

#: The default protocol of a truth.
_DEFAULT_PROTOCOL = "davis2017"
#: Results in the example of a command that needs a truth.
_RESULTS = {"score": "masks.zip", "report": "masks.zip", "compare": "old.zip new.zip"}
#: The number of a truth's files that are examined to recognise it.
_EXAMINED_FILES = 1000
#: Options about a named truth, which phases do not have.
OF_TRUTHS = ("protocol", "subset", "layout", "unseen", "categories")


class TruthChoice(NamedTuple):
    """The options that choose the truth and the rules."""

    phase: str | None
    annotations: str | None
    truth: str | None
    protocol: str | None
    subset: str
    layout: str
    unseen: str
    categories: str
    split: str | None
    sequences: list[str] | None = None
    jobs: Any = None
    #: The only region that is scored.
    region: str | None = None
    #: Changes of the rules of instances: the unit of the cap; on if the annotation with id 0 is never matched.
    cap: str | None = None
    id_zero_quirk: str | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> TruthChoice:
        """Return the choice from options by name; a command may lack some."""
        return cls(**{name: values[name] for name in cls._fields if name in values})

    def complete(self, command: str, otherwise: str = "") -> TruthChoice:
        """Return the choice completed by defaults: the folder's only phase, the default protocol.

        Raises UsageError if both phase and truth are named or neither is, ending with the alternatives `otherwise`, and
        for options without effect.
        """
        if self.phase and self.truth:
            raise UsageError(f"{command} scores by --phase or by --truth, not both; omit one of them")
        named = [name for name in OF_TRUTHS if getattr(self, name)]
        if not self.phase and not self.truth:
            if named:
                raise OptionError(f"{named[0]} needs --truth PATH")
            return self._replace(phase=_find_only_phase(command, otherwise))
        if self.phase and (named or self.region):
            raise OptionError(f"{(*named, 'region')[0]} does not apply to --phase")
        if self.truth and self.annotations:
            raise OptionError("annotations does not apply to --truth")
        if self.phase or self.protocol:
            return self
        _check_default(self.truth or "")
        mention(f"No --protocol given: {_DEFAULT_PROTOCOL} scores; `{program()} benchmarks` lists the others.")
        return self._replace(protocol=_DEFAULT_PROTOCOL)

    @property
    def rules(self) -> FamilyProtocol:
        """Return the protocol that scores; for a phase, the protocol of the chosen or first split."""
        if not self.phase:
            protocol = _change_rules(PROTOCOLS[self.protocol or _DEFAULT_PROTOCOL], self.cap, self.id_zero_quirk)
            if not self.region:
                return protocol
            from segjudge.families import tools_of

            chosen: FamilyProtocol = tools_of(protocol.family).choose_region(protocol, self.region)
            return chosen
        splits = self.find_phase()[0].splits
        names = [split.protocol for split in splits if split.codename == self.split] or [splits[0].protocol]
        if names[0] not in PROTOCOLS:
            from segjudge.evaluation_script.families import describe_unknown

            raise UsageError(f"phases.py: {describe_unknown(names[0])}")
        return PROTOCOLS[names[0]]

    @property
    def source(self) -> TruthSource:
        """Return the source of the truth; for a phase its annotation file."""
        from segjudge.families.truths import TruthSource

        if self.phase:
            return TruthSource(self.find_phase()[1])
        return TruthSource(self.truth or "", self.layout, self.subset, self.unseen, self.categories)

    def find_phase(self, *, secrecy: bool = False) -> tuple[Phase, str]:
        """Return the phase and its (or the named) annotation file; `secrecy` applies the YAML's hiding."""
        from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

        source = find_bundle()
        phase = source.phase(self.phase or "") if secrecy else source.script_phase(self.phase or "")
        return phase, self.annotations or os.path.join(source.root, phase.annotations)

    def choose_images(self, named: str | None) -> str:
        """Return the folder of a dataset's pictures: the named one, or the phase's in its challenge; "" without any."""
        if named or not self.phase:
            return named or ""
        from segjudge.platforms.evalai.bundle.bundle_source import PICTURES_FOLDER, find_bundle

        folder = os.path.join(find_bundle().root, PICTURES_FOLDER, self.phase)
        return folder if os.path.isdir(folder) else ""

    def hide_splits(self, option: str) -> frozenset[str]:
        """Return the splits to omit from the public file of an option; raises UsageError if none remains."""
        hidden = self.find_hidden()
        if not hidden:
            return hidden
        chosen_splits = {self.split} if self.split else {split.codename for split in self.find_phase()[0].splits}
        if chosen_splits <= hidden:
            splits = " and ".join(sorted(chosen_splits))
            fault = f"{splits} of {self.phase}, whose scores are hidden from participants"
            raise UsageError(f"{option} writes only what may be published, not {fault}")
        return hidden

    def find_hidden(self) -> frozenset[str]:
        """Return the splits of a phase whose scores anonymous visitors do not see; none for a named truth."""
        from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
        from segjudge.platforms.evalai.bundle.secrecy import find_unpublished

        if not self.phase:
            return frozenset()
        source = find_bundle()
        phase = source.phase(self.phase)
        return find_unpublished(source.config(), phase.codename, phase)

    def spell(self, command: str, results: str) -> str:
        """Return the line of a command with results and these options."""
        values = self._asdict() | {"sequences": ",".join(self.sequences or ()), "jobs": None}
        named = [word for name, value in values.items() if value for word in (f"--{name}", str(value))]
        return f"{program()} {command} {_quote_words([str(results), *named])}"

    def request(self, results: str, *, strict: bool = False, secrecy: bool = True, **options: Any) -> ScoreRequest:
        """Return the request to score results; a terminal needs no secrecy."""
        from segjudge.families.truths import TruthSource
        from segjudge.scoring.request import ScoreRequest

        rules, split = self.rules, self.split or ""
        if not self.phase:
            return ScoreRequest(results, self.source, rules, split, self.sequences, strict, self.jobs, **options)
        phase, annotations = self.find_phase(secrecy=secrecy)
        jobs = {None: phase.jobs, "auto": 0}.get(self.jobs, self.jobs)
        phase = replace(phase, strict=strict or phase.strict, jobs=jobs)
        return ScoreRequest(results, TruthSource(annotations), rules, split, self.sequences, phase=phase, **options)

    def score_openly(self, results: str) -> Scores:
        """Score with a progress bar and keep the inputs open."""
        from segjudge.scoring.request import prepare

        request = self.request(results, keeps_open=True)
        with ProgressBar() as bar:
            return prepare(request, bar).score(bar)

    def score_each(self, paths: Mapping[str, str]) -> dict[str, Scores]:
        """Score several results by name on one open truth, and keep the inputs open."""
        from segjudge.scoring.request import prepare

        request = self.request("", keeps_open=True)
        with ProgressBar() as bar:
            prepared = prepare(request, bar)
            return {name: prepared.for_results(path).score(bar) for name, path in paths.items()}

    def open_splits(self) -> dict[str, SplitTruth]:
        """Return the truth of the chosen split, or of all."""
        from segjudge.families.truths import open_truth
        from segjudge.scoring.request import choose_sequences, choose_splits

        source, rules = self.source, self.rules
        with ProgressBar() as bar:
            truths = open_truth(source, rules, bar).splits
        chosen = choose_splits(truths, source, self.split or "")
        return {name: choose_sequences(truth, self.sequences, rules) for name, truth in chosen.items()}


def add_truth_choice(sub: CommandParser, truth: str, protocol: str = _DEFAULT_PROTOCOL) -> None:
    """Add the options of `TruthChoice` except split, sequences and jobs, which some commands lack."""
    add = sub.options_of(TRUTH)
    add("--truth", type=InputPath, metavar="PATH", help=truth)
    about = f"the benchmark whose rules score; `{PROGRAM} benchmarks` lists them (default: {protocol})"
    add("--protocol", choices=PROTOCOLS, metavar="NAME", help=about)
    add_truth_options(sub)
    about = "instead of --truth: score as this phase of the challenge in the current folder"
    add("--phase", type=PhaseName, metavar="CODENAME", help=about)
    about = "with --phase: use this annotation file instead of the phase's own"
    sub.options_of(RARELY)("--annotations", type=InputPath, metavar="FILE", help=about)


def _change_rules(protocol: FamilyProtocol, cap: str | None, quirk: str | None) -> FamilyProtocol:
    """Return the protocol with the requested changes of rules, which its description names."""
    if not (cap or quirk):
        return protocol
    from segjudge.evaluation_script.families.instances.protocols import PER_CATEGORY, PER_IMAGE, InstanceProtocol

    if not isinstance(protocol, InstanceProtocol):
        return protocol
    changed_protocol = replace(
        protocol, cap=cap or protocol.cap, id_zero_quirk=quirk == "on" if quirk else protocol.id_zero_quirk
    )
    if changed_protocol == protocol:
        return protocol
    unit = {PER_IMAGE: "image", PER_CATEGORY: "image and category"}[changed_protocol.cap]
    effect = "cannot be matched" if changed_protocol.id_zero_quirk else "is as any other"
    about = f"changed: up to {protocol.detections[-1]} for each {unit}; the annotation with id 0 {effect}."
    return replace(changed_protocol, about=about)


def _check_default(truth: str) -> None:
    """Raise UsageError if a folder's first files belong to a family other than the default protocol's."""
    from segjudge.evaluation_script.families import FAMILIES
    from segjudge.evaluation_script.files.problems import printable
    from segjudge.families import tools_of

    names = sorted(os.listdir(truth))[:_EXAMINED_FILES] if os.path.isdir(truth) else []
    for family, row in FAMILIES.items():
        endings = tuple(tools_of(family).endings)
        name = next((name for name in names if endings and name.lower().endswith(endings)), "")
        if name:
            raise UsageError(
                f"{truth} holds {printable(name)}, which {_DEFAULT_PROTOCOL} cannot read; add --protocol "
                f"{next(iter(row.protocols))}, or another one that `{program()} benchmarks` lists"
            )


def _list_phases() -> Sequence[str]:
    """Return the codenames of the current challenge's phases; empty without a Segjudge challenge."""
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

    try:
        return [phase.codename for phase in find_bundle().script_phases()]
    except (UsageError, HostError):
        return []


def _find_only_phase(command: str, otherwise: str) -> str:
    """Return the only phase of the current folder's challenge; raises UsageError for none or several."""
    from segjudge.platforms.evalai.bundle.bundle_source import CONFIG_NAMES

    codenames, is_here = _list_phases(), any(os.path.isfile(name) for name in CONFIG_NAMES)
    if len(codenames) == 1 and is_here:
        return codenames[0]
    phases = f"--phase CODENAME ({', '.join(codenames)})" if codenames else "--phase CODENAME in a challenge's folder"
    line = f"{program()} {command} {_RESULTS.get(command, 'RESULTS')} --truth DAVIS --protocol davis2017 --subset val"
    raise UsageError(
        f"{command} needs a truth: --truth PATH and --protocol NAME, or {phases}{otherwise}. For example: {line}"
    )


def _quote_words(words: Sequence[str]) -> str:
    """Return words as a shell takes them."""
    if all(word and _PLAIN.issuperset(word) for word in words):
        return " ".join(words)
    import shlex  # with its patterns, it takes 0.5 ms

    return shlex.join(words)
