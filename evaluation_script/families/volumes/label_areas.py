"""The areas of the surfaces of single labels, added up for many at once where these are scattered.

NSD needs whole surfaces only for their areas: places can be near only around the smaller side, and these are listed.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Dict, Optional, Tuple

from ...masks.backend import backend
from ...masks.stack import Array
from ...values.arithmetic import add
from .boxes import Box, count_voxels, cover
from .places import Places, Spacing
from .surfaces import check_noise, check_voxels, find_surface, list_areas, share_near

#: The boxes of labels are searched one by one unless they have so many times as many voxels in all as the volume. Boxes
#: around the smaller sides have at most so many times as many.
_TIMES, _TIMES_NEAR = 24, 4


class LabelAreas:
    """The surfaces of labels in the truth and in the prediction, of which areas are added up when they are needed."""

    def __init__(self, labels: Tuple[Array, Array], boxes: Dict[int, Tuple[Box, Box]], spacing: Spacing) -> None:
        """Store both sides, and the boxes of each label there."""
        self._labels, self._boxes, self._spacing = labels, boxes, spacing

    @cached_property
    def _sides(self) -> Optional[Dict[int, Tuple[Tuple[float, int, int], ...]]]:
        """By label, for each side: the area, the number of places, and that of places whose first voxel has it."""
        kernel, chosen = backend().kernel, list(self._boxes)
        areas = list_areas(self._spacing)
        listed = [kernel.measure_label_areas(side, chosen, areas) for side in self._labels] if kernel else []
        sides = [list(zip(*(column.tolist() for column in each))) for each in listed if each is not None]
        return dict(zip(chosen, zip(*sides))) if len(sides) == len(self._labels) else None

    def share_near(self, label: int, tolerance: float) -> Optional[float]:
        """Return NSD of a label, None if surfaces must be listed; raises a Flaw if one is noise."""
        if label not in self._boxes or self._sides is None:
            return None
        areas, counts, voxels = zip(*self._sides[label])
        check_noise(counts[0], 0)
        check_noise(*counts)
        check_voxels(counts[0], voxels[0])
        truth, prediction = (self._list_near(labels, label, tolerance) for labels in self._labels)
        return share_near((truth, prediction), self._spacing, tolerance, add(list(areas)))

    def _list_near(self, labels: Array, label: int, tolerance: float) -> Places:
        """Return the places of a side's surface in a box that holds all that are near the smaller side."""
        voxels, corners = [], []
        for extent, step, end in zip(_find_smaller(self._boxes[label]), self._spacing[::-1], labels.shape):
            reach = int(tolerance / step) + 1
            start, stop = max(0, extent.start - reach), min(end, extent.stop + reach)
            # A corner lies before the voxel of its number, and needs both.
            voxels.append(slice(max(0, start - 1), min(end, stop + 1)))
            corners.append(slice(start - voxels[-1].start, stop + 1 - voxels[-1].start))
        return find_surface(labels[tuple(voxels)], (label,)).cut_out(tuple(corners))


def _find_smaller(boxes: Tuple[Box, Box]) -> Box:
    """Return the box with fewer voxels."""
    return boxes[count_voxels(boxes[1]) < count_voxels(boxes[0])]


def find_label_areas(
    labels: Tuple[Array, Array], boxes: Dict[int, Tuple[Box, Box]], spacing: Spacing, reach: float
) -> Optional[LabelAreas]:
    """Return the surfaces of labels, given the boxes of both sides and the greatest distance that is near; None if
    searching boxes takes less time.
    """
    size, more, near = labels[0].size, [2 * int(reach / step) + 4 for step in spacing[::-1]], 0
    if not backend().kernel or any(side.itemsize > 1 for side in labels) or not size:
        return None
    if sum(count_voxels(cover(sides)) for sides in boxes.values()) <= _TIMES * size:
        return None
    for sides in boxes.values():
        near += math.prod(side.stop - side.start + by for side, by in zip(_find_smaller(sides), more))
    return LabelAreas(labels, boxes, spacing) if near <= _TIMES_NEAR * size else None
