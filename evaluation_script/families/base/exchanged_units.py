"""A suspicion about units whose first maps show the segments of other units, each of its own, whatever the labels."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np

from ...masks.stack import Array, Size
from .readings import (
    LOW_FIT,
    FirstMaps,
    ReadingScores,
    choose_compared,
    find_fit,
    judge_moved,
    least_fit,
    list_around,
    list_moved,
    sample_pixels,
)
from .unit_counts import UnitCounts
from .unit_truth import UnitTruth

#: The number of truths with the most borders at the same places, which alone are compared, and that of places along
#: each axis.
_CLOSEST, _PLACES = 6, 24
#: The minimum share of units that follow a simple order.
_ORDERLY = 0.5
_READING, _AGREEMENT = "maps of ", "the agreement of segments"


class UnitSamples:
    """Samples of the first true maps of units, read where a unit's own does not agree with its prediction."""

    def __init__(self, truth: UnitTruth) -> None:
        self._units = truth.units
        self._chosen = choose_compared(len(self._units))
        #: The size of a unit's first true map, the labels of some pixels, and where these differ from their neighbours.
        self._samples: Dict[int, Tuple[Size, Array, Array]] = {}

    def __contains__(self, number: int) -> bool:
        """Return whether a unit is compared with others if it agrees badly with its own truth."""
        return number in self._chosen and len(self._units) > 1

    def look(self, number: int, _counts: UnitCounts, maps: FirstMaps) -> ReadingScores:
        """Return the agreement of a unit with its own truth, and with another one that it fits much better."""
        score = maps.agreement if number in self else None
        sample = maps.sample if score is not None and score < LOW_FIT else None
        if score is None or sample is None:
            return {}
        alike = self._list_alike(list_around(number, len(self._units)), *sample)
        agreements = {neighbour: maps.compare(self._take(neighbour)[1]) or 0.0 for neighbour in alike[:_CLOSEST]}
        source = find_fit(agreements, least_fit(score))
        if source is None:
            return {}
        return {f"{_READING}{self._units[source].name}": (max(0.0, score), agreements[source])}

    def _list_alike(self, numbers: List[int], size: Size, pixels: Array) -> List[int]:
        """Return the units with maps of this size, those with the most borders at the same places first."""
        borders, likeness = _find_borders(pixels), {}
        for number in numbers:
            true_size, _, true_borders = self._take(number)
            if true_size == size:
                either = max(1, int(np.count_nonzero(borders | true_borders)))
                likeness[number] = int(np.count_nonzero(borders & true_borders)) / either
        return sorted(likeness, key=lambda number: -likeness[number])

    def _take(self, number: int) -> Tuple[Size, Array, Array]:
        if number not in self._samples:
            frames = self._units[number].load()[:1]
            labels = frames[0].read().numbers if frames else np.zeros((0, 0), np.uint8)
            pixels = sample_pixels(labels)
            height, width = labels.shape
            self._samples[number] = (height, width), pixels, _find_borders(pixels)
        return self._samples[number]


def _find_borders(pixels: Array) -> Array:
    """Return whether pixels at a grid of places have other labels than the next place in their row or column."""
    places = pixels[tuple(slice(None, None, max(1, side // _PLACES)) for side in pixels.shape)]
    across, down = places[:, 1:] != places[:, :-1], places[1:] != places[:-1]
    return np.concatenate([across.reshape(-1), down.reshape(-1)])


def are_in_order(names: Sequence[str], scores: Mapping[str, ReadingScores]) -> bool:
    """Return whether most units fit the next or previous one, or are reversed or exchanged in pairs."""
    count, places = len(names), {name: number for number, name in enumerate(names)}
    pairs = [(places[name], places[source]) for name, source, _ in list_moved(scores, _READING)]
    orders = [[(number + 1) % count, (number - 1) % count, count - 1 - number, number ^ 1] for number, _ in pairs]
    follow = [[source == neighbour for neighbour in order] for order, (_, source) in zip(orders, pairs)]
    return any(sum(column) >= _ORDERLY * len(choose_compared(count)) for column in zip(*follow))


def judge_exchanged_units(scores: Mapping[str, ReadingScores], noun: str) -> List[str]:
    """Return a suspicion if maps belong to other units, each to another one, given the scores by name of unit."""
    remedy = f"Check which {noun} each map belongs to"
    return judge_moved(list_moved(scores, _READING), f"maps look exchanged among {noun}s", _AGREEMENT, remedy)
