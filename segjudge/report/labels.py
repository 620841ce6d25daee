"""Labels beside the lines of a chart: shortened, and without overlaps."""

from __future__ import annotations

from collections.abc import Sequence

#: The maximum number of characters of a name in a chart.
_MOST_OF_NAME = 40


def shorten_name(name: str, length: int = _MOST_OF_NAME) -> str:
    """Return a name as charts show it: a long one without its middle."""
    half = length // 2
    return name if len(name) <= length else f"{name[: half - 1]}…{name[-half:]}"


def spread_labels(values: Sequence[float], gap: float) -> list[float]:
    """Return positions for labels at these values: in order, a gap apart, and as near as possible."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    # Without the gaps, positions must not decrease: neighbours that would do so share their mean.
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
