"""The losses of units and categories, from tables, from reports and from the shared data."""

from __future__ import annotations

from typing import Any

import numpy as np

import segjudge
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.families import tools_of
from segjudge.families.base.unit_tools import UnitLosses, UnitTools
from tests.data import TRACKS_DATA
from tests.families.contract import merge_rows


def losses_of(family: str, accumulator: Any) -> UnitLosses:
    tools = tools_of(family)
    assert isinstance(tools, UnitTools)
    return tools.measure_losses(accumulator)


def score_shared(protocol: str) -> tuple[Report, UnitLosses]:
    """Score the shared sample of a protocol; return the report, and the losses of units and categories."""
    truth, submission, _ = merge_rows("SHARED_LOSSES")[protocol]
    report = segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, protocol).reports[0]
    assert isinstance(report.counts, UnitAccumulator)
    return report, losses_of(report.protocol.family, report.counts)


def count_tables(protocol: Any, tables: list[dict[str, Any]], facts: Any = None) -> UnitAccumulator[Any]:
    names = [f"unit {number}" for number in range(len(tables))]
    accumulator: UnitAccumulator[Any] = UnitAccumulator(protocol, facts or {}, names)
    for name, item in zip(names, tables, strict=True):
        accumulator.update(UnitCounts(name, {key: np.asarray(table) for key, table in item.items()}))
    return accumulator
