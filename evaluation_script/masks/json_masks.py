"""The masks of one sequence, as run lengths in JSON."""

from __future__ import annotations

from typing import Dict, Iterable, List, Set

from ..files.problems import Flaw, Problem, Problems
from . import run_lengths as rle
from .files import ObjectMasks, too_many
from .stack import Array, Size


class RunLengths(ObjectMasks):
    """One sequence of a JSON submission: `{"object": [rle or null for each frame]}`."""

    def __init__(
        self, sequence: str, objects: object, frames: List[str], problems: Problems, *, overlapping: bool, most: int
    ) -> None:
        self._sequence, self.problems = sequence, problems
        self._disjoint_in = "" if overlapping else sequence
        self._index = {frame: index for index, frame in enumerate(frames)}
        self._objects: Dict[str, List[object]] = {}
        if not isinstance(objects, dict):
            remedy = 'Write {"sequence": {"object": [rle or null, …]}}'
            problems.add(Problem(sequence, "is not an object of objects", remedy))
        elif len(objects) > most:
            problems.add(too_many(sequence, len(objects), most))
        else:
            for label, masks in objects.items():
                self._add(label, masks)

    def _add(self, label: str, masks: object) -> None:
        count = len(self._index)
        if not isinstance(masks, list) or len(masks) != count:
            found = f"has {len(masks)} masks" if isinstance(masks, list) else "is not a list of masks"
            remedy = f"Give one mask or null for each of the {count} frames, the first and last included"
            self.problems.add(Problem(f"{self._sequence}, object {label}", found, remedy))
            self._objects[label] = [None] * count
        else:
            self._objects[label] = masks

    def frames(self) -> Set[str]:
        return set(self._index)

    def labels(self) -> Iterable[str]:
        return self._objects

    def read(self, label: str, frame: str, flags: Array, size: Size) -> bool:
        index = self._index[frame]
        mask = self._objects[label][index]
        try:
            if mask is not None:
                flags[:] = rle.flags(mask, size)[0]
        except Flaw as flaw:
            self.problems.add(flaw.at(f"{self._sequence}, object {label}, mask {index}"))
            return False
        return True
