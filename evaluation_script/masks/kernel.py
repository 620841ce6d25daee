"""The compiled kernel, where there is one: found once, tested with known answers, else left alone.

Whatever calls it has numpy code beside the call, which gives the same results.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import lru_cache
from typing import Iterator, Optional, Tuple

import numpy as np

from .kernel_frames import PackedFrames, boundaries, codes_of, compare, label_pairs
from .kernel_matches import Overlapping, RankedBits, curve, curves_without, match
from .kernel_runs import Pairs, check_runs, join_frames, overlaps, records
from .stack import Stack
from .texts import of_texts

#: What a library must answer to `sj_abi`.
ABI = 6
#: `off`, or the path of the library to use.
SETTING = "SEGJUDGE_KERNEL"
#: The compiled library, in this folder; beside it a file with its checksum.
SYSTEM = f"{os.uname().sysname.lower()}-{os.uname().machine}"
NAME = f"segjudge_kernel.{SYSTEM}.so"
CHECKSUM = ".sha256"

#: What a library says to known questions, and what it must say.
Answers = Iterator[Tuple[object, object]]


class _Array:
    """An argument of numbers of one kind: an array, made contiguous and of that kind, or what is an address already."""

    def __init__(self, kind: str) -> None:
        self._kind = np.dtype(kind)

    def from_param(self, value: object) -> object:
        """Return what is passed, which keeps alive what was made for the call."""
        if not isinstance(value, np.ndarray):
            return ctypes.c_void_p.from_param(value)
        array = np.ascontiguousarray(value, self._kind)
        return ctypes.c_void_p(array.ctypes.data) if array is value else array.ctypes


_KINDS = {"*": ctypes.c_void_p, "i4": ctypes.c_int32, "u4": ctypes.c_uint32, "i8": ctypes.c_int64} | {
    f"{kind}[]": _Array(kind) for kind in ("i1", "u1", "u4", "i8", "u8", "f8")
}
#: The arguments of each function: addresses, numbers and arrays, by numpy's names of their kinds; all return a status.
_SIGNATURES = {
    "sj_abi": "",
    "sj_pack_frame": "* i8 i4 i8 i8 i8 i8 * i8 i8 * * * * i4",  # the most frequent call: addresses are looked up before
    "sj_compare": "u8[] * u8[] * i8 i8 i8 * i8 i8[]",
    "sj_codes": "u1[] i8 i8 i8 i4 *",
    "sj_label_pairs": "* i4 * i4 i8 u4[] i8[] i8 *",
    "sj_boundaries": "u4[] i8 i8 i8 u4 u4[]",
    "sj_check_runs": "* i8 i8[] i8 i8[] i1[] i8[]",
    "sj_overlaps": "* i8 i8[] i8[] i8 * i8 i8[] i8[] i8 i8[] i8[] i8 i8[] i8 i8[]",
    "sj_records": "* i8 i8 i8[] * * i8[] i8 *",
    "sj_join_frames": "* i8 i8[] i8 u1[] i8[] i8 i8[] i8 u1[] i8 i8[] i8[]",
    "sj_match": "i8[] i8[] f8[] i8 u1[] i8 f8[] i4 i4 i8 u8[] u8[]",
    "sj_curve": "u8[] u8[] u4[] i8 i8 i4 i4 i8[] i8 i8[] i8[]",
    "sj_curves_without": "u8[] u8[] u1[] i8 i4 i4 i4 i8[] i8 i8[] i8[]",
}


class _Unusable(Exception):
    """Raised when there is no library that can be used; the text says why."""


def library() -> Optional[ctypes.CDLL]:
    """Return the kernel, or None where numpy does its work."""
    return _found()[0]


def state() -> str:
    """Return in a few words what does the work: the kernel, or numpy and why."""
    return _found()[1]


@lru_cache(maxsize=None)
def _found() -> Tuple[Optional[ctypes.CDLL], str]:
    try:
        loaded = _load(_path())
        return loaded, f"kernel for {SYSTEM} (numpy: {SETTING}=off)"
    except _Unusable as error:
        return None, f"numpy (no kernel: {error})"


def _path() -> str:
    """Return where the library is, if it is what it was when it was built."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise _Unusable(f"{SETTING} is off")
    path = setting or os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    try:
        with open(path, "rb") as file, open(path + CHECKSUM, encoding="ascii") as checksum:
            if hashlib.sha256(file.read()).hexdigest() != checksum.read().split()[0]:
                raise _Unusable(f"{os.path.basename(path)} is not the file that was built")
    except (OSError, ValueError, IndexError):
        absent = f"{path} or the checksum beside it cannot be read"
        raise _Unusable(absent if setting else "none was compiled; ./run.sh does where it finds a C compiler") from None
    return path


def _load(path: str) -> ctypes.CDLL:
    if sys.byteorder != "little":
        raise _Unusable("this machine is not little-endian")
    try:
        loaded = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.argtypes = [_KINDS[argument] for argument in arguments.split()]
            function.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise _Unusable(f"it cannot be loaded: {error}") from None
    if loaded.sj_abi() != ABI:
        raise _Unusable(f"it has version {loaded.sj_abi()}, not {ABI}")
    if not _answers_are_right(loaded):
        raise _Unusable("it fails its self-test")
    return loaded


def _answers_are_right(loaded: ctypes.CDLL) -> bool:
    """Return whether known questions get their known answers."""
    try:
        known = (_frames, _labels, _runs, _matches)
        return all(_listed(found) == answer for answers in known for found, answer in answers(loaded))
    except Exception:  # noqa: BLE001 - whatever a library does that is not ours
        return False


def _listed(found: object) -> object:
    """Return what was found with lists in place of arrays and tuples."""
    return [_listed(one) for one in found] if isinstance(found, (list, tuple, np.ndarray)) else found


def _frames(loaded: ctypes.CDLL) -> Answers:
    # Two rows of 70 pixels, filtered by Sub and Up: label 3 from pixel 60 on, then label 3 alone at pixel 69.
    rows = bytes([1, *[0] * 60, 3, *[0] * 9]) + bytes([2, *[0] * 60, *[253] * 9, 0])
    frame = PackedFrames((2, 70), 1, loaded)
    yield [frame.add(0, rows, 8), frame.add(0, b"\7" * 142, 8), frame.add(0, rows, 7)], [True, False, False]
    (stack,) = frame.take(1).values()
    yield (stack.words, stack.top, stack.left), [[[[0xF << 60, 0x3F], [0, 0x20]]], 0, 0]
    # Two colours, the second filtered by Sub, and their row again by Up; then a filter that there is not.
    colours = bytes([1, 1, 2, 3, 1, 1, 255, 2, *[0] * 6])
    yield codes_of(colours, (2, 2), 3, loaded), [[0x030201, 0x020302]] * 2
    yield codes_of(b"\7" * 14, (2, 2), 3, loaded), None
    other = Stack(np.array([[[0x38]]], np.uint64), 1, 1, (2, 70))
    yield compare(stack, other, ((-1, 0, 0), (0, -1, 1), (1, 0, 0)), loaded), [[11, 3, 1, 11, 5, 5, 5]]


def _labels(loaded: ctypes.CDLL) -> Answers:
    # A square of 3 pixels inside a row and a column of others; as bytes, the pairs with itself.
    square = np.full((4, 4), 7, np.uint32)
    square[0] = square[:, 0] = 0
    yield label_pairs(square.astype(np.uint8), square, loaded), [[[0, 0], [7, 7]], [7, 9]]
    yield boundaries(square, 1, 9, loaded), [[0, 0, 0, 0], [0, 7, 7, 7], [0, 7, 9, 7], [0, 7, 7, 7]]


def _runs(loaded: ctypes.CDLL) -> Answers:
    # 3 pixels of 8 from the third on; the same with a run below zero, one too short, one that breaks off, a wrong sign.
    texts = ["233", "2N", "22", "2P", "\x7f"]
    fault, area = check_runs(texts, np.full(len(texts), 8), loaded)
    yield (fault, area[:1]), [[0, 3, 4, 2, 1], [3]]
    pairs = Pairs(np.array([0, 1]), np.array([0, 0]), np.array([0, 2]))
    yield overlaps(of_texts(["233", "08"]), of_texts(["143"]), pairs, loaded), [3, 4]
    # Two frames of 8 pixels and a hidden one as an instance, and one that breaks off.
    wide = join_frames(of_texts(["233", "08"]), np.array([1, 0, 1], np.uint8), np.full(3, 8), np.array([0, 3]), loaded)
    yield wide and (wide[0][0], wide[1]), ["233M50H8", [3, 0, 8]]
    yield join_frames(of_texts(["2P"]), np.ones(1, np.uint8), np.full(1, 8), np.array([0, 1]), loaded), None
    text = '{"image_id": 7, "category_id":-2,"score":0.125,"segmentation":{"counts":"08","size":[2,4]}}'
    table = records(f"{text}, {text}", loaded)
    row = [7, -2, 125, 3, 41, 46, 2, 4, 0, 2, 0, 8]
    yield table and table.rows, [row, [*row[:4], 134, 139, 2, 4, 2, 4, 0, 8]]
    text = text.replace("image", "video").replace('tion":', 'tions":[null,')
    table = records(f"{text[:-1]}]}}", loaded)
    yield table and table.frames, [[-1, -1, 0], [2, 4, 2]]


def _matches(loaded: ctypes.CDLL) -> Answers:
    # The first takes the better of two, the second the other, which does not count among the large ones (bits 2, 3).
    near = Overlapping(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.5, 0.8, 0.9, 0.6]))
    reached, outside = np.array([0.5, 0.7]), np.array([0, 0b1100], np.uint64)
    yield match(near, np.array([0b10, 0], np.uint8), reached, 2, outside, loaded), [[0b1111, 0b1111], [0, 0b1100]]
    ranked = RankedBits(np.array([1, 0, 1, 0, 1]), np.array([1, 0, 1, 1, 1]), np.zeros(5), np.array([0, 0, 1, 1, 1]))
    yield curve(ranked, 1, 0, 1, np.array([1, 2, 3, 4]), loaded), [[[[2, 2], [2, 2], [3, 4], [0, 0]]], [3]]
    least, rows = np.array([[1, 2, 3], [1, 2, 3]]), [[[[1, 1], [2, 3], [0, 0]]], [[[1, 1], [0, 0], [0, 0]]]]
    yield curves_without(ranked, ranked.image, 0, 1, least, loaded), [rows, [[2], [1]]]
