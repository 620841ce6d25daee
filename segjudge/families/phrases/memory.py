"""Pairs of a picture or video and a phrase in memory: masks or tracks on both sides, with scores and crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, no_pixels
from segjudge.evaluation_script.families.phrases.counting import count_pair
from segjudge.evaluation_script.families.phrases.protocols import LEAST_SCORE, PhraseProtocol
from segjudge.evaluation_script.families.phrases.tubes import CATEGORY, count_tracks
from segjudge.evaluation_script.families.phrases.videos import Tracks
from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.memory import CheckedMask, SamplesInMemory, common_size, read_checked_mask, refusal

_FORM = "Give a list of masks, or {'masks': [...], 'scores': [...]}"
_TRACKS_FORM = "Give {'tracks': [[mask or None, ...], ...]} with a list for each track, and 'scores' or 'iscrowd'"


class PhrasesInMemory(SamplesInMemory):
    """A counter of pairs.

    A side is a list of masks, or a mapping with `masks` and `scores` (prediction) or `iscrowd` (truth). The truth of
    several annotators is a mapping with `annotators`, a list of such sides.
    """

    own_facts: ClassVar = {"subsets": [["all"]], "listed": []}
    protocol: PhraseProtocol

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        official = self.protocol.official
        sides = truth["annotators"] if isinstance(truth, Mapping) and "annotators" in truth else [truth]
        annotators = [_read_side(side, "iscrowd", 0, f"truth of {sequence}") for side in sides]
        location = f"prediction of {sequence}"
        predicted = [
            mask
            for mask, score in _read_side(prediction, "scores", 1.0, location)
            if score >= LEAST_SCORE and (official or mask[1])
        ]
        sizes = [
            *(mask[2] for annotator_masks in annotators for mask, _ in annotator_masks),
            *(mask[2] for mask in predicted),
        ]
        size = common_size(sizes, "masks", sequence) or (1, 1)
        rows = [[[int(crowd), mask[0], mask[1]] for mask, crowd in annotator_masks] for annotator_masks in annotators]
        texts = pack_texts([mask[0] for mask in predicted])
        areas = np.array([mask[1] for mask in predicted], np.int64)
        masks = Masks(texts, areas, np.array([size] * len(predicted), np.int64).reshape(-1, 2))
        nobody = np.zeros(len(predicted), bool)
        row = count_pair(TruthFrame(sequence, size, rows, no_pixels), masks, nobody, official=official)
        return UnitCounts("", {"pair": np.array(row, np.int64)}).encode()


def _read_side(side: Any, key: str, default: float, location: str) -> list[tuple[CheckedMask, float]]:
    """Return the masks of a side with their scores or crowd flags."""
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
        raise refusal(
            location,
            f"has {quantity(len(masks), 'mask')} and {key} with {quantity(len(numbers), 'number')}",
            "Give one number for each mask",
        )
    return [
        (read_checked_mask(mask, f"{location}, mask {index}", _FORM), number)
        for index, (mask, number) in enumerate(zip(masks, numbers, strict=True))
    ]


class VideoPhrasesInMemory(SamplesInMemory):
    """A counter of pairs of a video and a phrase.

    A side is a mapping with `tracks` and `scores` (prediction) or `iscrowd` (truth); for mAP, the truth also has the
    phrase's `category_id`. A track is a list with a mask or None per frame.
    """

    own_facts: ClassVar = {"subsets": [["all"]], "listed": []}
    protocol: PhraseProtocol

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        sizes: list[Size] = []
        truth_tracks, crowds = _read_tracks(truth, "iscrowd", 0, f"truth of {sequence}", sizes)
        tracks, scores = _read_tracks(prediction, "scores", 1.0, f"prediction of {sequence}", sizes)
        lengths = set(map(len, (*truth_tracks, *tracks)))
        if len(lengths) > 1:
            raise refusal(
                sequence,
                f"has tracks of different lengths: {' and '.join(map(str, sorted(lengths)))} frames",
                _TRACKS_FORM,
            )
        size = common_size(sizes, "masks", sequence) or (1, 1)
        sides = [_pack_tracks(side, size) for side in (truth_tracks, tracks)]
        tables = count_tracks(sides[0], crowds.astype(bool), sides[1], scores, max(lengths, default=0))
        category = truth.get("category_id", 0) if isinstance(truth, Mapping) else 0
        tables["phrase"][0] = tables["tracks"][:, CATEGORY] = int(category)
        return UnitCounts("", tables).encode()


def _read_tracks(
    side: Any, key: str, default: float, location: str, sizes: list[Size]
) -> tuple[list[list[CheckedMask | None]], Array]:
    """Return the masks of each track by frame, with its score or crowd flag."""
    if not isinstance(side, Mapping) or "tracks" not in side:
        raise refusal(location, "is not a mapping with tracks", _TRACKS_FORM)
    try:
        tracks = list(map(list, side["tracks"]))
        numbers = np.array([float(value) for value in side.get(key, [default] * len(tracks))])
    except (TypeError, ValueError) as error:
        raise refusal(location, f"cannot be read ({error})", _TRACKS_FORM) from None
    if len(numbers) != len(tracks) or not np.isfinite(numbers).all():
        raise refusal(
            location,
            f"has {quantity(len(tracks), 'track')} and {key} with {quantity(len(numbers), 'number')}",
            "Give one finite number for each track",
        )
    checked = [
        [
            None if mask is None else read_checked_mask(mask, f"{location}, track {index}, frame {frame}", _TRACKS_FORM)
            for frame, mask in enumerate(masks)
        ]
        for index, masks in enumerate(tracks)
    ]
    sizes += [mask[2] for masks in checked for mask in masks if mask is not None]
    return checked, numbers


def _pack_tracks(tracks: list[list[CheckedMask | None]], size: Size) -> Tracks:
    """Return the non-empty masks by frame."""
    rows = sorted(
        (frame, track, mask[0], mask[1])
        for track, masks in enumerate(tracks)
        for frame, mask in enumerate(masks)
        if mask is not None and mask[1]
    )
    frames, numbers, areas = (np.array([row[column] for row in rows], np.int64) for column in (0, 1, 3))
    masks = Masks(pack_texts([row[2] for row in rows]), areas, np.array([size] * len(rows), np.int64).reshape(-1, 2))
    return Tracks(len(tracks), frames, numbers, masks, np.ones(len(rows), bool))
