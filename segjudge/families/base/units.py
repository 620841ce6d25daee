"""Families that count by unit, such as an image: their tools, and what units and categories cost.

A family of this kind says in `measure_losses` what costs its metrics; report, comparison and kinds of failure follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import quantity

from .tools import Facts, FamilyTools, ScoringInputs

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.report.page import PageOptions, Section

_METRIC = re.compile(r"(?P<stem>[A-Za-z_]+?(?:F1)?)(?P<frames>\d*)(?:-(?P<category>[A-Za-z]+))?")
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
        """Return what each kind costs altogether."""
        return dict(zip(self.kinds, self.by_unit.sum(axis=0).tolist(), strict=True))

    def rows(self, names: list[str], losses: Array) -> list[Row]:
        """Return a row for each name, those that cost most first."""
        order = (-losses.sum(axis=1)).argsort(kind="stable").tolist()
        return [
            {"name": names[index], "costs": float(losses[index].sum()), **dict(zip(self.kinds, losses[index].tolist()))}
            for index in order
        ]


class UnitTools(FamilyTools):
    """What the toolkit does with a family that counts by unit."""

    limits = "UNIT_LIMITS"
    #: Its metrics' meanings, by the name before a number of frames and a category.
    meanings: ClassVar[Mapping[str, str]] = {}

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return what costs the metrics, by unit, category and kind."""
        raise NotImplementedError

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        """Return the metric whose loss that is, and what units are called."""
        raise NotImplementedError

    def _losses_of(self, report: Report) -> tuple[UnitAccumulator[Any], UnitLosses]:
        from segjudge.evaluation_script.families.base.units import UnitAccumulator

        if not isinstance(report.counts, UnitAccumulator):
            raise TypeError(f"{report.split} was not counted by unit")
        return report.counts, self.measure_losses(report.counts)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        del inputs, options
        from segjudge.report.page import first_metric, make_kinds, make_list, make_tables

        accumulator, losses = self._losses_of(report)
        metric, noun = self.name_losses(report.protocol)
        about = (
            f"By kind of mistake. What all {noun} cost sums to what {metric} lacks to 1, and what all categories cost "
            "too."
        )
        totals = losses.totals()
        kinds = [{"kind": name, "about": meaning, "cost": totals[name]} for name, meaning in losses.kinds.items()]
        rows = report.rows()["categories"]
        names = [str(row["name"]) for row in rows]
        ranking = first_metric(rows)
        values = {name: row[ranking] for name, row in zip(names, rows, strict=True)}
        categories = [
            {"name": row["name"], ranking: values[row["name"]], **row} for row in losses.rows(names, losses.by_category)
        ]
        return [
            make_kinds(f"Where {metric} is lost", kinds, about),
            make_list(noun.capitalize(), losses.rows(accumulator.names, losses.by_unit), _ORDER),
            make_list("Categories", categories, _ORDER),
            make_tables(report),
        ]

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        del open_inputs
        accumulator, losses = self._losses_of(report)
        return [
            {"name": name, **dict(zip(losses.kinds, costs, strict=True))}
            for name, costs in zip(accumulator.names, losses.by_unit.tolist(), strict=True)
        ]

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        del inputs
        return self._losses_of(report)[1].totals()

    def list_unit_costs(self, report: Report) -> dict[str, float | None]:
        accumulator, losses = self._losses_of(report)
        names = [str(unit) for unit in accumulator.names]
        return dict(zip(names, (-losses.by_unit.sum(axis=1)).tolist(), strict=True))

    def describe_metric(self, metric: str) -> str:
        name = _METRIC.fullmatch(metric)
        if name is None or name["stem"] not in self.meanings:
            return metric
        window = f" over {name['frames']} frames" if name["frames"] else ""
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
