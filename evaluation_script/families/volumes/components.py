"""The connected components of masks (z, y, x): as a map of numbers, and as runs along x, which take far less memory."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.backend import backend
from ...masks.stack import Array
from ...values.arithmetic import mean
from .boxes import Boxes, find_box, find_boxes

#: For each number of neighbours the rows (z, y) beside a run that it may join, and by how many voxels along x it
#: reaches beyond its ends there.
_ROWS: Dict[int, Tuple[Tuple[int, int, int], ...]] = {
    6: ((0, 1, 0), (1, 0, 0)),
    18: ((0, 1, 1), (1, -1, 0), (1, 0, 1), (1, 1, 0)),
    26: ((0, 1, 1), (1, -1, 1), (1, 0, 1), (1, 1, 1)),
}
#: A prediction may have so many runs, and so many times those of the truth.
_MOST_RUNS, _NOISE = 1 << 21, 16
#: Voxels, and runs, that are worked on at once.
_SLAB, _CHUNK = 1 << 21, 1 << 18


class Runs(NamedTuple):
    """The voxels of a mask as runs along x, in the order of the volume; each row and plane has a voxel behind it."""

    starts: Array
    #: The voxel behind each run.
    ends: Array
    #: Of the volume with those voxels, which count in positions.
    shape: Tuple[int, int, int]

    @property
    def total(self) -> int:
        return len(self.starts)


def find_runs(mask: Array, limit: int = 1 << 31) -> Runs:
    """Return the runs of a mask; raises a Flaw if there are more than so many."""
    depth, height, width = mask.shape
    shape = depth, height + 1, width + 1
    plane = shape[1] * shape[2]
    kind = np.int32 if depth * plane < 1 << 30 else np.int64
    step, edges, total = max(1, _SLAB // plane), [np.zeros(0, kind)], 0
    for start in range(0, depth, step):
        planes = mask[start : start + step]
        # A voxel of background before all others, and one behind each row and plane.
        values = np.zeros(1 + len(planes) * plane, np.uint8)
        values[1:].reshape(len(planes), *shape[1:])[:, :-1, :-1] = planes
        edges.append((np.flatnonzero(values[1:] != values[:-1]) + start * plane).astype(kind))
        total += len(edges[-1]) // 2
        if total > limit:
            fault = f"has a region in more than {limit:,} pieces, which are runs of voxels in a row"
            raise Flaw(fault, "Check the labels, and remove isolated voxels")
    positions = np.concatenate(edges)
    return Runs(positions[::2], positions[1::2], shape)


def _pair_runs(runs: Runs, neighbours: Runs, offset: int = 0, reach: int = 0) -> Iterator[Tuple[Array, Array]]:
    """Yield the pairs of runs, moved by an offset and wider by a reach, and others that share a position with them."""
    for start in range(0, runs.total, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        lowest = np.searchsorted(neighbours.ends, runs.starts[chunk] + (offset - reach), side="right")
        highest = np.searchsorted(neighbours.starts, runs.ends[chunk] + (offset + reach), side="left")
        counts = np.maximum(highest - lowest, 0)
        pairs = np.repeat(np.arange(len(lowest)), counts)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield pairs + start, lowest[pairs] + within


def _name_runs(runs: Runs, neighbours: int) -> Array:
    """Return the component of each run, from 1 in the order of their first voxels."""
    roots = np.arange(runs.total, dtype=np.int32)
    for plane, row, reach in _ROWS[neighbours]:
        offset = (plane * runs.shape[1] + row) * runs.shape[2]
        for pairs in _pair_runs(runs, runs, offset, reach):
            _join(roots, *pairs)
    names: Array = np.cumsum(roots == np.arange(runs.total), dtype=np.int32)[roots]
    return names


def _join(roots: Array, runs: Array, partners: Array) -> None:
    """Join the components of pairs of runs; the root of each is its first run."""
    while True:
        root, root_of_partner = roots[runs], roots[partners]
        apart = root != root_of_partner
        if not apart.any():
            return
        runs, partners, root, root_of_partner = runs[apart], partners[apart], root[apart], root_of_partner[apart]
        np.minimum.at(roots, np.maximum(root, root_of_partner), np.minimum(root, root_of_partner))
        while True:
            above = roots[roots]
            if (above == roots).all():
                break
            roots[:] = above


# ── as a map of numbers ─────────────────────────────────────────────────────


class Components(NamedTuple):
    """The components of a mask."""

    #: The component of each voxel (z, y, x), from 1; 0 outside.
    numbers: Array
    #: The voxels of each component; of the outside at 0.
    sizes: Array

    @property
    def total(self) -> int:
        return len(self.sizes) - 1

    @property
    def boxes(self) -> Boxes:
        """The box of each component."""
        return find_boxes(self.numbers.view(np.uint32), len(self.sizes))


def find_components(mask: Array, neighbours: int) -> Components:
    """Return the components of voxels that touch by 6, 18 or 26 neighbours, in the order of their first voxels."""
    numbers = np.zeros(mask.shape, np.int32)
    box = find_box(mask)
    if not mask[box].size:
        return Components(numbers, np.array([mask.size]))
    kernel = backend().kernel
    components = kernel.find_components(mask[box], neighbours) if kernel else None
    if components is not None:
        numbers[box] = components[0]
        sizes = find_boxes(components[0].view(np.uint32), components[1] + 1).voxels
        sizes[0] = mask.size - sizes.sum()
        return Components(numbers, sizes)
    runs = find_runs(mask[box])
    names = _name_runs(runs, neighbours)
    steps = np.zeros(np.prod(runs.shape), np.int32)
    steps[runs.starts] = names
    steps[runs.ends] -= names
    numbers[box] = np.cumsum(steps, dtype=np.int32).reshape(runs.shape)[:, :-1, :-1]
    return Components(numbers, np.bincount(numbers.reshape(-1)))


# ── of two masks ────────────────────────────────────────────────────────────


class SharedComponents(NamedTuple):
    """The components of a truth and a prediction, numbered from 0, and the pairs that share voxels."""

    #: The voxels of each component of the truth, and of the prediction.
    true_sizes: Array
    predicted_sizes: Array
    #: For each pair the component of the truth, that of the prediction, and the number of voxels that they share.
    true: Array
    predicted: Array
    voxels: Array

    def list_untouched(self) -> Tuple[Array, Array]:
        """Return the sizes of true components, and of predicted ones, that the other side does not touch."""
        return np.delete(self.true_sizes, self.true), np.delete(self.predicted_sizes, self.predicted)


def share_components(truth: Array, prediction: Array, neighbours: int) -> SharedComponents:
    """Return the components of two masks by 6, 18 or 26 neighbours; raises a Flaw if the prediction is noise."""
    true = find_runs(truth)
    predicted = find_runs(prediction, max(_MOST_RUNS, _NOISE * true.total))
    names = _name_runs(true, neighbours) - 1, _name_runs(predicted, neighbours) - 1
    sizes = [
        np.bincount(numbers, weights=runs.ends - runs.starts).astype(np.int64)
        for numbers, runs in zip(names, (true, predicted))
    ]
    width = max(1, len(sizes[1]))
    codes, voxels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for predicted_runs, true_runs in _pair_runs(predicted, true):
        lengths = np.minimum(predicted.ends[predicted_runs], true.ends[true_runs])
        lengths -= np.maximum(predicted.starts[predicted_runs], true.starts[true_runs])
        pair_codes, shared = _add_up(names[0][true_runs].astype(np.int64) * width + names[1][predicted_runs], lengths)
        codes.append(pair_codes)
        voxels.append(shared)
    pairs, counts = _add_up(np.concatenate(codes), np.concatenate(voxels))
    return SharedComponents(sizes[0], sizes[1], pairs // width, pairs % width, counts)


def _add_up(codes: Array, counts: Array) -> Tuple[Array, Array]:
    """Return the distinct codes in their order, and the sum of each one's counts."""
    distinct, places = np.unique(codes, return_inverse=True)
    return distinct, np.bincount(places, weights=counts, minlength=len(distinct)).astype(np.int64)


#: Components of both sides are a pair from this IoU on.
_PAIRED = 0.5


class PairedComponents(NamedTuple):
    """The components of two masks, paired one to one."""

    truth: int
    prediction: int
    #: The IoU and the Dice of each pair.
    ious: List[float]
    dices: List[float]

    @property
    def rq(self) -> float:
        return len(self.ious) / (len(self.ious) + (self.truth + self.prediction - 2 * len(self.ious)) / 2)

    @property
    def sq(self) -> float:
        return mean(self.ious) if self.ious else 0.0

    @property
    def dice(self) -> float:
        return mean(self.dices) if self.dices else 0.0


def pair_components(shared: SharedComponents) -> PairedComponents:
    """Return the pairs of components with an IoU of at least 0.5, the largest first."""
    sums = shared.true_sizes[shared.true] + shared.predicted_sizes[shared.predicted]
    ious = shared.voxels / (sums - shared.voxels)
    pairs = PairedComponents(len(shared.true_sizes), len(shared.predicted_sizes), [], [])
    unpaired_true, unpaired_predicted = set(shared.true.tolist()), set(shared.predicted.tolist())
    order = np.argsort(-ious, kind="stable")
    for index in order[ious[order] >= _PAIRED].tolist():
        lesion, predicted = int(shared.true[index]), int(shared.predicted[index])
        if lesion in unpaired_true and predicted in unpaired_predicted:
            unpaired_true.remove(lesion)
            unpaired_predicted.remove(predicted)
            pairs.ious.append(float(ious[index]))
            pairs.dices.append(2 * int(shared.voxels[index]) / int(sums[index]))
    return pairs
