"""Scans in memory: a number of 32 bits for each point, as in the files."""

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitCounts
from segjudge.evaluation_script.families.scans.engine import count_scan
from segjudge.evaluation_script.families.scans.files import check_labels
from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import SamplesInMemory, read_array, refusal, refuse_flaws

_END = 1 << 32


class ScansInMemory(SamplesInMemory):
    """A counter of points, each a label with an object number in the upper 16 bits."""

    may_be_listed = False

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        true_values, values = (
            _read_points(side, f"{name} of {sequence}") for side, name in ((truth, "truth"), (prediction, "prediction"))
        )
        if len(true_values) != len(values):
            fault = f"has {quantity(len(values), 'point')}; the truth has {len(true_values):,}"
            raise refusal(f"prediction of {sequence}", fault, "Give a label for every point")
        return UnitCounts("", count_scan(LabelMap(true_values), values, self.protocol)).encode()


def _read_points(side: object, location: str) -> Array:
    points = read_array(side, location)
    if points.dtype.kind not in "ui" or points.ndim != 1 or not points.size:
        fault = f"is of {points.dtype} and has the shape {points.shape}"
        raise refusal(location, fault, "Give a whole number for each point, as (points,)")
    if points.min() < 0 or points.max() >= _END:
        raise refusal(
            location,
            "has a number beyond 32 bits",
            "Give the label in the lower 16 bits, and the object's number in the upper 16 bits",
        )
    with refuse_flaws(location):
        check_labels(points)
    return points.astype(np.uint32)
