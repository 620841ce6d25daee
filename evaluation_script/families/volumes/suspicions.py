"""Suspicions about volumes that look written along other axes, elsewhere, for other cases, or with other labels."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Callable, Dict, Iterator, List, Match, Pattern, Sequence, Set, Tuple

import numpy as np

from ...files.problems import name_list, quantity
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.suspicions import Reading, ReadingScores, describe_gain, judge_cover, judge_readings, score_readings
from ..base.units import UnitAccumulator, UnitCounts
from .boxes import Box, Boxes, cover, select_labels
from .protocols import VolumeProtocol

_METRIC, _METRIC_OF_PAIRS, _METRIC_OF_LABEL = "Dice over all labels", "Dice of both", "its Dice"
_METRIC_OF_ALL = "Dice of all of them"
_AXES = "Write the axes in the order and direction in which the image was read"
_LABELS = "Write the labels of the truth"
_GRID = "Write the prediction in the grid of the image"
#: The minimum score of a turned reading; a correct volume never reaches it when turned.
_LEAST = 0.5
#: The minimum score of a moved reading, and the minimum ratio of the scores of moved and turned ones.
_LEAST_MOVED, _TIMES_MOVED = 0.8, 1.25
#: The number of voxels, evenly spread, by which moved and turned readings are scored.
_MOST_SAMPLED = 1 << 20


def _make_reading(
    name: str, slip: str, remedy: str, change: Callable[[Array], Array] = np.asarray, metric: str = ""
) -> Reading:
    return Reading(name, slip, remedy, "case", lambda _: change, _LEAST, metric=metric)


def _mirror(axes: str) -> Reading:
    """Return the reading of volumes that are mirrored along some axes."""
    change = partial(np.flip, axis=["zyx".index(axis) for axis in axes])
    listed = " and ".join(filter(None, [", ".join(axes[:-1]), axes[-1]]))
    return _turn(axes, f"volumes look mirrored along {listed}", change)


def _turn(name: str, slip: str, change: Callable[[Array], Array]) -> Reading:
    """Return the reading of volumes with other axes."""
    return replace(_make_reading(name, slip, _AXES, change), times=_TIMES_MOVED)


def _lower(labels: Array) -> Array:
    return np.maximum(labels.astype(np.int64) - 1, 0)


def _raise(labels: Array) -> Array:
    return np.where(labels > 0, labels.astype(np.int64) + 1, 0)


#: Changes of the whole volume (z, y, x), which give a view.
_TURNED = [
    *map(_mirror, ("x", "y", "z", "xy", "xz", "yz", "xyz")),
    _turn("yx", "x and y look exchanged", lambda volume: volume.transpose(0, 2, 1)),
    _turn("zx", "x and z look exchanged", lambda volume: volume.transpose(2, 1, 0)),
    _turn("zy", "y and z look exchanged", lambda volume: volume.transpose(1, 0, 2)),
    _turn("left", "slices look rotated by 90 degrees", lambda volume: np.rot90(volume, 1, (1, 2))),
    _turn("right", "slices look rotated by 90 degrees", lambda volume: np.rot90(volume, 3, (1, 2))),
]
_RELABELLED = [
    _make_reading("lower", "labels look 1 too high", _LABELS, _lower),
    _make_reading("higher", "labels look 1 too low", _LABELS, _raise),
]
READINGS = [*_TURNED, *_RELABELLED]
#: Readings of volumes that fit well: they leave at most this share of the error, 1 - Dice, and reach this Dice.
_SLIGHTLY, _LEFT, _LEAST_FITTING = "slightly ", 0.25, 0.9
_SLIGHTLY_TURNED = [
    replace(reading, name=_SLIGHTLY + reading.name, least=_LEAST_FITTING, times=1.0) for reading in _TURNED
]
#: The Dice below which a single case is named if turning it makes it fit well.
_MOST_TURNED = 0.8
#: Readings that move at least this share of all cases alike, and raise Dice in each so many times, however noisy.
_ALIKE, _SHARE_ALIKE, _TIMES_ALIKE, _LEAST_ALIKE = "alike ", 0.9, 1.05, 0.3
#: The names of the readings that exchange labels, that read a false label as a missing one, and that move volumes along
#: x, y and z.
_EXCHANGED, _RENAMED = re.compile(r"\d+(?:=\d+)+"), re.compile(r"(\d+)>(\d+)")
_MOVED = re.compile(f"({_SLIGHTLY}|{_ALIKE})?" + r"(-?\d+),(-?\d+),(-?\d+)")
#: The maximum number of labels of both sides that are compared for exchanged pairs.
_MOST_LABELS = 200


def look_at_case(
    truth: Array, prediction: Array, sides: Sequence[Boxes], overlaps: Array, *, has_regions: bool
) -> ReadingScores:
    """Return the scores by other readings of a case; empty unless regions (true, predicted, both) hardly overlap.

    Where a protocol has regions, no label can be renamed.
    """
    voxels = [int(side.voxels[1:].sum()) for side in sides]
    if not all(voxels):
        return {}
    hardly_overlap = 2 * overlaps[:, 2] * Reading.times < overlaps[:, 0] + overlaps[:, 1]
    exchanged = (
        _exchange_labels(truth, prediction, sides) if (hardly_overlap & overlaps[:, :2].all(axis=1)).any() else {}
    )
    if not has_regions:
        exchanged.update(_rename_labels(truth, prediction, sides))
    *areas, shared_areas = overlaps.sum(axis=0).tolist()
    is_low = 2 * shared_areas * _TIMES_MOVED < sum(areas)
    moved = _score_moved(truth, prediction) if is_low or _fit_otherwise(sides, truth.shape) else {}
    for name, scores in moved.items():
        if is_low:
            exchanged[name] = scores
        elif scores[1] >= _LEAST_FITTING and 1 - scores[1] <= _LEFT * (1 - scores[0]):
            exchanged[_SLIGHTLY + name] = scores
        if _MOVED.fullmatch(name) and scores[1] >= _TIMES_ALIKE * scores[0]:
            exchanged[_ALIKE + name] = scores
    if 2 * shared_areas * Reading.times >= sum(areas):
        return exchanged
    box = cover(sides[0].box_of(label) for label in sides[0].labels if label)

    def count_shared(volume: Array, transform: Callable[[Array], Array]) -> int:
        shared = 0
        for true, predicted in zip(truth[box], volume[box]):
            inside = true != 0
            shared += int(np.count_nonzero(transform(predicted[inside]) == true[inside]))
        return shared

    def score(reading: Reading) -> Any:
        change: Callable[[Array], Array] = reading.open(prediction)
        kept_voxels = voxels[1] - (int(sides[1].voxels[1]) if change is _lower else 0)
        return 2 * count_shared(prediction, change) / (voxels[0] + kept_voxels)

    dice = 2 * count_shared(prediction, np.asarray) / sum(voxels)
    return {**score_readings(dice, _RELABELLED, score), **exchanged}


def _fit_otherwise(sides: Sequence[Boxes], shape: Sequence[int]) -> bool:
    """Return True if the boxes of labels are nearer to the true ones when mirrored or moved along an axis."""
    labels = sorted(sides[0].labels & sides[1].labels)
    true, predicted = (side.sides[labels].reshape(-1, 3, 2) for side in sides)
    differences = predicted - true
    mirrored = np.array(shape)[:, None] - predicted[:, :, ::-1] - true
    gaps, mirrored_gaps = (np.abs(ends).sum(axis=(0, 2)) for ends in (differences, mirrored))
    return bool(np.rint(np.median(differences, axis=(0, 2))).any() or (2 * mirrored_gaps < gaps).any())


def _score_moved(truth: Array, prediction: Array) -> ReadingScores:
    """Return the Dice over all labels of a volume, turned and moved, by a sample of the voxels."""
    step = next(step for step in count(1) if truth.size <= _MOST_SAMPLED * step * step * step)
    sampled = (slice(None, None, step),) * 3
    inside = truth[sampled] != 0
    labels, total = truth[sampled][inside], np.count_nonzero(inside) + np.count_nonzero(prediction[sampled])
    if not total:
        return {}

    def score(volume: Array) -> float:
        return float(2 * np.count_nonzero(volume[sampled][inside] == labels) / total)

    dice = score(prediction)
    scores = {}
    for reading in _TURNED:
        turned = reading.open(prediction)(prediction)
        if turned.shape == truth.shape:
            scores[reading.name] = dice, score(turned)
    steps = [_find_step(truth, prediction, axis, step) for axis in range(3)]
    farthest = max(map(abs, steps))
    # Beside a step along one axis, noise may move single cases along others.
    for moves in [steps, [by * (abs(by) == farthest) for by in steps]] if farthest else []:
        places = [(max(0, -by), side - max(0, by)) for by, side in zip(moves, truth.shape)]
        true = truth[tuple(slice(*ends, step) for ends in places)]
        moved = prediction[tuple(slice(start + by, end + by, step) for (start, end), by in zip(places, moves))]
        shared = np.count_nonzero((true == moved) & (true != 0))
        scores[",".join(map(str, moves[::-1]))] = dice, float(2 * shared / total)
    return scores


def _find_step(truth: Array, prediction: Array, axis: int, step: int) -> int:
    """Return by how many voxels along an axis a prediction fits its truth best, by the voxels in each plane."""
    sampled = tuple(slice(None, None, 1 if side == axis else step) for side in range(3))
    across = tuple(side for side in range(3) if side != axis)
    true, predicted = (np.count_nonzero(volume[sampled], axis=across) for volume in (truth, prediction))
    padding = np.zeros(len(true), np.int64)
    padded = np.concatenate([padding, predicted, padding])
    shared = [int((padded[start : start + len(true)] * true).sum()) for start in range(2 * len(true) + 1)]
    return int(np.argmax(shared)) - len(true)


def _exchange_labels(truth: Array, prediction: Array, sides: Sequence[Boxes]) -> ReadingScores:
    """Return the Dice of some labels together, as predicted and exchanged, if each covers another one best."""
    labels = sorted(sides[0].labels & sides[1].labels)
    if len(labels) > _MOST_LABELS:
        return {}
    shared = {label: _count_labels(truth, prediction, sides, label) for label in labels}
    best = {label: int(counts.argmax()) for label, counts in shared.items()}
    scores: ReadingScores = {}
    for label in labels:
        cycle = [label]
        while best.get(cycle[-1], label) not in cycle:
            cycle.append(best[cycle[-1]])
        if len(cycle) == 1 or best.get(cycle[-1]) != label or min(cycle) < label:
            continue
        total = sum(int(side.voxels[cycle].sum()) for side in sides)
        before, after = (sum(shared[true][read[true]] for true in cycle) for read in (dict(zip(cycle, cycle)), best))
        scores["=".join(map(str, cycle))] = float(2 * before / total), float(2 * after / total)
    return scores


def _rename_labels(truth: Array, prediction: Array, sides: Sequence[Boxes]) -> ReadingScores:
    """Return the Dice of each label that the prediction lacks, as predicted, and with the false label there instead."""
    missing, false = sorted(sides[0].labels - sides[1].labels), sides[1].labels - sides[0].labels
    scores: ReadingScores = {}
    for label in missing if false and len(missing) <= _MOST_LABELS else ():
        shared = _count_labels(truth, prediction, sides, label)
        best = int(shared.argmax())
        if best in false:
            scores[f"{best}>{label}"] = 0.0, float(2 * shared[best] / (sides[0].voxels[label] + sides[1].voxels[best]))
    return scores


def _count_labels(truth: Array, prediction: Array, sides: Sequence[Boxes], label: int) -> Array:
    """Return how many voxels of a true label have each predicted label; background counts 0."""
    box, counts = sides[0].box_of(label), np.zeros(len(sides[1].voxels), np.int64)
    for true, predicted in zip(truth[box], prediction[box]):
        numbers = np.bincount(predicted[true == label])
        counts[: len(numbers)] += numbers
    counts[0] = 0
    return counts


def suspect(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return suspicions about all cases together."""
    units = accumulator.complete_counts()
    voxels = np.concatenate([unit.tables["voxels"] for unit in units]).sum(axis=0).tolist()
    if not voxels[0]:
        return []
    if not voxels[1]:
        return ["no case has a predicted voxel: check the labels"]
    scores = [unit.reading_scores for unit in units]
    readings = [*READINGS, *_list_exchanges(scores), *_list_renamed(scores, accumulator), *_list_moves(scores)]
    explained = judge_readings(scores, len(units), [*readings, *_SLIGHTLY_TURNED], _METRIC)
    explained = explained or _judge_cases(units) or _judge_exchanged(units) or _judge_turned(units)
    explained = explained or _list_missing(accumulator)
    explained = explained or judge_cover("volumes", *voxels)
    if explained or voxels[2]:
        return explained
    return ["no predicted voxel has the label of the truth: check the labels, and which case each volume belongs to"]


def _judge_turned(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion about the cases, however few, that fit well once they are turned in the same way."""
    turned: Dict[str, List[Tuple[str, float, float]]] = {reading.name: [] for reading in _TURNED}
    for unit in units:
        for reading in _TURNED:
            names = [name for name in (reading.name, _SLIGHTLY + reading.name) if name in unit.reading_scores]
            before, after = unit.reading_scores[names[0]] if names else (1.0, 1.0)
            if before < _MOST_TURNED and after >= _LEAST_FITTING and 1 - after <= _LEFT * (1 - before):
                turned[reading.name].append((unit.name, before, after))
    reading = max(_TURNED, key=lambda reading: len(turned[reading.name]))
    if not turned[reading.name]:
        return []
    names, *scores = map(list, zip(*turned[reading.name]))
    before, after = map(mean, scores)
    cases = f"in {quantity(len(names), 'case', len(units))}, {name_list(names)}"
    return [f"{reading.slip} {cases}: {describe_gain(f'their {_METRIC}', before, after)}. {reading.remedy}"]


def _match_names(pattern: Pattern[str], scores: List[ReadingScores]) -> List[Match[str]]:
    """Return the matches of a pattern with the names of readings of the cases."""
    matches = map(pattern.fullmatch, sorted({name for case in scores for name in case}))
    return [match for match in matches if match]


def _list_exchanges(scores: List[ReadingScores]) -> List[Reading]:
    """Return the readings that exchange labels of the cases."""
    readings = []
    for match in _match_names(_EXCHANGED, scores):
        *labels, last = match[0].split("=")
        slip = f"labels {', '.join(labels)} and {last} look exchanged"
        metric = _METRIC_OF_PAIRS if len(labels) == 1 else _METRIC_OF_ALL
        readings.append(_make_reading(match[0], slip, _LABELS, metric=metric))
    return readings


def _list_moves(scores: List[ReadingScores]) -> List[Reading]:
    """Return the readings that move alike most cases with low scores, most of all cases if they fit well, or all."""
    readings, low = [], sum(_TURNED[0].name in case for case in scores)
    limits = {
        None: (low // 2 + 1, _LEAST_MOVED, _TIMES_MOVED),
        _SLIGHTLY: (len(scores) // 2 + 1, _LEAST_FITTING, 1.0),
        _ALIKE: (max(_FEWEST_CASES, _SHARE_ALIKE * len(scores)), _LEAST_ALIKE, _TIMES_ALIKE),
    }
    for match in _match_names(_MOVED, scores):
        fewest, least, times = limits[match[1]]
        if sum(match[0] in case for case in scores) < fewest:
            continue
        steps = [f"{step} along {axis}" for axis, step in zip("xyz", match.groups()[1:]) if int(step)]
        slip = f"volumes look moved by this many voxels: {', '.join(steps)}"
        readings.append(replace(_make_reading(match[0], slip, _GRID), least=least, times=times))
    return readings


#: Volumes may be those of the next case if there are at least this many cases, Dice is below the second number, and the
#: regions' sizes differ by at most this share there, and by at least this many times as much here.
_FEWEST_CASES, _LOW_DICE, _SAME_SIZES, _TIMES_NEARER = 5, 0.7, 0.1, 3.0


#: Volumes belong to other cases if their Dice is lower than this, each fits its other case at least this many times
#: better, and all of them fit so well and so many times better on average; noisy ones fit less well, but far better.
_MOST_DICE, _NEARER, _LEAST_LIKE, _TIMES_LIKE = 0.95, 1.1, (0.6, 0.3), (1.5, 3.0)
#: The maximum number of pairs of a case's region and a truth that are compared.
_MOST_COMPARED = 1 << 25
#: The share of its box below which a region is scattered; the percentage of planes that have only scattered voxels, and
#: the share of the largest plane, beyond these, of planes with most voxels.
_SCATTERED, _EMPTY, _FILLED = 0.15, 10, 0.25


def _judge_exchanged(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion if the volumes of some cases fit each other's truth by the sizes and boxes of all regions."""
    voxels, ends = (_tabulate(units, key) for key in ("voxels", "ends"))
    sizes, totals = voxels[..., :2].transpose(2, 0, 1), voxels.sum(axis=1)
    dices = 2 * totals[:, 2] / np.maximum(1, totals[:, :2].sum(axis=1))
    low = [row for row, dice in enumerate(dices.tolist()) if dice < _MOST_DICE and sizes[1, row].any()]
    fits: Dict[int, Tuple[int, float, float]] = {}
    for row in low if len(low) * sizes[0].size <= _MOST_COMPARED else ():
        likeness = _compare_shapes(sizes[1, row], ends[row, :, 1], sizes[0], ends[:, :, 0])
        best = int(likeness.argmax())
        if likeness[best] >= max(min(_LEAST_LIKE), _NEARER * likeness[row]) and best != row:
            fits[row] = best, float(likeness[best]), float(likeness[row])
    cycles = _list_cycles({row: best for row, (best, *_) in fits.items()})
    rows = sorted(row for cycle in cycles if _is_meant(cycle, fits) for row in cycle)
    belongs = {row: fits[row][0] for row in rows}
    if 2 * len(belongs) <= sum(_is_meant([row], fits) for row in fits):
        return []
    pairs = name_list([f"{units[row].name} has the volume of {units[best].name}" for row, best in belongs.items()])
    slip = f"the volumes of {quantity(len(belongs), 'case')} look exchanged"
    return [f"{slip}, by the sizes and places of all regions: {pairs}. Check which case each volume belongs to"]


def _list_cycles(partners: Dict[int, int]) -> Iterator[List[int]]:
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


def _is_meant(cycle: Sequence[int], fits: Dict[int, Tuple[int, float, float]]) -> bool:
    """Return whether volumes fit the truths of other cases well, and far better than their own."""
    likeness, likeness_to_own = (mean([fits[row][side] for row in cycle]) for side in (1, 2))
    return any(likeness >= max(least, times * likeness_to_own) for least, times in zip(_LEAST_LIKE, _TIMES_LIKE))


def find_ends(masks: Sequence[Array], sides: Sequence[Boxes], chosen: Tuple[int, ...]) -> List[List[int]]:
    """Return from and to along z, y and x of a region on both sides, of most voxels only if one side is scattered."""
    boxes = [cover(map(side.box_of, chosen)) for side in sides]
    sizes = [math.prod(extent.stop - extent.start for extent in box) for box in boxes]
    voxels = [int(side.voxels[list(chosen)].sum()) for side in sides]
    if all(sizes) and any(total < _SCATTERED * size for total, size in zip(voxels, sizes)):
        boxes = [_trim_box(labels, box, chosen) for labels, box in zip(masks, boxes)]
    return [[end for extent in box for end in (extent.start, extent.stop)] for box in boxes]


def _trim_box(labels: Array, box: Box, chosen: Tuple[int, ...]) -> Box:
    """Return the box of the planes with many voxels of a region, by a sample."""
    size = math.prod(extent.stop - extent.start for extent in box)
    step = next(step for step in count(1) if size <= _MOST_SAMPLED * step * step * step)
    mask, extents = select_labels(labels[box][::step, ::step, ::step], chosen), []
    for axis, (extent, end) in enumerate(zip(box, labels.shape)):
        counts = np.count_nonzero(mask, axis=tuple({0, 1, 2} - {axis}))
        # Planes beyond the box are empty.
        least = np.percentile(np.append(counts, np.zeros(max(0, end // step - len(counts)))), _EMPTY)
        filled = extent.start + step * np.flatnonzero(counts >= least + _FILLED * (counts.max() - least))
        extents.append(slice(int(filled[0]), min(extent.stop, int(filled[-1]) + step)))
    return tuple(extents)


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


def _judge_cases(units: Sequence[UnitCounts]) -> List[str]:
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


def _list_missing(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return a suspicion about labels or regions of truths that no prediction has."""
    true: Dict[int, int] = {}
    predicted: Set[int] = set()
    for unit in accumulator.complete_counts():
        for label, (size, predicted_size, _) in zip(unit.tables["labels"].tolist(), unit.tables["voxels"].tolist()):
            true[label] = true.get(label, 0) + (size > 0)
            predicted.update([label] if predicted_size else [])
    missing = sorted(label for label, cases in true.items() if cases and label not in predicted)
    regions = accumulator.protocol.regions
    names = [f"{regions[label].name if regions else label} (in {quantity(true[label], 'case')})" for label in missing]
    noun = "regions" if regions else "labels"
    return [f"no prediction has these {noun} of the truth: {name_list(names)}. {_LABELS}"] if missing else []


def find_true_labels(accumulator: UnitAccumulator[VolumeProtocol]) -> Set[int]:
    """Return the labels that a truth has, of a protocol without regions."""
    tables = [unit.tables for unit in accumulator.complete_counts()]
    return {label for table in tables for label in table["labels"][table["voxels"][:, 0] > 0].tolist()}


def _list_renamed(scores: List[ReadingScores], accumulator: UnitAccumulator[VolumeProtocol]) -> List[Reading]:
    """Return the readings in which a label that no truth has stands for a missing label."""
    if accumulator.protocol.regions:
        return []
    true = find_true_labels(accumulator)
    return [
        _make_reading(match[0], f"label {match[1]} looks like label {match[2]}", _LABELS, metric=_METRIC_OF_LABEL)
        for match in _match_names(_RENAMED, scores)
        if int(match[1]) not in true
    ]
