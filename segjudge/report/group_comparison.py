"""Several methods of instances, or of a track that counts by unit: places, verdicts, kinds, and regressions first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from segjudge.diagnosis.units import UNIT_LOSSES
from segjudge.evaluation_script.reports import Report, Row
from segjudge.evaluation_script.unit_counts import UnitAccumulator
from segjudge.statistics.rankings import Difference, Mean, Sums

from .comparison import SHOWN_FROM, place_row, sign_of, verdict, whiskers
from .lists import listed
from .page import Section

GROUPS = "groups of images or videos"


@dataclass(frozen=True)
class GroupedMethods:
    """Methods by name, the first of which the others are compared with, and what can be told of them."""

    metric: str
    reports: Mapping[str, Report]
    #: What each kind of failure costs each method.
    costs: Mapping[str, Mapping[str, float]]
    sums: Sums
    means: list[Mean]
    pairs: list[Difference]

    @property
    def about(self) -> str:
        """What is compared."""
        return f"{self.metric} over {len(self.sums.counts)} {GROUPS}, left out one by one"

    def verdicts(self) -> list[str]:
        """Return a sentence on each pair."""
        return [verdict(pair, self.sums, GROUPS) for pair in self.pairs]

    def kinds(self) -> list[str]:
        """Return a sentence on each method but the first: which kinds cost it more or less than that one."""
        (first, base), *others = self.costs.items()
        lines = []
        for name, costs in others:
            parts = sorted(((costs[kind] - base[kind], kind) for kind in base), key=lambda part: -abs(part[0]))
            text = ", ".join(f"{kind} {change:+.3f}" for change, kind in parts if abs(change) >= SHOWN_FROM)
            lines.append(f"{name} loses, beside {first}: {text or 'the same'}")
        return lines


def group_sections(found: GroupedMethods, origins: Mapping[str, object]) -> list[Section]:
    """Return the sections of several methods."""
    sections = [_methods(found), listed("Categories", _categories(found), "Those first in which the second lost most.")]
    if all(isinstance(report.counted, UnitAccumulator) for report in found.reports.values()):
        sections.append(listed("Images or videos", _units(found), "What each costs, regressions first."))
    return [
        *sections,
        Section("origins", "What was scored", {"warnings": [], "provenance": json.dumps(origins, indent=1)}),
    ]


def _methods(found: GroupedMethods) -> Section:
    names = [row.name for row in found.means]
    kinds = list(next(iter(found.costs.values())))
    return Section(
        "methods",
        "Methods",
        {
            "about": f"{found.about}. Places and verdicts hold for all pairs together (sign flips by group, Holm).",
            "columns": ["place", "method", found.metric, "95 %", "", *kinds],
            "rows": [
                [*place_row(row), picture, *found.costs[row.name].values()]
                for row, picture in zip(found.means, whiskers(found.means), strict=True)
            ],
            "points": [],
            "bars": [],
            "verdicts": found.verdicts(),
            "names": names,
            "apart": {
                (one, other): sign_of(found.sums, found.pairs, one, other)
                for one in names
                for other in names
                if one != other
            },
            "kinds": found.kinds(),
        },
    )


def _categories(found: GroupedMethods) -> list[Row]:
    tables = {name: report.rows()["categories"] for name, report in found.reports.items()}
    first = next(iter(tables.values()))
    metric = next((key for key in (first[0] if first else {}) if key not in ("split", "id", "name")), "")
    return _beside({name: {str(row["name"]): row[metric] for row in rows} for name, rows in tables.items()})


def _units(found: GroupedMethods) -> list[Row]:
    costs = {}
    for name, report in found.reports.items():
        losses = UNIT_LOSSES[report.protocol.track](report.counted)  # type: ignore[arg-type]
        units = [str(unit) for unit in report.counted.names]  # type: ignore[attr-defined]
        costs[name] = dict(zip(units, (-losses.by_unit.sum(axis=1)).tolist(), strict=True))
    return _beside(costs)


def _beside(values: dict[str, dict[str, float | None]]) -> list[Row]:
    """Return what each method has in each case, and the differences from the first, regressions first."""
    first, *others = values
    rows = []
    for case in dict.fromkeys(case for one in values.values() for case in one):
        mine = [one.get(case) for one in values.values()]
        base = mine[0]
        changes = [None if one is None or base is None else one - base for one in mine[1:]]
        names = [f"{other} − {first}" for other in others]
        rows.append({"name": case, **dict(zip(values, mine, strict=True)), **dict(zip(names, changes, strict=True))})
    change = f"{others[0]} − {first}"
    return sorted(rows, key=lambda row: (row[change] is None, row[change] or 0.0))
