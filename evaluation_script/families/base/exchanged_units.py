"""A suspicion about units whose first maps show the segments of other units, each of its own, whatever the labels."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np

from ...files import name_list
from ...masks.stack import Array, Size
from ...values.arithmetic import mean
from .readings import (
    FirstMaps,
    ReadingScores,
    choose_compared,
    find_fit,
    list_around,
    list_moved,
    sample_pixels,
)
from .unit_counts import UnitCounts
from .unit_truth import UnitTruth

#: The number of truths with the most similar areas of the largest segments, before others are compared, and of these
#: segments.
_CLOSEST, _LARGEST = 12, 16
#: The agreement with a unit's own truth below which others are tried, the minimum of the best one, the maximum ratio
#: of the own to it, and the minimum number of units.
_LOW, _FITTING, _OWN, _FEWEST = 0.5, 0.55, 0.5, 2
#: The minimum share of units that follow a simple order.
_ORDERLY = 0.5
_READING = "maps of "


class UnitSamples:
    """Samples of the first true maps of units, read where a unit's own does not agree with its prediction."""

    def __init__(self, truth: UnitTruth) -> None:
        self._units = truth.units
        self._chosen = choose_compared(len(self._units))
        #: The size of a unit's first true map, the labels of some pixels, and the areas of its largest segments.
        self._samples: Dict[int, Tuple[Size, Array, Array]] = {}

    def __contains__(self, number: int) -> bool:
        """Return whether a unit is compared with others if it agrees badly with its own truth."""
        return number in self._chosen and len(self._units) > 1

    def look(self, number: int, _counts: UnitCounts, maps: FirstMaps) -> ReadingScores:
        """Return the agreement of a unit with its own truth, and with another one that it fits much better."""
        score = maps.agreement if number in self else None
        sample = maps.sample if score is not None and score < _LOW else None
        if score is None or sample is None:
            return {}
        alike = self._list_alike(list_around(number, len(self._units)), *sample)
        least, agreements = max(_FITTING, score / _OWN), self._compare(alike[:_CLOSEST], maps)
        if max([0.0, *agreements.values()]) < least:
            return {}
        agreements.update(self._compare(alike[_CLOSEST:], maps))
        source = find_fit(agreements, least)
        return {} if source is None else {f"{_READING}{self._units[source].name}": (score, agreements[source])}

    def _list_alike(self, numbers: List[int], size: Size, pixels: Array) -> List[int]:
        """Return the units with maps of this size, those whose largest segments have the most similar areas first."""
        areas, distances = _list_areas(pixels), {}
        for number in numbers:
            true_size, _, true_areas = self._take(number)
            if true_size == size:
                distances[number] = int(np.abs(true_areas - areas).sum())
        return sorted(distances, key=distances.__getitem__)

    def _compare(self, numbers: List[int], maps: FirstMaps) -> Dict[int, float]:
        """Return the agreement with the truths of some units."""
        return {number: maps.compare(self._take(number)[1]) or 0.0 for number in numbers}

    def _take(self, number: int) -> Tuple[Size, Array, Array]:
        if number not in self._samples:
            frames = self._units[number].load()[:1]
            labels = frames[0].read().numbers if frames else np.zeros((0, 0), np.uint8)
            pixels = sample_pixels(labels)
            height, width = labels.shape
            self._samples[number] = (height, width), pixels, _list_areas(pixels)
        return self._samples[number]


def _list_areas(pixels: Array) -> Array:
    """Return the numbers of pixels of the labels that have the most, in order."""
    ordered = np.sort(pixels, axis=None)
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)])
    areas: Array = np.zeros(_LARGEST, np.int64)
    largest = np.sort(np.diff(ends, prepend=-1))[::-1][:_LARGEST]
    areas[: len(largest)] = largest
    return areas


def are_in_order(names: Sequence[str], scores: Mapping[str, ReadingScores]) -> bool:
    """Return whether most units fit the next or previous one, or are reversed or exchanged in pairs."""
    count, places = len(names), {name: number for number, name in enumerate(names)}
    pairs = [(places[name], places[source]) for name, source, _ in list_moved(scores, _READING)]
    orders = [[(number + 1) % count, (number - 1) % count, count - 1 - number, number ^ 1] for number, _ in pairs]
    follow = [[source == neighbour for neighbour in order] for order, (_, source) in zip(orders, pairs)]
    return any(sum(column) >= _ORDERLY * len(choose_compared(count)) for column in zip(*follow))


def judge_exchanged_units(scores: Mapping[str, ReadingScores], noun: str) -> List[str]:
    """Return a suspicion if maps belong to other units, each to another one, given the scores by name of unit."""
    moved_units = list_moved(scores, _READING)
    if len(moved_units) < _FEWEST or len({source for _, source, _ in moved_units}) < len(moved_units):
        return []
    score, fit = (mean(np.array(column)) for column in zip(*(pair for *_, pair in moved_units)))
    examples = name_list([f"the map of {name} fits {source}" for name, source, _ in moved_units], 2)
    shares = f"segments agree with the {noun}'s own truth by {score:.2f}, but with another's by {fit:.2f}"
    return [f"maps look exchanged among {noun}s: {shares} ({examples}). Check which {noun} each map belongs to"]
