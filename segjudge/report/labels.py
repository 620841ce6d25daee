"""Names beside the lines of a chart: short, and none over another."""

from __future__ import annotations

from collections.abc import Sequence

#: The most characters of a name in a chart.
_MOST_OF_NAME = 40


def shorten_name(name: str, length: int = _MOST_OF_NAME) -> str:
    """Return a name as charts show it: without its middle where it is long."""
    half = length // 2
    return name if len(name) <= length else f"{name[: half - 1]}…{name[-half:]}"


def spread_labels(values: Sequence[float], gap: float) -> list[float]:
    """Return places for labels at these values: a gap apart, in the order of the values, and as near as possible."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    # Without the gaps, places that may not fall: neighbours that would share their mean.
    groups: list[tuple[float, int]] = []
    for number, index in enumerate(order):
        groups.append((values[index] - number * gap, 1))
        while len(groups) > 1 and groups[-2][0] >= groups[-1][0]:
            (lower, many), (upper, few) = groups[-2:]
            groups[-2:] = [((lower * many + upper * few) / (many + few), many + few)]
    levels = [level for level, count in groups for _ in range(count)]
    places = [0.0] * len(values)
    for number, index in enumerate(order):
        places[index] = levels[number] + number * gap
    return places
