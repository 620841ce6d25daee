"""The scoring of answers: IoU per sample, IoU of all pixels, and detection of missing targets.

A sample's counts are the pixels of target, answer and intersection, without ignored pixels.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Optional

import numpy as np

from ...doctor import Examination, Sample, fit_flags, paint
from ...files import quantity
from ...masks.backend import backend
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.units import Shapes, TruthFrame, Unit, UnitAccumulator, UnitCounts, score_samples, unit_engine
from .protocols import GREFCOCO, REFCOCO, ReferringProtocol
from .submission import ReferringSubmission
from .truth import read_truth

#: The columns of a sample: kind of query, whether it has a target, whether the answer denies one; pixels of the target,
#: of the submitted mask, and of both.
GROUP, TARGET, WITHDRAWN, TRUTH_AREA, ANSWER_AREA, SHARED = range(6)
_COLUMNS = 6
#: The number that LISA adds to each union, and to the number of samples.
_EPSILON = 1e-5


def _count(unit: Unit, submission: ReferringSubmission) -> UnitCounts:
    """Count a sample."""
    (frame,) = unit.load()
    answer = submission.answer(unit.name)
    pixels = count_pixels(frame, answer.text, answer.area)
    row = [unit.facts["group"], int(unit.facts["target"]), int(answer.is_withdrawn), *pixels]
    return UnitCounts(unit.name, {"sample": np.array(row, np.int64)})


def count_pixels(frame: TruthFrame, answer: str, answer_area: int) -> List[int]:
    """Return the pixel counts of target, answer and intersection, without ignored pixels."""
    ((target, area, ignored),) = frame.rows
    count_shared = backend().count_shared_pixels
    counted = answer_area - (count_shared(answer, ignored) if ignored and answer_area else 0)
    return [area, counted, count_shared(answer, target) if area and counted else 0]


def _overlaps_of(samples: Array, *, official: bool) -> Array:
    """Return for each sample the shared pixels, the union and the IoU (0 without a union).

    A withdrawn mask is empty, except in the official rules for the union of a sample with a target.
    """
    has_target, is_withdrawn = samples[:, TARGET] > 0, samples[:, WITHDRAWN] > 0
    shared = np.where(is_withdrawn, 0, samples[:, SHARED])
    answered = np.where(is_withdrawn, 0, samples[:, ANSWER_AREA])
    union = samples[:, TRUTH_AREA] + answered - shared
    if official:
        whole = samples[:, TRUTH_AREA] + samples[:, ANSWER_AREA] - samples[:, SHARED]
        union = np.where(has_target & is_withdrawn, whole, union)
    iou = shared / np.maximum(union, 1)
    return np.stack([shared, union, iou], axis=1)


def ious_of(samples: Array, protocol: ReferringProtocol) -> Array:
    """Return the IoU of each sample as the mean uses it; correctly empty ones are 1 if the rules say so."""
    ious = _overlaps_of(samples, official=protocol.official)
    iou: Array = ious[:, 2]
    has_target, is_withdrawn = samples[:, TARGET] > 0, samples[:, WITHDRAWN] > 0
    if protocol.form == REFCOCO:
        return iou
    if protocol.form == GREFCOCO:
        rejected = ~has_target & is_withdrawn
        if protocol.official:
            return np.where(rejected, 1.0, iou)
        return np.where(rejected | (has_target & (ious[:, 1] == 0)), 1.0, iou)
    if protocol.official:
        shared, union = ious[:, 0].astype(np.float32), ious[:, 1].astype(np.float32)
        quotients: Array = shared / (union + np.float32(_EPSILON)) + (union == 0).astype(np.float32)
        return quotients
    return np.where(ious[:, 1] == 0, 1.0, iou)


#: The minimum IoU of a precise sample.
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: The number that LISA adds to the total union.
_LEAST = 1e-10


def _measure_samples(samples: Array, protocol: ReferringProtocol) -> Values:
    """Return all metrics of some samples, including unreported ones."""
    ious = ious_of(samples, protocol)
    overlaps = _overlaps_of(samples, official=protocol.official)
    if protocol.form == REFCOCO:
        values = {"oIoU": _divide(overlaps[:, 0].sum(), overlaps[:, 1].sum()), "mIoU": _mean(ious)}
        return {**values, **{f"P@{threshold}": _mean(ious >= threshold) for threshold in _THRESHOLDS}}
    if protocol.form != GREFCOCO:
        if protocol.official:
            return _measure_as_lisa(ious, overlaps)
        return {"gIoU": _mean(ious), "cIoU": _divide(overlaps[:, 0].sum(), overlaps[:, 1].sum())}
    has_target, is_withdrawn = samples[:, TARGET] > 0, samples[:, WITHDRAWN] > 0
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
    """Return the numbers of LISA's validation: sums in 32 bits, picture by picture."""
    if not len(ious):
        return {"gIoU": None, "cIoU": None}
    total, shared, union = (
        np.add.accumulate(column.astype(np.float32), dtype=np.float32)[-1]
        for column in (ious, overlaps[:, 0], overlaps[:, 1])
    )
    g_iou = total / np.float32(len(ious) + _EPSILON)
    return {"gIoU": float(g_iou), "cIoU": float(shared / (union + np.float32(_LEAST)))}


def _divide(shared: Any, union: Any) -> Optional[float]:
    return float(shared / union) if union else None


def _mean(numbers: Array) -> Optional[float]:
    return mean(numbers) if len(numbers) else None


def _compute_metrics(accumulator: UnitAccumulator[ReferringProtocol]) -> Values:
    protocol = accumulator.protocol
    metrics = _measure_samples(accumulator.stack("sample"), protocol)
    return {metric: metrics[metric] for metric in protocol.metrics}


def _tables(accumulator: UnitAccumulator[ReferringProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per kind of query, and one with all metrics of all samples."""
    protocol, samples = accumulator.protocol, accumulator.stack("sample")
    rows = []
    for index, (name,) in enumerate(accumulator.facts["subsets"]):
        group_samples = samples[samples[:, GROUP] == index]
        rows.append({"name": name, **_measure_samples(group_samples, protocol), "samples": len(group_samples)})
    return {
        "queries": rows,
        "details": [{"name": "all", **_measure_samples(samples, protocol), "samples": len(samples)}],
    }


def _shapes(_protocol: ReferringProtocol, _facts: Dict[str, Any]) -> Shapes:
    return {"sample": (_COLUMNS,)}


def _judge_flags(accumulator: UnitAccumulator[ReferringProtocol]) -> List[str]:
    """Return a suspicion if no_target contradicts the truth for nearly all samples, or holds for all."""
    if accumulator.protocol.form != GREFCOCO:
        return []
    samples = accumulator.stack("sample")
    has_target, is_withdrawn = samples[:, TARGET] > 0, samples[:, WITHDRAWN] > 0
    wrong, count = int((has_target == is_withdrawn).sum()), len(samples)
    if has_target.any() and not has_target.all() and wrong > _MOST_WRONG * count:
        contradicted = f"no_target contradicts the truth for {quantity(wrong, 'sample', count)}"
        return [f"{contradicted}: write true where the image shows no target"]
    if has_target.any() and is_withdrawn.all() and samples[:, ANSWER_AREA].any():
        return [f"no_target is true for all {quantity(count, 'sample')}: write false where the image shows a target"]
    return []


#: The share of wrong flags above which no_target seems to have the opposite meaning.
_MOST_WRONG = 0.9


# ── the doctor ──────────────────────────────────────────────────────────────


def _examine(submission: ReferringSubmission) -> Examination:
    """Return a submission as the doctor examines it: the answers to samples with a target."""
    protocol, units = submission.protocol, [unit for unit in submission.truth.units if unit.facts["target"]]

    def sample(number: int) -> List[Sample]:
        (frame,) = units[number].load()
        ((target, area, ignored),) = frame.rows
        truth = paint([(1, target), *([(-1, ignored)] if ignored else [])], frame.size)
        answer = paint([(1, submission.answer(units[number].name).text)], frame.size)
        return [Sample(number, units[number].name, [truth], [answer])] if area else []

    def tabulate(sample: Sample) -> Dict[str, Array]:
        (truth,), (prediction,) = sample.truth, sample.prediction
        target, answer = truth > 0, (prediction != 0) & (truth >= 0)
        pixels = [int(np.count_nonzero(flags)) for flags in (target, answer, target & answer)]
        return {"sample": np.array([0, 1, 0, *pixels], np.int64)}

    traits = frozenset({"pictures", "places", "units", "masks", "binary", "runs", "questions"})
    return Examination(
        [unit.name for unit in units], sample, traits, "sample", labels="ids", fit=fit_flags,
        rescore=partial(score_samples, protocol, submission.truth.facts, _compute_metrics, tabulate),
        metric=protocol.metrics[0],
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    ReferringSubmission,
    _count,
    _compute_metrics,
    _tables,
    _shapes,
    _judge_flags,
    facts={"subsets": (str,)},
    examine=_examine,
)
