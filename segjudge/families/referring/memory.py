"""Answers to expressions in memory: one mask per side, and the no-target flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, no_pixels
from segjudge.evaluation_script.families.referring.engine import count_pixels
from segjudge.evaluation_script.families.referring.protocols import GREFCOCO, ReferringProtocol
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.families.base.memory import CheckedMask, SamplesInMemory, common_size, read_checked_mask, refusal

_FORM = "Give a mask, or {'mask': ..., 'no_target': ...}"


class ReferringInMemory(SamplesInMemory):
    """A counter of samples.

    A side is a mask, None for no object, or a mapping with `mask` and `no_target`; a truth may also have `ignore`.
    """

    own_facts: ClassVar = {"subsets": [["all"]]}
    protocol: ReferringProtocol

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
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


def _read_side(side: Any, location: str) -> tuple[CheckedMask | None, CheckedMask | None, bool | None]:
    """Return a side's mask, ignored pixels, and no-target flag."""
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
