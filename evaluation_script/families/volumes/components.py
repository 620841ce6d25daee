"""The connected components of masks (z, y, x) as runs of voxels along x, which take far less memory than a map."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.backend import backend
from ...masks.stack import WORD, Array, pack, spread_rows, unpack
from ...values.arithmetic import mean
from .boxes import Box, cut_slabs

#: By the number of neighbours: the rows (z, y) beside a run that it may join, and by how many voxels along x it reaches
#: beyond its ends there.
_ROWS: Dict[int, Tuple[Tuple[int, int, int], ...]] = {
    6: ((0, 1, 0), (1, 0, 0)),
    18: ((0, 1, 1), (1, -1, 0), (1, 0, 1), (1, 1, 0)),
    26: ((0, 1, 1), (1, -1, 1), (1, 0, 1), (1, 1, 1)),
}
#: The maximum number of runs of a prediction, absolutely and as a multiple of the truth's.
_MOST_RUNS, _NOISE = 1 << 21, 16
#: The maximum number of runs of a truth.
_MOST_TRUE_RUNS = 1 << 23
#: The number of runs processed at once.
_CHUNK = 1 << 18
#: The number of slabs of planes that grow at once.
_GROWN = 8


class Runs(NamedTuple):
    """The voxels of a mask as runs along x, in the order of the volume; one padding voxel ends each row and plane."""

    starts: Array
    #: The voxel after each run.
    ends: Array
    #: The shape of the volume in which positions count.
    shape: Tuple[int, int, int]

    @property
    def total(self) -> int:
        return len(self.starts)


def _spread(words: Array, axis: int) -> Array:
    """Return a packed mask (words across, z, y) and its neighbours along z or y."""
    spread = words.copy()
    target, source = np.moveaxis(spread, axis, 0), np.moveaxis(words, axis, 0)
    target[1:] |= source[:-1]
    target[:-1] |= source[1:]
    return spread


def grow(mask: Array, steps: int) -> Array:
    """Return a mask after this many steps to 18 neighbours."""
    if not steps:
        return mask
    width = mask.shape[2]
    packed = pack(np.pad(mask, ((0, 0), (0, 0), (0, -width % WORD))))
    words = np.ascontiguousarray(packed.transpose(2, 0, 1))
    moved = np.empty_like(words)
    for _ in range(steps):
        along_x = spread_rows(words, 1, moved)
        along_y = _spread(words, 2)
        along_y |= along_x
        words = _spread(along_y, 1)
        words |= _spread(along_x, 2)
    return unpack(np.ascontiguousarray(words.transpose(1, 2, 0)), width)


def _grow_slabs(mask: Array, steps: int) -> Iterator[Tuple[int, Array]]:
    """Yield a few planes of a mask after growing, and the number of the first, without empty ones.

    Growing needs the planes around, so it takes more planes at once; packed, they take little memory.
    """
    for slab in cut_slabs(mask.shape, _GROWN if steps else 1):
        before = min(slab.start, steps)
        planes = mask[slab.start - before : slab.stop + steps]
        if not planes.any():
            continue
        planes = grow(planes, steps)[before : before + slab.stop - slab.start]
        for inner in cut_slabs(planes.shape):
            yield slab.start + inner.start, planes[inner]


def find_runs(mask: Array, limit: int = 1 << 31, steps: int = 0) -> Runs:
    """Return the runs of a mask after growing; raises a Flaw if there are more than a limit."""
    depth, height, width = mask.shape
    shape = depth, height + 1, width + 1
    plane = shape[1] * shape[2]
    kind = np.int32 if depth * plane < 1 << 30 else np.int64
    edges, total = [np.zeros(0, kind)], 0
    for start, planes in _grow_slabs(mask, steps):
        edges.append(_find_edges(planes, start * plane, kind))
        total += len(edges[-1]) // 2
        _check_limit(total, limit)
    positions = np.concatenate(edges)
    return Runs(positions[::2].copy(), positions[1::2].copy(), shape)


def _check_limit(total: int, limit: int) -> None:
    if total > limit:
        fault = f"has a region of more than {limit:,} runs of voxels"
        raise Flaw(fault, "Check the labels, and remove isolated voxels")


def _find_edges(planes: Array, offset: int, kind: Any) -> Array:
    """Return where the runs of planes start and end, from the position of their first voxel on."""
    kernel = backend().kernel
    edges = kernel.find_runs(planes, offset, kind) if kernel else None
    if edges is not None:
        return edges
    depth, height, width = planes.shape
    # A voxel of background before all others, and after each row and plane.
    values = np.zeros(1 + depth * (height + 1) * (width + 1), np.uint8)
    values[1:].reshape(depth, height + 1, width + 1)[:, :-1, :-1] = planes
    return (np.flatnonzero(values[1:] != values[:-1]) + offset).astype(kind)


def find_true_runs(truth: Array, steps: int = 0) -> Runs:
    """Return the runs of a truth after growing; raises a Flaw if it is noise."""
    try:
        return find_runs(truth, _MOST_TRUE_RUNS, steps)
    except Flaw:
        fault = f"has a truth with a region of more than {_MOST_TRUE_RUNS:,} runs of voxels"
        raise Flaw(fault, "Check the labels of the truth, which look like noise") from None


def limit_runs(truth: Runs) -> int:
    """Return how many runs a prediction may have, given those of the truth."""
    return max(_MOST_RUNS, _NOISE * truth.total)


def _pair_runs(runs: Runs, neighbours: Runs, offset: int = 0, reach: int = 0) -> Iterator[Tuple[Array, Array]]:
    """Yield pairs of overlapping runs, after moving the first by an offset and widening it by a reach."""
    for start in range(0, runs.total, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        lowest = np.searchsorted(neighbours.ends, runs.starts[chunk] + (offset - reach), side="right")
        highest = np.searchsorted(neighbours.starts, runs.ends[chunk] + (offset + reach), side="left")
        counts = np.maximum(highest - lowest, 0)
        pairs = np.repeat(np.arange(len(lowest)), counts)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield pairs + start, lowest[pairs] + within


def _name_runs(runs: Runs, neighbours: int) -> Array:
    """Return the component of each run, from 0 in the order of their first voxels."""
    _, height, width = runs.shape
    rows = [((plane * height + row) * width, reach) for plane, row, reach in _ROWS[neighbours]]
    kernel = backend().kernel
    named = kernel.find_components(runs.starts, runs.ends, np.array(rows)) if kernel else None
    if named is not None:
        return named
    roots = np.arange(runs.total, dtype=np.int32)
    for offset, reach in rows:
        for pairs in _pair_runs(runs, runs, offset, reach):
            _join(roots, *pairs)
    roots = _find_roots(roots, roots.copy())
    names: Array = np.cumsum(roots == np.arange(runs.total, dtype=np.int32), dtype=np.int32)[roots]
    names -= 1
    return names


def _join(roots: Array, runs: Array, partners: Array) -> None:
    """Join the components of pairs of runs; the root of each is its first run."""
    while True:
        root, root_of_partner = _find_roots(roots, runs), _find_roots(roots, partners)
        apart = root != root_of_partner
        if not apart.any():
            return
        runs, partners, root, root_of_partner = runs[apart], partners[apart], root[apart], root_of_partner[apart]
        joined = np.maximum(root, root_of_partner)
        np.minimum.at(roots, joined, np.minimum(root, root_of_partner))
        # Pairs may join in long chains, which halve with each step.
        _find_roots(roots, joined)


def _find_roots(roots: Array, runs: Array) -> Array:
    """Return the root of each run, and shorten the ways to it."""
    reached = roots[runs]
    while True:
        above = roots[reached]
        if (above == reached).all():
            return reached
        reached = roots[runs] = above


# ── of one mask ─────────────────────────────────────────────────────────────


class Components:
    """The components of a mask, numbered from 0."""

    def __init__(self, runs: Runs, names: Array, total: int) -> None:
        """Store runs and the component of each."""
        self.runs, self.names, self.total = runs, names, total

    @cached_property
    def sizes(self) -> Array:
        """The voxels of each component."""
        sizes: Array = np.zeros(self.total, np.int64)
        for start in range(0, self.runs.total, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            # Of these types numpy adds fast.
            lengths = (self.runs.ends[chunk] - self.runs.starts[chunk]).astype(np.int64)
            np.add.at(sizes, self.names[chunk].astype(np.intp), lengths)
        return sizes

    def name_within(self, runs: Runs) -> Components:
        """Return the components of a smaller mask, each of whose runs lies in one of these components."""
        names = self.names[np.searchsorted(self.runs.ends, runs.starts, side="right")]
        return Components(runs, names, self.total)

    def keep(self, flags: Array) -> Components:
        """Return the components whose flag is true, numbered anew."""
        if flags.all():
            return self
        names = (np.cumsum(flags, dtype=np.int32) - 1)[self.names]
        stays = flags[self.names]
        starts, ends, shape = self.runs
        return Components(Runs(starts[stays], ends[stays], shape), names[stays], int(np.count_nonzero(flags)))

    def regroup(self, groups: Array) -> Components:
        """Return groups of components as components, given the group of each."""
        return Components(self.runs, groups[self.names], int(groups.max(initial=-1)) + 1)

    def sort_by_columns(self) -> Components:
        """Return the components in the order of their first voxels by x, then y, then z."""
        depth, height, width = self.runs.shape
        firsts: Array = np.full(self.total, depth * height * width, np.int64)
        for start in range(0, self.runs.total, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            starts = self.runs.starts[chunk].astype(np.int64)
            places = (starts % width * height + starts // width % height) * depth + starts // (height * width)
            np.minimum.at(firsts, self.names[chunk].astype(np.intp), places)
        ranks = np.empty(self.total, np.int32)
        ranks[np.argsort(firsts)] = np.arange(self.total, dtype=np.int32)
        return self.regroup(ranks)

    @cached_property
    def _order(self) -> Array:
        """The indices of the runs, sorted by component."""
        return np.argsort(self.names, kind="stable")

    @cached_property
    def _firsts(self) -> List[int]:
        """The first position of each component in `_order`, and the end."""
        firsts: List[int] = np.append(0, np.cumsum(np.bincount(self.names, minlength=self.total))).tolist()
        return firsts

    @cached_property
    def ends(self) -> Array:
        """The start and end of each component along z, y and x."""
        _, height, width = self.runs.shape
        starts = self.runs.starts[self._order]
        places = starts // (height * width), starts // width % height, starts % width
        stops = (*places[:2], self.runs.ends[self._order] % width - 1)
        sides = [
            function.reduceat(values, self._firsts[:-1])
            for axis in zip(places, stops)
            for function, values in zip((np.minimum, np.maximum), axis)
        ]
        ends: Array = np.stack(sides, axis=1) + np.array([0, 1, 0, 1, 0, 1])
        return ends

    def draw(self, chosen: Array, box: Box) -> Array:
        """Return the mask of some components in a box around them."""
        starts, ends, shape = self.runs
        kind, plane = starts.dtype.type, shape[1] * shape[2]  # of another type, numpy would copy all starts
        span = slice(*np.searchsorted(starts, [kind(box[0].start * plane), kind(box[0].stop * plane)]).tolist())
        order: Any = slice(None)
        if len(chosen) == 1 < self.total:
            order = np.flatnonzero(self.names[span] == self.names.dtype.type(chosen[0]))
        elif len(chosen) < self.total:
            is_chosen = np.zeros(self.total, bool)
            is_chosen[chosen] = True
            order = np.flatnonzero(is_chosen[self.names[span]])
        runs = Runs(starts[span][order], ends[span][order], shape)
        return paint(runs, np.ones(runs.total, np.int8), box).view(bool)

    def number(self) -> Array:
        """Return the number of each voxel's component (z, y, x), from 1; 0 outside."""
        depth, height, width = self.runs.shape
        return paint(self.runs, self.names + 1, (slice(0, depth), slice(0, height - 1), slice(0, width - 1)))


def paint(runs: Runs, values: Array, box: Box) -> Array:
    """Return a box with the values of the runs inside it, and 0 elsewhere."""
    _, height, width = runs.shape
    painted: Array = np.zeros([side.stop - side.start for side in box], values.dtype)
    _, rows, columns = painted.shape
    # A voxel after each row, where its last run may end.
    z, y, x = runs.starts // (height * width), runs.starts // width % height, runs.starts % width
    starts = ((z - box[0].start) * rows + (y - box[1].start)) * (columns + 1) + (x - box[2].start)
    ends = starts + (runs.ends - runs.starts)
    plane_cells = rows * (columns + 1)
    for slab in cut_slabs(painted.shape):
        planes, begin = painted[slab], slab.start * plane_cells
        chosen = slice(*np.searchsorted(starts, [begin, begin + len(planes) * plane_cells]).tolist())
        if chosen.start == chosen.stop:
            continue  # voxels that nothing writes take no memory
        changes = np.zeros(len(planes) * plane_cells, values.dtype)
        changes[starts[chosen] - begin] = values[chosen]
        changes[ends[chosen] - begin] -= values[chosen]
        np.cumsum(changes, dtype=values.dtype, out=changes)
        planes[:] = changes.reshape(len(planes), rows, columns + 1)[:, :, :-1]
    return painted


def find_components(mask: Array, neighbours: int, limit: int = 1 << 31, steps: int = 0) -> Components:
    """Return the components of a mask, after growing, by 6, 18 or 26 neighbours, in the order of their first voxels.

    Raises a Flaw if there are more runs than the limit.
    """
    return name_components(find_runs(mask, limit, steps), neighbours)


def name_components(runs: Runs, neighbours: int) -> Components:
    """Return the components of runs by 6, 18 or 26 neighbours, in the order of their first voxels."""
    names = _name_runs(runs, neighbours)
    return Components(runs, names, int(names.max(initial=-1)) + 1)


# ── of two masks ────────────────────────────────────────────────────────────


class SharedComponents(NamedTuple):
    """The components of a truth and a prediction, numbered from 0, and the pairs that share voxels."""

    #: The voxels of each true and of each predicted component.
    true_sizes: Array
    predicted_sizes: Array
    #: For each pair the true component, the predicted one, and the number of shared voxels.
    true: Array
    predicted: Array
    voxels: Array

    def list_untouched(self) -> Tuple[Array, Array]:
        """Return the sizes of true components, and of predicted ones, that the other side does not touch."""
        return np.delete(self.true_sizes, self.true), np.delete(self.predicted_sizes, self.predicted)


def share_components(true: Components, predicted: Components) -> SharedComponents:
    """Return the components of a truth and a prediction, and the pairs that share voxels."""
    width = max(1, predicted.total)
    pairs, counts = _add_up(*_list_shared(true, predicted, width))
    return SharedComponents(true.sizes, predicted.sizes, pairs // width, pairs % width, counts)


def _list_shared(true: Components, predicted: Components, width: int) -> Tuple[Array, Array]:
    """Return the codes of pairs of components, of which some may come again, and the voxels that they share."""
    codes, voxels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for predicted_runs, true_runs in _pair_runs(predicted.runs, true.runs):
        lengths = np.minimum(predicted.runs.ends[predicted_runs], true.runs.ends[true_runs])
        lengths -= np.maximum(predicted.runs.starts[predicted_runs], true.runs.starts[true_runs])
        names = true.names[true_runs].astype(np.int64) * width + predicted.names[predicted_runs]
        pair_codes, shared = _add_up(names, lengths)
        codes.append(pair_codes)
        voxels.append(shared)
    return np.concatenate(codes), np.concatenate(voxels)


def group_by_touch(components: Components, neighbours: Components) -> Array:
    """Return a group for each component: those that touch the same first neighbour, by 18, are together."""
    least: Array = np.arange(neighbours.total, neighbours.total + components.total)
    _, height, width = components.runs.shape
    half = [((plane * height + row) * width, reach) for plane, row, reach in _ROWS[18]]
    for offset, reach in ((0, 1), *half, *((-offset, reach) for offset, reach in half)):
        for runs, partners in _pair_runs(components.runs, neighbours.runs, offset, reach):
            np.minimum.at(least, components.names[runs].astype(np.intp), neighbours.names[partners].astype(np.int64))
    groups: Array = np.unique(least, return_inverse=True)[1].astype(np.int32)
    return groups


def compare_components(truth: Array, prediction: Array, neighbours: int) -> SharedComponents:
    """Return the components of two masks by 6, 18 or 26 neighbours; raises a Flaw if one is noise."""
    true = name_components(find_true_runs(truth), neighbours)
    predicted = name_components(find_runs(prediction, limit_runs(true.runs)), neighbours)
    return share_components(true, predicted)


def _add_up(codes: Array, counts: Array) -> Tuple[Array, Array]:
    """Return the distinct codes in their order, and the sum of each one's counts, which are positive."""
    end = int(codes.max(initial=-1)) + 1
    if end <= 2 * len(codes):
        sums = np.bincount(codes, counts).astype(np.int64)
        distinct = np.flatnonzero(sums)
        return distinct, sums[distinct]
    distinct, places = np.unique(codes, return_inverse=True)
    return distinct, np.bincount(places, weights=counts, minlength=len(distinct)).astype(np.int64)


#: The minimum IoU of a pair of components.
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
