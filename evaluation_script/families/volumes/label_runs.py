"""The runs of single labels, listed for many at once where these are scattered: a search for each takes far longer."""

from __future__ import annotations

from typing import Dict, Generic, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from ...values import NamedTuple
from .boxes import Box, count_voxels
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


_List = TypeVar("_List", Runs, Places)


class _ListsAhead(Generic[_List]):
    """The lists of labels of a volume; those of labels that come one after another are made at once."""

    def __init__(self, order: Sequence[int]) -> None:
        """Store the labels in the order in which they come."""
        self._order = list(order)
        self._listed: Dict[int, _List] = {}

    def find(self, label: int) -> Optional[_List]:
        """Return the list of a label; None if it cannot be made."""
        if label not in self._listed and label in self._order:
            self._listed = {}  # frees those of other labels
            self._listed = self._make_lists(self._order[self._order.index(label) :])
        return self._listed.get(label)

    def _make_lists(self, order: List[int]) -> Dict[int, _List]:
        """Return the lists of the first of some labels, and of those behind it while they are short."""
        raise NotImplementedError


class LabelBorders(_ListsAhead[Places]):
    """The borders of labels of a volume."""

    def __init__(self, labels: Array, boxes: Dict[int, Box], voxels: Array, *, corners: bool) -> None:
        """Store a volume, the box of each label in the order in which labels come, and the voxels of all labels."""
        super().__init__([*boxes])
        self._labels, self._boxes, self._voxels, self._corners = labels, boxes, voxels, corners

    def _make_lists(self, order: List[int]) -> Dict[int, Places]:
        order, bounds = choose_few(order, self._voxels[order], 2 * _MOST_AT_ONCE)
        boxes, kernel = [self._boxes[each] for each in order], backend().kernel
        ends = [[end for side in box for end in (side.start, side.stop)] for box in boxes]
        listed = kernel.list_label_borders(self._labels, order, ends, bounds, corners=self._corners) if kernel else None
        shapes = [tuple(side.stop - side.start for side in box) for box in boxes]
        return {
            each: Places(shape, positions, np.ones(len(positions), np.uint8))
            for each, shape, positions in zip(order, shapes, listed or ())
        }


def choose_few(order: List[int], counts: Array, limit: int) -> Tuple[List[int], List[int]]:
    """Return labels while they have few items, but at least one label, and where the items of each begin and end."""
    ends = np.cumsum(counts)
    few = order[: max(1, int(np.searchsorted(ends, limit)))]
    return few, [0, *ends[: len(few)].tolist()]


class LabelRuns(_ListsAhead[Runs]):
    """The runs of labels of a volume."""

    def __init__(self, labels: Array, counts: Dict[int, int]) -> None:
        """Store a volume, and the number of runs of each label, in the order in which labels come."""
        super().__init__([*counts])
        self._labels, self._counts = labels, counts

    def _make_lists(self, order: List[int]) -> Dict[int, Runs]:
        order, bounds = choose_few(order, np.array([self._counts[each] for each in order]), _MOST_AT_ONCE)
        kernel = backend().kernel
        edges = kernel.list_label_runs(self._labels, order, bounds) if kernel else None
        if edges is None:
            return {}
        depth, height, width = self._labels.shape
        shape, spans = (depth, height + 1, width + 1), map(slice, bounds, bounds[1:])
        return {each: Runs(edges[0][span], edges[1][span], shape) for each, span in zip(order, spans)}


#: The labels of a side, of which runs or borders are listed.
LabelLists = Union[LabelRuns, LabelBorders]


def _are_scattered(labels: Array, boxes: Dict[int, Box]) -> bool:
    """Return whether the boxes of labels have far more voxels in all than the volume."""
    return sum(map(count_voxels, boxes.values())) > _TIMES * labels.size


def find_label_borders(
    sides: Sequence[Array], boxes: Dict[int, Box], voxels: Sequence[Array], *, corners: bool
) -> Optional[Sequence[LabelBorders]]:
    """Return the borders of labels on each side, given each label's box and each side's voxels by label; None if
    searching boxes takes less time.
    """
    if not backend().kernel or any(side.itemsize > 1 for side in sides) or not _are_scattered(sides[0], boxes):
        return None
    return [LabelBorders(labels, boxes, counts, corners=corners) for labels, counts in zip(sides, voxels)]


def find_label_runs(sides: Sequence[Array], boxes: Dict[int, Box]) -> Optional[Sequence[LabelRuns]]:
    """Return the runs of labels on each side, given the box of each label; None if searching boxes takes less time."""
    kernel, (depth, height, width) = backend().kernel, sides[0].shape
    if not kernel or not _are_scattered(sides[0], boxes) or depth * (height + 1) * (width + 1) >= _MOST_VOXELS:
        return None
    counts = [kernel.count_label_runs(labels, list(boxes)) for labels in sides]
    lists = [LabelRuns(labels, each) for labels, each in zip(sides, counts) if each is not None]
    return lists if len(lists) == len(counts) else None
