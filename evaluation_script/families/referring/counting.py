"""What is counted in a sample: its target, its answer and what they share, in pixels that are not ignored."""

from __future__ import annotations

from typing import List

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from ..base.units import TruthFrame, Unit, UnitCounts
from .protocols import GREFCOCO, REFCOCO, ReferringProtocol
from .submission import ReferringSubmission

#: Columns of a sample: its kind of query, whether it has a target, whether the answer says that there is none; pixels
#: of the target, of the answer's mask as it was sent, and of both.
GROUP, TARGET, WITHDRAWN, TRUTH_AREA, ANSWER_AREA, SHARED = range(6)
COLUMNS = 6
#: What LISA adds to each union, and to the number of samples.
EPSILON = 1e-5


def count(unit: Unit, submission: ReferringSubmission) -> UnitCounts:
    """Count a sample."""
    (frame,) = unit.load()
    answer = submission.answer(unit.name)
    pixels = count_pixels(frame, answer.text, answer.area)
    row = [unit.facts["group"], int(unit.facts["target"]), int(answer.is_withdrawn), *pixels]
    return UnitCounts(unit.name, {"sample": np.array(row, np.int64)})


def count_pixels(frame: TruthFrame, answer: str, answer_area: int) -> List[int]:
    """Return the pixels of the target, of an answer that has so many, and of both, without what is ignored."""
    ((target, area, ignored),) = frame.rows
    count_shared = backend().count_shared_pixels
    counted = answer_area - (count_shared(answer, ignored) if ignored and answer_area else 0)
    return [area, counted, count_shared(answer, target) if area and counted else 0]


def overlaps_of(samples: Array, *, official: bool) -> Array:
    """Return columns for each sample: the shared pixels, those of the union, and the IoU, with 0 where it has no union.

    A withdrawn mask is empty, but by the official rules for the union of a sample with a target.
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
    """Return the IoU of each sample as its mean takes them; what is rightly empty has 1 where the rules say so."""
    ious = overlaps_of(samples, official=protocol.official)
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
        quotients: Array = shared / (union + np.float32(EPSILON)) + (union == 0).astype(np.float32)
        return quotients
    return np.where(ious[:, 1] == 0, 1.0, iou)
