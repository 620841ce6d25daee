"""The robot that draws the next scribbles: lines through the middle of errors.

A region is opened and thinned, and the longest path of each component is a line.
"""

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from skimage.morphology import medial_axis

from segjudge.evaluation_script.masks.stack import Array

from .masks import as_ids, batched_jaccard, object_ids
from .scribbles import MOST_POINTS, ScribbleLine, Scribbles, bezier_curve

#: The factor by which the radius shrinks until some of the region remains.
_SHRINK = 0.9
_EIGHT = np.ones((3, 3), dtype=int)


class InteractiveScribblesRobot:
    """A robot that draws in one frame, on every object (and the background) with errors there."""

    def __init__(
        self,
        kernel_size: float = 0.15,
        max_kernel_radius: float = 16,
        min_nb_nodes: int = 4,
        nb_points: int = MOST_POINTS,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 <= kernel_size < 1:
            raise ValueError("kernel_size must be a value between [0, 1).")
        self.kernel_size, self.max_kernel_radius = kernel_size, max_kernel_radius
        self.min_nb_nodes, self.nb_points = min_nb_nodes, nb_points
        self._clock = clock

    def interact(
        self,
        sequence: str,
        pred_masks: ArrayLike,
        gt_masks: ArrayLike,
        nb_objects: int | None = None,
        frame: int | None = None,
    ) -> Scribbles:
        """Draw on masks (frames, height, width), in `frame` or in the frame with the lowest J."""
        prediction, truth = as_ids(pred_masks), as_ids(gt_masks)
        if nb_objects is None:
            nb_objects = len(object_ids(truth, prediction))
        if frame is None:
            frame = int(np.argmin(batched_jaccard(truth, prediction, nb_objects=nb_objects)))
        lines: list[list[ScribbleLine]] = [[] for _ in truth]
        for object_id in range(nb_objects + 1):
            lines[frame] += self._draw_lines(object_id, (truth[frame] == object_id) & (prediction[frame] != object_id))
        return {"scribbles": lines, "sequence": sequence}

    def _draw_lines(self, object_id: int, missing: Array) -> list[ScribbleLine]:
        start_time = self._clock()
        curves = [bezier_curve(path, self.nb_points) for path in self.paths(missing)]
        end_time = self._clock()
        size = np.array(missing.shape[::-1])
        return [
            {"path": (curve / size).tolist(), "object_id": object_id, "start_time": start_time, "end_time": end_time}
            for curve in curves
        ]

    def paths(self, missing: Array) -> list[Array]:
        """Return the pixels (x, y) of the lines through a region (height, width), unsmoothed."""
        rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
        if not len(rows):
            return []
        radius = min(self.kernel_size * math.sqrt(np.count_nonzero(missing)) / 2, self.max_kernel_radius)
        # Only the box that the disk can reach, cut at the image's border.
        margin = math.ceil(radius) + 2
        y, x = max(0, rows[0] - margin), max(0, columns[0] - margin)
        box = missing[y : rows[-1] + margin + 1, x : columns[-1] + margin + 1]
        paths = _find_longest_paths(_thin_to_skeleton(_open_region(box, radius)), self.min_nb_nodes)
        return [path + np.array([x, y]) for path in paths]


def _open_region(region: Array, radius: float) -> Array:
    """Return a region opened by a disk; if none of it remains, by smaller disks (radius above 1)."""
    if radius <= 1:
        return region
    while radius > 1:
        # Pixels outside the image are ignored; the dilation is the erosion of the background by the same disk.
        opened = ~_erode(~_erode(region, radius), radius)
        if opened.any():
            return opened
        radius *= _SHRINK
    return np.zeros_like(region)


def _erode(region: Array, radius: float) -> Array:
    """Return the eroded region: pixels whose whole disk lies inside.

    For most radii the disk's centre is between pixels, and the disk is not mirrored for dilation; this shifts the
    result by up to one pixel, as in the original.
    """
    count = math.ceil(2 * radius + 1)
    offsets = np.arange(count) - count // 2
    coordinates = np.arange(count) - radius
    height, width = region.shape
    # The number of pixels outside the region above each pixel, so that a run is looked up in two steps.
    missing = np.cumsum(np.pad(~region, count), axis=0, dtype=np.int32)
    eroded = np.ones_like(region)
    for shift, x in zip(offsets + count, coordinates, strict=True):
        column = np.flatnonzero(x * x + coordinates * coordinates <= radius * radius)
        if len(column):
            above, bottom = count + offsets[column[0]] - 1, count + offsets[column[-1]]
            columns = slice(shift, shift + width)
            eroded &= missing[above : above + height, columns] == missing[bottom : bottom + height, columns]
    return eroded


class _LegacyTies(np.random.Generator):
    """The order in which scikit-image broke ties up to 0.18; newer releases draw another one each time."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def permutation(self, x: ArrayLike, axis: int = 0) -> Array:
        del axis
        return np.random.RandomState(0).permutation(np.asarray(x))


def _thin_to_skeleton(mask: Array) -> Array:
    axis: Array = medial_axis(np.pad(mask, 1), rng=_LegacyTies())
    return axis[1:-1, 1:-1]


def _find_longest_paths(skeleton: Array, min_nodes: int) -> list[Array]:
    """Return the longest path of each large component of a skeleton, as rows of x and y."""
    ys, xs = np.nonzero(skeleton)
    if not len(ys):
        return []
    neighbours = _find_neighbours(skeleton, ys, xs)
    components = ndimage.label(skeleton, structure=_EIGHT)[0][ys, xs]
    starts = np.unique(components, return_index=True)[1]
    sizes = np.bincount(components)[1:]
    paths = []
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if size < min_nodes:
            continue
        _cut_cycles(neighbours, start, ys, xs)
        farthest = _find_longest_path(neighbours, start)[-1]
        nodes = _find_longest_path(neighbours, farthest)
        paths.append(np.stack([xs[nodes], ys[nodes]], axis=1))
    return paths


def _find_neighbours(skeleton: Array, ys: Array, xs: Array) -> list[list[int]]:
    """Return the neighbours of each pixel, numbered row by row."""
    height, width = skeleton.shape
    numbers = np.full((height + 2, width + 2), -1)
    numbers[ys + 1, xs + 1] = np.arange(len(ys))
    around = np.stack([numbers[ys + 1 + dy, xs + 1 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx], axis=1)
    return [[number for number in row if number >= 0] for row in around.tolist()]


def _cut_cycles(neighbours: list[list[int]], start: int, ys: Array, xs: Array) -> None:
    """Cut each cycle that a depth-first search closes at the cycle's first heaviest edge, in place.

    A search after a cut would repeat the same steps up to the cut, so the search continues there.
    """
    #: The path of the search, the untried neighbours of each of its nodes, and each node's depth.
    path, untried, depth = [start], [iter(neighbours[start])], {start: 0}
    cuts: set[tuple[int, int]] = set()
    while path:
        node = path[-1]
        neighbour = next(untried[-1], None)
        if neighbour is None:
            untried.pop()
            del depth[path.pop()]
        elif (node, neighbour) in cuts or neighbour in path[-2:-1]:
            continue
        elif neighbour not in depth:
            depth[neighbour] = len(path)
            path.append(neighbour)
            untried.append(iter(neighbours[neighbour]))
        else:
            edges = list(itertools.pairwise([*path[depth[neighbour] :], neighbour]))
            diagonal = (edge for edge in edges if abs(ys[edge[0]] - ys[edge[1]]) + abs(xs[edge[0]] - xs[edge[1]]) == 2)
            tail, head = next(diagonal, edges[0])
            cuts |= {(tail, head), (head, tail)}
            length = depth[tail] + 1
            for dropped in path[length:]:
                del depth[dropped]
            del path[length:], untried[length:]
    for node, neighbour in cuts:
        neighbours[node].remove(neighbour)


def _find_longest_path(neighbours: list[list[int]], start: int) -> list[int]:
    """Return the path from the start to the first farthest pixel."""
    before: dict[int, int] = {start: start}
    ring, farthest = [start], start
    while ring:
        farthest = ring[0]
        following = []
        for node in ring:
            for neighbour in neighbours[node]:
                if neighbour not in before:
                    before[neighbour] = node
                    following.append(neighbour)
        ring = following
    path = [farthest]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
