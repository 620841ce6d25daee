"""The runs of single labels, listed for many at once where these are scattered: a search for each takes far longer."""

from __future__ import annotations

import math
from typing import Dict, Optional, Sequence, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from ...values import NamedTuple
from .boxes import Box
from .components import Runs, paint
from .places import Places

#: The boxes of labels are searched one by one unless they have so many times as many voxels in all as the volume.
_TIMES = 4
#: The number of runs up to which several labels are listed at once, and of voxels whose positions need 32 bits.
_MOST_AT_ONCE, _MOST_VOXELS = 1 << 22, 1 << 30


class RegionRuns(NamedTuple):
    """The runs of a region in a box that holds them all, in which positions count."""

    runs: Runs
    box: Box

    @property
    def _arguments(self) -> Tuple[Tuple[Array, Array], Tuple[int, int], Tuple[Tuple[int, int], ...]]:
        starts, ends, (_, height, width) = self.runs
        return (starts, ends), (height, width), tuple((side.start, side.stop) for side in self.box)

    def list_surface(self, limit: int) -> Optional[Tuple[int, Places]]:
        """Return how many corners the surface has, and the corners unless they exceed a limit; None without kernel."""
        kernel, shape = backend().kernel, tuple(side.stop - side.start + 1 for side in self.box)
        listed = kernel.list_run_surface(*self._arguments, limit) if kernel else None
        return listed and (listed[0], Places(shape, *listed[1:]))

    def draw(self) -> Array:
        """Return the mask in the box."""
        return paint(self.runs, np.ones(self.runs.total, np.int8), self.box).view(bool)

    def list_border(self, *, open_ends: bool, corners: bool) -> Optional[Places]:
        """Return the voxels with a neighbour outside, as a list; None without kernel."""
        kernel, shape = backend().kernel, tuple(side.stop - side.start for side in self.box)
        positions = kernel.list_run_border(*self._arguments, open_ends=open_ends, corners=corners) if kernel else None
        return None if positions is None else Places(shape, positions, np.ones(len(positions), np.uint8))


class LabelRuns:
    """The runs of labels of a volume; those of labels that come one after another are listed at once."""

    def __init__(self, labels: Array, counts: Dict[int, int]) -> None:
        """Store a volume, and the number of runs of each label, in the order in which labels come."""
        self._labels, self._counts = labels, counts
        self._listed: Dict[int, Runs] = {}

    def find(self, label: int) -> Optional[Runs]:
        """Return the runs of a label; None if they cannot be listed."""
        if label not in self._counts:
            return None
        if label not in self._listed:
            self._listed = {}  # frees those of other labels
            self._listed = self._list_from(label)
        return self._listed.get(label)

    def _list_from(self, label: int) -> Dict[int, Runs]:
        """Return the runs of a label, and of the labels behind it while they are few."""
        order = list(self._counts)
        order = order[order.index(label) :]
        ends = np.cumsum([self._counts[each] for each in order])
        order = order[: max(1, int(np.searchsorted(ends, _MOST_AT_ONCE)))]
        kernel, bounds = backend().kernel, [0, *ends[: len(order)].tolist()]
        edges = kernel.list_label_runs(self._labels, order, bounds) if kernel else None
        if edges is None:
            return {}
        depth, height, width = self._labels.shape
        shape, spans = (depth, height + 1, width + 1), map(slice, bounds, bounds[1:])
        return {each: Runs(edges[0][span], edges[1][span], shape) for each, span in zip(order, spans)}


def find_label_runs(sides: Sequence[Array], boxes: Dict[int, Box]) -> Optional[Sequence[LabelRuns]]:
    """Return the runs of labels on each side, given the box of each label; None if searching boxes takes less time."""
    searched = sum(math.prod(side.stop - side.start for side in box) for box in boxes.values())
    kernel, (depth, height, width) = backend().kernel, sides[0].shape
    if not kernel or searched <= _TIMES * sides[0].size or depth * (height + 1) * (width + 1) >= _MOST_VOXELS:
        return None
    counts = [kernel.count_label_runs(labels, list(boxes)) for labels in sides]
    lists = [LabelRuns(labels, each) for labels, each in zip(sides, counts) if each is not None]
    return lists if len(lists) == len(counts) else None
