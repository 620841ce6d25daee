"""Suspicions about volumes that belong to other cases: they fit other truths, or have the sizes of their regions."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import count
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import numpy as np

from ...files.problems import name_list, quantity
from ...masks.stack import Array
from ...values.arithmetic import interpolate, mean
from ..base.units import UnitCounts
from .boxes import Box, Boxes, count_by_planes, cover, select_labels

#: Volumes may be those of the next case if there are at least this many cases, Dice is below the second number, and the
#: regions' sizes differ by at most this share there, and by at least this many times as much here.
_FEWEST_CASES, _LOW_DICE, _SAME_SIZES, _TIMES_NEARER = 5, 0.7, 0.1, 3.0
#: Volumes may belong to other cases if their Dice is lower than this, and each fits its other case at least this many
#: times better.
_MOST_DICE, _NEARER = 0.95, 1.1
#: Their minimum fit on average, and how many times better than their own it must be; noisy ones fit less well, but far
#: better. The same of cases that are at least this share of so many.
_LIKE = ((0.6, 1.5), (0.3, 3.0))
#: The same where each fits one truth alone: of cases that have each other's volumes, and of cases whose volumes all lie
#: the same number of cases away.
_ALONE, _STEP = (0.3, 2.0), (0.15, 3.0)
_OF_ALL, _NEARLY_ALL, _MANY_CASES = (0.35, 1.25), 0.8, 6
#: The maximum number of pairs of a case's region and a truth that are compared.
_MOST_COMPARED = 1 << 25
#: The number of sampled places along each axis and in all, and a number that has no divisor in common with it.
_SIDE, _PLACES, _SCRAMBLE = 24, 24 * 24 * 24, 7919
#: The minimum number of places with a predicted label, and the maximum numbers of a case, of all cases, and compared
#: with all truths.
_FEWEST_PLACES, _MOST_SENT, _MOST_HELD, _MOST_PLACES = 8, 512, 1 << 23, 1 << 28
#: The maximum number of sampled voxels, evenly spread, of a whole volume.
_MOST_SAMPLED = 1 << 20
#: The number of samples that are kept.
_MOST_SAMPLES = 8
#: The share of its box below which a region is scattered; the percentage of planes that have only scattered voxels, and
#: the share of the largest plane, beyond these, of planes with most voxels.
_SCATTERED, _EMPTY, _FILLED = 0.15, 10, 0.25


class _Fit(NamedTuple):
    """How well a case's volume fits the truth that it fits best, and its own."""

    best: int
    likeness: float
    to_own: float
    to_second: float

    def is_better(self, row: int) -> bool:
        """Return whether it is the truth of another case, and fits well enough."""
        return self.best != row and self.likeness >= max(_LIKE[1][0], _NEARER * self.to_own)


def judge_case_order(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion if volumes are those of the next or the previous case, or exchanged."""
    return _judge_neighbours(units) or _judge_exchanged(units)


def _judge_exchanged(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion if the volumes of some cases fit each other's truth, by their regions or sampled labels."""
    low = [row for row, unit in enumerate(units) if _is_low(unit.tables["voxels"])]
    for compare, compared in (
        (_compare_regions, "the sizes and places of all regions"),
        (partial(_compare_labels, "sample"), "the labels of sampled voxels"),
        (partial(_compare_labels, "cells"), "the places of small regions"),
    ):
        fits, by_step = {}, np.zeros(len(units))
        for row, likeness in compare(units, low):
            fits[row] = _find_best(row, likeness)
            by_step += np.roll(likeness, -row)
        belongs = _find_exchanged(fits, len(units)) or _find_moved(list(fits), by_step)
        if belongs:
            pairs = name_list([f"{units[row].name} has the volume of {units[best].name}" for row, best in belongs])
            slip = f"the volumes of {quantity(len(belongs), 'case')} look exchanged, by {compared}"
            return [f"{slip}: {pairs}. Check which case each volume belongs to"]
    return []


def _find_exchanged(fits: Dict[int, _Fit], total: int) -> List[Tuple[int, int]]:
    """Return cases that fit each other's truth, and the case that each belongs to; empty if too many fit no truth.

    Of nearly all cases, one may fit a third one's truth by chance.
    """
    moved = {row: fit for row, fit in fits.items() if fit.is_better(row)}
    cycles = list_cycles({row: fit.best for row, fit in moved.items()})
    rows = [row for cycle in cycles if _is_meant([fits[row] for row in cycle]) for row in cycle]
    if not rows or 2 * len(rows) <= _count_poor(fits, mean([fits[row].likeness for row in rows])):
        partners = Counter(fit.best for fit in moved.values())
        rows = [row for row, fit in moved.items() if partners[fit.best] == 1]
        are_most = len(rows) >= max(_MANY_CASES, _NEARLY_ALL * total)
        if not are_most or not _fit_better([fits[row] for row in rows], *_OF_ALL):
            return []
    return [(row, fits[row].best) for row in sorted(rows)]


def _find_moved(rows: Sequence[int], by_step: Array) -> List[Tuple[int, int]]:
    """Return all cases and those that they belong to, if all lie the same number of cases away; otherwise none.

    The sums of the likeness of all volumes to the truths of their own cases, of the next ones and so on are given.
    """
    total = len(by_step)
    if len(rows) < max(_MANY_CASES, _NEARLY_ALL * total):
        return []
    step, second = (-by_step).argsort(kind="stable")[:2].tolist()
    if not step or by_step[step] < max(_STEP[0] * total, _STEP[1] * by_step[second]):
        return []
    return [(row, (row + step) % total) for row in sorted(rows)]


def _count_poor(fits: Dict[int, _Fit], likeness: float) -> int:
    """Return how many volumes fit their own truth far less than this."""
    return sum(_ALONE[1] * fit.to_own < likeness for fit in fits.values())


def _is_meant(fits: Sequence[_Fit]) -> bool:
    """Return whether volumes fit the truths of other cases well, and far better than their own."""
    to_second, (least, times) = mean([fit.to_second for fit in fits]), _ALONE
    are_alone = mean([fit.likeness for fit in fits]) >= max(least, times * to_second)
    return are_alone or any(_fit_better(fits, least, times) for least, times in _LIKE)


def _fit_better(fits: Sequence[_Fit], least: float, times: float) -> bool:
    """Return whether volumes fit other truths so well, and so many times better than their own, on average."""
    return mean([fit.likeness for fit in fits]) >= max(least, times * mean([fit.to_own for fit in fits]))


def _find_best(row: int, likeness: Array) -> _Fit:
    """Return the fit of a case, given its likeness to all truths."""
    best = int(likeness.argmax())
    second = float(np.partition(likeness, -2)[-2]) if len(likeness) > 1 else 0.0
    return _Fit(best, float(likeness[best]), float(likeness[row]), second)


def _compare_regions(units: Sequence[UnitCounts], low: Sequence[int]) -> Iterator[Tuple[int, Array]]:
    """Yield the likeness of cases to all truths, by the sizes and boxes of all regions."""
    voxels, ends = (_tabulate(units, key) for key in ("voxels", "ends"))
    sizes = voxels[..., :2].transpose(2, 0, 1)
    if len(low) * sizes[0].size > _MOST_COMPARED:
        return
    for row in low:
        if sizes[1, row].any():
            yield row, _compare_shapes(sizes[1, row], ends[row, :, 1], sizes[0], ends[:, :, 0])


def sample_labels(truth: Array, prediction: Array, voxels: Array) -> Dict[str, Array]:
    """Return samples of the labels on both sides: `sample` of voxels, evenly spread, and `cells` around them.

    Sampled voxels miss small regions, and specks fill cells. A case that fits its truth well, given the voxels of its
    regions, has no sample.
    """
    if not _is_low(voxels):
        return {"sample": np.zeros(0, np.int64), "cells": np.zeros(0, np.int64)}
    places = np.ix_(*((2 * np.arange(_SIDE) + 1) * side // (2 * _SIDE) for side in truth.shape))
    return {"sample": _encode(truth[places], prediction[places]), "cells": _encode(_pool(truth), _pool(prediction))}


def _encode(true: Array, predicted: Array) -> Array:
    """Return places with a label on a side, as 2**32 * place + 2**16 * true label + predicted label.

    Places, in a scrambled order, are multiples of the number before them: so many that few are returned.
    """
    labels = (true.astype(np.int64) << 16 | predicted).reshape(-1)
    filled = np.flatnonzero(labels)
    scrambled, step = filled * _SCRAMBLE % _PLACES, 1
    while np.count_nonzero(scrambled % step == 0) > _MOST_SENT:
        step *= 2
    is_sent = scrambled % step == 0
    return np.append(step, scrambled[is_sent] << 32 | labels[filled[is_sent]])


def _pool(labels: Array) -> Array:
    """Return the highest label in each of the cells that divide a volume evenly.

    One by one, slabs take a fortieth of the time of `np.maximum.reduceat`.
    """
    for axis, side in enumerate(labels.shape):
        ends = [number * side // _SIDE for number in range(_SIDE + 1)]
        before = (slice(None),) * axis
        slabs = [labels[(*before, slice(start, max(start + 1, stop)))] for start, stop in zip(ends, ends[1:])]
        labels = np.stack([slab.max(axis=axis) for slab in slabs], axis=axis)
    return labels


def _is_low(voxels: Array) -> bool:
    """Return whether a predicted volume may belong to another case, given the voxels of its regions."""
    true, predicted, shared = voxels.sum(axis=0).tolist()
    return bool(predicted > 0 and 2 * shared < _MOST_DICE * (true + predicted))


def _compare_labels(key: str, units: Sequence[UnitCounts], low: Sequence[int]) -> Iterator[Tuple[int, Array]]:
    """Yield the likeness of cases to those with low Dice, by the Dice over all labels of a sample.

    Counts of earlier versions have no sample.
    """
    samples = [units[row].tables.get(key, np.zeros(0, np.int64)) for row in low]
    if not low or not all(map(len, samples)):
        return
    step = max(1, *(int(sample[0]) for sample in samples))
    while _PLACES // step * len(low) > min(_MOST_HELD, _MOST_PLACES // len(low)):
        step *= 2
    true, predicted = np.zeros((2, len(low), _PLACES // step + 1), np.uint16)
    for number, sample in enumerate(samples):
        places = sample[1:] >> 32
        chosen = (places % step == 0) & (places < _PLACES)
        places, labels = places[chosen] // step, sample[1:][chosen]
        true[number, places], predicted[number, places] = labels >> 16 & 0xFFFF, labels & 0xFFFF
    is_filled = true != 0
    true_places, predicted_places = (np.count_nonzero(side, axis=1) for side in (true, predicted))
    numbers = np.flatnonzero(predicted_places >= _FEWEST_PLACES).tolist()

    for number in numbers:
        shared = np.count_nonzero((true == predicted[number]) & is_filled, axis=1)
        likeness = np.zeros(len(units))
        likeness[list(low)] = 2 * shared / (true_places + predicted_places[number])
        yield low[number], likeness


def list_cycles(partners: Dict[int, int]) -> Iterator[List[int]]:
    """Yield the cycles in which cases have each other's volumes, each from its first case."""
    visited: Set[int] = set()
    for start in partners:
        path: Dict[int, int] = {}
        row = start
        while row in partners and row not in visited:
            visited.add(row)
            path[row] = len(path)
            row = partners[row]
        if row in path:
            cycle = list(path)[path[row] :]
            least = cycle.index(min(cycle))
            yield [*cycle[least:], *cycle[:least]]


class SampledLabels:
    """A volume, of which many boxes are sampled alike."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels
        #: Every so many voxels, by the first one along each axis and the step.
        self._samples: Dict[Tuple[int, ...], Array] = {}

    def take(self, box: Box, step: int) -> Array:
        """Return every so many voxels of a box along each axis; those of large boxes are copied once."""
        if step == 1 or 2 * math.prod(side.stop - side.start for side in box) < self.labels.size:
            return self.labels[box][::step, ::step, ::step]
        begin = tuple(side.start % step for side in box)
        if (*begin, step) not in self._samples:
            if len(self._samples) == _MOST_SAMPLES:
                self._samples.clear()
            sampled = self.labels[tuple(slice(start, None, step) for start in begin)]
            self._samples[(*begin, step)] = np.ascontiguousarray(sampled)
        return self._samples[(*begin, step)][
            tuple(slice(side.start // step, (side.stop - 1 - side.start % step) // step + 1) for side in box)
        ]


def find_ends(masks: Sequence[SampledLabels], sides: Sequence[Boxes], chosen: Tuple[int, ...]) -> List[List[int]]:
    """Return from and to along z, y and x of a region on both sides, of most voxels only if one side is scattered."""
    boxes = [cover(map(side.box_of, chosen)) for side in sides]
    sizes = [math.prod(extent.stop - extent.start for extent in box) for box in boxes]
    voxels = [int(side.voxels[list(chosen)].sum()) for side in sides]
    if all(sizes) and any(total < _SCATTERED * size for total, size in zip(voxels, sizes)):
        boxes = [_trim_box(labels, box, chosen) for labels, box in zip(masks, boxes)]
    return [[end for extent in box for end in (extent.start, extent.stop)] for box in boxes]


def choose_step(voxels: int, limit: int = _MOST_SAMPLED) -> int:
    """Return the distance, along each axis, of few enough of a volume's voxels."""
    return next(step for step in count(1) if voxels <= limit * step * step * step)


def _trim_box(volume: SampledLabels, box: Box, chosen: Tuple[int, ...]) -> Box:
    """Return the box of the planes with many voxels of a region, by a sample."""
    step = choose_step(math.prod(extent.stop - extent.start for extent in box))
    by_planes, extents = count_by_planes(select_labels(volume.take(box, step), chosen)), []
    for counts, extent, end in zip(by_planes, box, volume.labels.shape):
        # Planes beyond the box are empty.
        least = find_percentile(np.append(counts, np.zeros(max(0, end // step - len(counts)))), _EMPTY)
        filled = extent.start + step * np.flatnonzero(counts >= least + _FILLED * (counts.max() - least))
        extents.append(slice(int(filled[0]), min(extent.stop, int(filled[-1]) + step)))
    return tuple(extents)


def find_percentile(numbers: Array, percent: int) -> float:
    """Return the same bits as `np.percentile`, which takes ten times as long for few numbers."""
    rank = (len(numbers) - 1) * (percent / 100)
    lower, weight = int(rank), rank - int(rank)
    low, high = np.sort(numbers)[[lower, min(lower + 1, len(numbers) - 1)]].tolist()
    return interpolate(float(low), float(high), weight)


def _compare_shapes(sizes: Array, ends: Array, true_sizes: Array, true_ends: Array) -> Array:
    """Return how well regions fit those of each truth: the mean ratio of sizes, times the IoU of boxes."""
    lengths = np.minimum(ends[:, 1::2], true_ends[..., 1::2]) - np.maximum(ends[:, ::2], true_ends[..., ::2])
    shared = np.maximum(lengths, 0).prod(axis=-1)
    volume, true_volumes = ((side[..., 1::2] - side[..., ::2]).prod(axis=-1) for side in (ends, true_ends))
    greatest = np.maximum(sizes, true_sizes)
    union = np.maximum(1, volume + true_volumes - shared)
    fits = np.minimum(sizes, true_sizes) / np.maximum(1, greatest) * shared / union
    likeness: Array = fits.sum(axis=1) / np.maximum(1, (greatest > 0).sum(axis=1))
    return likeness


def _judge_neighbours(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion if predicted regions have the sizes of those in the truth of the next or the previous case."""
    ordered = sorted(units, key=lambda unit: unit.name)
    overlaps = np.array([unit.tables["voxels"].sum(axis=0) for unit in ordered], np.float64)
    true, predicted, shared = overlaps.sum(axis=0).tolist()
    if len(ordered) < _FEWEST_CASES or 2 * shared >= _LOW_DICE * (true + predicted):
        return []
    sizes = _tabulate(ordered, "voxels").transpose(2, 0, 1)

    def differ(step: int) -> float:
        chosen = slice(max(0, -step), len(ordered) - max(0, step))
        predicted_sizes, true_sizes = sizes[1][chosen], sizes[0][chosen.start + step : chosen.stop + step]
        return mean(np.abs(predicted_sizes - true_sizes) / np.maximum(1, predicted_sizes + true_sizes))

    difference, (least, step) = differ(0), min((differ(step), step) for step in (1, -1))
    if least > _SAME_SIZES or difference < _TIMES_NEARER * least:
        return []
    named_case, fitting_case = ordered[max(0, -step)].name, ordered[max(0, step)].name
    slip = f"volumes look named one case too {'low' if step > 0 else 'high'}"
    percent, neighbour_percent = (f"{100 * share:.0f} %" for share in (difference, least))
    neighbour = f"the truth of the {'next' if step > 0 else 'previous'} case, such as {fitting_case} for {named_case}"
    fit = (
        f"the sizes of regions differ by {percent} from those of the truth, but by {neighbour_percent} from {neighbour}"
    )
    return [f"{slip}: {fit}. Check which case each volume belongs to"]


def _tabulate(units: Sequence[UnitCounts], key: str) -> Array:
    """Return a table of each label or region (columns) of all cases (rows), with 0 where a case lacks it."""
    labels = sorted({label for unit in units for label in unit.tables["labels"].tolist()})
    table: Array = np.zeros((len(units), len(labels), *units[0].tables[key].shape[1:]), np.int64)
    for row, unit in zip(table, units):
        row[np.searchsorted(labels, unit.tables["labels"])] = unit.tables[key]
    return table
