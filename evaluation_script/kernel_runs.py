"""The kernel's functions on instance masks: records in JSON → columns, run lengths → areas and overlaps."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np

from .mask_texts import MaskTexts
from .masks import Array

#: Statuses.
FINE, FULL = 0, 2
#: No record of the usual form is shorter, in characters, and none of its frames.
SHORTEST_RECORD, SHORTEST_FRAME = 60, 5
#: Columns of a table of records.
COLUMNS = 12
IMAGE, CATEGORY, DIGITS, DECIMALS, SCORE, SCORE_END, HEIGHT, WIDTH, COUNTS, COUNTS_END, FAULT, AREA = range(COLUMNS)


def check_runs(texts: List[str], pixels: Array, loaded: ctypes.CDLL) -> Tuple[Array, Array]:
    """Return the fault (a key of `rle.FAULTS`, or 0) and the area of each mask."""
    text, bounds = _text_of(texts)
    filled = np.ascontiguousarray(pixels, np.int64)
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    status = loaded.sj_check_runs(
        text.ctypes.data, bounds.ctypes.data, len(texts), filled.ctypes.data, fault.ctypes.data, area.ctypes.data
    )
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
    return fault, area


@dataclass(frozen=True)
class Pairs:
    """Pairs of a sent and a real mask, by index; those between two bounds are of one image and category."""

    sent: Array
    real: Array
    bounds: Array


def overlaps(sent: MaskTexts, real: MaskTexts, pairs: Pairs, loaded: ctypes.CDLL) -> Array:
    """Return how many pixels the masks of each pair share."""
    columns = [_whole(column) for column in (pairs.sent, pairs.real, pairs.bounds)]
    bounds = [_whole(column) for column in (sent.starts, sent.stops, real.starts, real.stops)]
    shared = np.zeros(len(pairs.sent), np.int64)
    status = loaded.sj_overlaps(
        sent.text, len(sent.text), bounds[0].ctypes.data, bounds[1].ctypes.data, len(sent),
        real.text, len(real.text), bounds[2].ctypes.data, bounds[3].ctypes.data, len(real),
        *(column.ctypes.data for column in columns), len(pairs.bounds) - 1, shared.ctypes.data,
    )  # fmt: skip
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
    return shared


def join_frames(
    texts: MaskTexts, shown: Array, pixels: Array, frames: Array, loaded: ctypes.CDLL
) -> Optional[Tuple[MaskTexts, Array]]:
    """Return the masks of frames as one wide mask for each instance, and the area of each frame.

    `frames` are the bounds of the instances; the texts stand one after the other.  None where a mask is not sound.
    """
    bounds, length = np.append(0, texts.stops), len(texts.text)
    columns = [bounds, np.ascontiguousarray(shown, np.uint8), _whole(pixels), _whole(frames)]
    stops, area = np.zeros(len(frames), np.int64), np.zeros(len(pixels), np.int64)
    for room in (2 * length + 16 * len(pixels) + 64, 8 * length + 16 * len(pixels) + 64):
        out = np.empty(room, np.uint8)
        status = loaded.sj_join_frames(
            texts.text, *(column.ctypes.data for column in columns), len(frames) - 1,
            out.ctypes.data, room, stops.ctypes.data, area.ctypes.data,
        )  # fmt: skip
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
    for place in (None, frames.ctypes.data):  # of images, of videos
        status = loaded.sj_records(
            data, len(data), len(rows), rows.ctypes.data, ctypes.addressof(masks), ctypes.byref(count), place,
            len(frames), ctypes.byref(used),
        )  # fmt: skip
        if status == FINE:
            rows, frames = rows[: count.value], frames[: used.value].copy()
            length = int(frames[-1, -1] if place else rows[-1, COUNTS_END])
            return RecordTable(rows, ctypes.string_at(masks, length), frames if place else None)
    return None


def _text_of(texts: List[str]) -> Tuple[Array, Array]:
    """Return the bytes of many texts, one after the other, and where each begins and the last ends."""
    joined = np.frombuffer("".join(texts).encode("ascii", "replace") + b"\0", np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    return joined, bounds


def _whole(numbers: Array) -> Array:
    return np.ascontiguousarray(numbers, np.int64)
