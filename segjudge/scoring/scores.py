"""The scores of results: metrics, tables, pages, figures, and the file that keeps the counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families.base.family import (
    Values,
)
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files import name_list
from segjudge.evaluation_script.values import dataclass
from segjudge.families import describe_unknown_metric, tools_of
from segjudge.system.arguments import FLAG, PATH, TEXT, check_arguments, check_options
from segjudge.system.errors import UnknownMetricError, UsageError
from segjudge.system.files import name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from segjudge.families.base.tools import ScoringInputs


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
    #: The path of the results; "" if they were in memory.
    results: str = ""
    #: Opens the scored files again, or returns them if they are still open; None if they are unknown.
    reopen: Callable[[], ScoringInputs] | None = None
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
