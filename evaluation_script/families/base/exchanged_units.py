"""A suspicion about units whose first maps show the segments of other units, each of its own, whatever the labels."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...files import name_list
from ...masks.stack import Array, Size
from ...values.arithmetic import mean
from .readings import FirstMaps, ReadingScores, choose_units
from .unit_truth import UnitTruth

#: The maximum number of units that are all compared with each other; of more, some are, with so many around them.
_MOST, _AROUND = 32, 16
#: The agreement with a unit's own truth below which others are tried, the minimum of the best one, the maximum ratios
#: of the own and of the second best to it, and the minimum number of units.
_LOW, _FITTING, _OWN, _SECOND, _FEWEST = 0.5, 0.55, 0.5, 0.7, 2
#: The minimum share of units that follow a simple order.
_ORDERLY = 0.5
_READING = "maps of "


class UnitSamples:
    """Samples of the first true maps of units, read where a unit's own does not agree with its prediction."""

    def __init__(self, truth: UnitTruth) -> None:
        self._units = truth.units
        count = len(self._units)
        self._chosen = frozenset(range(count)) if count <= _MOST else choose_units(count)
        self._samples: Dict[int, Optional[Tuple[Size, Array]]] = {}

    def __contains__(self, number: int) -> bool:
        """Return whether a unit is compared with others if it agrees badly with its own truth."""
        return number in self._chosen and len(self._units) > 1

    def look(self, number: int, maps: FirstMaps) -> ReadingScores:
        """Return the agreement of a unit with its own truth, and with another one that it fits much better."""
        if number not in self or maps.sample is None:
            return {}
        score, count = maps.agreement, len(self._units)
        if score is None or score >= _LOW:
            return {}
        around = range(count) if count <= _MOST else range(max(0, number - _AROUND), min(count, number + _AROUND))
        agreements = {
            neighbour: self._compare(neighbour, maps, *maps.sample) for neighbour in around if neighbour != number
        }
        second, best = sorted([0.0, 0.0, *agreements.values()])[-2:]
        if best < max(_FITTING, score / _OWN) or second > _SECOND * best:
            return {}
        source = next(neighbour for neighbour, agreement in agreements.items() if agreement == best)
        return {f"{_READING}{self._units[source].name}": (score, best)}

    def _compare(self, number: int, maps: FirstMaps, size: Size, step: int) -> float:
        if number not in self._samples:
            frames = self._units[number].load()[:1]
            numbers = frames[0].read().numbers if frames else np.zeros((0, 0))
            is_alike = numbers.shape == size
            self._samples[number] = (size, np.ascontiguousarray(numbers[::step, ::step])) if is_alike else None
        sample = self._samples[number]
        if sample is None or sample[0] != size:
            return 0.0
        return maps.compare(sample[1]) or 0.0


def _list_moved(scores: Mapping[str, ReadingScores]) -> List[Tuple[str, str, Tuple[float, float]]]:
    """Return units and those whose truths they fit, with the agreement with both."""
    return [
        (name, reading[len(_READING) :], pair)
        for name, unit in scores.items()
        for reading, pair in unit.items()
        if reading.startswith(_READING)
    ]


def are_in_order(names: Sequence[str], scores: Mapping[str, ReadingScores]) -> bool:
    """Return whether most units fit the next or previous one, or are reversed or exchanged in pairs."""
    count, places = len(names), {name: number for number, name in enumerate(names)}
    pairs = [(places[name], places[source]) for name, source, _ in _list_moved(scores)]
    orders = [[(number + 1) % count, (number - 1) % count, count - 1 - number, number ^ 1] for number, _ in pairs]
    follow = [[source == neighbour for neighbour in order] for order, (_, source) in zip(orders, pairs)]
    chosen = count if count <= _MOST else len(choose_units(count))
    return any(sum(column) >= _ORDERLY * chosen for column in zip(*follow))


def judge_exchanged_units(scores: Mapping[str, ReadingScores], noun: str) -> List[str]:
    """Return a suspicion if maps belong to other units, each to another one, given the scores by name of unit."""
    moved_units = _list_moved(scores)
    if len(moved_units) < _FEWEST or len({source for _, source, _ in moved_units}) < len(moved_units):
        return []
    score, fit = (mean(np.array(column)) for column in zip(*(pair for *_, pair in moved_units)))
    examples = name_list([f"the map of {name} fits {source}" for name, source, _ in moved_units], 2)
    shares = f"segments agree with the {noun}'s own truth by {score:.2f}, but with another's by {fit:.2f}"
    return [f"maps look exchanged among {noun}s: {shares} ({examples}). Check which {noun} each map belongs to"]
