"""The kernel's functions on instance masks: records in JSON → columns, run lengths → areas and overlaps."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import chain
from typing import List, Optional, Tuple

import numpy as np

from .masks import Array

#: Statuses.
FINE, FULL = 0, 2
#: No record of the usual form is shorter, in characters.
SHORTEST_RECORD = 80
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
class Groups:
    """Masks that are compared with each other: those sent and the real ones of each group, and which are crowds."""

    sent: List[List[str]]
    real: List[List[str]]
    crowd: List[List[int]]


def overlaps(groups: Groups, loaded: ctypes.CDLL) -> Array:
    """Return the IoU of each pair, group by group, sent mask by sent mask; with a crowd, the share of the sent one."""
    sent_text, sent_bounds = _text_of(list(chain.from_iterable(groups.sent)))
    real_text, real_bounds = _text_of(list(chain.from_iterable(groups.real)))
    sent_starts, real_starts = _starts_of(groups.sent), _starts_of(groups.real)
    crowd = np.fromiter(chain.from_iterable(groups.crowd), np.uint8)
    pairs = int((np.diff(sent_starts) * np.diff(real_starts)).sum())
    shared, joint = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    status = loaded.sj_overlaps(
        sent_text.ctypes.data, sent_bounds.ctypes.data, sent_starts.ctypes.data,
        real_text.ctypes.data, real_bounds.ctypes.data, real_starts.ctypes.data,
        crowd.ctypes.data, len(groups.sent), shared.ctypes.data, joint.ctypes.data,
    )  # fmt: skip
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
    return np.where(shared > 0, shared / np.maximum(joint, 1), 0.0)


@dataclass(frozen=True)
class RecordTable:
    """Records of the usual form: a row of whole numbers for each, and the text of all masks."""

    rows: Array
    masks: str


def records(text: str, loaded: ctypes.CDLL) -> Optional[RecordTable]:
    """Return records with commas between them as a table, or None where any is not of the usual form."""
    if not text.isascii():
        return None
    source = np.frombuffer(text.encode("ascii"), np.uint8)
    rows = np.zeros((len(text) // SHORTEST_RECORD + 1, COLUMNS), np.int64)
    masks = ctypes.create_string_buffer(len(text) + 1)
    count = ctypes.c_int64(0)
    status = loaded.sj_records(
        source.ctypes.data, len(source), len(rows), rows.ctypes.data, ctypes.addressof(masks), ctypes.byref(count)
    )
    if status != FINE:
        return None
    rows = rows[: count.value]
    length = int(rows[-1, COUNTS_END])
    return RecordTable(rows, ctypes.string_at(masks, length).decode("ascii"))


def _text_of(texts: List[str]) -> Tuple[Array, Array]:
    """Return the bytes of many texts, one after the other, and where each begins and the last ends."""
    joined = np.frombuffer("".join(texts).encode("ascii", "replace") + b"\0", np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    return joined, bounds


def _starts_of(groups: List[List[str]]) -> Array:
    starts = np.zeros(len(groups) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, groups), np.int64, len(groups)), out=starts[1:])
    return starts
