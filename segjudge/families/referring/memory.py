"""Answers to expressions in memory: one mask on each side, and whether there is a target at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, decode_unit, no_pixels
from segjudge.evaluation_script.families.referring.counting import COLUMNS, count_pixels
from segjudge.evaluation_script.families.referring.protocols import GREFCOCO, ReferringProtocol
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.memory import (
    MemoryDoor,
    UnitFrames,
    UnitsInMemory,
    common_size,
    read_checked_mask,
    refusal,
)

#: A mask as text, its area, and its size.
_Mask = tuple[str, int, Size]
_FORM = "Give a mask, or {'mask': …, 'no_target': …}"


class ReferringInMemory(UnitsInMemory):
    """Counts samples.

    A side is a mask, None where there is nothing, or a mapping with `mask` and `no_target`, of truths also `ignore`.
    """

    protocol: ReferringProtocol

    def __init__(self, protocol: ReferringProtocol) -> None:
        self.protocol = protocol

    def sequences_of(self, masks: object) -> dict[str, object]:
        return MemoryDoor.sequences_of(self, masks)

    def frames_of(self, masks: object, location: str) -> list[tuple[object, object]]:
        return MemoryDoor.frames_of(self, masks, location)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        del frame
        target, ignored, truth_flag = _read_side(truth, f"truth of {sequence}")
        answer, _, flag = _read_side(prediction, f"prediction of {sequence}")
        sizes = [mask[2] for mask in (target, ignored, answer) if mask is not None]
        size = common_size(sizes, "masks", sequence) or (1, 1)
        nothing = (compress([size[0] * size[1]]), 0)
        text, area = target[:2] if target else nothing
        row = [text, area, ignored[0] if ignored and ignored[1] else ""]
        answer_text, answer_area = answer[:2] if answer else nothing
        with_flags = self.protocol.form == GREFCOCO
        is_withdrawn = with_flags and (not answer_area if flag is None else flag)
        has_target = area > 0 if truth_flag is None else not truth_flag
        pixels = count_pixels(TruthFrame(sequence, size, [row], no_pixels), answer_text, answer_area)
        row = [0, int(has_target), int(is_withdrawn), *pixels]
        return UnitCounts("", {"sample": np.array(row, np.int64)}).encode()

    def check(self, data: bytes) -> None:
        if decode_unit(data).tables["sample"].shape != (COLUMNS,):
            raise ValueError("is no sample")

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        del units
        return {"subsets": [["all"]]}

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        del facts
        (data,) = frames.values()
        return decode_unit(data).tables


def _read_side(side: Any, location: str) -> tuple[_Mask | None, _Mask | None, bool | None]:
    """Return the mask of a side, what it ignores, and whether it says that there is no target."""
    if not isinstance(side, Mapping) or "counts" in side:
        side = {"mask": side}
    if not side.keys() <= {"mask", "ignore", "no_target"}:
        raise refusal(location, "is a mapping with other keys than mask, ignore and no_target", _FORM)
    flag = side.get("no_target")
    if flag is not None and not isinstance(flag, (bool, np.bool_)):
        raise refusal(location, "has a no_target that is neither True nor False", _FORM)
    mask, ignored = (
        None if side.get(key) is None else read_checked_mask(side[key], f"{location}, {key}", _FORM)
        for key in ("mask", "ignore")
    )
    return mask, ignored, None if flag is None else bool(flag)
