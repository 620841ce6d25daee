"""A request for scores: results, a truth, and options; here it is opened, checked, and scored or counted.

Results are scored on any truth, or in a phase of a bundle. `sharing` has parts of a request counted elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, describe_unknown, engine_of
from segjudge.evaluation_script.families.base.family import (
    FamilyProtocol,
    Progress,
    ScoringRules,
    Values,
    ignore_progress,
)
from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.files import Problem, SubmissionError, name_hint, name_list
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.runner.parallel import Part, cores, results_of_processes
from segjudge.evaluation_script.scoring.provenance import numbers_of, provenance
from segjudge.evaluation_script.scoring.scorer import Scorer, is_packed, phase_scorers
from segjudge.families.truths import TruthSource, open_truth
from segjudge.report.sentences import HIDDEN
from segjudge.scoring.results_names import ResultsName, name_results_in_errors
from segjudge.scoring.scores import ScoredSubmissions, Scores
from segjudge.system.addresses import digest_of, name_addresses_in_errors, resolve_address
from segjudge.system.arguments import describe_value
from segjudge.system.errors import ArgumentTypeError, OptionError, UsageError
from segjudge.system.files import name_of

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring import Phase

_Scored = TypeVar("_Scored")

#: The attributes of every protocol's row.
_OF_PROTOCOLS = ("family", "name")
#: The maximum number of processes, or of an executor's parts.
_MOST_JOBS = 100_000
#: The bytes of results that are read as a whole, with their truth, and the files in folders, above which `auto` uses
#: several processes from the start.
_MANY_BYTES, _MANY_FILES = 1 << 24, 2000


@dataclass(frozen=True)
class ScoreRequest:
    """Results, a truth, and the options of scoring, which `segjudge.score` describes."""

    results: str
    truth: TruthSource
    protocol: FamilyProtocol
    split: str = ""
    #: The sequences; None for all.
    sequences: list[str] | None = None
    strict: bool = False
    jobs: int | Literal["auto"] | None = None
    #: The phase of a bundle that scores, with its own protocols, limits and processes; the truth is one file.
    phase: Phase | None = None
    #: Keep the scored files open, for pages and kinds of failure.
    keeps_open: bool = False
    #: Compute digests of truth and results, which files and pages state.
    is_identified: bool = True

    def __post_init__(self) -> None:
        """Raise UsageError for an impossible number of processes."""
        whole = isinstance(self.jobs, int) and not isinstance(self.jobs, bool) and self.jobs > 0
        if whole and int(self.jobs or 1) > _MOST_JOBS:
            raise UsageError(f"jobs is {self.jobs!r:.60}: give at most {_MOST_JOBS:,}")
        if not whole and self.jobs is not None and not (isinstance(self.jobs, str) and self.jobs == "auto"):
            raise UsageError(f"jobs is {self.jobs!r:.60}: give a whole number of at least 1, or 'auto'")


@dataclass(frozen=True)
class PreparedScoring:
    """Results, and their truth and rules."""

    results: str
    truth: str
    #: The scorers by split.
    scorers: dict[str, Scorer]
    #: The oddities of the truth.
    notes: list[str] = field(default_factory=list)
    #: The request, if it can be repeated.
    request: ScoreRequest | None = None
    #: The digests of truth and results, if known.
    digests: tuple[str, str] = ("", "")

    @property
    def is_identified(self) -> bool:
        """Return True if the scores state digests of truth and results."""
        return self.request is None or self.request.is_identified

    def for_results(self, path: str) -> PreparedScoring:
        """Return the scoring of other results by the same truth and rules."""
        results, scorers = resolve_address(path, SubmissionError), self.scorers
        refuse_packed(results)
        if self.request and self.request.jobs == "auto" and self.request.phase is None:
            paths = results, self.truth
            scorers = {
                split: replace(scorer, rules=set_processes(scorer.rules, "auto", paths))
                for split, scorer in scorers.items()
            }
        request = self.request and replace(self.request, results=path)
        return replace(self, results=results, scorers=scorers, request=request)

    def with_one_process(self) -> PreparedScoring:
        """Return the same scoring by a single process."""
        scorers = {
            split: replace(scorer, rules=replace(scorer.rules, jobs=1, most_jobs=1))
            for split, scorer in self.scorers.items()
        }
        return replace(self, scorers=scorers, request=self.request and replace(self.request, jobs=1))

    def score(self, progress: Progress = ignore_progress, *, examines: bool = True) -> Scores:
        """Score in this process and its forks; unless told not to, the doctor examines results that score low."""
        with name_results_in_errors(self.results), name_addresses_in_errors(self.truth):
            reports = [scorer.score(self.results, progress, examines=examines) for scorer in self.scorers.values()]
        name = ResultsName.read(self.results)
        for report in reports:
            report.warnings[:] = map(name.put_into, report.warnings)
        request = self.request
        reopen = (lambda: self) if request is None or request.keeps_open else partial(prepare, request)
        path = request.results if request else self.results
        return Scores(reports, self.notes, self.provenance() if self.is_identified else {}, path, reopen, name=name)

    def provenance(self) -> dict[str, Any]:
        protocols = {split: scorer.rules.protocol for split, scorer in self.scorers.items()}
        limits = numbers_of(next(iter(self.scorers.values())).rules.limits)
        truth, results = self.digests
        return provenance(
            protocols, truth or digest_of(self.truth), results or digest_of(self.results), backend().name, limits
        )


def score_several(
    prepared: PreparedScoring,
    paths: Sequence[str],
    progress: Progress = ignore_progress,
    count_submissions: Progress = ignore_progress,
) -> ScoredSubmissions:
    """Score submissions on one open truth; each is scored as if alone, or has a fault."""
    from segjudge.evaluation_script.scoring.answer import limit_warnings

    names, protocols = (
        name_submissions(paths),
        {split: scorer.rules.protocol for split, scorer in prepared.scorers.items()},
    )
    if prepared.is_identified:  # the truth's digest is computed once
        prepared = replace(prepared, digests=(prepared.digests[0] or digest_of(prepared.truth), ""))

    def score_one(
        opened: PreparedScoring, number: int, progress: Progress
    ) -> tuple[int, str, dict[str, Values], list[str], dict[str, Any]]:
        try:
            scores = opened.for_results(paths[number]).score(progress)
        except SubmissionError as error:
            return number, str(error), {}, [], {"error": str(error)}
        return number, "", scores.metrics, scores.warnings, scores.document() if opened.is_identified else {}

    submissions = ScoredSubmissions(prepared.notes, protocols, [], [], [])
    rows = score_each(prepared, paths, score_one, progress, count_submissions)
    for number, fault, metrics, warnings, document in sorted(rows, key=itemgetter(0)):
        submissions.rows.append((names[number], fault or metrics))
        submissions.warnings.extend(f"{names[number]}: {line}" for line in limit_warnings(warnings))
        submissions.documents.append({"name": names[number], **document})
    return submissions


def score_each(
    prepared: PreparedScoring,
    paths: Sequence[str],
    score_one: Callable[[PreparedScoring, int, Progress], _Scored],
    progress: Progress = ignore_progress,
    count_submissions: Progress = ignore_progress,
) -> Iterator[_Scored]:
    """Yield what `score_one` returns for each of these results by its number, as they arrive.

    With at least as many submissions as processes, each process scores whole submissions, and `count_submissions` is
    the progress; else all score one submission after the other.
    """
    rules, names = next(iter(prepared.scorers.values())).rules, name_submissions(paths)
    most_jobs = max(rules.jobs, rules.most_jobs)
    most_jobs = most_jobs if most_jobs <= len(paths) else 1
    if most_jobs > 1:
        prepared, progress = prepared.with_one_process(), ignore_progress
    else:
        count_submissions = ignore_progress
    costs = [os.path.getsize(path) if os.path.isfile(path) else _MANY_BYTES for path in paths]
    is_large = rules.jobs > 1 or sum(costs) >= _MANY_BYTES // 2
    begun = iter(range(len(paths)))
    return results_of_processes(
        lambda number: score_one(prepared, number, progress),
        costs,
        most_jobs if is_large else 1,
        lambda number: count_submissions(names[number], next(begun), len(paths)),
        most_jobs,
    )


def name_submissions(paths: Sequence[str]) -> list[str]:
    """Return the names of submissions: their file names, or their paths if names repeat."""
    names = [name_of(path) for path in paths]
    return names if len({*names}) == len(names) else list(map(os.fspath, paths))


class PartCounter:
    """Counts parts of one scoring; truth and results are opened once for all of them."""

    def __init__(self, job: PreparedScoring) -> None:
        self._job = job
        with name_results_in_errors(job.results):
            self._opened = {split: scorer.open(job.results) for split, scorer in job.scorers.items()}
        self._provenance = job.provenance()

    def write(self, share: Part, out: str, progress: Progress = ignore_progress, *, refuse: bool = True) -> None:
        """Count a part of the sequences or images of every split, and write the counts to a file for `merge_parts`.

        Unusable masks reject the part, or are reported when the parts are merged.
        """
        with name_results_in_errors(self._job.results), name_addresses_in_errors(self._job.truth):
            counts = {
                split: scorer.count(self._opened[split], share, progress) for split, scorer in self._job.scorers.items()
            }
            for accumulator in counts.values() if refuse else ():
                accumulator.refuse_problems()
        from segjudge.scoring.parts import write_part

        write_part(out, share, counts, self._job.notes, self._provenance, results=ResultsName.read(self._job.results))

    def close(self) -> None:
        """Close the results."""
        for opened in self._opened.values():
            opened.close()


def find_protocol(protocol: str | FamilyProtocol) -> FamilyProtocol:
    """Return the protocol of this name; a protocol object is returned unchanged."""
    if not isinstance(protocol, str):
        if isinstance(protocol, type) or not all(hasattr(protocol, name) for name in _OF_PROTOCOLS):
            row = "the name of a protocol (`segjudge benchmarks` lists them), or a row of PROTOCOLS"
            raise ArgumentTypeError(f"protocol is {describe_value(protocol)}; give {row}")
        return protocol
    if protocol not in PROTOCOLS:
        raise UsageError(describe_unknown(protocol))
    return PROTOCOLS[protocol]


def prepare(request: ScoreRequest, progress: Progress = ignore_progress) -> PreparedScoring:
    """Open a truth and check the request against it, as `score` does before it scores."""
    path, truth = resolve_address(request.results, SubmissionError), request.truth
    source = truth._replace(
        path=resolve_address(truth.path),
        unseen=resolve_address(truth.unseen),
        categories=resolve_address(truth.categories),
    )
    with name_addresses_in_errors(path, source.path, source.unseen, source.categories):
        if request.phase is None:
            return _prepare(request, path, source, progress)
        prepared = prepare_phase(path, request.phase, source.path, request.split, request.sequences)
        return replace(prepared, request=request)


def _prepare(request: ScoreRequest, path: str, source: TruthSource, progress: Progress) -> PreparedScoring:
    """Open a truth and check a request without a phase, whose files are on this machine."""
    rules = ScoringRules(request.protocol, LOCAL_LIMITS, strict=request.strict)
    rules = set_processes(rules, request.jobs, (path, source.path))
    values = {"sequences": request.sequences, **source._asdict()}
    for option in ("sequences", "layout", "unseen", "categories"):
        if values[option] and option not in FAMILIES[request.protocol.family].options:
            raise OptionError(f"{option} does not apply to {request.protocol.family}")
    refuse_packed(path)
    annotations = open_truth(source, rules.protocol, progress)
    scorers, notes = {}, list(annotations.notes)
    for name, truth_of_split in choose_splits(annotations.splits, source, request.split).items():
        notes += [f"{name}: {note}" for note in truth_of_split.list_oddities(rules.protocol)]
        scorers[name] = Scorer(name, choose_sequences(truth_of_split, request.sequences, rules.protocol), rules)
    return PreparedScoring(path, source.path, scorers, notes, request)


def refuse_packed(path: str) -> None:
    """Raise SubmissionError for results that are an annotation file."""
    if is_packed(path):
        fault = "is an annotation file of `pack`, not results"
        raise SubmissionError.from_problem(Problem(path, fault, "Name the results first, and this file as the truth"))


def set_processes(rules: ScoringRules, jobs: int | Literal["auto"] | None, paths: Iterable[str]) -> ScoringRules:
    """Return rules with their processes: for `auto` one per core, from the start or once counting shows they pay."""
    if jobs != "auto":
        return replace(rules, jobs=jobs or 1)
    several = cores()
    begin = several > 1 and _are_large(paths, are_read_whole=engine_of(rules.protocol.family).reads_whole)
    return replace(rules, jobs=several if begin else 1, most_jobs=several)


def _are_large(paths: Iterable[str], *, are_read_whole: bool) -> bool:
    """Return whether several processes surely save more time than they take to start."""
    size, count, folders = 0, 0, list[str]()
    for path in paths:
        with suppress(OSError):
            if os.path.isdir(path):
                folders.append(path)
            elif are_read_whole:
                size += os.path.getsize(path)
    while folders and count < _MANY_FILES:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    count += 1
    return size >= _MANY_BYTES or count >= _MANY_FILES


def prepare_phase(
    results: str, phase: Phase, annotations: str, split: str = "", sequences: Iterable[str] | None = None
) -> PreparedScoring:
    """Open the inputs of a phase or of one split; links in the user's own folders are followed."""
    from segjudge.evaluation_script.main import open_truth as open_phase_truth

    phase = replace(phase, limits=replace(phase.limits, links=True))
    codenames = [phase_split.codename for phase_split in phase.splits]
    if split not in ("", *codenames):
        raise UsageError(f"{phase.codename} has no split {split!r}{name_hint(split, codenames)}")
    truths, names = open_phase_truth(annotations, phase), read_names(sequences)
    scorers = {}
    for scorer in phase_scorers(phase, truths, split):
        truth = choose_sequences(scorer.truth, names, scorer.rules.protocol)
        scorers[scorer.split] = replace(scorer, truth=truth)
    notes = [f"{name} {HIDDEN}" for name in sorted(phase.hidden & scorers.keys())]
    return PreparedScoring(results, annotations, scorers, notes)


def read_names(sequences: Iterable[object] | None) -> list[str] | None:
    """Return the names of sequences, each once; None for all.  Raises UsageError for an empty or invalid list."""
    if sequences is None:
        return None
    if isinstance(sequences, str):
        raise UsageError(f"sequences is a single string: give a list of names, such as [{sequences!r}]")
    try:
        names = list(sequences)
    except TypeError:
        raise UsageError(f"sequences has the type {type(sequences).__name__}: give a list of names") from None
    odd = [name for name in names if not isinstance(name, (str, int)) or isinstance(name, bool)]
    if odd or not names:
        fault = f"names {odd[0]!r}, which is not a name" if odd else "names none"
        raise UsageError(f"sequences {fault}: give a list of names, or omit it for all")
    return list(dict.fromkeys(map(str, names)))


def choose_splits(truths: Mapping[str, SplitTruth], source: TruthSource, split: str) -> Mapping[str, SplitTruth]:
    """Return the named split, or else the source's subset, or all splits; raises UsageError for an unknown one."""
    name = split or source.subset
    if name and name not in truths:
        raise UsageError(f"{source.path} has no split {name!r}{name_hint(name, truths)}")
    return {name: truths[name]} if name else truths


def choose_sequences(truth: SplitTruth, names: Iterable[object] | None, protocol: FamilyProtocol) -> SplitTruth:
    """Return the truth of some sequences, as a protocol names them; instance masks have none and stay whole."""
    chosen = read_names(names)
    if chosen is None:
        return truth
    try:
        return truth.select(chosen, protocol)
    except KeyError as error:
        unknown, items = list(error.args), truth.item_names
        raise UsageError(f"the truth has no sequence {name_list(unknown)}{name_hint(unknown[0], items, 20)}") from None
