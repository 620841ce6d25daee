"""What the toolkit does with a family beside scoring it: published truths, masks in memory, reports, words, challenges.

A family's folder overrides what it has and leaves the rest: each default is what a family without a folder gets.
Methods import what they need when they are called, so that asking for a family's tools costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.evaluation_script.scoring.scorer import Scorer
    from segjudge.report.page import PageOptions, Section

    from .memory import MemoryDoor
    from .published import PackedTruth, TruthSource

#: Files by path: bytes, texts, or documents that become JSON.
Content = Iterator[tuple[str, Any]]
#: The files of a sample submission.
Members = Iterator[tuple[str, bytes]]
#: What the texts of a new challenge say of its truth.
Facts = dict[str, Any]
#: A table by columns of one length.
Columns = Mapping[str, Any]
#: The file of a family's folder with the texts of new challenges.
_TEXTS = "texts.html.jinja"


class ScoringInputs(Protocol):
    """The results that were scored, and what scored them."""

    @property
    def results(self) -> str:
        """The path of the results."""

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """What scores each split."""


class ScoredMethod(NamedTuple):
    """A method's scores of a split, and what they come from."""

    name: str
    inputs: ScoringInputs
    report: Report
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class MethodCosts:
    """What kinds of failure cost methods on the same truth, and what a page shows of it beside places and verdicts."""

    #: By the name of the method, then by kind.
    costs: Mapping[str, Mapping[str, float]]
    #: The last columns of the table of methods, and their cells by the name of the method.
    columns: Sequence[str] = ()
    cells: Mapping[str, Sequence[object]] = field(default_factory=dict)
    #: By the name of the method: what is right and what each kind takes (name, share, style), as a bar shows it.
    bars: Mapping[str, Sequence[tuple[str, float, str]]] = field(default_factory=dict)
    #: Of each sequence its name, its stream, and what the first two methods reach there.
    points: Sequence[tuple[str, str, float, float]] = ()
    #: What follows the section on methods.
    sections: Sequence[Section] = ()


class FamilyTools:
    """What the toolkit does with a family.  `protocol` is always one of the family's own."""

    #: What `phases.py` of a new challenge calls the limits of a submission, where they are not the default ones.
    limits: ClassVar[str] = ""
    #: Metrics that a leaderboard may show beside those of the protocol.
    other_metrics: ClassVar[Sequence[str]] = ()
    #: A phase keeps what `make_stored_sections` reads.
    keeps_losses: ClassVar[bool] = False
    #: What kinds of failure cost sums to what the metric that ranks lacks to 1.
    shares_loss: ClassVar[bool] = False

    # ── truths as they are published ──

    def read_published(self, family: str, source: TruthSource, progress: Progress) -> AnnotationFile[SplitTruth]:
        """Return a published dataset as one split."""
        del progress
        from .published import read_units_as_published

        return read_units_as_published(family, source)

    def pack(self, family: str, source: TruthSource, out: str, split: str, progress: Progress) -> PackedTruth:
        """Write a published dataset as an annotation file; with `split`, add it to one under that name."""
        del progress
        from .published import pack_units

        return pack_units(family, source, out, split)

    # ── masks in memory ──

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        """Return what counts masks in memory."""
        del categories, unseen
        raise UsageError(f"{protocol.name} scores files alone")

    # ── reports ──

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        """Return what a page shows of a split after its metrics."""
        del inputs, options
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_stored_sections(self, losses: Mapping[str, Any], report: Report) -> list[Section]:
        """Return the same of what a phase left; raises UsageError where it cannot be that."""
        del losses
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        """Return what a page shows of a truth alone."""
        del split, truth, options
        raise UsageError("the truth alone is reported of mask sequences; `show` draws that of images")

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        """Return what each kind of failure costs each object, category or unit."""
        del open_inputs
        raise UsageError(f"failures of {report.protocol.name} have no kinds")

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        """Return what each kind of failure costs a split altogether; nothing where failures have no kinds."""
        del inputs, report
        return {}

    def list_unit_costs(self, report: Report) -> dict[str, float | None]:
        """Return what each unit costs, below zero; nothing where the family does not count by unit."""
        del report
        return {}

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        """Return what kinds of failure cost methods; without options of a page, nothing that only a page shows."""
        costs = {method.name: self.sum_failures(method.inputs, method.report) for method in methods}
        if options is None:
            return MethodCosts(costs)
        from segjudge.report.page import first_metric, make_changes

        categories = {}
        for method in methods:
            if rows := method.report.rows().get("categories"):
                metric = first_metric(rows)
                categories[method.name] = {str(row["name"]): row[metric] for row in rows}
        sections = []
        if len(categories) == len(methods):
            sections.append(make_changes("Categories", categories, "Those first in which the second lost most."))
        units = {method.name: self.list_unit_costs(method.report) for method in methods}
        if all(units.values()):
            sections.append(make_changes("Images or videos", units, "What each costs, regressions first."))
        cells = {name: list(kinds.values()) for name, kinds in costs.items()}
        return MethodCosts(costs, list(next(iter(costs.values()))), cells, sections=sections)

    # ── tables and files ──

    def make_columns(self, report: Report) -> Mapping[str, Callable[[], Columns]]:
        """Return tables by their names, beside those of the report's rows: they are made when they are asked for."""
        del report
        return {}

    def make_files(self, report: Report) -> dict[str, str]:
        """Return the CSV files on single units that `score --csv` writes, by the beginnings of their names."""
        from segjudge.report.tables import format_units

        unit, text = format_units(report)
        return {f"per-{unit}_results": text}

    def format_official(self, report: Report) -> str:
        """Return what the benchmark's own program prints; nothing where the family does not know it."""
        del report
        return ""

    # ── words ──

    def describe_metric(self, metric: str) -> str:
        """Return what a metric means, for a leaderboard."""
        return metric

    def prefers_smaller(self, metric: str) -> bool:
        """Return whether smaller values of a metric are better."""
        del metric
        return False

    # ── new challenges ──

    def read_texts(self) -> str:
        """Return the template with the macros `task`, `scoring` and `sending`, the texts of a new challenge's pages."""
        from importlib.resources import files  # `new` and `host` alone show texts

        path = files(type(self).__module__) / _TEXTS
        if not path.is_file():
            raise UsageError(
                f"there are no texts for challenges of this family: {type(self).__module__} has no {_TEXTS}"
            )
        return path.read_text(encoding="utf-8")

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        """Return what texts say of the truths of all splits: `content` and `about`, and what the family's own name."""
        del truths
        raise UsageError(f"no challenges of {protocol.name} can be made yet")

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield a submission that is the truth, worse by a share: masks are moved by it, as part of the width."""
        del truths, share
        raise UsageError(f"no challenges of {protocol.name} can be made yet")

    def make_demo(self, protocol: Any) -> Content:
        """Yield a small synthetic truth as the benchmark publishes its own."""
        raise UsageError(f"{protocol.name} has no synthetic truth: name one with --truth")
