"""Scores and requests for them: results on any truth, or in a phase of a bundle.

A request is opened and checked before scoring; it is then scored here, or in parts elsewhere (`sharing`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, describe_unknown, engine_of
from segjudge.evaluation_script.families.base.family import (
    FamilyProtocol,
    Progress,
    ScoringRules,
    Values,
    ignore_progress,
)
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
from segjudge.evaluation_script.files import Problem, SubmissionError, name_hint, name_list
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.runner.parallel import Meanwhile, cores
from segjudge.evaluation_script.scoring.provenance import numbers_of, provenance
from segjudge.evaluation_script.scoring.scorer import Scorer, is_packed, phase_scorers
from segjudge.evaluation_script.values import dataclass
from segjudge.families import describe_unknown_metric, tools_of
from segjudge.families.truths import TruthSource, open_truth
from segjudge.scoring.upload_names import name_results, name_results_in_errors
from segjudge.system.addresses import digest_of, resolve_address
from segjudge.system.arguments import FLAG, PATH, TEXT, check_arguments, check_options, describe_value
from segjudge.system.errors import ArgumentTypeError, OptionError, UnknownMetricError, UsageError
from segjudge.system.files import name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from segjudge.evaluation_script.scoring import Phase

#: The attributes of every protocol's row.
_OF_PROTOCOLS = ("family", "name")
#: The maximum number of processes, or of an executor's parts.
_MOST_JOBS = 100_000
#: The size in bytes above which a truth is read in another process.
_LARGE = 1 << 22
#: The bytes of results and truth above which several processes save more time than they take to start: one second for
#: PNG maps or masks, half a second for JSON.
_WORTH_SHARING = 1 << 25


def load(path: str | os.PathLike[str]) -> Scores:
    """Return the scores that `save` wrote; raises UsageError if they cannot be read."""
    from segjudge.scoring.parts import merge_parts, read_costs

    check_arguments(PATH, path=path)
    path = os.fspath(path)
    return Scores(*merge_parts([path]), costs=read_costs(path))


@dataclass(frozen=True)
class Scores:
    """The scores of results, split by split; a value is None if there is nothing to average."""

    reports: list[Report]
    #: The oddities of the truth.
    notes: list[str] = field(default_factory=list)
    #: The version, the protocols and their revisions, digests of truth and submission, and the counter (kernel or
    #: numpy).
    provenance: dict[str, Any] = field(default_factory=dict)
    #: The request, if its files can be read again.
    request: ScoreRequest | None = None
    #: The prepared scoring, if it is still open.
    opened: PreparedScoring | None = None
    #: The cost of each kind of failure by split, if saved.
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        from segjudge.report.tables import format_report

        return "\n\n".join(format_report(report, compare=False) for report in self.reports)

    def _repr_html_(self) -> str:
        from segjudge.scoring.notebook import render_scores

        return render_scores(self)

    def __getitem__(self, metric: str) -> float | None:
        """Return a metric of the only split; raises UnknownMetricError, which is a KeyError, for an unknown name."""
        if len(self.reports) > 1:
            splits = [report.split for report in self.reports]
            text = f"these scores have the splits {name_list(splits, 20)}; name one: scores.metrics[{splits[0]!r}]"
            raise UsageError(f"{text}[{metric!r:.60}]")
        report = self.choose_report("")
        if metric not in self:
            raise UnknownMetricError(describe_unknown_metric(report.protocol.name, metric, report.values))
        return report.values[metric]

    def __contains__(self, metric: object) -> bool:
        return isinstance(metric, str) and any(metric in report.values for report in self.reports)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the metrics, of all splits."""
        return iter(dict.fromkeys(metric for report in self.reports for metric in report.values))

    def __eq__(self, scores: object) -> bool:
        return isinstance(scores, Scores) and self._contents == scores._contents

    __hash__ = None  # type: ignore[assignment] # they hold lists

    @property
    def _contents(self) -> tuple[object, ...]:
        """Return the content that decides if two scores are equal."""
        return self.metrics, self.tables, self.warnings, self.notes, self.provenance

    @property
    def metrics(self) -> dict[str, Values]:
        """Return the overall metrics of each split: the protocol's and the additional ones."""
        return {report.split: report.values for report in self.reports}

    @property
    def standard_errors(self) -> dict[str, Values]:
        """Return the standard errors of each split's metrics, if known."""
        return {report.split: report.errors() for report in self.reports}

    @property
    def tables(self) -> dict[str, list[Row]]:
        """Return the rows by table: `sequences` and `objects`, or `categories`."""
        from segjudge.evaluation_script.scoring.answer import join_rows

        return join_rows(self.reports)

    @property
    def hidden(self) -> list[str]:
        """Return the splits whose scores are hidden from participants, according to a phase or a file."""
        from segjudge.scoring.document import list_hidden_splits

        return list_hidden_splits(self.reports, self.notes)

    @property
    def warnings(self) -> list[str]:
        """Return the warnings for participants about results that were scored."""
        return [line for report in self.reports for line in report.warnings]

    def table(self, name: str) -> DataFrame:
        """Return a table of pandas, of all splits: one of `tables`, or one of the properties below."""
        from segjudge.report.tables import make_frame

        check_arguments(TEXT, name=name)
        more = [tools_of(report.protocol.family).make_columns(report) for report in self.reports]
        return make_frame(self.reports, more, name)

    @property
    def sequences(self) -> DataFrame:
        """Return the metrics of each sequence."""
        return self.table("sequences")

    @property
    def objects(self) -> DataFrame:
        """Return the metrics of each object."""
        return self.table("objects")

    @property
    def frames(self) -> DataFrame:
        """Return J and F of each object in each of its scored frames."""
        return self.table("frames")

    @property
    def categories(self) -> DataFrame:
        """Return the metrics of each category."""
        return self.table("categories")

    @property
    def images(self) -> DataFrame:
        """Return the number of instances found in each image at an IoU of one half, with any score."""
        return self.table("images")

    @property
    def curves(self) -> DataFrame:
        """Return the precision of each category by IoU and recall, over all sizes."""
        return self.table("curves")

    @cached_property
    def kinds(self) -> DataFrame:
        """Return the cost of each kind of failure per object, category or unit; except for units, this reads files."""
        from segjudge.report.tables import to_frame

        open_once = cache(self.open_inputs)
        return to_frame(
            [
                {"split": report.split, **row}
                for report in self.reports
                for row in tools_of(report.protocol.family).list_failures(open_once, report)
            ]
        )

    @property
    def is_on_files(self) -> bool:
        """Return True if the scored files can be read again."""
        return self.opened is not None or self.request is not None

    @property
    def title(self) -> str:
        """Return the title on pages: the name of the results."""
        path = self.opened.results if self.opened else self.request.results if self.request else ""
        return name_of(path) if path else "Scores"

    def open_inputs(self) -> PreparedScoring:
        """Reopen the scored files, for data that scores lack."""
        if self.opened is not None:
            return self.opened
        if self.request is None:
            raise UsageError("kinds of failure need results that `score` read from files")
        return prepare(self.request)

    def page(self, *, images: str | os.PathLike[str] = "", budget: int = 6, title: str = "") -> str:
        """Make the page that `report` writes, as HTML.

        Args:
            images: the dataset's pictures, over which masks are drawn.
            budget: megabytes that the page may have.
            title: its title (default: the names of the results).

        """
        from segjudge.report.page import make_page_options, render_page
        from segjudge.scoring.report import make_report

        options = make_page_options(images, budget)
        check_options(TEXT, title=title)
        return render_page(make_report(self, title or self.title, options))

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the page of `segjudge report`, with errors and their places; the options are those of `page`."""
        from segjudge.report.browser import write_html

        write_html(self.page(**options), path)

    def show(self, **options: Any) -> None:
        """Show that page: below the cell of a notebook, elsewhere in a browser."""
        from segjudge.report.browser import show_html

        show_html(self.page(**options))

    def film(self, path: str | os.PathLike[str], *, split: str = "", **choice: Any) -> None:
        """Write frames of a sequence side by side, at print resolution.

        Args:
            path: the figure to write: .pdf and .svg have outlines and letters as vectors, .png 300 dots an inch.
            split: the name of the split, required if there are several.
            choice: `sequence` and `frames` (default: the costliest ones, as many as `columns`), `images` (the folder of
                the dataset's pictures), `errors` (draw errors instead of masks), `width` in inches.

        """
        from segjudge.families.base.tools import ScoredMethod
        from segjudge.scoring.figures import write_film

        method = ScoredMethod(self.title.partition(".")[0], self.open_inputs(), self.choose_report(split), {})
        write_film([method], os.fspath(path), **choice)

    def plot(self, metric: str = "", *, split: str = "") -> Figure:
        """Draw a metric of each sequence or category, the lowest first, beside the whole; needs matplotlib."""
        from segjudge.scoring.figures import plot_scores

        check_options(TEXT, metric=metric)
        return plot_scores(self.choose_report(split), metric)

    def interval(self, metric: str, level: float = 0.95, *, split: str = "") -> tuple[float, float] | None:
        """Return Student's t interval of a metric; None with too few sequences or images."""
        report = self.choose_report(split)
        if metric not in self or metric not in report.values:
            raise UsageError(describe_unknown_metric(report.protocol.name, metric, report.values))
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise UsageError(f"level is {level!r:.60}; give a number between 0 and 1, such as 0.95")
        return report.intervals(level).get(metric)

    def choose_report(self, split: str = "") -> Report:
        """Return the report of a split, or of the only one."""
        check_options(TEXT, split=split)
        chosen = [report for report in self.reports if not split or split == report.split]
        if len(chosen) != 1:
            raise UsageError(f"name one of the splits {', '.join(report.split for report in self.reports)}")
        return chosen[0]

    def flat(self, prefix: str = "") -> dict[str, float]:
        """Return the metrics that have a value, each under one name, for loggers.

        Names begin with the prefix, then the split where there are several.
        """
        several = len(self.reports) > 1
        return {
            f"{prefix}{report.split}/{metric}" if several else f"{prefix}{metric}": value
            for report in self.reports
            for metric, value in report.values.items()
            if value is not None
        }

    def save(self, path: str | os.PathLike[str], *, kinds: bool = False) -> None:
        """Write the counts to a file that `load` reads; `docs/scale.md` describes it.

        Args:
            path: the file.
            kinds: also write the cost of each kind of failure, for comparisons; this reads the masks again.

        """
        from segjudge.scoring.parts import save

        check_arguments(PATH, path=path)
        check_arguments(FLAG, kinds=kinds)
        costs = self.costs
        if kinds and self.is_on_files:
            inputs = self.open_inputs()
            costs = {
                report.split: tools_of(report.protocol.family).sum_failures(inputs, report) for report in self.reports
            }
        save(os.fspath(path), self.reports, self.notes, self.provenance, costs)


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
            jobs = count_processes("auto", results, self.truth)
            scorers = {
                split: replace(scorer, rules=replace(scorer.rules, jobs=jobs)) for split, scorer in scorers.items()
            }
        request = self.request and replace(self.request, results=path)
        return replace(self, results=results, scorers=scorers, request=request)

    def score(self, progress: Progress = ignore_progress) -> Scores:
        """Score in this process and its forks."""
        with name_results_in_errors(self.results):
            reports = [scorer.score(self.results, progress) for scorer in self.scorers.values()]
        for report in reports:
            report.warnings[:] = [name_results(line, self.results) for line in report.warnings]
        opened = self if self.request is None or self.request.keeps_open else None
        return Scores(reports, self.notes, self.provenance() if self.is_identified else {}, self.request, opened)

    def provenance(self) -> dict[str, Any]:
        protocols = {split: scorer.rules.protocol for split, scorer in self.scorers.items()}
        limits = numbers_of(next(iter(self.scorers.values())).rules.limits)
        truth, results = self.digests[0] or digest_of(self.truth), self.digests[1] or digest_of(self.results)
        return provenance(protocols, truth, results, backend().name, limits)


class ScoredSubmissions(NamedTuple):
    """Several submissions scored on one truth, without their counts."""

    #: The oddities of the truth.
    notes: list[str]
    #: The protocols by split.
    protocols: dict[str, FamilyProtocol]
    #: The name of each submission, and its metrics by split or the reason why it has none.
    rows: list[tuple[str, dict[str, Values] | str]]
    warnings: list[str]
    #: The documents of all submissions, if they are identified.
    documents: list[dict[str, Any]]


def score_several(
    prepared: PreparedScoring, paths: Sequence[str], progress: Progress = ignore_progress
) -> ScoredSubmissions:
    """Score submissions one after the other on one open truth; each is scored as if alone, or has a fault."""
    from segjudge.evaluation_script.scoring.answer import limit_warnings
    from segjudge.scoring.document import make_scores_document

    protocols = {split: scorer.rules.protocol for split, scorer in prepared.scorers.items()}
    submissions = ScoredSubmissions(prepared.notes, protocols, [], [], [])
    for name, path in zip(name_submissions(paths), paths, strict=True):
        document: dict[str, Any] = {"name": name}
        try:
            scores = prepared.for_results(path).score(progress)
        except SubmissionError as error:
            submissions.rows.append((name, str(error)))
            document["error"] = str(error)
        else:
            submissions.rows.append((name, scores.metrics))
            submissions.warnings.extend(f"{name}: {line}" for line in limit_warnings(scores.warnings))
            if prepared.is_identified:
                prepared = replace(prepared, digests=(scores.provenance["truth"], ""))  # it is computed once
                document |= make_scores_document(scores.reports, scores.provenance, scores.notes)
        submissions.documents.append(document)
    return submissions


def name_submissions(paths: Sequence[str]) -> list[str]:
    """Return the names of submissions: their file names, or their paths if names repeat."""
    names = [name_of(path) for path in paths]
    return names if len({*names}) == len(names) else list(map(os.fspath, paths))


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
    if request.phase is not None:
        prepared = prepare_phase(path, request.phase, source.path, request.split, request.sequences)
        return replace(prepared, request=request)
    jobs = count_processes(request.jobs, path, source.path)
    rules = ScoringRules(request.protocol, LOCAL_LIMITS, strict=request.strict, jobs=jobs)
    values = {"sequences": request.sequences, **source._asdict()}
    for option in ("sequences", "layout", "unseen", "categories"):
        if values[option] and option not in FAMILIES[request.protocol.family].options:
            raise OptionError(f"{option} does not apply to {request.protocol.family}")
    refuse_packed(path)
    digest = digest_of if request.is_identified else lambda _path: ""
    rules, annotations, digests = _open_truth(path, source, rules, progress, digest)
    truths, notes = annotations.splits, list(annotations.notes)
    split = request.split or source.subset
    if split and split not in truths:
        raise UsageError(f"{source.path} has no split {split!r}{name_hint(split, truths)}")
    scorers = {}
    for name in [split] if split else truths:
        notes += [f"{name}: {note}" for note in truths[name].list_oddities(rules.protocol)]
        scorers[name] = Scorer(name, choose_sequences(truths[name], request.sequences, rules.protocol), rules)
    return PreparedScoring(path, source.path, scorers, notes, request, digests)


def refuse_packed(path: str) -> None:
    """Raise SubmissionError for results that are an annotation file."""
    if is_packed(path):
        fault = "is an annotation file of `pack`, not results"
        raise SubmissionError.from_problem(Problem(path, fault, "Name the results first, and this file as the truth"))


def count_processes(jobs: int | Literal["auto"] | None, *paths: str) -> int:
    """Return the number of scoring processes: `auto` is one per core, or a single one for small files."""
    if jobs != "auto":
        return int(jobs or 1)
    return cores() if cores() > 1 and _are_large(paths) else 1


def _are_large(paths: Iterable[str]) -> bool:
    """Return whether files and folders are large enough for several processes to pay off."""
    total = 0
    waiting = list(paths)
    while waiting and total < _WORTH_SHARING:
        path = waiting.pop()
        with suppress(OSError):
            if os.path.isdir(path):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink() or entry.is_file()]
            else:
                total += os.path.getsize(path)
    return total >= _WORTH_SHARING


def _open_truth(
    path: str, source: TruthSource, rules: ScoringRules, progress: Progress, digest_of: Callable[[str], str]
) -> tuple[ScoringRules, AnnotationFile[SplitTruth], tuple[str, str]]:
    """Open a truth; another process opens a large one while this process begins to read the results."""
    read_ahead = engine_of(rules.protocol.family).read_ahead
    is_small = not os.path.isfile(source.path) or os.path.getsize(source.path) < _LARGE
    if rules.jobs == 1 or not read_ahead or not path or is_small:
        return rules, open_truth(source, rules.protocol, progress), ("", "")

    def read() -> tuple[AnnotationFile[SplitTruth], str]:
        return open_truth(source, rules.protocol), digest_of(source.path)

    with closing(Meanwhile(read)) as truth:
        ahead = read_ahead(path, rules.protocol, rules, truth.is_awaited)
        digest = digest_of(path) if ahead else ""
        annotations, digest_of_truth = truth.result()
    return replace(rules, ahead=ahead), annotations, (digest_of_truth, digest) if digest else ("", "")


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
    return PreparedScoring(results, annotations, scorers, _note_hidden(phase.hidden & scorers.keys()))


def _note_hidden(hidden: Collection[str]) -> list[str]:
    """Record which splits are hidden, in the form of files and pages."""
    if not hidden:
        return []
    from segjudge.scoring.document import HIDDEN

    return [f"{name} {HIDDEN}" for name in sorted(hidden)]


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
