"""Score on this machine without a command line: on any truth, or by a phase of a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from segjudge.datasets.opening import LAYOUTS, TruthSource, is_packed, open_instances, open_sequences
from segjudge.errors import OptionError, UsageError
from segjudge.evaluation_script.annotation_file import SplitTruth
from segjudge.evaluation_script.answer import Report, Row, joined_rows
from segjudge.evaluation_script.archive_limits import ArchiveLimits
from segjudge.evaluation_script.errors import Problem, SubmissionError
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.main import count_split, open_truth, rules_of, score_split, sequences_of, truth_of
from segjudge.evaluation_script.parallel import Part, cores
from segjudge.evaluation_script.phase import PROTOCOLS, Phase, ScoringRules, TrackProtocol
from segjudge.evaluation_script.progress import Progress, ignore_progress
from segjudge.evaluation_script.sequence_accumulator import SequenceAccumulator
from segjudge.evaluation_script.sequence_metrics import Values
from segjudge.evaluation_script.sequence_truth import Split

#: A participant's own machine has more room than EvalAI's worker, and links in a folder are the participant's own.
LOCAL_LIMITS = ArchiveLimits(
    members=5_000_000, total_bytes=1 << 40, memory_bytes=1 << 32, json_bytes=1 << 31, links=True
)


@dataclass(frozen=True)
class Scores:
    """What results scored, split by split; None stands where there is nothing to average."""

    reports: list[Report]
    #: What is odd about the truth.
    notes: list[str] = field(default_factory=list)

    @property
    def metrics(self) -> dict[str, Values]:
        """The overall metrics of each split, those of the protocol and those beside it."""
        return {report.split: report.values for report in self.reports}

    @property
    def standard_errors(self) -> dict[str, Values]:
        """The standard errors of each split's metrics, where there are any."""
        return {report.split: report.errors() for report in self.reports}

    @property
    def tables(self) -> dict[str, list[Row]]:
        """Rows by table: `sequences` and `objects`, or `categories`."""
        return joined_rows(self.reports)

    @property
    def warnings(self) -> list[str]:
        """What a participant should know though the results were scored."""
        return [line for report in self.reports for line in report.warnings]


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


def score(  # noqa: PLR0913 - published: what a user may say of results and truth
    results: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    protocol: str | TrackProtocol = "davis2017",
    *,
    subset: str = "",
    split: str = "",
    sequences: Iterable[str] | None = None,
    layout: str = "",
    unseen: str = "",
    categories: str = "",
    strict: bool = False,
    jobs: int | Literal["auto"] | None = None,
    progress: Progress = ignore_progress,
) -> Scores:
    """Score results on a truth, exactly as a challenge with this protocol would.

    Args:
        results: a folder, zip, tar(.gz) or JSON with the predicted masks.
        truth: a packed annotation file, or a dataset's folder or zip as it was published; of instances COCO's JSON
            or a folder of Places-style PNGs.
        protocol: the name of a protocol, or one of its rows with changes.
        subset: the list of sequences to score, e.g. val; in a packed file a split.
        split: the split to score (default: all).
        sequences: the sequences to score (default: all).
        layout: how a published dataset is laid out (default: as the protocol's dataset).
        unseen: a file with the names of unseen sequences or categories.
        categories: the file with the categories of Places-style PNGs.
        strict: whether warnings refuse the results.
        jobs: so many processes share the scoring; "auto": as many as there are cores that may be used.
        progress: called with a name, how many are done, and how many there are.

    Raises:
        SubmissionError: the results cannot be scored.
        HostError: the truth cannot be read.
        UsageError: the arguments do not go together.

    """
    job = prepared(
        results,
        truth,
        protocol,
        subset=subset,
        split=split,
        sequences=sequences,
        layout=layout,
        unseen=unseen,
        categories=categories,
        strict=strict,
        jobs=jobs,
        progress=progress,
    )
    return Scores(
        [
            score_split(job.path, name, part, job.rules, elsewhere=job.known, progress=progress)
            for name, part in job.splits.items()
        ],
        job.notes,
    )


def prepared(  # noqa: PLR0913 - as `score`
    results: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    protocol: str | TrackProtocol = "davis2017",
    *,
    subset: str = "",
    split: str = "",
    sequences: Iterable[str] | None = None,
    layout: str = "",
    unseen: str = "",
    categories: str = "",
    strict: bool = False,
    jobs: int | Literal["auto"] | None = None,
    progress: Progress = ignore_progress,
) -> PreparedScoring:
    """Open a truth and check what was said of it and of the results, as `score` does before it scores."""
    source = TruthSource(os.fspath(truth), layout, subset, unseen, categories)
    rules = ScoringRules(_protocol(protocol), LOCAL_LIMITS, strict=strict, jobs=_jobs(jobs))
    if isinstance(rules.protocol, InstanceProtocol):
        _refuse("instances", sequences=sequences, layout=layout, unseen=unseen)
    else:
        _refuse("sequences", categories=categories)
    path = os.fspath(results)
    if is_packed(path):
        found = "is an annotation file that `pack` made, not results"
        raise SubmissionError.of(Problem(path, found, "Name the results first, and this file as the truth"))
    truths, notes = _opened(source, rules.protocol, progress)
    chosen = split or subset
    if chosen and chosen not in truths:
        raise UsageError(f"{source.path} has no split {chosen!r}, only {', '.join(truths)}")
    parts: dict[str, SplitTruth] = {}
    for name in [chosen] if chosen else truths:
        notes += _notes(name, truths[name], rules.protocol)
        parts[name] = _part(truths[name], sequences)
    return PreparedScoring(path, source.path, rules, parts, sequences_of(truths), notes)


def score_part(job: PreparedScoring, part: Part, out: str, progress: Progress = ignore_progress) -> None:
    """Count a part of the sequences or images of every split, and write the counts to a file that `merged` takes."""
    from segjudge.parts import Origin, digest_of, write_part

    rules = job.rules
    counted = {
        name: count_split(job.path, name, truth, rules, elsewhere=job.known, part=part, progress=progress)
        for name, truth in job.splits.items()
    }
    for accumulator in counted.values():
        if isinstance(accumulator, SequenceAccumulator):
            accumulator.refuse_problems()
    origin = Origin(rules.protocol, rules.strict, digest_of(job.truth), digest_of(job.path), job.notes)
    write_part(out, part, origin, counted)


def score_by_phase(
    results: str,
    phase: Phase,
    annotations: str,
    *,
    split: str = "",
    sequences: Iterable[str] | None = None,
    progress: Progress = ignore_progress,
) -> Scores:
    """Score as a phase of a bundle does, limits included; links in a folder are followed, since they are one's own."""
    phase = replace(phase, limits=replace(phase.limits, links=True))
    chosen = [phase_split for phase_split in phase.splits if split in ("", phase_split.codename)]
    if not chosen:
        known = ", ".join(phase_split.codename for phase_split in phase.splits)
        raise UsageError(f"{phase.codename} has no split {split!r}, only {known}")
    truths = open_truth(annotations)
    reports = []
    for phase_split in chosen:
        name = phase_split.codename
        part, rules = _part(truth_of(phase, truths, name), sequences), rules_of(phase, phase_split)
        reports.append(score_split(results, name, part, rules, elsewhere=sequences_of(truths), progress=progress))
    return Scores(reports)


def _jobs(jobs: int | Literal["auto"] | None) -> int:
    return cores() if jobs == "auto" else jobs or 1


def _protocol(protocol: str | TrackProtocol) -> TrackProtocol:
    if not isinstance(protocol, str):
        return protocol
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}, only {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


def _opened(
    source: TruthSource, protocol: TrackProtocol, progress: Progress
) -> tuple[Mapping[str, SplitTruth], list[str]]:
    """Return the splits of a truth for a protocol, and what is odd about it."""
    if isinstance(protocol, InstanceProtocol):
        instances = open_instances(source, progress)
        return instances.splits, instances.notes
    if is_packed(source.path):
        _refuse(f"{source.path}, which is a packed file", layout=source.layout, unseen=source.unseen)
    default = protocol.name if protocol.name in LAYOUTS else ""
    opened = open_sequences(replace(source, layout=source.layout or default))
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
    if not isinstance(protocol, InstanceProtocol) and protocol.by_class and not truth.unseen_known:
        return [f"{name}: nothing says which classes are unseen (--unseen FILE); all count as seen"]
    return []


def _part(truth: SplitTruth, names: Iterable[str] | None) -> SplitTruth:
    """Return the truth of some sequences; instance masks have none and stay whole."""
    if names is None or not isinstance(truth, Split):
        return truth
    wanted = list(names)
    known = {sequence.name: sequence for sequence in truth.sequences}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"the truth has no sequence {', '.join(unknown)}")
    return replace(truth, sequences=[known[name] for name in wanted])
