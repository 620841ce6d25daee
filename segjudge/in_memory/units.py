"""Videos in memory, and images: frames wait until all are there, then a video is counted at once."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from segjudge.evaluation_script.masks import Array
from segjudge.evaluation_script.unit_counts import UnitAccumulator, UnitCounts
from segjudge.in_memory.track import CountedFrames, MemoryTrack, in_order, numbered, refused

#: What was kept of the frames of one video, in order.
KeptFrames = Mapping[str, bytes]


class UnitsInMemory(MemoryTrack):
    """Counts videos frame by frame."""

    protocol: Any

    def sequences_of(self, masks: object) -> dict[str, object]:
        """Return videos by name; one alone is called video."""
        return super().sequences_of(masks) if isinstance(masks, Mapping) else {"video": masks}

    def frames_of(self, masks: object, where: str) -> list[tuple[object, object]]:
        return numbered(masks, where)

    def accumulator(self, frames: CountedFrames) -> UnitAccumulator[Any]:
        units = self.units(frames)
        accumulator = UnitAccumulator(self.protocol, self.facts(units), list(units))
        for name, kept in units.items():
            accumulator.update(UnitCounts(name, self.tables(kept, accumulator.facts)))
        return accumulator

    def units(self, frames: CountedFrames) -> dict[str, KeptFrames]:
        """Return what is counted at once, by name."""
        return {name: {frame: frames[name][frame] for frame in in_order(frames[name])} for name in in_order(frames)}

    def facts(self, units: Mapping[str, KeptFrames]) -> dict[str, Any]:
        """Return what the scores need to know of all units."""
        del units
        return {}

    @abc.abstractmethod
    def tables(self, frames: KeptFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        """Return what is counted in a unit."""


def check_sizes(truth: Array, prediction: Array, where: str) -> None:
    """Raise SubmissionError where two maps have different sizes."""
    if truth.shape != prediction.shape:
        found = f"has maps of {' and '.join(f'{one.shape[1]}×{one.shape[0]}' for one in (truth, prediction))}"
        raise refused(where, found, "Give truth and prediction of one size")
