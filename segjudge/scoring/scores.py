"""The scores of results: metrics, tables, documents, pages, figures, and the file that keeps the counts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Values
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files import name_list
from segjudge.families import check_columns, describe_unknown_metric, tools_of
from segjudge.report.browser import PicturedPage
from segjudge.report.sentences import HIDDEN
from segjudge.report.tables import (
    PLAIN,
    Look,
    format_means,
    format_number,
    format_report,
    format_submissions,
    to_frame,
)
from segjudge.system.arguments import FLAG, PATH, TEXT, Kind, check_arguments, check_options
from segjudge.system.errors import UnknownMetricError, UsageError
from segjudge.system.files import file_name, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from segjudge.families.base.tools import ScoringInputs
    from segjudge.report.page import PageOptions, ReportPage
    from segjudge.scoring.results_names import ResultsName

#: What descriptions of counts say of results, not of the truth.
_OF_RESULTS = ("notes", "suspicions")


def load(path: str | os.PathLike[str]) -> Scores:
    """Return the scores that `save` wrote; raises UsageError if they cannot be read."""
    from segjudge.scoring.parts import merge_parts, read_costs, read_name

    check_arguments(PATH, path=path)
    path = os.fspath(path)
    return Scores(*merge_parts([path]), costs=read_costs(path), name=read_name(path))


@dataclass(frozen=True, eq=False, repr=False)
class Scores(PicturedPage):
    """The scores of results, split by split; a value is None if there is nothing to average."""

    reports: list[Report]
    #: The oddities of the truth.
    notes: list[str] = field(default_factory=list)
    #: The version, the protocols and their revisions, digests of truth and submission, and the counter (kernel or
    #: numpy).
    provenance: dict[str, Any] = field(default_factory=dict)
    #: The path of the results; "" if they were in memory.
    results: str = ""
    #: Opens the scored files again, or returns them if they are still open; None if they are unknown.
    reopen: Callable[[], ScoringInputs] | None = None
    #: The cost of each kind of failure by split, if saved.
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: The name of the results in warnings; None if they were in memory.
    name: ResultsName | None = None

    def __repr__(self) -> str:
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
        return [report.split for report in self.reports if f"{report.split} {HIDDEN}" in self.notes]

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
        return self.reopen is not None

    @property
    def title(self) -> str:
        """Return the title on pages: the name of the results."""
        return name_of(self.results) if self.results else "Scores"

    def open_inputs(self) -> ScoringInputs:
        """Reopen the scored files, for data that scores lack."""
        if self.reopen is None:
            raise UsageError("kinds of failure need results that `score` read from files")
        return self.reopen()

    def document(self) -> dict[str, Any]:
        """Return everything with full precision, as the document of `score --json`."""
        errors = [{report.split: report.errors()} for report in self.reports]
        intervals = [{report.split: report.intervals()} for report in self.reports]
        return {**make_ranking_document(self), "errors": errors, "intervals": intervals}

    def make_texts(self, outputs: ScoreOutputs) -> ScoreTexts:
        """Return the texts that a command prints and writes."""
        from segjudge.evaluation_script.scoring.answer import limit_warnings

        check_arguments(Kind((ScoreOutputs,), "a ScoreOutputs of segjudge.scoring.scores"), outputs=outputs)
        document = _dump(self.document()) if outputs.json else ""
        public = [report for report in self.reports if report.split not in outputs.hidden]
        withheld = [report.split for report in self.reports if report.split in outputs.hidden]
        results_yaml = _make_results_yaml(public, outputs.hub_dataset) if outputs.results_yaml else ""
        tables, csv, verdicts = list[tuple[FamilyProtocol, str]](), dict[str, str](), dict[str, str]()
        style = dict[str, Any](look=outputs.look, all_metrics=outputs.all_metrics, columns=outputs.columns)
        for report in self.reports:
            check_columns(report.protocol, outputs.columns)
            tools = tools_of(report.protocol.family)
            official = tools.format_official(report) if outputs.is_official else ""
            table = official or format_report(report, compare=outputs.compares, **style) + "\n"
            tables.append((report.protocol, table))
            stems = {"global_results": format_means(report), **tools.make_files(report)} if outputs.csv else {}
            for stem, text in stems.items():
                is_only = stem == "results" and len(self.reports) == 1
                csv["results.csv" if is_only else f"{stem}-{file_name(report.split)}.csv"] = text
            if outputs.has_verdicts:
                verdicts[report.split] = tools.describe_loss(report)
        return ScoreTexts(tables, limit_warnings(self.warnings), document, results_yaml, csv, verdicts, withheld)

    def make_page(self, options: PageOptions, title: str = "") -> ReportPage:
        """Return the page of errors and their places; without the scored files, only metrics and tables."""
        from segjudge.evaluation_script.scoring.answer import limit_warnings
        from segjudge.families import describe_metrics
        from segjudge.report.page import (
            PageOptions,
            ReportPage,
            add_summary,
            describe_digests,
            join_splits,
            make_origins,
            make_tables,
        )

        check_arguments(Kind((PageOptions,), "what make_page_options returns"), options=options)
        check_options(TEXT, title=title)
        options = replace(options, budget=options.budget // max(len(self.reports), 1))
        inputs, splits = self.open_inputs() if self.is_on_files else None, {}
        for report in self.reports:
            tools, meanings = tools_of(report.protocol.family), describe_metrics(report)
            sections = [make_tables(report)] if inputs is None else tools.make_sections(inputs, report, options)
            splits[report.split] = add_summary(report, sections, meanings)
        warnings = [f"truth: {note}" for note in self.notes] + self.warnings
        origins = make_origins(limit_warnings(warnings), self.provenance)
        return ReportPage(title or self.title, [*join_splits(splits), origins], describe_digests(self.provenance))

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
        save(os.fspath(path), self.reports, self.notes, self.provenance, costs, self.name)


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

    def make_texts(self, outputs: ScoreOutputs) -> ScoreTexts:
        """Return the texts that a command prints and writes: tables, warnings, and the document of all submissions."""
        tables = list[tuple[FamilyProtocol, str]]()
        style = dict[str, Any](look=outputs.look, all_metrics=outputs.all_metrics, columns=outputs.columns)
        for split, protocol in self.protocols.items():
            check_columns(protocol, outputs.columns)
            rows = [(name, values if isinstance(values, str) else values[split]) for name, values in self.rows]
            table = format_submissions(split, list(protocol.metrics), rows, **style) + "\n"
            tables.append((protocol, table))
        document = _dump({"submissions": self.documents}) if outputs.json else ""
        faults = sum(isinstance(values, str) for _, values in self.rows)
        fault = f"{faults} of {len(self.rows)} submissions could not be scored" if faults else ""
        return ScoreTexts(tables, self.warnings, document, fault=fault)


# ── texts and files of commands ─────────────────────────────────────────────


class ScoreOutputs(NamedTuple):
    """The texts and files that a command needs of results."""

    #: The file of the document, or "-"; the folder of CSV files; the file of model hubs.
    json: str | None = None
    csv: str | None = None
    results_yaml: str | None = None
    #: The name of the data set on the hub, and the splits that its file omits.
    hub_dataset: str = ""
    hidden: frozenset[str] = frozenset()
    look: Look = PLAIN
    #: Show metrics that do not fit below the table.
    all_metrics: bool = False
    #: The only metrics of tables, in this order; all if empty.
    columns: Sequence[str] = ()
    #: Show published numbers, for results on a truth that the user named.
    compares: bool = True
    #: Write tables like the script of Places 2017.
    is_official: bool = False
    #: Describe where most of the loss is.
    has_verdicts: bool = False


class ScoreTexts(NamedTuple):
    """The texts that a command prints and writes of results; those that were not asked for are empty."""

    #: The protocol and the table of each split.
    tables: list[tuple[FamilyProtocol, str]]
    warnings: list[str]
    document: str = ""
    results_yaml: str = ""
    #: The CSV files by name.
    csv: Mapping[str, str] = MappingProxyType({})
    #: By split, where most of the loss is, as far as counts show it; "" if nothing stands out.
    verdicts: Mapping[str, str] = MappingProxyType({})
    #: The splits that the file of model hubs omits.
    withheld: Sequence[str] = ()
    #: The number of submissions without scores, in a sentence.
    fault: str = ""


def _dump(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, allow_nan=False)


def make_ranking_document(scores: Scores) -> dict[str, Any]:
    """Return the part of the document that rankings read."""
    from segjudge.evaluation_script.scoring.answer import tables

    entries = {"groups": _groups_of(scores.reports), "rules": _rules_of(scores.reports), "hidden": scores.hidden}
    used = {key: value for key, value in entries.items() if value}
    return {**tables(scores.reports), **used, "provenance": scores.provenance}


def cases_of(report: Report) -> dict[str, Any] | None:
    """Return the column that identifies images or videos of group metrics; None if objects are the cases."""
    counts = report.counts
    if counts is None or not report.in_groups:
        return None
    return {key: value for key, value in counts.describe().items() if key not in _OF_RESULTS}


def _groups_of(reports: Iterable[Report]) -> dict[str, dict[str, object]]:
    """Return, by split, the metrics per group, if not means over objects, and the column that identifies cases."""
    groups: dict[str, dict[str, object]] = {}
    for report in reports:
        cases = cases_of(report)
        if cases is not None:
            values = {metric: sums.tolist() for metric, (sums, _) in report.sums(()).items()}
            import hashlib  # which loads OpenSSL

            digest = hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()
            groups[report.split] = {"cases": digest, "values": values}
    return groups


def _rules_of(reports: Iterable[Report]) -> dict[str, object]:
    """Return, by split, the rules of a protocol if they differ from its own."""
    changed = [report for report in reports if report.protocol != PROTOCOLS.get(report.protocol.name)]
    if not changed:
        return {}
    from .parts import rules_as_json

    return {report.split: rules_as_json(report.protocol) for report in changed}


def _make_results_yaml(reports: list[Report], dataset: str) -> str:
    """Write the entries of splits for a model's folder `.eval_results`: one metric, and a note on the others."""
    from datetime import datetime, timezone

    import yaml

    from segjudge.evaluation_script.scoring import VERSION

    entries = []
    for report in reports:
        ranking, *other_metrics = report.protocol.metrics
        value = report.values[ranking]
        if value is not None:
            notes = "".join(f", {name} {format_number(report.values[name])}" for name in other_metrics)
            entries.append(
                {
                    "dataset": {"id": dataset, "task_id": report.split},
                    "value": float(value),
                    "date": datetime.now(timezone.utc).date().isoformat(),
                    "notes": f"{ranking}{notes}; protocol {report.protocol.name}, scored by segjudge {VERSION}",
                }
            )
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)
