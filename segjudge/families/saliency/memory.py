"""Grey maps in memory: values from 0 to 255, and a mask (above the middle, or flags)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitCounts
from segjudge.evaluation_script.families.saliency.counting import MIDDLE, VALUES, count_map
from segjudge.evaluation_script.families.saliency.files import check_mask
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import SamplesInMemory, common_size, read_array, refusal, refuse_flaws

_FORM = "Give whole numbers from 0 to 255 as (height, width), or booleans"


class MapsInMemory(SamplesInMemory):
    """A counter of grey maps (height, width) and masks."""

    may_be_listed = False
    own_facts: ClassVar = {"subsets": [["all"]]}

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        mask, values = _read_grey(truth, f"truth of {sequence}"), _read_grey(prediction, f"prediction of {sequence}")
        common_size((mask.shape, values.shape), "maps", sequence)
        with refuse_flaws(f"truth of {sequence}"):
            check_mask(mask)
        return UnitCounts("", count_map(0, mask > MIDDLE, values, self.protocol)).encode()


def _read_grey(side: object, location: str) -> Array:
    values = read_array(side, location)
    if values.dtype.kind not in "bui" or values.ndim != 2 or not values.size:
        raise refusal(location, f"is of {values.dtype} and has the shape {values.shape}", _FORM)
    if values.dtype == bool:
        return values * np.uint8(VALUES - 1)
    if values.min() < 0 or values.max() >= VALUES:
        raise refusal(location, f"has values from {values.min()} to {values.max()}", _FORM)
    return values.astype(np.uint8)
