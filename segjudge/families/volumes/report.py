"""Report sections of volumes: the loss of the first share by cause, case and region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.volumes.protocols import SMALLER
from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.base.unit_tools import UnitLosses
from segjudge.report.colours import style_of_kind
from segjudge.report.page import (
    VERDICT,
    PageOptions,
    Section,
    add_bar,
    draw_bar,
    make_kinds,
    make_list,
    make_loss_bar,
    make_tables,
    make_verdict,
    name_worst,
)
from segjudge.report.sentences import LITTLE, name_kinds, rank_kinds
from segjudge.report.tables import format_number

from .components import MEANINGS, RIGHT
from .diagnosis import MOST_CASES, MOST_KEPT, Diagnosis, diagnose
from .losses import name_measure
from .pictures import TITLE, SliceDrawing
from .scans import ScanFolder

#: The cost of cases whose components are not examined.
_UNSEEN = "other cases"
_ORDER = "Largest loss first."
#: Ranges of volumes in cubic millimetres, and their names.
_BOUNDS = (0.0, 10.0, 100.0, 1000.0, 10_000.0, np.inf)
_RANGES = ("below 10 mm³", "10 to 100 mm³", "100 mm³ to 1 ml", "1 to 10 ml", "from 10 ml on")
#: The minimum number of components that are divided by volume.
_FEWEST = 5
#: The cubic millimetres above which volumes are printed as whole numbers.
_WHOLE = 100


def make_sections(inputs: ScoringInputs, report: Report, losses: UnitLosses, options: PageOptions) -> list[Section]:
    """Return the sections of a split; losses are by case and region."""
    with open_scans(options, list_names(report)) as scans:
        drawing = SliceDrawing(report.split, options, min(len(list_names(report)), MOST_CASES), scans)
        diagnosis = diagnose(inputs, report, drawing.add)
        player = drawing.show(diagnosis.cases, diagnosis.causes.segment)
    cases = _list_cases(diagnosis, report, losses)
    regions = losses.rows([str(row["name"]) for row in report.rows()["regions"]], losses.by_category)
    bars = _add_bars(regions, list(losses.kinds))
    causes = _list_causes(diagnosis, sum(row["costs"] for row in cases))
    verdict = _write_verdict(diagnosis, report, cases, _name_worst(cases, drawing, report.split))
    measure = name_measure(diagnosis.protocol)
    about = f"By cause. The losses of all cases sum to 1 minus {measure}; so do the losses of all regions."
    return [
        add_bar(verdict, measure, make_loss_bar(causes), {row["kind"]: row["about"] for row in causes}),
        make_kinds(f"Where {measure} is lost", causes, about),
        *([player] if player else []),
        *_make_volumes(diagnosis),
        *_list_components(diagnosis, drawing),
        make_list("Cases", [{**row, "name": drawing.link(str(row["name"]))} for row in cases], _ORDER),
        make_list("Regions", bars, _ORDER),
        make_tables(report),
    ]


@contextmanager
def open_scans(options: PageOptions, cases: Sequence[str]) -> Iterator[ScanFolder | None]:
    """Open the folder of scans for a page; None if it has none."""
    if not options.images:
        yield None
        return
    with closing(ScanFolder(options.images, cases)) as scans:
        yield scans


def _list_cases(diagnosis: Diagnosis, report: Report, losses: UnitLosses) -> list[Row]:
    """Return each case's loss by cause, the costliest first."""
    kinds, rows = list(sum_causes(diagnosis)), []
    for name, cost in zip(list_names(report), losses.by_unit.sum(axis=1).tolist(), strict=True):
        costs = diagnosis.costs.get(name, {})
        row: Row = {"name": name, "costs": cost, **{kind: costs.get(kind, 0.0) for kind in kinds}}
        rows.append(row if diagnosis.is_whole else {**row, _UNSEEN: 0.0 if costs else cost})
    return sorted(rows, key=lambda row: -row["costs"])


def _add_bars(rows: list[Row], kinds: list[str]) -> list[Row]:
    """Add a bar to each row: its parts are the kinds, and the largest cost fills it."""
    whole = max([row["costs"] for row in rows] + [LITTLE])
    barred: list[Row] = []
    for row in rows:
        parts = [(kind, row[kind], style_of_kind(kind, number)) for number, kind in enumerate(kinds, 1)]
        barred.append({"name": row["name"], "loss": draw_bar(parts, whole), **row})
    return barred


def _make_volumes(diagnosis: Diagnosis) -> list[Section]:
    """Return the loss of components of the truth by their volume, with a bar for each range."""
    volumes, met, lost = (
        np.concatenate([np.zeros(0), *arrays]) for arrays in (diagnosis.volumes, diagnosis.met, diagnosis.lost)
    )
    if len(volumes) < _FEWEST:
        return []
    noun, rows = diagnosis.causes.segment, list[Row]()
    for (start, stop), name in zip(pairwise(_BOUNDS), _RANGES, strict=True):
        chosen = (volumes >= start) & (volumes < stop)
        count = int(chosen.sum())
        if count:
            about = f"{int(met[chosen].sum()):,} of {quantity(count, noun)} found"
            rows.append({"kind": name, "about": about, "cost": float(lost[chosen].sum())})
    scope = "" if diagnosis.looked_at == diagnosis.cases else f" in the {diagnosis.looked_at:,} cases that cost most"
    about = f"The cost of true {noun}s{scope}, by volume. Surplus {noun}s are not included."
    caption = f"Loss by volume of {noun}"
    return [make_kinds(f"By volume of {noun}", rows, about, caption=caption, head="volume")]


def _list_components(diagnosis: Diagnosis, drawing: SliceDrawing) -> list[Section]:
    """Return the table of components, the costliest first; each opens in the slices."""
    noun = f"{diagnosis.causes.segment}s"
    rows: list[Row] = [
        {
            "case": drawing.link(seen.case, voxel=drawing.find(seen)) if drawing.find(seen) else seen.case,
            "region": seen.region, "verdict": f"{seen.kind}{f': {seen.called}' if seen.called else ''}",
            "mm³": round(seen.volume, 1) if seen.volume < _WHOLE else round(seen.volume), "Dice": seen.dice,
            "voxel": ", ".join(map(str, seen.voxel[::-1])), "costs": seen.cost,
        }
        for seen in sorted(diagnosis.components, key=lambda seen: (-seen.cost, seen.kind == RIGHT, -seen.volume))
    ]  # fmt: skip
    if not rows:
        return []
    whole = diagnosis.looked_at == diagnosis.cases
    cases = "" if whole else f" of the {quantity(diagnosis.looked_at, 'case')} that cost most"
    about = (
        f"{noun.capitalize()} of the truth that count, and surplus ones{cases}: at most {MOST_KEPT} of a case. "
        f"{_ORDER} A voxel is x, y and z in the file, from 0; links open its slices."
    )
    return [make_list(noun.capitalize(), rows, about)]


def list_names(report: Report) -> list[str]:
    """Return the names of all cases in their order; tables omit cases that are empty on both sides."""
    if not isinstance(report.counts, UnitAccumulator):
        raise TypeError(f"{report.split} has no cases")
    return report.counts.names


def sum_causes(diagnosis: Diagnosis) -> dict[str, float]:
    """Return the nonzero loss of each cause, in the order of a page."""
    totals = {kind: sum(costs.get(kind, 0.0) for costs in diagnosis.costs.values()) for kind in MEANINGS}
    return {kind: cost for kind, cost in totals.items() if cost}


def _name_worst(cases: list[Row], drawing: SliceDrawing, split: str) -> Markup | str:
    """Return the sentence on the case that costs most, with a link to its slices if they are drawn."""
    is_drawn = bool(cases) and drawing.has(str(cases[0]["name"]))
    return name_worst(cases, TITLE, split) if is_drawn else name_worst(cases, "cases")


def describe_causes(diagnosis: Diagnosis) -> str:
    """Describe the costliest causes of the examined cases."""
    scope = ""
    if diagnosis.looked_at < diagnosis.cases:
        scope = f"In the {quantity(diagnosis.looked_at, 'case')} with the largest loss, "
    return diagnosis.causes.describe(scope)


def _write_verdict(diagnosis: Diagnosis, report: Report, cases: list[Row], worst: Markup | str) -> Section:
    measure, cause = name_measure(diagnosis.protocol), describe_causes(diagnosis)
    explained = "" if measure == report.protocol.metrics[0] else measure
    causes = [cause, _rank_causes(diagnosis, explained) if diagnosis.is_whole else ""]
    costs = [row["costs"] for row in cases]
    value = report.values[report.protocol.metrics[0]]
    if cause and value is not None and value >= 1 - LITTLE:
        return Section(VERDICT, "Verdict", {"sentences": [_state_errors(report), cause]})
    return make_verdict(report, measure, causes, costs, "cases", worst)


def _rank_causes(diagnosis: Diagnosis, explained: str) -> str:
    return rank_kinds(name_kinds(sum_causes(diagnosis), f"{diagnosis.causes.segment}s", "voxels"), explained)


def _state_errors(report: Report) -> Markup:
    """State the first metric if it is not a share, and non-zero errors."""
    main, *metrics = report.protocol.metrics
    errors = [name for name in metrics if name.partition("_")[0] in SMALLER and (report.values[name] or 0) > LITTLE]
    stated = [f"{name} is {format_number(report.values[name])}" for name in (main, *errors[:2])]
    return Markup("<b>{}.</b>").format(", ".join(stated))


def _list_causes(diagnosis: Diagnosis, loss: float) -> list[Row]:
    """Return each cause with its loss; all causes sum to the loss."""
    totals = sum_causes(diagnosis)
    rows: list[Row] = [
        {"kind": kind, "about": MEANINGS[kind], "cost": totals.get(kind, 0.0)}
        for kind in MEANINGS
        if kind in totals or kind in list(MEANINGS)[:2]
    ]
    unseen = loss - sum(totals.values())
    if unseen > LITTLE:
        about = f"cases beyond the {diagnosis.looked_at} with the largest loss, whose components are not examined"
        rows.append({"kind": _UNSEEN, "about": about, "cost": unseen})
    return rows
