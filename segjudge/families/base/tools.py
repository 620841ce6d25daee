"""What the toolkit does with a family beside scoring it: published truths, masks in memory, reports, words, challenges.

A family's folder overrides what it has and leaves the rest: each default is what a family without a folder gets.
What lies in its `challenges.py` is found there: `make_sample`, `make_demo`, `describe_truth`, as the methods here.
`UnitTools` are those of a family that counts by unit, such as an image: it says in `measure_losses` what costs its
metrics, and report, comparison and kinds of failure follow.

Methods import what they need when they are called, so that asking for a family's tools costs nothing.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress, ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.evaluation_script.scoring.scorer import Scorer
    from segjudge.report.page import PageOptions, Section

    from .drawing import UnitPictures
    from .memory import MemoryDoor
    from .pictures import UnitPainter
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
    #: The package whose style the bars have.
    style: str = "segjudge.report"


@dataclass(frozen=True)
class FilmChoice:
    """Which frames of which sequence are drawn, and how."""

    #: Where nothing is named, those in which most is lost, in so many columns.
    sequence: str = ""
    frames: Sequence[str] = ()
    columns: int = 5
    #: The folder of a dataset's pictures, over which masks are drawn.
    images: str = ""
    #: What is wrong is drawn, in the place of the masks that were predicted and of the truth.
    errors: bool = False


class FilmCell(NamedTuple):
    """A frame with its masks: pixels (height, width, 3), and by colour the masks whose outlines are drawn."""

    pixels: Array
    outlines: Sequence[tuple[tuple[int, int, int], Array]]


class Film(NamedTuple):
    """Frames of a sequence: a row for the truth and for each method, by name; a column for each frame."""

    sequence: str
    rows: Mapping[str, list[FilmCell]]
    frames: list[str]


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
    #: Which of the tables that its engine makes of a report has the scores by category, or by what it has instead.
    groups: ClassVar[str] = "categories"
    #: The files that a new challenge's phases take, as EvalAI's forms and `evalai submit` read them.
    upload_types: ClassVar[str] = ".zip, .json, .gz, .tar"
    #: The class of its `memory.py` that counts masks in memory; without one, files alone are scored.
    memory: ClassVar[str] = ""
    #: A truth names its subsets itself: no file or folder has to be called after one.
    names_subsets: ClassVar[bool] = False

    def _own(self, module: str, name: str) -> Any:
        """Return what a module of the family's folder has by a name; None where there is none."""
        package = sys.modules[type(self).__module__].__package__
        path = f"{package}.{module}"
        return getattr(import_module(path), name, None) if package and find_spec(path) else None

    # ── truths as they are published ──

    def read_published(self, family: str, source: TruthSource, progress: Progress) -> AnnotationFile[SplitTruth]:
        """Read a published dataset as one split."""
        from segjudge.evaluation_script.families import engine_of

        from .published import check_subset

        if not self.names_subsets:
            check_subset(source)
        return engine_of(family).read_published(source.path, source.subset, source.layout)

    def pack(self, family: str, source: TruthSource, out: str, split: str, progress: Progress) -> PackedTruth:
        """Write a published dataset as an annotation file; with `split`, add it to one under that name."""
        from .published import pack_units

        return pack_units(self.read_published(family, source, progress), out, split)

    # ── masks in memory ──

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        """Open what counts masks in memory."""
        if not self.memory:
            raise UsageError(f"{protocol.name} scores files alone")
        door: MemoryDoor = self._own("memory", self.memory)(protocol, categories)
        return door

    # ── reports ──

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        """Make what a page shows of a split after its metrics."""
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_stored_sections(self, losses: Mapping[str, Any], report: Report) -> list[Section]:
        """Make the same of what a phase left; raises UsageError where it cannot be that."""
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        """Make what a page shows of a truth alone."""
        raise UsageError(f"a truth of {truth.family} has no page of its own; `show` draws the truth of instances")

    def check_kinds(self, protocol: Any) -> None:
        """Raise UsageError where failures have no kinds, before anything is scored."""
        raise UsageError(f"failures of {protocol.name} have no kinds")

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        """List what each kind of failure costs each object, category or unit."""
        self.check_kinds(report.protocol)
        return []

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        """Sum what each kind of failure costs a split; nothing where failures have no kinds."""
        return {}

    def make_bar(self, kinds: Mapping[str, float]) -> list[tuple[str, float, str]]:
        """Make of what each kind costs a bar: name, share, style."""
        from segjudge.report.colours import style_of_kind

        return [
            (kind, max(cost, 0.0), style_of_kind(kind, number)) for number, (kind, cost) in enumerate(kinds.items(), 1)
        ]

    def draw_film(self, methods: Sequence[ScoredMethod], choice: FilmChoice) -> Film:
        """Draw frames of a sequence beside each other; raises UsageError where the family has none."""
        raise UsageError(f"filmstrips are made of mask sequences, not of {methods[0].report.protocol.name}")

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        """Compare what kinds of failure cost methods; without options of a page, nothing that only a page shows."""
        costs = {method.name: self.sum_failures(method.inputs, method.report) for method in methods}
        return MethodCosts(costs) if options is None else self.tabulate_costs(methods, costs)

    def tabulate_costs(self, methods: Sequence[ScoredMethod], costs: dict[str, dict[str, float]]) -> MethodCosts:
        """Add to what kinds of failure cost what a page shows of it, and the categories in which methods differ."""
        from segjudge.report.page import make_changes
        from segjudge.report.tables import first_metric

        categories = {}
        for method in methods:
            if rows := method.report.rows().get(self.groups):
                metric = first_metric(rows)
                categories[method.name] = {str(row["name"]): row[metric] for row in rows}
        sections = []
        if len(categories) == len(methods):
            sections.append(
                make_changes(self.groups.capitalize(), categories, "Those first in which the second lost most.")
            )
        cells = {name: list(kinds.values()) for name, kinds in costs.items()}
        return MethodCosts(costs, list(next(iter(costs.values()))), cells, sections=sections)

    # ── tables and files ──

    def make_columns(self, report: Report) -> Mapping[str, Callable[[], Columns]]:
        """Tables by their names, beside those of the report's rows: they are made when they are asked for."""
        return {}

    def make_files(self, report: Report) -> dict[str, str]:
        """The CSV files on single units that `score --csv` writes, by the beginnings of their names."""
        from segjudge.report.tables import format_units

        unit, text = format_units(report)
        return {f"per-{unit}_results": text}

    def format_official(self, report: Report) -> str:
        """What the benchmark's own program prints; nothing where the family does not know it."""
        return ""

    # ── words ──

    def describe_metric(self, metric: str) -> str:
        """Say what a metric means, for a leaderboard."""
        return metric

    def prefers_smaller(self, metric: str) -> bool:
        """Whether smaller values of a metric are better."""
        return False

    # ── new challenges ──

    def read_texts(self) -> str:
        """The template with the macros `task`, `scoring` and `sending`, the texts of a new challenge's pages."""
        from importlib.resources import files  # `new` and `host` alone show texts

        path = files(type(self).__module__) / _TEXTS
        if not path.is_file():
            raise UsageError(
                f"there are no texts for challenges of this family: {type(self).__module__} has no {_TEXTS}"
            )
        return path.read_text(encoding="utf-8")

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        """What texts say of the truths of all splits: `content` and `about`, and what the family's own name."""
        describe = self._own("challenges", "describe_truth")
        if describe is None:
            raise UsageError(f"no challenges of {protocol.name} can be made yet")
        facts: Facts = describe(truths, protocol)
        return facts

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield the files of a submission that is the truth made worse by a share, the same ones at every call.

        Masks are moved by it, as part of the width.  `new` asks for a good sample, of a thousandth, and for a poor
        one, of some hundredths, which may not score better; where pictures are small both move by a pixel.
        """
        make = self._own("challenges", "make_sample")
        if make is None:
            raise UsageError(f"no challenges of {protocol.name} can be made yet")
        members: Members = make(truths, protocol, share)
        return members

    def make_demo(self, protocol: Any) -> Content:
        """Yield a small synthetic truth as the benchmark publishes its own."""
        make = self._own("challenges", "make_demo")
        if make is None:
            raise UsageError(f"{protocol.name} has no synthetic truth: name one with --truth")
        content: Content = make(protocol)
        return content


# ── families that count by unit ─────────────────────────────────────────────


_METRIC = r"(?P<stem>[A-Za-z_]+?(?:F1)?)(?P<frames>\d*)(?:-(?P<category>[A-Za-z]+))?"
_ORDER = "Those that cost most first."


@dataclass(frozen=True)
class UnitLosses:
    """What metrics lack to 1, as shares of units (or categories) by kind."""

    #: The kinds by name, and what they mean.
    kinds: dict[str, str]
    #: Rows are units in the truth's order, and categories in that of the scores; columns are kinds.
    by_unit: Array
    by_category: Array

    def totals(self) -> dict[str, float]:
        return dict(zip(self.kinds, self.by_unit.sum(axis=0).tolist(), strict=True))

    def rows(self, names: list[str], losses: Array) -> list[Row]:
        """A row for each name, those that cost most first."""
        order = (-losses.sum(axis=1)).argsort(kind="stable").tolist()
        return [
            {"name": names[index], "costs": float(losses[index].sum()), **dict(zip(self.kinds, losses[index].tolist()))}
            for index in order
        ]


class UnitTools(FamilyTools, ABC):
    """What the toolkit does with a family that counts by unit, once that has said what costs its metrics."""

    limits = "UNIT_LIMITS"
    #: Its metrics' meanings, by the name before a number of frames and a category.
    meanings: ClassVar[Mapping[str, str]] = {}
    #: The class of its `pictures.py` that says what is where in a unit; without one, nothing is drawn.
    painter: ClassVar[str] = ""

    @abstractmethod
    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Measure what costs the metrics, by unit, category and kind."""

    @abstractmethod
    def name_losses(self, protocol: Any) -> tuple[str, str]:
        """Name the metric whose loss that is, and what units are called."""

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules) -> UnitPainter | None:
        """Open what draws units, the truth alone where no results are named; None draws nothing."""
        return self._own("pictures", self.painter)(results, truth, rules) if self.painter else None

    def check_kinds(self, protocol: Any) -> None:
        """Do nothing: `measure_losses` tells the kinds of every protocol."""

    def counts_of(self, report: Report) -> UnitAccumulator[Any]:
        from segjudge.evaluation_script.families.base.units import UnitAccumulator

        if not isinstance(report.counts, UnitAccumulator):
            raise TypeError(f"{report.split} was not counted by unit")
        return report.counts

    def _measure_report(self, report: Report) -> tuple[UnitAccumulator[Any], UnitLosses]:
        accumulator = self.counts_of(report)
        return accumulator, self.measure_losses(accumulator)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.report.page import (
            link_frames,
            make_kinds,
            make_list,
            make_tables,
            make_verdict,
            name_worst,
            rank_kinds,
        )
        from segjudge.report.tables import first_metric

        accumulator, losses = self._measure_report(report)
        metric, noun = self.name_losses(report.protocol)
        several = " and " in metric
        totals = losses.totals()
        lost_what = f"what {metric} lacks" if metric in report.protocol.metrics[1:] else "what is lost"
        kinds = [{"kind": name, "about": meaning, "cost": totals[name]} for name, meaning in losses.kinds.items()]
        tables = report.rows()
        if self.groups not in tables:
            raise LookupError(
                f"{type(self).__name__}.groups is {self.groups!r}; its engine's tables are {', '.join(tables)}"
            )
        rows = tables[self.groups]
        names = [str(row["name"]) for row in rows]
        is_grouped = names != accumulator.names
        beside = f", and what all {self.groups} cost too" if is_grouped else ""
        sums = f"sums to what {metric} {'lack' if several else 'lacks'} to 1{beside}"
        about = f"By kind of mistake. What all {noun} cost {sums}."
        ranking = first_metric(rows)
        values = {name: row[ranking] for name, row in zip(names, rows, strict=True)}
        categories = [
            {"name": row["name"], ranking: values[row["name"]], **row} for row in losses.rows(names, losses.by_category)
        ]
        units = losses.rows(accumulator.names, losses.by_unit)
        costs = [row["costs"] for row in units]
        pictures, confusions = self._draw_worst(inputs, report, losses, options)
        worst = name_worst(units, noun, report.split, pictures.names if pictures else {})
        return [
            make_verdict(report, metric, rank_kinds(totals, lost_what), costs, noun, worst),
            make_kinds(f"Where {metric} {'are' if several else 'is'} lost", kinds, about),
            *([pictures.player] if pictures else []),
            *confusions,
            make_list(
                noun.capitalize(), link_frames(units, pictures.streams, pictures.names) if pictures else units, _ORDER
            ),
            *([make_list(self.groups.capitalize(), categories, _ORDER)] if is_grouped else []),
            make_tables(report),
        ]

    def _draw_worst(
        self, inputs: ScoringInputs, report: Report, losses: UnitLosses, options: PageOptions
    ) -> tuple[UnitPictures | None, list[Section]]:
        """Draw the units that cost most, and show which classes are taken for which."""
        from .drawing import draw_units

        noun = self.name_losses(report.protocol)[1]
        costs = losses.by_unit.sum(axis=1)
        order = [(int(index), [float(costs[index])]) for index in (-costs).argsort(kind="stable")]
        with ExitStack() as stack:
            painter, truth = self._open_painter(inputs, report, stack)
            if painter is None:
                return None, []
            pictures = draw_units({"": painter}, truth, order, noun, options, split=report.split)
        return pictures, self.make_confusions(painter, pictures, noun, report) if pictures else []

    def _open_painter(
        self, inputs: ScoringInputs, report: Report, stack: ExitStack
    ) -> tuple[UnitPainter | None, UnitTruth]:
        from segjudge.evaluation_script.families.base.units import UnitTruth

        scorer = inputs.scorers[report.split]
        if not isinstance(scorer.truth, UnitTruth):
            raise TypeError(f"{report.split} has no units")
        painter = self.open_painter(inputs.results, scorer.truth, scorer.rules)
        return painter and stack.enter_context(closing(painter)), scorer.truth

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        if options is None:
            return super().compare_failures(methods, None)
        import numpy as np

        from segjudge.report.page import make_changes

        measured = {method.name: self._measure_report(method.report) for method in methods}
        compared = self.tabulate_costs(methods, {name: losses.totals() for name, (_, losses) in measured.items()})
        costs = np.stack([losses.by_unit.sum(axis=1) for _, losses in measured.values()], axis=1)
        pictures = self._draw_differences(methods, costs, options)
        changes = {
            name: dict(zip(map(str, accumulator.names), (-costs[:, column]).tolist(), strict=True))
            for column, (name, (accumulator, _)) in enumerate(measured.items())
        }
        # Not their name alone, which the table of their scores may have.
        title = f"What {self.name_losses(methods[0].report.protocol)[1]} cost"
        about = "Those first in which the second lost most."
        table = make_changes(title, changes, about, (pictures.streams, pictures.names) if pictures else ({}, {}))
        player = [pictures.player] if pictures else []
        return replace(compared, sections=[*player, table, *compared.sections])

    def _draw_differences(
        self, methods: Sequence[ScoredMethod], costs: Array, options: PageOptions
    ) -> UnitPictures | None:
        """Draw the units in which the second method loses most beside the first, as each method sees them."""
        from .drawing import draw_units

        report = methods[0].report
        order = [(int(index), costs[index].tolist()) for index in (costs[:, 0] - costs[:, 1]).argsort(kind="stable")]
        with ExitStack() as stack:
            opened = {method.name: self._open_painter(method.inputs, method.report, stack) for method in methods}
            painters = {name: painter for name, (painter, _) in opened.items() if painter is not None}
            if len(painters) < len(methods):
                return None
            truth, noun = opened[methods[0].name][1], self.name_losses(report.protocol)[1]
            return draw_units(painters, truth, order, noun, options, split=report.split)

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Show which classes are taken for which: of the segments of the units that were drawn."""
        from .drawing import make_class_confusion

        return make_class_confusion(painter, pictures, noun)

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        from segjudge.evaluation_script.families import PROTOCOLS
        from segjudge.evaluation_script.families.base.family import ScoringRules
        from segjudge.evaluation_script.families.base.units import UnitTruth
        from segjudge.evaluation_script.files.limits import UNIT_LIMITS

        if not isinstance(truth, UnitTruth):
            raise TypeError(f"{split} has no units")
        protocol = next(
            protocol
            for protocol in PROTOCOLS.values()
            if (protocol.family, protocol.form) == (truth.family, truth.form)
        )
        painter = self.open_painter("", truth, ScoringRules(protocol, UNIT_LIMITS))
        if painter is None:
            return super().make_truth_sections(split, truth, options)
        from .drawing import draw_units

        order = [(index, [0.0]) for index in range(len(truth.units))]
        noun = self.name_losses(protocol)[1]
        with closing(painter):
            pictures = draw_units({"": painter}, truth, order, noun, options, split=split, truth_alone=True)
        return [pictures.player] if pictures is not None else []

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        accumulator, losses = self._measure_report(report)
        return [
            {"name": name, **dict(zip(losses.kinds, costs, strict=True))}
            for name, costs in zip(accumulator.names, losses.by_unit.tolist(), strict=True)
        ]

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        return self._measure_report(report)[1].totals()

    def describe_metric(self, metric: str) -> str:
        name = re.fullmatch(_METRIC, metric)
        if metric in self.meanings:
            return self.meanings[metric][0].upper() + self.meanings[metric][1:]
        if name is None or name["stem"] not in self.meanings:
            return metric
        window = f" over {quantity(int(name['frames']), 'frame')}" if name["frames"] else ""
        category = f" ({name['category'].lower()})" if name["category"] else ""
        text = self.meanings[name["stem"]] + window + category
        return text[0].upper() + text[1:]

    def describe_truth(self, truths: list[UnitTruth], protocol: Any) -> Facts:
        from .challenges import count_categories

        units = [unit for truth in truths for unit in truth.units]
        frames = units[0].load()
        kind = self.name_losses(protocol)[1].removesuffix("s")
        total = quantity(len(units), kind)
        categories = truths[0].facts.get("categories")
        return {
            "content": f"{total} with {count_categories(len(categories))}" if categories else total,
            "about": f"Label every pixel of {total}."
            if kind != "sequence"
            else f"Follow every object through {total}.",
            "kind": kind,
            "unit": units[0].name,
            "frames": [frame.name for frame in frames[:2]],
            "size": frames[0].size,
            "category": categories[0][0] if categories else 1,
        }
