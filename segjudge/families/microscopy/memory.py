"""Label maps of cells in memory."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitCounts
from segjudge.evaluation_script.families.microscopy.engine import count_image
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import SamplesInMemory, common_size, read_labels, refusal

_LABELS_END = 1 << 16


class LabelsInMemory(SamplesInMemory):
    """A counter of label maps (height, width) of cells; 0 is background."""

    may_be_listed = False

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        true_cells, labels = (
            _read_cells(truth, f"truth of {sequence}"),
            _read_cells(prediction, f"prediction of {sequence}"),
        )
        common_size((true_cells.shape, labels.shape), "maps", sequence)
        return UnitCounts("", count_image(LabelMap(true_cells), labels)).encode()


def _read_cells(side: object, location: str) -> Array:
    labels = read_labels(side, location)
    if labels.max() >= _LABELS_END:
        raise refusal(location, f"has the label {labels.max()}", "Number the cells from 1 on, in 16 bits")
    return np.ascontiguousarray(labels, np.uint16)
