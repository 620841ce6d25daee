"""Suspicions about units whose masks fit the truth of other units, or a rearranged or moved one.

The pixels that any mask of a few frames covers are compared at the cells of a grid over the frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...files import quantity
from ...masks.backend import backend
from ...masks.stack import Array, Size
from ...values.arithmetic import mean
from .displacement import STILL, Frames, compare_places
from .readings import (
    LOW_FIT,
    OVERALL_IOU,
    PLACES,
    FirstMaps,
    ReadingScores,
    choose_compared,
    choose_units,
    find_fit,
    judge_moved,
    judge_readings,
    keep_place,
    least_fit,
    list_moved,
    read_rewritten,
    spread_evenly,
)
from .unit_counts import UnitCounts
from .unit_truth import TruthFrame

#: Returns masks of a unit, given its frames too if these are loaded.
_Open = Callable[[int, Optional[List[TruthFrame]]], Frames]
#: The size of some frames, and whether each cell of their grids is covered.
_Cells = List[Tuple[Size, Array]]
#: The number of cells along each side of the grid, and the maximum number of masks of a frame that are drawn.
_CELLS, _MOST_MASKS = 64, 128
#: The fit that a unit counts with if it fits its own truth.
_FITTING = 0.5
#: The maximum number of units whose masks may fit several truths, the minimum, and their gain by chance, as a share of
#: the possible one, and as a multiple.
_MOST_COMPARED, _FEWEST, _BY_CHANCE, _TIMES_CHANCE = 32, 6, 0.06, 3.0
#: The maximum number of units of which all may be moved; of more, a sample.
_MOST_MOVED = 16
_MASKS, _OTHERS, _FITS = "masks of ", "other units", "own unit"
#: The place in run lengths of pixels as they are, and rearranged.
_PLACES: Dict[str, Callable[[Array, Array, int, int], Array]] = {
    "": keep_place,
    **PLACES,
}


@dataclass(frozen=True)
class MaskSources:
    """The functions that open and judge the masks of units, by number."""

    names: Sequence[str]
    open_truth: _Open
    open_prediction: _Open
    #: Returns whether a counted unit fits its own truth; None without masks on both sides.
    judge_fit: Callable[[UnitCounts], Optional[bool]]
    #: Returns whether its masks are so exact that they are hardly moved.
    are_exact: Callable[[UnitCounts], bool]
    #: Whether units are also compared with their masks rearranged.
    rearranges: bool = False


class MaskSamples:
    """The cells that the masks of units cover, read where a unit's masks may belong to another."""

    def __init__(self, sources: MaskSources) -> None:
        self._sources = sources
        count = len(sources.names)
        self._chosen = self._choose(count)
        #: The units that may be moved.
        self._moved = frozenset(range(count)) if count <= _MOST_MOVED else choose_units(count)
        self._truth: Dict[int, _Cells] = {}

    def _choose(self, count: int) -> FrozenSet[int]:
        """Return the units that are compared."""
        return choose_compared(count)

    def __contains__(self, number: int) -> bool:
        """Return whether a unit may be compared with others."""
        return number in self._chosen and len(self._sources.names) > 1

    def look(self, number: int, counts: UnitCounts, maps: FirstMaps) -> ReadingScores:
        """Return how well a unit's masks fit other truths, and whether they are moved."""
        sources, fits = self._sources, self._sources.judge_fit(counts)
        if fits is None:
            return {}
        may_be_moved = number in self._moved and not sources.are_exact(counts)
        predicted = sources.open_prediction(number, maps.frames) if may_be_moved or not fits else []
        scores = dict(STILL if number in self._moved else {})
        if may_be_moved:
            scores = compare_places(sources.open_truth(number, maps.frames), predicted)
        return {**self._compare_others(number, predicted, fits=fits), **scores}

    def _compare_others(self, number: int, frames: Frames, *, fits: bool) -> ReadingScores:
        """Return the IoU of a doubtful unit with its own truth, and with another one that it fits much better."""
        if fits:
            return {}
        (predicted,) = _draw(frames)
        before = _measure(predicted, self._take(number))
        if before is None or before >= LOW_FIT:
            return {}
        ious = self._compare(number, predicted)
        source = find_fit(ious, least_fit(before))
        return {} if source is None else {f"{_MASKS}{self._sources.names[source]}": (before, ious[source])}

    def _compare(self, number: int, predicted: _Cells) -> Dict[int, float]:
        """Return the IoU with the truth of each other unit."""
        ious = {neighbour: _measure(predicted, self._take(neighbour)) for neighbour in sorted(self._chosen - {number})}
        return {neighbour: iou for neighbour, iou in ious.items() if iou is not None}

    def _take(self, number: int) -> _Cells:
        if number not in self._truth:
            (self._truth[number],) = _draw(self._sources.open_truth(number, None))
        return self._truth[number]


class ScatteredSamples(MaskSamples):
    """The same of units whose neighbours show the same frame, so that masks fit other truths without an exchange."""

    def _choose(self, count: int) -> FrozenSet[int]:
        return frozenset(spread_evenly(min(_MOST_COMPARED, count), count))

    def _compare_others(self, number: int, frames: Frames, *, fits: bool) -> ReadingScores:
        """Return a doubtful unit's IoU with its own truth and with others on average, and when rearranged."""
        if fits:
            return {_FITS: (_FITTING, 0.0)}
        names = [*_PLACES] if self._sources.rearranges else [""]
        predicted, *changed = _draw(frames, names)
        truth = self._take(number)
        before, ious = _measure(predicted, truth), self._compare(number, predicted)
        if before is None or not ious:
            return {}
        rearranged = {name: (before, _measure(cells, truth) or 0.0) for name, cells in zip(names[1:], changed)}
        return {_OTHERS: (before, mean(np.array([*ious.values()]))), **rearranged}


def _draw(frames: Frames, names: Sequence[str] = ("",)) -> List[_Cells]:
    """Return the cells that any mask covers, of frames that are rearranged in each of these ways."""
    drawn: List[_Cells] = [[] for _ in names]
    for size, texts in frames:
        some = [text for text in texts if text][:_MOST_MASKS]
        rows, columns = (side * (2 * np.arange(_CELLS) + 1) // (2 * _CELLS) for side in size)
        places = np.stack([_PLACES[name](rows[:, None], columns, *size) for name in names])
        covered = backend().cover_places(some, places, size[0] * size[1])
        for cells, flags in zip(drawn, covered):
            cells.append((size, flags))
    return drawn


def _measure(predicted: _Cells, truth: _Cells) -> Optional[float]:
    """Return the IoU over all cells of the frames that both have; None if a side covers none of them."""
    pairs = [(cells, true) for (size, cells), (true_size, true) in zip(predicted, truth) if size == true_size]
    if not any(cells.any() for cells, _ in pairs) or not any(true.any() for _, true in pairs):
        return None
    shared = sum(int(np.count_nonzero(cells & true)) for cells, true in pairs)
    return shared / sum(int(np.count_nonzero(cells | true)) for cells, true in pairs)


def judge_masks(scores: Mapping[str, ReadingScores], noun: str, remedy: str) -> List[str]:
    """Return a suspicion if the masks of units fit others, by the scores of `MaskSamples`."""
    return judge_moved(list_moved(scores, _MASKS), f"masks look exchanged among {noun}s", OVERALL_IOU, remedy)


def judge_scattered(scores: Mapping[str, ReadingScores], noun: str, remedy: str) -> List[str]:
    """Return a suspicion if masks fit no better than by chance, by the scores of `ScatteredSamples`."""
    pairs = [unit[_OTHERS] for unit in scores.values() if _OTHERS in unit]
    fits = sum(_FITS in unit for unit in scores.values())
    if len(pairs) < _FEWEST or 2 * fits > len(pairs):
        return []
    fit, by_chance = (mean(np.array(column)) for column in zip(*pairs))
    if fit > _TIMES_CHANCE * by_chance:  # of small objects
        return []
    share = len(pairs) / (len(pairs) + fits)
    if share * fit + (1 - share) * _FITTING > by_chance + _BY_CHANCE * (1 - by_chance):
        return []
    gain = f"{OVERALL_IOU} is {fit:.2f} with their own, and {by_chance:.2f} with others"
    return [
        f"masks fit other {noun}s about as well as their own: {gain} (tried on {quantity(len(pairs), noun)}). {remedy}"
    ]


def judge_rearranged(scores: Mapping[str, ReadingScores], noun: str, count: int) -> List[str]:
    """Return a suspicion if masks fit when rearranged, by the same scores; many units have no objects."""
    doubtful = sum(_OTHERS in unit for unit in scores.values())
    if 2 * doubtful < len(scores):
        return []
    readings = [replace(reading, share=0.25) for reading in read_rewritten(noun) if reading.name in _PLACES]
    return judge_readings([*scores.values()], count, readings, OVERALL_IOU)
