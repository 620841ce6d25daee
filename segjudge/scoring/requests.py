"""A request to score results on a truth, and the same request opened and checked."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from segjudge.datasets.opening import LOCAL_LIMITS, TruthSource, open_truth
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.families.base.engine import Progress, ignore_progress
from segjudge.evaluation_script.families.base.family import ScoringRules, TrackProtocol
from segjudge.evaluation_script.families.base.truth import SplitTruth, TruthNames
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.files.problems import Problem, SubmissionError, name_hint, name_list
from segjudge.evaluation_script.main import open_truth as open_phase_truth
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.runner.parallel import cores
from segjudge.evaluation_script.scoring.annotation_file import is_packed
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.evaluation_script.scoring.provenance import numbers_of, provenance
from segjudge.evaluation_script.scoring.scorer import Scorer, phase_scorer
from segjudge.system.addresses import digest_of, resolve_address
from segjudge.system.errors import OptionError, UsageError


@dataclass(frozen=True)
class ScoreRequest:
    """Results, a truth, and the options of scoring, which `segjudge.score` describes."""

    results: str
    truth: TruthSource
    protocol: TrackProtocol
    split: str = ""
    #: None: all of them.
    sequences: list[str] | None = None
    strict: bool = False
    jobs: int | Literal["auto"] | None = None

    def __post_init__(self) -> None:
        """Raise UsageError for a number of processes that there cannot be."""
        whole = isinstance(self.jobs, int) and not isinstance(self.jobs, bool) and self.jobs > 0
        if not whole and self.jobs not in ("auto", None):
            raise UsageError(f"jobs is {self.jobs!r}: give a whole number from 1 on, or 'auto'")


@dataclass(frozen=True)
class PreparedScoring:
    """Results, and what scores them."""

    results: str
    truth: str
    #: By split.
    scorers: dict[str, Scorer]
    #: What is odd about the truth.
    notes: list[str] = field(default_factory=list)

    def provenance(self) -> dict[str, Any]:
        """Return what its scores come from."""
        rules = {split: scorer.rules for split, scorer in self.scorers.items()}
        protocols = {split: one.protocol for split, one in rules.items()}
        limits = numbers_of(next(iter(rules.values())).limits)
        return provenance(protocols, digest_of(self.truth), digest_of(self.results), backend().name, limits)


def named_protocol(protocol: str | TrackProtocol) -> TrackProtocol:
    """Return the protocol of this name; one that is given itself is returned."""
    if not isinstance(protocol, str):
        return protocol
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}{name_hint(protocol, PROTOCOLS)}")
    return PROTOCOLS[protocol]


def prepare(request: ScoreRequest, progress: Progress = ignore_progress) -> PreparedScoring:
    """Open a truth and check the request against it, as `score` does before it scores."""
    path, truth = resolve_address(request.results, SubmissionError), request.truth
    source = replace(
        truth,
        path=resolve_address(truth.path),
        unseen=resolve_address(truth.unseen),
        categories=resolve_address(truth.categories),
    )
    jobs = cores() if request.jobs == "auto" else request.jobs or 1
    rules = ScoringRules(request.protocol, LOCAL_LIMITS, strict=request.strict, jobs=jobs)
    given = {"sequences": request.sequences, **vars(source)}
    for option in ("sequences", "layout", "unseen", "categories"):
        if given[option] and option not in FAMILIES[request.protocol.track].options:
            raise OptionError(f"{option} has no meaning for {request.protocol.track}")
    if is_packed(path):
        found = "is an annotation file that `pack` made, not results"
        raise SubmissionError.of(Problem(path, found, "Name the results first, and this file as the truth"))
    opened = open_truth(source, rules.protocol, progress)
    truths, notes = opened.splits, list(opened.notes)
    chosen = request.split or source.subset
    if chosen and chosen not in truths:
        raise UsageError(f"{source.path} has no split {chosen!r}{name_hint(chosen, truths)}")
    scorers = {}
    for name in [chosen] if chosen else truths:
        notes += _notes(name, truths[name], rules.protocol)
        scorers[name] = Scorer(name, choose_sequences(truths[name], request.sequences, rules.protocol), rules)
    return PreparedScoring(path, source.path, scorers, notes)


def prepare_phase(
    results: str, phase: Phase, annotations: str, split: str = "", sequences: Iterable[str] | None = None
) -> PreparedScoring:
    """Open what a phase of a bundle scores, or one split of it; links in a folder are followed: they are one's own."""
    results, annotations = resolve_address(results, SubmissionError), resolve_address(annotations)
    phase = replace(phase, limits=replace(phase.limits, links=True))
    chosen = [phase_split for phase_split in phase.splits if split in ("", phase_split.codename)]
    if not chosen:
        known = [phase_split.codename for phase_split in phase.splits]
        raise UsageError(f"{phase.codename} has no split {split!r}{name_hint(split, known)}")
    truths, names = open_phase_truth(annotations, phase), chosen_names(sequences)
    scorers = {}
    for phase_split in chosen:
        scorer = phase_scorer(phase, phase_split, truths)
        truth = choose_sequences(scorer.truth, names, scorer.rules.protocol)
        scorers[scorer.split] = replace(scorer, truth=truth)
    return PreparedScoring(results, annotations, scorers)


def chosen_names(sequences: Iterable[object] | None) -> list[str] | None:
    """Return the names of sequences, each once; None for all.  Raises UsageError for what is no list of any."""
    if sequences is None:
        return None
    if isinstance(sequences, str):
        raise UsageError(f"sequences is one text: give a list of names, such as [{sequences!r}]")
    try:
        names = list(sequences)
    except TypeError:
        raise UsageError(f"sequences is of {type(sequences).__name__}: give a list of names") from None
    odd = [name for name in names if not isinstance(name, (str, int)) or isinstance(name, bool)]
    if odd or not names:
        found = f"names {odd[0]!r}, which is no name" if odd else "names none"
        raise UsageError(f"sequences {found}: give a list of names, or leave it out for all")
    return list(dict.fromkeys(map(str, names)))


def choose_sequences(truth: SplitTruth, names: Iterable[object] | None, protocol: TrackProtocol) -> SplitTruth:
    """Return the truth of some sequences; instance masks have none and stay whole.

    Where a protocol has rounds, a name may be that of a sequence in one of them, as in its tables.
    """
    chosen = chosen_names(names)
    if chosen is None:
        return truth
    rounds = protocol.rounds if isinstance(protocol, SequenceProtocol) else ()
    known, spelled = truth.item_names, TruthNames(truth.item_names).respell
    places = [name.partition("/") if name.partition("/")[0] in rounds else ("", "", name) for name in chosen]
    unknown = [name for name, (_, _, own) in zip(chosen, places, strict=True) if spelled(own) not in known]
    if unknown and known:
        raise UsageError(f"the truth has no sequence {name_list(unknown)}{name_hint(unknown[0], known, 20)}")
    part = truth.select(list(dict.fromkeys(spelled(own) for _, _, own in places)))
    if not rounds or not isinstance(part, Split):
        return part
    of_rounds = {f"{each}/{spelled(own)}" for one, _, own in places for each in ([one] if one else rounds)}
    return replace(part, of_rounds=frozenset(of_rounds))


def _notes(name: str, truth: SplitTruth, protocol: TrackProtocol) -> list[str]:
    """Return what is odd about the truth of a split, for this protocol."""
    if not isinstance(truth, Split):
        return [f"{name}: {note}" for note in truth.notes]
    if isinstance(protocol, SequenceProtocol) and protocol.by_class and not truth.tells_unseen:
        return [f"{name}: nothing says which classes are unseen (--unseen FILE); all count as seen"]
    return []
