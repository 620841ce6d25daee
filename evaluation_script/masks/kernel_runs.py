"""The kernel's functions on instance masks: records in JSON → columns, run lengths → areas and overlaps."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np

from .kernel_frames import FINE, FULL
from .stack import Array
from .texts import MaskTexts, of_texts

#: No record of the usual form is shorter, in characters, and none of its frames.
SHORTEST_RECORD, SHORTEST_FRAME = 60, 5
#: Columns of a table of records.
COLUMNS = 12
IMAGE, CATEGORY, DIGITS, DECIMALS, SCORE, SCORE_END, HEIGHT, WIDTH, COUNTS, COUNTS_END, FAULT, AREA = range(COLUMNS)


def require_fine(status: int) -> None:
    """Raise ValueError for a call that the kernel refused."""
    if status != FINE:
        raise ValueError(f"the kernel says {status}")


def check_runs(texts: List[str], pixels: Array, loaded: ctypes.CDLL) -> Tuple[Array, Array]:
    """Return the fault (a key of `rle.FAULTS`, or 0) and the area of each mask."""
    masks = of_texts(texts)
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    bounds = np.append(0, masks.stops)
    require_fine(loaded.sj_check_runs(masks.text, len(masks.text), bounds, len(texts), pixels, fault, area))
    return fault, area


@dataclass(frozen=True)
class Pairs:
    """Pairs of a sent and a real mask, by index; those between two bounds are of one image and category."""

    sent: Array
    real: Array
    bounds: Array


def overlaps(sent: MaskTexts, real: MaskTexts, pairs: Pairs, loaded: ctypes.CDLL) -> Array:
    """Return how many pixels the masks of each pair share."""
    shared = np.zeros(len(pairs.sent), np.int64)
    masks, others = ((side.text, len(side.text), side.starts, side.stops, len(side)) for side in (sent, real))
    columns = (pairs.sent, pairs.real, len(shared), pairs.bounds)
    require_fine(loaded.sj_overlaps(*masks, *others, *columns, len(pairs.bounds) - 1, shared))
    return shared


def join_frames(
    texts: MaskTexts, shown: Array, pixels: Array, frames: Array, loaded: ctypes.CDLL
) -> Optional[Tuple[MaskTexts, Array]]:
    """Return the masks of frames as one wide mask for each instance, and the area of each frame.

    `frames` are the bounds of the instances; the texts stand one after the other.  None where a mask is not sound.
    """
    bounds, length = np.append(0, texts.stops), len(texts.text)
    stops, area = np.zeros(len(frames), np.int64), np.zeros(len(pixels), np.int64)
    for room in (2 * length + 16 * len(pixels) + 64, 8 * length + 16 * len(pixels) + 64):
        out = np.empty(room, np.uint8)
        status = loaded.sj_join_frames(
            texts.text,
            length,
            bounds,
            len(texts),
            shown,
            pixels,
            len(pixels),
            frames,
            len(frames) - 1,
            out,
            room,
            stops,
            area,
        )
        if status == FINE:
            return MaskTexts(out[: stops[-1]].tobytes(), stops[:-1], stops[1:]), area
        if status != FULL:
            break
    return None


@dataclass(frozen=True)
class RecordTable:
    """Records of the usual form: a row of whole numbers for each, and the text of all masks.

    In videos COUNTS and COUNTS_END are the bounds of its frames, which are rows of height, width (-1: no mask) and
    where their text ends.
    """

    rows: Array
    masks: bytes
    frames: Optional[Array] = None


def records(text: str, loaded: ctypes.CDLL) -> Optional[RecordTable]:
    """Return records with commas between them as a table, or None where any is not of the usual form."""
    if not text.isascii():
        return None
    rows = np.zeros((len(text) // SHORTEST_RECORD + 1, COLUMNS), np.int64)
    data, masks = text.encode("ascii"), ctypes.create_string_buffer(len(text) + 1)
    frames = np.empty((len(text) // SHORTEST_FRAME + 1, 3), np.int64)
    count, used = ctypes.c_int64(0), ctypes.c_int64(0)
    for place in (None, frames):  # of images, of videos
        status = loaded.sj_records(
            data, len(data), len(rows), rows, masks, ctypes.byref(count), place, len(frames), ctypes.byref(used)
        )
        if status == FINE:
            rows, frames = rows[: count.value], frames[: used.value].copy()
            length = int(rows[-1, COUNTS_END] if place is None else frames[-1, -1])
            return RecordTable(rows, ctypes.string_at(masks, length), None if place is None else frames)
    return None
