"""How answers are scored: IoU by sample, IoU of all pixels, and whether it is known that there is a target."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from ...masks.stack import Array
from ..base.family import Values
from ..base.units import Shapes, UnitAccumulator, unit_engine
from . import counting
from .counting import EPSILON, count, ious_of, overlaps_of
from .protocols import GREFCOCO, REFCOCO, ReferringProtocol
from .submission import ReferringSubmission
from .truth import read_truth

#: A sample is precise from this IoU on.
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: What LISA adds to the union of all.
_LEAST = 1e-10


def _measure_samples(samples: Array, protocol: ReferringProtocol) -> Values:
    """Return all metrics of some samples, also those that the benchmark does not report."""
    ious = ious_of(samples, protocol)
    overlaps = overlaps_of(samples, official=protocol.official)
    if protocol.form == REFCOCO:
        values = {"oIoU": _divide(overlaps[:, 0].sum(), overlaps[:, 1].sum()), "mIoU": _mean(ious)}
        return {**values, **{f"P@{threshold}": _mean(ious >= threshold) for threshold in _THRESHOLDS}}
    if protocol.form != GREFCOCO:
        if protocol.official:
            return _measure_as_lisa(ious, overlaps)
        return {"gIoU": _mean(ious), "cIoU": _divide(overlaps[:, 0].sum(), overlaps[:, 1].sum())}
    has_target, is_withdrawn = samples[:, counting.TARGET] > 0, samples[:, counting.WITHDRAWN] > 0
    values = {
        "gIoU": _mean(ious),
        "cIoU": _divide(overlaps[:, 0].sum(), overlaps[:, 1].sum()),
        "N-acc": _mean(is_withdrawn[~has_target]),
        "T-acc": _mean(~is_withdrawn[has_target]),
    }
    if protocol.official and has_target.all():
        values["N-acc"] = values["T-acc"] = 0.0
    return {**values, **{f"Pr@{threshold}": _mean(ious[has_target] >= threshold) for threshold in _THRESHOLDS}}


def _measure_as_lisa(ious: Array, overlaps: Array) -> Values:
    """Return what LISA's validation prints: sums in 32 bits, one picture after the other."""
    if not len(ious):
        return {"gIoU": None, "cIoU": None}
    total, shared, union = (
        np.add.accumulate(column.astype(np.float32), dtype=np.float32)[-1]
        for column in (ious, overlaps[:, 0], overlaps[:, 1])
    )
    g_iou = total / np.float32(len(ious) + EPSILON)
    return {"gIoU": float(g_iou), "cIoU": float(shared / (union + np.float32(_LEAST)))}


def _divide(shared: Any, union: Any) -> Optional[float]:
    return float(shared / union) if union else None


def _mean(numbers: Array) -> Optional[float]:
    return float(numbers.mean()) if len(numbers) else None


def _values(accumulator: UnitAccumulator[ReferringProtocol]) -> Values:
    protocol = accumulator.protocol
    metrics = _measure_samples(accumulator.stack("sample"), protocol)
    return {metric: metrics[metric] for metric in protocol.metrics}


def _tables(accumulator: UnitAccumulator[ReferringProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each kind of query, and one with all that is known of all samples."""
    protocol, samples = accumulator.protocol, accumulator.stack("sample")
    rows = []
    for index, (name,) in enumerate(accumulator.facts["subsets"]):
        own = samples[samples[:, counting.GROUP] == index]
        rows.append({"name": name, **_measure_samples(own, protocol), "samples": len(own)})
    return {
        "queries": rows,
        "details": [{"name": "all", **_measure_samples(samples, protocol), "samples": len(samples)}],
    }


def _shapes(_protocol: ReferringProtocol, _facts: Dict[str, Any]) -> Shapes:
    return {"sample": (counting.COLUMNS,)}


def _oddities(accumulator: UnitAccumulator[ReferringProtocol]) -> List[str]:
    totals = (accumulator.stack("sample") > 0).sum(axis=0)
    if not totals[counting.TRUTH_AREA] or totals[counting.SHARED]:
        return []
    if not totals[counting.ANSWER_AREA]:
        return ["all masks are empty: check what was sent"]
    return ["not one mask overlaps its target: check which sample each belongs to"]


ENGINE = unit_engine(
    read_truth, ReferringSubmission, count, _values, _tables, _shapes, _oddities, facts={"subsets": (str,)}
)
