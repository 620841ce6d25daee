"""The toolkit's interface to a family: published truths, memory, reports, sentences, challenges.

A family's folder overrides methods, and the defaults serve families without a folder. `make_sample`, `make_demo` and
`describe_truth` may be functions of the family's `challenges.py`. `UnitTools` is for families that count by unit: such
a family implements `measure_losses`, from which reports, comparisons and kinds of failure follow.
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
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from segjudge.evaluation_script.files.problems import printable, quantity
from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import OptionError, UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress, ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.evaluation_script.scoring.scorer import Scorer
    from segjudge.report.page import PageOptions, Section

    from .benchmarks import FamilyEntry
    from .drawing import RankedUnits, UnitPictures
    from .memory import MemoryDoor
    from .pictures import UnitPainter
    from .published import PackedTruth, TruthSource

#: Files by path: bytes, texts, or documents that become JSON.
Content = Iterator[tuple[str, Any]]
#: The files of a sample submission.
Members = Iterator[tuple[str, bytes]]
#: The facts about the truth in the texts of a new challenge.
Facts = dict[str, Any]
#: A table by columns of one length.
Columns = Mapping[str, Any]
#: The file with the texts of new challenges in a family's folder.
_TEXTS = "texts.html.jinja"


class ScoringInputs(Protocol):
    """The scored results and their scorers."""

    @property
    def results(self) -> str:
        """Return the path of the results."""

    @property
    def truth(self) -> str:
        """Return the path of the truth."""

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """Return the scorer of each split."""


class ScoredMethod(NamedTuple):
    """A method's scores of a split, and their inputs."""

    name: str
    inputs: ScoringInputs
    report: Report
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class MethodCosts:
    """The costs of failures by method and kind, and the sections that show them."""

    #: The costs by method, then by kind.
    costs: Mapping[str, Mapping[str, float]]
    #: Further columns of the table of methods, and their cells by method.
    columns: Sequence[str] = ()
    cells: Mapping[str, Sequence[object]] = field(default_factory=dict)
    #: For each method, the parts of its bar: what is correct and the cost of each kind (name, share, style).
    bars: Mapping[str, Sequence[tuple[str, float, str]]] = field(default_factory=dict)
    #: For each sequence its name, its stream, and the values of the first two methods.
    points: Sequence[tuple[str, str, float, float]] = ()
    #: For each method, the sentence on its most expensive causes.
    causes: Mapping[str, str] = field(default_factory=dict)
    #: The sections after the section on methods.
    sections: Sequence[Section] = ()
    #: The package with the styles of the bars.
    style: str = "segjudge.report"
    #: The quantity of the bars, if it differs from the ranking metric.
    measure: str = ""


@dataclass(frozen=True)
class FilmChoice:
    """The choice of a sequence, its frames and the style of drawing."""

    #: The sequence and the number of columns; by default frames with the largest loss.
    sequence: str = ""
    frames: Sequence[str] = ()
    columns: int = 5
    #: The folder of a dataset's pictures, over which masks are drawn.
    images: str = ""
    #: Draw errors instead of the masks of prediction and truth.
    errors: bool = False


class FilmCell(NamedTuple):
    """A frame with its masks: pixels (height, width, 3), and by colour the outlined masks."""

    pixels: Array
    outlines: Sequence[tuple[tuple[int, int, int], Array]]


class Film(NamedTuple):
    """Frames of a sequence: a row for the truth and for each method, by name; a column for each frame."""

    sequence: str
    rows: Mapping[str, list[FilmCell]]
    frames: list[str]


class FamilyTools:
    """The toolkit's functions for a family.  `protocol` is always one of the family's own."""

    #: The name of the limits of a submission in `phases.py` of a new challenge; "" for the default.
    limits: ClassVar[str] = ""
    #: Metrics that a leaderboard may show in addition to the protocol's.
    other_metrics: ClassVar[Sequence[str]] = ()
    #: Metrics that a new leaderboard shows together or not at all. Of other metrics, it shows those before the first
    #: omitted one.
    label_groups: ClassVar[Sequence[tuple[str, ...]]] = ()
    #: A phase stores the input of `make_stored_sections`.
    keeps_losses: ClassVar[bool] = False
    #: Whether the costs of the kinds of failure sum to 1 minus the ranking metric.
    shares_loss: ClassVar[bool] = False
    #: The engine's table with the scores by category, or by its equivalent.
    groups: ClassVar[str] = "categories"
    #: The plural nouns of what kinds of error concern: objects, and their elements.
    nouns: ClassVar[tuple[str, str]] = ("objects", "pixels")
    #: The file types that a new challenge's phases accept, as EvalAI's forms and `evalai submit` read them.
    upload_types: ClassVar[str] = ".zip, .json, .gz, .tar"
    #: The class in `memory.py` that counts masks in memory; without one, only files are scored.
    memory: ClassVar[str] = ""
    #: Whether `larger` or `smaller` values of each metric are better; a plug-in states it for all of its metrics.
    directions: ClassVar[Mapping[str, Literal["larger", "smaller"]]] = {}
    #: The endings of truths that only this family reads, by which commands recognise a truth.
    endings: ClassVar[Sequence[str]] = ()
    #: A truth names its subsets itself; no file or folder needs their names.
    names_subsets: ClassVar[bool] = False

    def _import_from_family(self, module: str, name: str) -> Any:
        """Return a name of a module in the family's folder; None if it is missing."""
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

    # ── rules ──

    def choose_region(self, protocol: Any, region: str) -> Any:
        """Return a protocol that scores only one region; raises OptionError for an unknown one."""
        raise OptionError(f"region does not apply to {protocol.name}")

    # ── masks in memory ──

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        """Return the counter of masks in memory."""
        if not self.memory:
            raise UsageError(f"{protocol.name} scores only files")
        door: MemoryDoor = self._import_from_family("memory", self.memory)(protocol, categories)
        return door

    # ── reports ──

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        """Return the sections of a split after its metrics."""
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_stored_sections(self, losses: Mapping[str, Any], report: Report) -> list[Section]:
        """Return the same sections from a stored result; raises UsageError for an invalid one."""
        from segjudge.report.page import make_tables

        return [make_tables(report)]

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        """Return the sections of a truth alone."""
        raise UsageError(
            f"a truth of {truth.family} has no page of its own; `report --draw FOLDER` draws the truth of instances"
        )

    def check_kinds(self, protocol: Any) -> None:
        """Raise UsageError before scoring if failures have no kinds."""
        raise UsageError(f"failures of {protocol.name} have no kinds")

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        """Return the cost of each kind of failure per object, category or unit."""
        self.check_kinds(report.protocol)
        return []

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        """Return the cost of each kind of failure in a split; empty without kinds."""
        return {}

    def explain_failures(self, inputs: ScoringInputs, report: Report) -> tuple[dict[str, float], str]:
        """Return `sum_failures`, and the sentence on the most expensive causes with which a page begins."""
        return self.sum_failures(inputs, report), ""

    def make_bar(self, kinds: Mapping[str, float]) -> list[tuple[str, float, str]]:
        """Return the costs by kind as a bar: name, share, style."""
        from segjudge.report.colours import style_of_kind

        return [
            (kind, max(cost, 0.0), style_of_kind(kind, number)) for number, (kind, cost) in enumerate(kinds.items(), 1)
        ]

    def rank_failures(self, kinds: Mapping[str, float], report: Report) -> str:
        """Describe the most expensive kinds of failure."""
        from segjudge.report.sentences import name_kinds, rank_kinds

        return rank_kinds(name_kinds(kinds, *self.nouns))

    def describe_loss(self, report: Report) -> str:
        """Describe by the counts alone, without masks, where most of the loss is; "" if nothing stands out."""
        from segjudge.report.tables import key_of_rows

        kind, rows = next(iter(report.rows().items()))
        return self._name_lowest(report, kind, [row[key_of_rows(kind)] for row in rows])

    def _name_lowest(self, report: Report, table: str, names: Sequence[object]) -> str:
        """Name the row of a table that is lowest by the protocol's first metric there."""
        from segjudge.report.sentences import name_lowest
        from segjudge.report.tables import first_metric

        rows = report.rows()[table]
        metric = next((name for name in report.protocol.metrics if rows and name in rows[0]), first_metric(rows))
        return (
            "" if self.prefers_smaller(metric) else name_lowest(table, [row.get(metric) for row in rows], names, metric)
        )

    def draw_film(self, methods: Sequence[ScoredMethod], choice: FilmChoice) -> Film:
        """Draw frames of a sequence side by side; raises UsageError if the family has none."""
        raise UsageError(f"filmstrips need mask sequences, not {methods[0].report.protocol.name}")

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        """Return the costs of failures by method; sections only with page options."""
        costs = {method.name: self.sum_failures(method.inputs, method.report) for method in methods}
        return MethodCosts(costs) if options is None else self.tabulate_costs(methods, costs)

    def tabulate_costs(self, methods: Sequence[ScoredMethod], costs: dict[str, dict[str, float]]) -> MethodCosts:
        """Return the costs with their sections, and the categories in which methods differ."""
        from segjudge.report.page import BY_CHANGE, make_changes
        from segjudge.report.tables import first_metric

        categories = {}
        for method in methods:
            if rows := method.report.rows().get(self.groups):
                metric = first_metric(rows)
                categories[method.name] = {str(row["name"]): row[metric] for row in rows}
        sections = []
        if len(categories) == len(methods):
            sections.append(make_changes(self.groups.capitalize(), categories, BY_CHANGE))
        cells = {name: list(kinds.values()) for name, kinds in costs.items()}
        return MethodCosts(costs, list(next(iter(costs.values()))), cells, sections=sections)

    # ── tables and files ──

    def make_columns(self, report: Report) -> Mapping[str, Callable[[], Columns]]:
        """Return further tables by name, computed on request."""
        return {}

    def make_files(self, report: Report) -> dict[str, str]:
        """Return the CSV files about single units for `score --csv`, by prefix of their names."""
        from segjudge.report.tables import format_units

        unit, text = format_units(report)
        return {f"per-{unit}_results": text}

    def format_official(self, report: Report) -> str:
        """Return the output of the benchmark's own program; "" if the family does not know it."""
        return ""

    # ── words ──

    def describe_metric(self, metric: str) -> str:
        """Return the description of a metric, without its direction."""
        return metric

    def describe_column(self, metric: str) -> str:
        """Return the description of a metric where nothing else says that smaller values are better."""
        return self.describe_metric(metric) + ("; lower is better" if self.prefers_smaller(metric) else "")

    def prefers_smaller(self, metric: str) -> bool:
        """Return whether smaller values of a metric are better."""
        return self.directions.get(metric) == "smaller"

    def states_direction(self, metric: str) -> bool:
        """Return whether the family states the direction of a metric."""
        return metric in self.directions or self.prefers_smaller(metric)

    def bounds_of(self, metric: str) -> tuple[float | None, float | None]:
        """Return the bounds of a metric; None for no bound."""
        return 0.0, 1.0

    def read_entry(self) -> FamilyEntry | None:
        """Return the `ENTRY` of the family's `benchmarks.py`, if it has one."""
        entry: FamilyEntry | None = self._import_from_family("benchmarks", "ENTRY")
        return entry

    # ── new challenges ──

    def read_texts(self) -> str:
        """Return the template with the macros `task`, `scoring` and `sending` of a new challenge's pages."""
        from importlib.resources import files  # `new` alone shows texts

        path = files(type(self).__module__) / _TEXTS
        if not path.is_file():
            raise UsageError(
                f"there are no texts for challenges of this family: {type(self).__module__} has no {_TEXTS}"
            )
        return path.read_text(encoding="utf-8")

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        """Return the values for texts about all truths: `content`, `about`, and the family's own."""
        describe = self._import_from_family("challenges", "describe_truth")
        if describe is None:
            raise UsageError(f"challenges with {protocol.name} are not supported yet")
        facts: Facts = describe(truths, protocol)
        return facts

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield the files of a degraded truth as a submission, reproducibly.

        The masks move by `share` of the width. `new` requests a good sample (a thousandth) and a poor one (some
        hundredths), which may not score better; in small pictures both move by one pixel.
        """
        make = self._import_from_family("challenges", "make_sample")
        if make is None:
            raise UsageError(f"challenges with {protocol.name} are not supported yet")
        members: Members = make(truths, protocol, share)
        return members

    def make_demo(self, protocol: Any) -> Content:
        """Yield the files of a small synthetic truth in the benchmark's layout."""
        make = self._import_from_family("challenges", "make_demo")
        if make is None:
            raise UsageError(f"{protocol.name} has no synthetic truth: name one with --truth")
        content: Content = make(protocol)
        return content

    def make_demo_pictures(self, protocol: Any) -> Members:
        """Yield the pictures of the synthetic truth, as `report --images` finds them; nothing if it has none."""
        make = self._import_from_family("challenges", "make_demo_pictures")
        members: Members = make(protocol) if make else iter(())
        return members


# ── families that count by unit ─────────────────────────────────────────────


_METRIC = r"(?P<stem>[A-Za-z_]+?(?:F1)?)(?P<frames>\d*)(?:-(?P<category>[A-Za-z]+))?"
_ORDER = "Largest loss first."
#: The weight of the loss of a further metric where causes are compared.
_REST_WEIGHT = 0.001


@dataclass(frozen=True)
class UnitLosses:
    """The loss of metrics (1 minus value), as shares of units or categories by kind."""

    #: The kinds by name, with their meanings.
    kinds: dict[str, str]
    #: The losses by unit (in the truth's order) or category (in the scores' order), and by kind.
    by_unit: Array
    by_category: Array

    def totals(self) -> dict[str, float]:
        return dict(zip(self.kinds, self.by_unit.sum(axis=0).tolist(), strict=True))

    def rows(self, names: list[str], losses: Array, order: Sequence[int] | None = None) -> list[Row]:
        """Return a row per name, in an order of indices or the costliest first."""
        if order is None:
            order = (-losses.sum(axis=1)).argsort(kind="stable").tolist()
        return [
            {"name": names[index], "costs": float(losses[index].sum()), **dict(zip(self.kinds, losses[index].tolist()))}
            for index in order
        ]


class UnitTools(FamilyTools, ABC):
    """The toolkit's functions for a family that counts by unit, given its losses."""

    limits = "UNIT_LIMITS"
    #: The meanings of metrics by their stem, without a number of frames and a category.
    meanings: ClassVar[Mapping[str, str]] = {}
    #: The class in `pictures.py` that locates the segments of a unit; without it, nothing is drawn.
    painter: ClassVar[str] = ""
    #: A page divides the loss by the kinds of `measure_losses`, which counts alone tell.
    counts_kinds: ClassVar[bool] = True
    #: `name_losses` names several metrics, such as "DetA and AssA".
    several_losses: ClassVar[bool] = False

    @abstractmethod
    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the losses of the metrics by unit, category and kind."""

    @abstractmethod
    def name_losses(self, protocol: Any) -> tuple[str, str]:
        """Return the metric of the loss and the noun of units."""

    def has_several_losses(self, kinds: Iterable[str]) -> bool:
        """Return whether the kinds sum to the loss of several metrics."""
        return self.several_losses

    def name_measure(self, protocol: Any, kinds: Iterable[str]) -> str:
        """Return the subject of a bar of these kinds: the metric of the loss, or the mean of several."""
        metric, _ = self.name_losses(protocol)
        return f"mean of {metric}" if self.has_several_losses(kinds) else metric

    def measure_rest(self, accumulator: UnitAccumulator[Any]) -> Array | None:
        """Return the units' loss of a further metric, which orders them beside their main loss."""
        return None

    def name_cause(self, inputs: ScoringInputs, report: Report) -> str:
        """Describe the most expensive cause, for families whose units are not always drawn; else ""."""
        return ""

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules, images: str = "") -> UnitPainter | None:
        """Return the painter of units (without results, of the truth); None if units are not drawn.

        `images` is the folder of a dataset's pictures, for families that cannot draw masks without them.
        """
        return self._import_from_family("pictures", self.painter)(results, truth, rules) if self.painter else None

    def check_kinds(self, protocol: Any) -> None:
        """Do nothing: `measure_losses` has kinds for every protocol."""

    def counts_of(self, report: Report) -> UnitAccumulator[Any]:
        from segjudge.evaluation_script.families.base.units import UnitAccumulator

        if not isinstance(report.counts, UnitAccumulator):
            raise TypeError(f"{report.split} was not counted by unit")
        return report.counts

    def _measure_report(self, report: Report) -> tuple[UnitAccumulator[Any], UnitLosses]:
        """Return the counts and the losses of the metric, or of the mean of several."""
        accumulator = self.counts_of(report)
        losses = self.measure_losses(accumulator)
        if self.has_several_losses(losses.kinds):
            losses = replace(losses, by_unit=losses.by_unit / 2, by_category=losses.by_category / 2)
        return accumulator, losses

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from markupsafe import Markup

        from segjudge.report.page import (
            add_bar,
            link_frames,
            make_kinds,
            make_list,
            make_tables,
            make_verdict,
            name_worst,
        )
        from segjudge.report.sentences import name_kinds, rank_kinds
        from segjudge.report.tables import first_metric

        accumulator, losses = self._measure_report(report)
        metric, noun = self.name_losses(report.protocol)
        totals = losses.totals()
        explained = "" if metric == report.protocol.metrics[0] else metric
        kinds = [{"kind": name, "about": meaning, "cost": totals[name]} for name, meaning in losses.kinds.items()]
        tables = report.rows()
        if self.groups not in tables:
            raise LookupError(
                f"{type(self).__name__}.groups is {self.groups!r}; its engine's tables are {', '.join(tables)}"
            )
        rows = tables[self.groups]
        names = [str(row["name"]) for row in rows]
        is_grouped = names != accumulator.names
        beside = f"; so do the losses of all {self.groups}" if is_grouped else ""
        several = self.has_several_losses(losses.kinds)
        subject = self.name_measure(report.protocol, losses.kinds)
        sums = f"sum to 1 minus {'the ' if several else ''}{subject}{beside}"
        about = f"By kind of error. The losses of all {noun} {sums}."
        ranking = first_metric(rows)
        values = {name: row[ranking] for name, row in zip(names, rows, strict=True)}
        categories = [
            {"name": row["name"], ranking: values[row["name"]], **row} for row in losses.rows(names, losses.by_category)
        ]
        units = losses.rows(accumulator.names, losses.by_unit, self._order_units(report, losses))
        costs = [row["costs"] for row in units]
        pictures, confusions = self._draw_worst(inputs, report, losses, options)
        cause = self.name_cause(inputs, report)
        worst = name_worst(units, noun, report.split, pictures.names if pictures else {})
        if worst and not cause and pictures and next(iter(pictures.streams)) == units[0]["name"]:
            worst = Markup("{} {}").format(worst, pictures.cause_of_first).rstrip()
        kinds_as_nouns = name_kinds(totals, *self.nouns)
        causes = [cause or (pictures.cause if pictures else ""), rank_kinds(kinds_as_nouns, explained)]
        verdict = make_verdict(report, metric, causes, costs, noun, worst)
        return [
            add_bar(verdict, subject, self.make_bar(totals), losses.kinds),
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
        """Return the sections with the most costly units and confused classes."""
        from .drawing import draw_units

        with ExitStack() as stack:
            painter, truth = self._open_painter(inputs, report, stack, options.images)
            if painter is None:
                return None, []
            units = self._rank_units(truth, report, losses)
            pictures = draw_units({"": painter}, units, options)
        return pictures, self.make_confusions(painter, pictures, units.noun, report) if pictures else []

    def _order_units(self, report: Report, losses: UnitLosses) -> list[int]:
        """Return the indices of all units, the costliest first; of equal ones, a further metric's loss decides."""
        import numpy as np

        costs, remaining_loss = losses.by_unit.sum(axis=1), self.measure_rest(self.counts_of(report))
        order: list[int] = np.lexsort((-costs if remaining_loss is None else -remaining_loss, -costs)).tolist()
        return order

    def _rank_units(self, truth: UnitTruth, report: Report, losses: UnitLosses) -> RankedUnits:
        """Return all units in their order."""
        import numpy as np

        from .drawing import RankedUnits

        costs = losses.by_unit.sum(axis=1)
        remaining_loss = self.measure_rest(self.counts_of(report))
        explained = costs
        if remaining_loss is not None:
            costs = np.where(costs > 0, costs, remaining_loss)
            explained = explained + _REST_WEIGHT * remaining_loss
        order = [(index, [float(costs[index])]) for index in self._order_units(report, losses)]
        noun = self.name_losses(report.protocol)[1]
        return RankedUnits(report.split, truth, order, noun, losses=explained.tolist())

    def _open_painter(
        self, inputs: ScoringInputs, report: Report, stack: ExitStack, images: str = ""
    ) -> tuple[UnitPainter | None, UnitTruth]:
        """Return the painter of a report's units, given the folder of a dataset's pictures, and their truth."""
        from segjudge.evaluation_script.families.base.units import UnitTruth

        scorer = inputs.scorers[report.split]
        if not isinstance(scorer.truth, UnitTruth):
            raise TypeError(f"{report.split} has no units")
        painter = self.open_painter(inputs.results, scorer.truth, scorer.rules, images)
        return painter and stack.enter_context(closing(painter)), scorer.truth

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        if options is None:
            return super().compare_failures(methods, None)
        import numpy as np

        from segjudge.report.page import BY_CHANGE, make_changes

        measured = {method.name: self._measure_report(method.report) for method in methods}
        compared = self.tabulate_costs(methods, {name: losses.totals() for name, (_, losses) in measured.items()})
        costs = np.stack([losses.by_unit.sum(axis=1) for _, losses in measured.values()], axis=1)
        pictures = self._draw_differences(methods, costs, options)
        changes = {
            name: dict(zip(map(str, accumulator.names), (-costs[:, column]).tolist(), strict=True))
            for column, (name, (accumulator, _)) in enumerate(measured.items())
        }
        # Not just their name, which the table of their scores may also have.
        title = f"Loss of {self.name_losses(methods[0].report.protocol)[1]}"
        table = make_changes(title, changes, BY_CHANGE, (pictures.streams, pictures.names) if pictures else ({}, {}))
        player = [pictures.player] if pictures else []
        causes = {method.name: self.explain_failures(method.inputs, method.report)[1] for method in methods}
        _, losses_of_first = measured[methods[0].name]
        return replace(
            compared,
            bars={name: self.make_bar(losses.totals()) for name, (_, losses) in measured.items()},
            measure=self.name_measure(methods[0].report.protocol, losses_of_first.kinds),
            causes=causes,
            sections=[*player, table, *compared.sections],
        )

    def _draw_differences(
        self, methods: Sequence[ScoredMethod], costs: Array, options: PageOptions
    ) -> UnitPictures | None:
        """Return the section of units with the second method's largest loss against the first."""
        from .drawing import RankedUnits, draw_units

        report = methods[0].report
        order = [(int(index), costs[index].tolist()) for index in (costs[:, 0] - costs[:, 1]).argsort(kind="stable")]
        with ExitStack() as stack:
            opened = {
                method.name: self._open_painter(method.inputs, method.report, stack, options.images)
                for method in methods
            }
            painters = {name: painter for name, (painter, _) in opened.items() if painter is not None}
            if len(painters) < len(methods):
                return None
            truth, noun = opened[methods[0].name][1], self.name_losses(report.protocol)[1]
            return draw_units(painters, RankedUnits(report.split, truth, order, noun), options)

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Return the section of confused classes in the drawn units."""
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
        painter = self.open_painter("", truth, ScoringRules(protocol, UNIT_LIMITS), options.images)
        if painter is None:
            return super().make_truth_sections(split, truth, options)
        from .drawing import RankedUnits, draw_units

        order = [(index, [0.0]) for index in range(len(truth.units))]
        units = RankedUnits(split, truth, order, self.name_losses(protocol)[1], truth_alone=True)
        with closing(painter):
            pictures = draw_units({"": painter}, units, options)
        return [pictures.player] if pictures is not None else []

    def describe_loss(self, report: Report) -> str:
        from segjudge.report.sentences import LITTLE, count_costly, describe_cost, name_kinds, rank_kinds
        from segjudge.report.tables import format_number

        accumulator, losses = self._measure_report(report)
        metric, noun = self.name_losses(report.protocol)
        kinds = name_kinds(losses.totals(), *self.nouns)
        ranked = rank_kinds(kinds, "" if metric == report.protocol.metrics[0] else metric)
        if not ranked:
            return ""
        costs, groups = losses.by_unit.sum(axis=1), report.rows()[self.groups]
        worst, lowest, index = "", "", self._order_units(report, losses)[0]
        if len(costs) > 1 and costs[index] >= LITTLE:
            (case,) = losses.rows([accumulator.names[index]], losses.by_unit[[index]])
            cost = describe_cost(case) if self.counts_kinds else f"at a cost of {format_number(case['costs'])}"
            worst = f"Worst {noun.removesuffix('s')}: {printable(case['name'])}, {cost}."
        if (names := [str(row["name"]) for row in groups]) != accumulator.names:
            lowest = self._name_lowest(report, self.groups, names)
        spread = count_costly(costs.tolist(), noun, "" if self.counts_kinds else metric)
        sentences = (ranked if self.counts_kinds else "", spread, worst, lowest)
        return " ".join(sentence for sentence in sentences if sentence)

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        accumulator, losses = self._measure_report(report)
        return [
            {"name": name, **dict(zip(losses.kinds, costs, strict=True))}
            for name, costs in zip(accumulator.names, losses.by_unit.tolist(), strict=True)
        ]

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        return self._measure_report(report)[1].totals()

    def explain_failures(self, inputs: ScoringInputs, report: Report) -> tuple[dict[str, float], str]:
        from .drawing import describe_units

        _, losses = self._measure_report(report)
        with ExitStack() as stack:
            cause = self.name_cause(inputs, report)
            painter, truth = (None, None) if cause else self._open_painter(inputs, report, stack)
            if painter is None or truth is None:
                return losses.totals(), cause
            return losses.totals(), describe_units(painter, self._rank_units(truth, report, losses))

    def make_bar(self, kinds: Mapping[str, float]) -> list[tuple[str, float, str]]:
        """Make a bar of a metric or of the mean of several: the score, then the loss by kind."""
        lost = super().make_bar(kinds)
        return [("kept", max(0.0, 1 - sum(cost for _, cost, _ in lost)), "kept"), *lost]

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
