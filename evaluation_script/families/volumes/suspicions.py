"""Suspicions about volumes that look written along other axes, elsewhere, for other cases, or with other labels."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, List, Match, Optional, Pattern, Sequence, Set, Tuple

import numpy as np

from ...files.problems import name_list, quantity
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.readings import Reading, ReadingScores, describe_gain, judge_readings, score_readings
from ..base.suspicions import judge_blank, judge_cover
from ..base.units import UnitAccumulator, UnitCounts
from .boxes import Boxes, count_by_planes, cover
from .case_order import choose_step, judge_case_order
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


def _unshape(volume: Array) -> Array:
    return volume.reshape(volume.shape[::-1]).transpose(2, 1, 0)


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
    replace(
        _turn("reshaped", "volumes look reshaped from (x, y, z) to (z, y, x)", _unshape),
        remedy="Transpose arrays instead of reshaping them",
    ),
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
#: Readings that move or turn at least this share of so many cases alike, and raise Dice in each so many times, however
#: noisy.
_ALIKE, _SHARE_ALIKE, _FEWEST_ALIKE, _TIMES_ALIKE, _LEAST_ALIKE = "alike ", 0.9, 5, 1.05, 0.3
_TURNED_ALIKE = [
    replace(reading, name=_ALIKE + reading.name, least=_LEAST_ALIKE, times=_TIMES_ALIKE) for reading in _TURNED
]
#: The same of steps of one voxel, which raise Dice less, in cases below the last number. The maximum number of sampled
#: places, and the minimum with a label.
_BESIDE, _TIMES_BESIDE, _LEAST_BESIDE, _MOST_BESIDE = "beside ", 1.03, 0.5, 0.95
_MOST_PLACES, _FEWEST_PLACES = 1 << 18, 500
#: The names of the readings that exchange labels, that read a false label as a missing one, and that move volumes along
#: x, y and z.
_EXCHANGED, _RENAMED = re.compile(r"\d+(?:=\d+)+"), re.compile(r"(\d+)>(\d+)")
_MOVED = re.compile(f"({_SLIGHTLY}|{_ALIKE}|{_BESIDE})?" + r"(-?\d+),(-?\d+),(-?\d+)")
#: The ratio of the sizes of regions and of what they share above which labels may be exchanged.
_TIMES_OF_REGIONS = 1.8
#: The minimum number of cases whose labels are exchanged alike, if these then do not fit well.
_FEWEST_EXCHANGED = 2
#: The maximum number of labels of both sides that are compared for exchanged pairs.
_MOST_LABELS = 200


def look_at_case(
    labels: Tuple[Array, Array],
    sides: Sequence[Boxes],
    overlaps: Array,
    pairs: Optional[Array] = None,
    *,
    has_regions: bool,
) -> ReadingScores:
    """Return the scores by other readings of a case; empty unless regions (true, predicted, both) hardly overlap.

    Pairs are the voxels that have each label of both sides, if they are known. Where a protocol has regions, no label
    can be renamed.
    """
    truth, prediction = labels
    voxels = [int(side.voxels[1:].sum()) for side in sides]
    if not all(voxels):
        return {}
    # Regions share labels, so they overlap in part even if labels are exchanged.
    hardly = _TIMES_OF_REGIONS if has_regions else Reading.times
    hardly_overlap = 2 * overlaps[:, 2] * hardly < overlaps[:, 0] + overlaps[:, 1]
    exchanged = _exchange_labels(labels, sides, pairs) if (hardly_overlap & overlaps[:, :2].all(axis=1)).any() else {}
    if not has_regions:
        exchanged.update(_rename_labels(labels, sides, pairs))
    *areas, shared_areas = overlaps.sum(axis=0).tolist()
    is_low = 2 * shared_areas * _TIMES_MOVED < sum(areas)
    moved = _score_moved(truth, prediction) if is_low or _fit_otherwise(sides, truth.shape) else {}
    for name, scores in moved.items():
        if is_low:
            exchanged[name] = scores
        elif scores[1] >= _LEAST_FITTING and 1 - scores[1] <= _LEFT * (1 - scores[0]):
            exchanged[_SLIGHTLY + name] = scores
        if scores[1] >= _TIMES_ALIKE * scores[0]:
            exchanged[_ALIKE + name] = scores
    if 2 * shared_areas < _MOST_BESIDE * sum(areas):
        exchanged.update(_score_beside(truth, prediction, sides, voxels))
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
    step = choose_step(truth.size)
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


def _score_beside(truth: Array, prediction: Array, sides: Sequence[Boxes], voxels: Sequence[int]) -> ReadingScores:
    """Return the Dice over all labels, by a sample of true ones, of steps of one voxel that raise it."""
    box = cover(sides[0].box_of(label) for label in sides[0].labels if label)
    step = choose_step(int(np.prod([extent.stop - extent.start for extent in box])), _MOST_PLACES)
    sampled = truth[box][::step, ::step, ::step]
    places = np.nonzero(sampled)
    labels = sampled[places]
    if len(labels) < _FEWEST_PLACES:
        return {}
    places = tuple(extent.start + step * axis for extent, axis in zip(box, places))

    def score(axis: int, by: int) -> float:
        moved = places[axis] + by
        inside = (moved >= 0) & (moved < truth.shape[axis])
        beside = prediction[(*places[:axis], np.where(inside, moved, 0), *places[axis + 1 :])]
        shared = np.count_nonzero((beside == labels) & inside) / len(labels)
        return float(2 * shared * voxels[0] / sum(voxels))

    dice = score(0, 0)
    moved = {(axis, by): score(axis, by) for axis in range(3) for by in (-1, 1)}
    return {
        _BESIDE + ",".join(str(by * (axis == side)) for side in (2, 1, 0)): (dice, after)
        for (axis, by), after in moved.items()
        if after > dice
    }


def _find_step(truth: Array, prediction: Array, axis: int, step: int) -> int:
    """Return by how many voxels along an axis a prediction fits its truth best, by the voxels in each plane."""
    sampled = tuple(slice(None, None, 1 if side == axis else step) for side in range(3))
    true, predicted = (count_by_planes(volume[sampled] != 0)[axis] for volume in (truth, prediction))
    padding = np.zeros(len(true), np.int64)
    padded = np.concatenate([padding, predicted, padding])
    shared = [int((padded[start : start + len(true)] * true).sum()) for start in range(2 * len(true) + 1)]
    return int(np.argmax(shared)) - len(true)


def _exchange_labels(volumes: Tuple[Array, Array], sides: Sequence[Boxes], pairs: Optional[Array]) -> ReadingScores:
    """Return the Dice of some labels together, as predicted and exchanged, if each covers another one best."""
    labels = sorted(sides[0].labels & sides[1].labels)
    if len(labels) > _MOST_LABELS:
        return {}
    shared = {label: _count_labels(volumes, sides, pairs, label) for label in labels}
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


def _rename_labels(volumes: Tuple[Array, Array], sides: Sequence[Boxes], pairs: Optional[Array]) -> ReadingScores:
    """Return the Dice of each label that the prediction lacks, as predicted, and with the false label there instead."""
    missing, false = sorted(sides[0].labels - sides[1].labels), sides[1].labels - sides[0].labels
    scores: ReadingScores = {}
    for label in missing if false and len(missing) <= _MOST_LABELS else ():
        shared = _count_labels(volumes, sides, pairs, label)
        best = int(shared.argmax())
        if best in false:
            scores[f"{best}>{label}"] = 0.0, float(2 * shared[best] / (sides[0].voxels[label] + sides[1].voxels[best]))
    return scores


def _count_labels(volumes: Tuple[Array, Array], sides: Sequence[Boxes], pairs: Optional[Array], label: int) -> Array:
    """Return how many voxels of a true label have each predicted label; background counts 0."""
    if pairs is not None:
        return np.append(0, pairs[label, 1:])
    box, counts = sides[0].box_of(label), np.zeros(len(sides[1].voxels), np.int64)
    for true, predicted in zip(*(volume[box] for volume in volumes)):
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
    turned = [*READINGS, *_list_turned(scores)]
    readings = [*turned, *_list_exchanges(scores), *_list_renamed(scores, accumulator), *_list_moves(scores)]
    explained = judge_readings(scores, len(units), [*readings, *_SLIGHTLY_TURNED], _METRIC)
    explained = explained or judge_case_order(units) or _judge_turned(units)
    explained = explained or _list_missing(accumulator)
    explained = explained or judge_cover("volumes", *voxels) or _judge_blank(units)
    if explained or voxels[2]:
        return explained
    return ["no predicted voxel has the label of the truth: check the labels, and which case each volume belongs to"]


def _judge_blank(units: Sequence[UnitCounts]) -> List[str]:
    """Return a suspicion if many cases have no predicted voxel."""
    true, predicted, _ = np.array([unit.tables["voxels"].sum(axis=0) for unit in units]).T
    flags = true > 0, predicted == 0
    return judge_blank("case", [unit.name for unit in units], flags, "a region", "no predicted voxel")


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
        after = [case[match[0]][1] for case in scores if match[0] in case]
        if len(after) < min(len(scores), _FEWEST_EXCHANGED) and min(after) < _LEAST_FITTING:
            continue  # a method may confuse the labels of one case
        *labels, last = match[0].split("=")
        slip = f"labels {', '.join(labels)} and {last} look exchanged"
        metric = _METRIC_OF_PAIRS if len(labels) == 1 else _METRIC_OF_ALL
        readings.append(_make_reading(match[0], slip, _LABELS, metric=metric))
    return readings


def _fewest_alike(cases: int) -> float:
    """Return the minimum number of cases that are moved or turned alike if all are noisy."""
    return max(_FEWEST_ALIKE, _SHARE_ALIKE * cases)


def _list_turned(scores: List[ReadingScores]) -> List[Reading]:
    """Return the readings that turn nearly all cases alike."""
    fewest = _fewest_alike(len(scores))
    return [reading for reading in _TURNED_ALIKE if sum(reading.name in case for case in scores) >= fewest]


def _list_moves(scores: List[ReadingScores]) -> List[Reading]:
    """Return the readings that move alike most cases with low scores, most of all cases if they fit well, or all."""
    readings, low = [], sum(_TURNED[0].name in case for case in scores)
    limits = {
        None: (low // 2 + 1, _LEAST_MOVED, _TIMES_MOVED),
        _SLIGHTLY: (len(scores) // 2 + 1, _LEAST_FITTING, 1.0),
        _ALIKE: (_fewest_alike(len(scores)), _LEAST_ALIKE, _TIMES_ALIKE),
        _BESIDE: (_fewest_alike(len(scores)), _LEAST_BESIDE, _TIMES_BESIDE),
    }
    for match in _match_names(_MOVED, scores):
        fewest, least, times = limits[match[1]]
        if sum(match[0] in case for case in scores) < fewest:
            continue
        steps = [f"{step} along {axis}" for axis, step in zip("xyz", match.groups()[1:]) if int(step)]
        slip = f"volumes look moved by this many voxels: {', '.join(steps)}"
        readings.append(replace(_make_reading(match[0], slip, _GRID), least=least, times=times))
    return readings


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
