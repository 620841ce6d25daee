"""Maps that lie beside their truth, all by the same pixels, as after a crop or padding.

A unit's first map shows by how many pixels. The unit is counted again with all of its maps moved back, and several
units must agree.
"""

from __future__ import annotations

import math
from typing import List, Sequence

from ...files import quantity
from .readings import MOVED, MOVED_BY, TIMES_MOVED, Reading, ReadingScores, describe_gain

#: The minimum number of units that are moved by the same pixels, and by the same but for one; their minimum share of
#: those tried, and the number of pixels from which they may differ by one.
_FEWEST, _FEWEST_ABOUT, _SHARE, _FAR = 3, 5, 0.75, 3
#: The minimum score of maps that are moved back.
_LEAST_MOVED = 0.5
_REMEDY = "Write the pixels of the whole image"


def judge_shifts(scores: Sequence[ReadingScores], count: int, readings: Sequence[Reading], metric: str) -> List[str]:
    """Return a suspicion if nearly all units with low scores are moved alike, and score more when moved back."""
    tried = [unit[MOVED] for unit in scores if MOVED in unit]
    moved = [(*unit[MOVED], *unit[MOVED_BY]) for unit in scores if MOVED_BY in unit]
    (reading,) = (reading for reading in readings if reading.name == MOVED)
    x, y = (sorted(column)[len(moved) // 2] for column in list(zip(*moved))[2:])
    about, exactly = ([unit for unit in moved if max(abs(unit[2] - x), abs(unit[3] - y)) <= gap] for gap in (1, 0))
    alike = about if len(about) >= _FEWEST_ABOUT and max(abs(x), abs(y)) >= _FAR else exactly
    if len(alike) < max(_FEWEST, _SHARE * len(tried)) or not (x or y):
        return []
    before, after = (math.fsum(column) / len(alike) for column in list(zip(*alike))[:2])
    if after < max(_LEAST_MOVED, TIMES_MOVED * before):
        return []
    scope = f"(tried on {quantity(len(alike), reading.noun, count)})"
    gain = f"{describe_gain(reading.metric or metric, before, after)} {scope}"
    steps = ", ".join(f"{step:.0f} along {axis}" for axis, step in (("x", x), ("y", y)) if step)
    return [f"{reading.slip} look moved by about this many pixels: {steps}: {gain}. {_REMEDY}"]
