"""The toolkit's functions for families that count by unit.

Such a family implements `measure_losses`, from which reports, comparisons and kinds of failure follow.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import printable, quantity
from segjudge.families.base.tools import Facts, FamilyTools, MethodCosts

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.families.base.tools import ScoredMethod, ScoringInputs
    from segjudge.report.page import PageOptions, Section

    from .drawing import RankedUnits, UnitPictures
    from .pictures import UnitPainter


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

    def measure_further_loss(self, accumulator: UnitAccumulator[Any]) -> Array | None:
        """Return the units' loss of a further metric, which orders them beside their main loss."""
        return None

    def describe_cause(self, inputs: ScoringInputs, report: Report) -> str:
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
        return accumulator, self._average_losses(self.measure_losses(accumulator))

    def _average_losses(self, losses: UnitLosses) -> UnitLosses:
        """Return the losses of the metric, or of the mean of several."""
        if self.has_several_losses(losses.kinds):
            losses = replace(losses, by_unit=losses.by_unit / 2, by_category=losses.by_category / 2)
        return losses

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.report.page import add_bar, link_frames, make_kinds, make_list, make_tables
        from segjudge.report.tables import first_metric

        accumulator, losses = self._measure_report(report)
        metric, noun = self.name_losses(report.protocol)
        totals = losses.totals()
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
        pictures, confusions = self._draw_worst(inputs, report, losses, options)
        verdict = self._make_verdict(inputs, report, totals, units, pictures)
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

    def _make_verdict(
        self,
        inputs: ScoringInputs,
        report: Report,
        totals: Mapping[str, float],
        units: list[Row],
        pictures: UnitPictures | None,
    ) -> Section:
        """Return the verdict: the cause, the kinds of failure, and the costliest unit."""
        from segjudge.report.page import make_verdict, name_worst
        from segjudge.report.sentences import name_kinds, rank_kinds

        metric, noun = self.name_losses(report.protocol)
        cause = self.describe_cause(inputs, report)
        worst = name_worst(units, noun, report.split, pictures.names if pictures else {})
        explained = "" if metric == report.protocol.metrics[0] else metric
        kinds = rank_kinds(name_kinds(totals, *self.nouns), explained)
        causes = [cause or (pictures.cause if pictures else ""), kinds]
        return make_verdict(report, metric, causes, [row["costs"] for row in units], noun, worst)

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

        costs, remaining_loss = losses.by_unit.sum(axis=1), self.measure_further_loss(self.counts_of(report))
        order: list[int] = np.lexsort((-costs if remaining_loss is None else -remaining_loss, -costs)).tolist()
        return order

    def _rank_units(self, truth: UnitTruth, report: Report, losses: UnitLosses) -> RankedUnits:
        """Return all units in their order."""
        import numpy as np

        from .drawing import RankedUnits

        costs = losses.by_unit.sum(axis=1)
        remaining_loss = self.measure_further_loss(self.counts_of(report))
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
        return compared._replace(
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
            cause = self.describe_cause(inputs, report)
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
