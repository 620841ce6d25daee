"""Pairs of a picture and a phrase in memory: masks of objects on both sides, with scores and crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, no_pixels
from segjudge.evaluation_script.families.phrases.counting import COLUMNS, count_pair
from segjudge.evaluation_script.families.phrases.protocols import LEAST_SCORE, PhraseProtocol
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from segjudge.families.base.memory import (
    CheckedMask,
    SamplesInMemory,
    UnitFrames,
    common_size,
    read_checked_mask,
    refusal,
)

_FORM = "Give a list of masks, or {'masks': […], 'scores': […]}"


class PhrasesInMemory(SamplesInMemory):
    """Counts pairs.

    A side is a list of masks, or a mapping with `masks` and, of predictions, `scores`, of truths, `iscrowd`; the truth
    of several annotators is a mapping with `annotators`, a list of such sides.
    """

    table, columns = "pair", COLUMNS
    protocol: PhraseProtocol

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
        return self.encode_row(row)

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        del units
        return {"subsets": [["all"]], "listed": []}


def _read_side(side: Any, key: str, default: float, location: str) -> list[tuple[CheckedMask, float]]:
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
