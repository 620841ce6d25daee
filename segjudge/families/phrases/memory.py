"""Pairs of a picture and a phrase in memory: masks of objects on both sides, with scores and crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, decode_unit, no_pixels
from segjudge.evaluation_script.families.phrases.counting import COLUMNS, count_pair
from segjudge.evaluation_script.families.phrases.protocols import LEAST_SCORE, PhraseProtocol
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import (
    MemoryDoor,
    UnitFrames,
    UnitsInMemory,
    common_size,
    read_checked_mask,
    refusal,
)

#: A mask as text, its area, and its size.
_Mask = tuple[str, int, tuple[int, int]]
_FORM = "Give a list of masks, or {'masks': […], 'scores': […]}"


class PhrasesInMemory(UnitsInMemory):
    """Counts pairs.

    A side is a list of masks, or a mapping with `masks` and, of predictions, `scores`, of truths, `iscrowd`; the truth
    of several annotators is a mapping with `annotators`, a list of such sides.
    """

    protocol: PhraseProtocol

    def __init__(self, protocol: PhraseProtocol) -> None:
        self.protocol = protocol

    def sequences_of(self, masks: object) -> dict[str, object]:
        return MemoryDoor.sequences_of(self, masks)

    def frames_of(self, masks: object, location: str) -> list[tuple[object, object]]:
        return MemoryDoor.frames_of(self, masks, location)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        del frame
        official = self.protocol.official
        sides = truth["annotators"] if isinstance(truth, Mapping) and "annotators" in truth else [truth]
        annotators = [_read_side(side, "iscrowd", 0, f"truth of {sequence}") for side in sides]
        location = f"prediction of {sequence}"
        predicted = [
            mask
            for mask, score in _read_side(prediction, "scores", 1.0, location)
            if score >= LEAST_SCORE and (official or mask[1])
        ]
        sizes = [*(mask[2] for own in annotators for mask, _ in own), *(mask[2] for mask in predicted)]
        size = common_size(sizes, "masks", sequence) or (1, 1)
        rows = [[[int(crowd), mask[0], mask[1]] for mask, crowd in own] for own in annotators]
        texts = pack_texts([mask[0] for mask in predicted])
        areas = np.array([mask[1] for mask in predicted], np.int64)
        masks = Masks(texts, areas, np.array([size] * len(predicted), np.int64).reshape(-1, 2))
        nobody = np.zeros(len(predicted), bool)
        row = count_pair(TruthFrame(sequence, size, rows, no_pixels), masks, nobody, official=official)
        return UnitCounts("", {"pair": np.array(row, np.int64)}).encode()

    def check(self, data: bytes) -> None:
        if decode_unit(data).tables["pair"].shape != (COLUMNS,):
            raise ValueError("is no pair")

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        del units
        return {"subsets": [["all"]], "listed": []}

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        del facts
        (data,) = frames.values()
        return decode_unit(data).tables


def _read_side(side: Any, key: str, default: float, location: str) -> list[tuple[_Mask, float]]:
    """Return the masks of a side, each with its score, or whether it is a crowd."""
    values = None
    if isinstance(side, Mapping):
        if "masks" not in side:
            raise refusal(location, "is a mapping without masks", _FORM)
        side, values = side["masks"], side.get(key)
    try:
        masks = list(side)
        numbers = [default] * len(masks) if values is None else [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise refusal(location, f"cannot be read ({error})", _FORM) from None
    if len(numbers) != len(masks):
        raise refusal(location, f"has {len(masks)} masks and {len(numbers)} {key}", "Give one for each mask")
    return [
        (read_checked_mask(mask, f"{location}, mask {index}", _FORM), number)
        for index, (mask, number) in enumerate(zip(masks, numbers, strict=True))
    ]
