"""What is to be scored, and on which truth: a request as a user makes it, then opened and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from segjudge.addresses import RemoteFolder, local
from segjudge.datasets.layouts import LAYOUTS
from segjudge.datasets.opening import TruthSource, is_packed, open_instances, open_units, read_published
from segjudge.errors import OptionError, UsageError
from segjudge.evaluation_script import sequence_truth
from segjudge.evaluation_script.annotation_file import SplitTruth
from segjudge.evaluation_script.archive_limits import ArchiveLimits
from segjudge.evaluation_script.errors import Problem, SubmissionError
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.main import sequences_of
from segjudge.evaluation_script.parallel import cores
from segjudge.evaluation_script.phase import PROTOCOLS, ScoringRules, TrackProtocol
from segjudge.evaluation_script.progress import Progress, ignore_progress
from segjudge.evaluation_script.sequence_protocols import SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Split
from segjudge.evaluation_script.unit_truth import UnitTruth

#: A participant's own machine has more room than EvalAI's worker, and links in a folder are the participant's own.
LOCAL_LIMITS = ArchiveLimits(
    members=50_000_000,
    total_bytes=1 << 40,
    memory_bytes=1 << 32,
    json_bytes=1 << 34,
    records=50_000_000,
    links=True,
)


@dataclass(frozen=True)
class ScoreRequest:
    """Results, a truth, and what a user may say of both; `segjudge.score` describes each."""

    results: str
    truth: TruthSource
    protocol: TrackProtocol
    split: str = ""
    #: None: all of them.
    sequences: list[str] | None = None
    strict: bool = False
    jobs: int | Literal["auto"] | None = None


@dataclass(frozen=True)
class PreparedScoring:
    """Results and the truth on which they are to be scored."""

    path: str
    truth: str
    rules: ScoringRules
    #: The truth of each split that is scored.
    splits: dict[str, SplitTruth]
    #: The sequences of all splits.
    known: frozenset[str]
    notes: list[str]


def named_protocol(protocol: str | TrackProtocol) -> TrackProtocol:
    """Return the protocol of this name; one that is given itself is returned."""
    if not isinstance(protocol, str):
        return protocol
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}, only {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


def prepared(request: ScoreRequest, progress: Progress = ignore_progress) -> PreparedScoring:
    """Open a truth and check what was said of it and of the results, as `score` does before it scores."""
    path, truth = local(request.results), request.truth
    source = replace(truth, path=local(truth.path), unseen=local(truth.unseen), categories=local(truth.categories))
    jobs = cores() if request.jobs == "auto" else request.jobs or 1
    rules = ScoringRules(request.protocol, LOCAL_LIMITS, strict=request.strict, jobs=jobs)
    if isinstance(rules.protocol, InstanceProtocol):
        _refuse("instances", sequences=request.sequences, layout=source.layout, unseen=source.unseen)
        if isinstance(source.path, RemoteFolder):
            raise UsageError(f"{source.path}: a folder of PNGs is read on this machine alone; copy it, or pack it")
    else:
        _refuse("sequences", categories=source.categories)
    if is_packed(path):
        found = "is an annotation file that `pack` made, not results"
        raise SubmissionError.of(Problem(path, found, "Name the results first, and this file as the truth"))
    truths, notes = _opened(source, rules.protocol, progress)
    chosen = request.split or source.subset
    if chosen and chosen not in truths:
        raise UsageError(f"{source.path} has no split {chosen!r}, only {', '.join(truths)}")
    splits: dict[str, SplitTruth] = {}
    for name in [chosen] if chosen else truths:
        notes += _notes(name, truths[name], rules.protocol)
        splits[name] = with_sequences(truths[name], request.sequences)
    return PreparedScoring(path, source.path, rules, splits, sequences_of(truths), notes)


def with_sequences(truth: SplitTruth, names: Iterable[str] | None) -> SplitTruth:
    """Return the truth of some sequences; instance masks have none and stay whole."""
    if names is None or isinstance(truth, InstanceTruth):
        return truth
    wanted = list(names)
    if isinstance(truth, UnitTruth):
        units = {unit.name: unit for unit in truth.units}
        return replace(truth, units=[units[name] for name in _known(wanted, units)])
    known = {sequence.name: sequence for sequence in truth.sequences}
    return replace(truth, sequences=[known[name] for name in _known(wanted, known)])


def _known(wanted: list[str], known: Mapping[str, object]) -> list[str]:
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"the truth has no sequence {', '.join(unknown)}")
    return wanted


def _opened(
    source: TruthSource, protocol: TrackProtocol, progress: Progress
) -> tuple[Mapping[str, SplitTruth], list[str]]:
    """Return the splits of a truth for a protocol, and what is odd about it."""
    if isinstance(protocol, InstanceProtocol):
        instances = open_instances(source, progress)
        return instances.splits, instances.notes
    if not isinstance(protocol, SequenceProtocol):
        _refuse(protocol.track, layout=source.layout, unseen=source.unseen)
        return open_units(source, protocol.track), []
    if is_packed(source.path):
        _refuse(f"{source.path}, which is a packed file", layout=source.layout, unseen=source.unseen)
        opened = sequence_truth.read(source.path)
    else:
        default = protocol.name if protocol.name in LAYOUTS else ""
        opened = read_published(replace(source, layout=source.layout or default))
    return opened.splits, list(opened.notes)


def _refuse(subject: str, **options: object) -> None:
    """Raise OptionError for an option that would be ignored."""
    for name, value in options.items():
        if value:
            raise OptionError(f"{name} has no meaning for {subject}")


def _notes(name: str, truth: SplitTruth, protocol: TrackProtocol) -> list[str]:
    """Return what is odd about the truth of a split, for this protocol."""
    if not isinstance(truth, Split):
        return [f"{name}: {note}" for note in truth.notes]
    if isinstance(protocol, SequenceProtocol) and protocol.by_class and not truth.unseen_known:
        return [f"{name}: nothing says which classes are unseen (--unseen FILE); all count as seen"]
    return []
