"""The search for predictions that are mirrored: units that fit far better beside the mirrored truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: The sides that mirrored predictions exchange.
LEFT_AND_RIGHT, TOP_AND_BOTTOM = WAYS = "left and right", "top and bottom"
#: The maximum panoptic quality of a unit whose prediction may be mirrored; mirrored, it lacks at most this share of the
#: rest.
SUSPECT, _CLOSER = 0.6, 0.5
#: The minimum quality of a prediction where it belongs, for one segment and for several; the number of segments that
#: proves nothing.
FITTING, FITTING_SEVERAL, FEWEST_FITTING = 0.75, 0.5, 3
#: The minimum quality, once mirrored back, of a unit that is mirrored among units that are not: of several segments,
#: and of fewer, whose places prove less.
CERTAIN, CERTAIN_OF_FEW = 0.9, 0.98
#: The search ends if this many units were tried for each one found, and one.
_PATIENCE = 8

_Righted = TypeVar("_Righted")


@dataclass
class MirrorSearch(Generic[_Righted]):
    """The units whose predictions are mirrored, of those tried so far."""

    #: By unit, the exchanged sides and what the prediction shows once it is mirrored back.
    found_units: dict[str, tuple[str, _Righted]] = field(default_factory=dict)
    tried: int = 0
    _segments: int = 0
    _certain: dict[str, None] = field(default_factory=dict)

    @property
    def ways(self) -> tuple[str, ...]:
        """Return the ways to try: all, until enough segments agree on one."""
        found_ways = tuple({way for way, _ in self.found_units.values()})
        return found_ways if self._segments >= FEWEST_FITTING and len(found_ways) == 1 else WAYS

    @property
    def is_hopeless(self) -> bool:
        return self.tried > _PATIENCE * (len(self.found_units) + 1)

    @property
    def is_general(self) -> bool:
        """Return whether most of the tried units are mirrored in one way."""
        ways = {way for way, _ in self.found_units.values()}
        return self._segments >= FEWEST_FITTING and 2 * len(self.found_units) > self.tried and len(ways) == 1

    def add(self, unit: str, segments: int, fit: float, righted: dict[str, tuple[float, _Righted]]) -> None:
        """Add a unit: its true segments, its quality, and by way the quality once it is mirrored back."""
        self.tried += 1
        for way, (righted_fit, content) in righted.items():
            if fits_mirrored(segments, fit, righted_fit):
                self.found_units[unit] = way, content
                self._segments += segments
                if righted_fit >= (CERTAIN if segments >= FEWEST_FITTING else CERTAIN_OF_FEW):
                    self._certain[unit] = None

    def decide(self) -> dict[str, tuple[str, _Righted]]:
        """Return the units mirrored in one way: all found ones if most of the tried ones are, else certain ones."""
        if self.is_general:
            return self.found_units
        ways = Counter(self.found_units[unit][0] for unit in self._certain)
        main_way = max(ways, key=lambda way: ways[way], default="")
        return {
            unit: (way, content)
            for unit, (way, content) in self.found_units.items()
            if unit in self._certain and way == main_way
        }


def fits_mirrored(segments: int, fit: float, righted_fit: float) -> bool:
    """Return whether a unit with this many segments fits far better once it is mirrored back."""
    least = FITTING if segments == 1 else FITTING_SEVERAL
    return righted_fit >= least and 1 - righted_fit <= _CLOSER * (1 - fit)
