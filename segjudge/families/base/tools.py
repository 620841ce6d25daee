"""The toolkit's interface to a family: published truths, memory, reports, sentences, challenges.

A family's folder overrides methods, and the defaults serve families without a folder. `make_sample`, `make_demo` and
`describe_truth` may be functions of the family's `challenges.py`. Families that count by unit have `unit_tools.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from segjudge.system.errors import OptionError, UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.evaluation_script.scoring.scorer import Scorer
    from segjudge.report.page import PageOptions, Section

    from .benchmarks import FamilyEntry
    from .memory import MemoryDoor
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


class MethodCosts(NamedTuple):
    """The costs of failures by method and kind, and the sections that show them."""

    #: The costs by method, then by kind.
    costs: Mapping[str, Mapping[str, float]]
    #: Further columns of the table of methods, and their cells by method.
    columns: Sequence[str] = ()
    cells: Mapping[str, Sequence[object]] = MappingProxyType({})
    #: For each method, the parts of its bar: what is correct and the cost of each kind (name, share, style).
    bars: Mapping[str, Sequence[tuple[str, float, str]]] = MappingProxyType({})
    #: For each sequence its name, its stream, and the values of the first two methods.
    points: Sequence[tuple[str, str, float, float]] = ()
    #: For each method, the sentence on its most expensive causes.
    causes: Mapping[str, str] = MappingProxyType({})
    #: The sections after the section on methods.
    sections: Sequence[Section] = ()
    #: The package with the styles of the bars.
    style: str = "segjudge.report"
    #: The quantity of the bars, if it differs from the ranking metric.
    measure: str = ""


class FilmChoice(NamedTuple):
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
    #: A submission is one file, so that a folder of JSON files holds several submissions.
    sends_one_file: ClassVar[bool] = False
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

    def read_template(self) -> str:
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
