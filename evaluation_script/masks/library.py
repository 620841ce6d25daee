"""The library of the compiled kernel: found, loaded and self-tested, and not used if a test fails."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import zlib
from typing import Iterator, Optional, Tuple

import numpy as np

from ..files.inflate import crc32
from . import png
from .detections import MASK, CurveTables, CurveTask, OverlappingPairs, RankedBits, TrueSets
from .kernel import Kernel, PackedFrames
from .overlaps import PairGroups, Pairs
from .stack import Size, Stack

#: The value that a library's `sj_abi` must return.
_ABI = 50
#: `off`, or the path of the library to use.
SETTING = "SEGJUDGE_KERNEL"
#: The compiled library in this folder, beside a file with its checksum.
SYSTEM = f"{os.uname().sysname.lower()}-{os.uname().machine}" if hasattr(os, "uname") else sys.platform
NAME = f"segjudge_kernel.{SYSTEM}.so"
CHECKSUM = ".sha256"

#: A library's answers to known questions, and the correct answers.
_Answers = Iterator[Tuple[object, object]]


class _Array:
    """A ctypes argument type: an array, converted to one contiguous dtype, or an address."""

    def __init__(self, kind: Optional[str]) -> None:
        self._kind = kind and np.dtype(kind)

    def from_param(self, value: object) -> object:
        """Return the value to pass, which keeps temporary arrays alive during the call."""
        if not isinstance(value, np.ndarray):
            return ctypes.c_void_p.from_param(value)
        array = np.ascontiguousarray(value, self._kind)
        return (array if array.flags.aligned else array.copy()).ctypes  # as one field of a packed record is not


_KINDS = {
    "*": ctypes.c_void_p,
    "[]": _Array(None),
    "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32,
    "i8": ctypes.c_int64,
    "f8": ctypes.c_double,
} | {f"{kind}[]": _Array(kind) for kind in ("i1", "i4", "u1", "u2", "u4", "i8", "u8", "f8")}
#: The arguments of each function: addresses, numbers and arrays, by numpy's names of their kinds; all return a status.
_SIGNATURES = {
    "sj_abi": "",
    "sj_pack_png": "* i8 * i8",
    "sj_pack_labels": "* i8 * i8",
    "sj_compare": "u8[] i8[] i8 i8[] i8 i8 i8 i8 * i8 i8[]",
    "sj_read_png": "* i8 i8 i8 i4 []",
    "sj_label_pairs": "[] i4 [] i4 i8 u4[] i8[] i8 *",
    "sj_label_table": "[] i4 [] i4 i8 i8 i8 i8[]",
    "sj_points": "[] i4 u4[] i8 u2[] i8 i8 i8 i8[] *",
    "sj_segments": "[] i4 u4[] i8 u4[] i8 u2[] i8 i8 i8 i4 i8 i8[] i8[] u4[] i8[] i8[]",
    "sj_boundaries": "u4[] i8 i8 i8 u4 u4[]",
    "sj_grow": "u8[] i8 i8 i8 i8[] i8 u8[]",
    "sj_survey": "u1[] u1[] i8 i8 u4 i4 i8[] i8 u1[]",
    "sj_boxes": "[] i4 i8 i8 i8 i8 i8[] i8[]",
    "sj_surface": "u1[] i8 i8 i8 i4[] u1[] i8 *",
    "sj_border": "u1[] i8 i8 i8 i4 i4[] i8 *",
    "sj_find_runs": "u1[] i8 i8 i8 i8 [] i4 i8 *",
    "sj_components": "[] [] i4 i8 i8[] i8 i4[]",
    "sj_squares": "i4[] i8 i4[] i8 i8 i8 i8 f8[] f8[]",
    "sj_check_runs": "* i8 i8[] i8 i8[] i1[] i8[]",
    "sj_mask_boxes": "* i8 i8[] i8 i8[] i8[]",
    "sj_paint_runs": "* i8 i8[] i8 u1[] i8 u1[]",
    "sj_encode": "u1[] i8 i8 u1[] i8 * *",
    "sj_write_bits": "u8[] i8 u1[] i8 * *",
    "sj_cover": "* i8 i8[] i8 i8 u8[]",
    "sj_count_inside": "u1[] i8 i8 i8[] i8[] i8 i8 i8[] *",
    "sj_first_overlap": "* i8 i8[] i8 i8[] i8[] i8 i8[]",
    "sj_overlaps": "* i8 i8[] i8[] i8 * i8 i8[] i8[] i8 i8[] i8[] i8 i8[] i8 i8[]",
    "sj_records": "* i8 i4 i8 i8[] u1[] i8[] f8[] i8[] i8[] i8[]",
    "sj_draw": "f8[] i8 i8[] i8 i8[] i8 i8[] u1[] i8 i8[] i8[]",
    "sj_join_frames": "* i8 i8[] i8 u1[] i8[] i8 i8[] i8 u1[] i8 i8[] i8[]",
    "sj_order": "f8[] i8[] i8 i8[]",
    "sj_similar_pairs": "i8[] i8[] i8[] i8 f8[] i8 f8[] u1[] i8 f8[] i8 i8[] i8[] i8[]",
    "sj_box_overlaps": "i8[] i8[] i8 f8[] i8 f8[] i8 u1[] f8[]",
    "sj_match": "i8[] i8[] f8[] i8 u1[] i8 f8[] i4 i4 i8 u8[] u8[]",
    "sj_similarities": "i8[] i8[] i8 f8[] i8 f8[] u1[] f8[] f8[] f8[] i8 i8 f8[]",
    "sj_curves": "u8[] u8[] u4[] u1[] i8 i8[] i8 i8 i8 i8[] i8 i8 i8 i8 i8 i8[] i8[] i8[] i8 i8 i4 f8[] f8[] f8[] f8[]",
}


class KernelError(Exception):
    """Raised if no library can be used; the text says why."""

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        #: Whether there is no library, or none is wanted.
        self.is_absent = is_absent


def load(path: str = "") -> Kernel:
    """Return the library at a path, by default the one of this package or of the setting; raises KernelError."""
    kernel = Kernel(_load(path or _path()))
    if not _answers_are_right(kernel):
        raise KernelError("it fails its self-test")
    return kernel


def _path() -> str:
    """Return the path of the library, if the file is unchanged since it was built."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise KernelError(f"{SETTING} is off", is_absent=True)
    path = setting or os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    if not (setting or os.path.exists(path)):
        raise KernelError("none was compiled; ./run.sh compiles one if it finds a C compiler", is_absent=True)
    try:
        with open(path, "rb") as file, open(path + CHECKSUM, "rb") as checksum:
            # The build also writes a CRC, whose code is loaded anyway: OpenSSL's takes 4 MB and 3 ms of each start.
            if f"{crc32(file.read()):08x}" != checksum.read().decode("ascii").split()[2]:
                raise KernelError(f"{os.path.basename(path)} is not the file that the build wrote")
    except (OSError, ValueError, IndexError):
        raise KernelError(f"{path} or the checksum beside it cannot be read") from None
    return path


def _load(path: str) -> ctypes.CDLL:
    if sys.byteorder != "little":
        raise KernelError("this machine is not little-endian")
    try:
        loaded = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.argtypes = [_KINDS[argument] for argument in arguments.split()]
            function.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise KernelError(f"it cannot be loaded: {error}") from None
    if loaded.sj_abi() != _ABI:
        raise KernelError(f"it has version {loaded.sj_abi()}, not {_ABI}")
    return loaded


def _answers_are_right(kernel: Kernel) -> bool:
    """Return whether the kernel passes its self-test: of bits, of a library's own structures, and of fractions."""
    try:
        tests = (_frames, _fractions, _detections)
        return all(_as_lists(reply) == answer for answers in tests for reply, answer in answers(kernel))
    except Exception:  # noqa: BLE001 - whatever a library does that is not ours
        return False


def _as_lists(reply: object) -> object:
    """Return a reply with arrays and tuples turned into lists."""
    if isinstance(reply, np.ndarray):
        return reply.tolist()  # a tenth of the time of a loop
    return [_as_lists(item) for item in reply] if isinstance(reply, (list, tuple)) else reply


def _png(size: Size, colour: int, rows: bytes, depth: int = 8) -> bytes:
    """Return a PNG with these rows, each preceded by its filter number."""
    header = struct.pack(">IIBBBBB", size[1], size[0], depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return png.SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in chunks
    )


def _frames(kernel: Kernel) -> _Answers:
    # Two rows of 70 pixels, filtered by Sub and Up: label 3 from pixel 60 on, then label 3 alone at pixel 69.
    picture = _png((2, 70), 0, bytes([1, *[0] * 60, 3, *[0] * 9]) + bytes([2, *[0] * 60, *[253] * 9, 0]))
    frame = PackedFrames((2, 70), 1, kernel)
    yield [frame.add_png(0, picture), frame.add_png(0, picture[:-20]), frame.add_png(0, picture)], [True, False, True]
    (stack,) = frame.take(1).values()
    yield (stack.words, stack.top, stack.column), [[[[0xF << 60, 0x3F], [0, 0x20]]], 0, 0]
    # Two colours, the second filtered by Sub, and their row again by Up; then an invalid filter.
    colours = bytes([1, 1, 2, 3, 1, 1, 255, 2, *[0] * 6])
    yield kernel.read_png(_png((2, 2), 2, colours), (2, 2), np.uint32), [[0x030201, 0x020302]] * 2
    yield kernel.read_png(_png((2, 2), 2, b"\7" * 14), (2, 2), np.uint32), None
    neighbour = Stack(np.array([[[0x38]]], np.uint64), 1, 1, (2, 70))
    counts = kernel.compare([(stack, neighbour), (stack, stack)], ((-1, 0, 0), (0, -1, 1), (1, 0, 0)))
    yield counts, [[[11], [3], [1], [11], [5], [5], [5]], [[11]] * 7]


def _fractions(kernel: Kernel) -> _Answers:
    places = np.arange(4, dtype=np.int32)
    yield kernel.find_squares(places, places[3:], (2, 2, 3), (0.5, 3.0, 5.0)), [9.0, 9.25, 10.0, 0.0]
    yield kernel.find_squares(places, places[3:], (2, 2, 3), (0.5, 3.0, 5.0), 9.25), [9.0, np.inf, np.inf, 0.0]
    text = '{"image_id": 7, "category_id":-2,"score":0.125,"segmentation":{"counts":"08","size":[2,4]}}'
    table = kernel.records(f"{text}, {text.replace('0.125', '125e-3')}, {text}".encode(), MASK)
    expected = [[7, 7], [-2, -2], [0.125, 0.125], [[2, 4], [2, 4]], [[0, 2], [2, 4]], [0, 0], [8, 8], b"0808"]
    yield table and list(vars(table).values())[1:9], expected
    boxed = text.replace('"08"', "[0,8]").replace("}}", '},"bbox":[1,0.30000000000000004,12e-1,-0],"x":[{"y":null}]}')
    table = kernel.records(f"{boxed},".encode(), MASK)
    yield table and (table.masks, table.boxed, table.boxes), [b"08", [2], [[1, 0.1 + 0.2, 1.2, 0]]]
    outlined = text[: text.index('"seg')] + '"segmentation":[[0,0,2,0,2,2,0,2]]}'
    table = kernel.records(f"{outlined},".encode(), MASK)
    drawn = kernel.draw(table.rings, np.array([[3, 4]])) if table is not None and table.rings is not None else None
    yield drawn and (drawn[0].text, drawn[1]), [b"02106", [4]]


def _detections(kernel: Kernel) -> _Answers:
    yield kernel.order(np.array([0.5, -0.0, 2, 0.0, -1]), np.array([7, -2, 7, -2, 7])), [1, 3, 2, 0, 4]
    # A box of four pixels and one of six that share two, and the same with a crowd.
    boxes = np.array([[0.0, 0, 2, 2]]), np.array([[0.0, 1, 3, 2], [-1, -1, 9, 9]])
    pairs = Pairs(np.zeros(2, np.int64), np.arange(2), np.array([0, 2]))
    yield kernel.box_overlaps(pairs, *boxes, np.array([0, 1], np.uint8)), [2 / 8, 1.0]
    # Of nine and of five pixels, five are half at most; a crowd is compared with all.
    groups, extents = PairGroups(np.array([0, 2]), np.array([0]), np.array([3])), np.array([9.0, 5, 1])
    similar = kernel.similar_pairs(groups, extents[:2], extents, np.array([0, 0, 1], np.uint8), 0.6)
    yield similar, [[0, 0, 1, 1], [0, 2, 1, 2], [0, 4]]
    # The first takes the better of two, the second the other, which does not count among the large ones (bits 2, 3).
    near = OverlappingPairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.5, 0.8, 0.9, 0.6]))
    reached, outside = np.array([0.5, 0.7]), np.array([0, 0b1100], np.uint64)
    yield kernel.match(near, np.array([0b10, 0], np.uint8), reached, 2, outside), [[0b1111, 0b1111], [0, 0b1100]]
    # Three of five are right, also without the first image's; the second category has none.
    ranked = RankedBits(np.array([1, 0, 1, 0, 1]), np.array([1, 0, 1, 1, 1]), np.zeros(5), np.array([0, 0, 1, 1, 1]))
    scored, nobody = ranked._replace(score=np.array([0.9, 0.8, 0.7, 0.6, 0.5])), np.ones(5)
    limits, counts = [(0, 1, 0)], np.array([[[4]], [[0]]])
    alone = CurveTask(scored, np.array([0, 5, 5]), nobody, limits, 1, counts, np.array([[1, 2, 3, 4]]), counts * 0)
    tables = CurveTables(np.full((1, 2, 1, 1, 4), -1.0), np.full((1, 2, 1, 1), -1.0), np.zeros((1, 2, 1, 1, 4)))
    kernel.curves(alone, range(2), tables)
    yield tables.precision[0, :, 0, 0], [[1, 1, 3 / 4, 0], [-1] * 4]
    yield (tables.recall[0, :, 0, 0], tables.scores), [[3 / 4, -1], [[[[[0.9, 0.7, 0.5, 0]]], [[[0] * 4]]]]]
    counts, below_one = np.array([[[3, 2]]]), 1 / (1 + np.spacing(1))
    sizes = (limits, 1, counts, np.array([[1, 2, 3]]), counts * 0)
    each = CurveTask(ranked, np.array([0, 5]), ranked.image, *sizes, averaged=True)
    tables = CurveTables(np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 2, 1)))
    kernel.curves(each, range(1), tables)
    yield (tables.precision, tables.recall), [[[[[(below_one + 2 / 3) / 3], [below_one / 3]]]], [[[[2 / 3], [1 / 2]]]]]
    # One of two points is marked, and 0.1 away; without marks both lie outside of the box, one of them far.
    marked, sides = np.array([[True, False], [False, False]]), np.array([[0.0, 0, 1, 1]] * 2)
    sets = TrueSets(np.zeros((2, 2, 2)), marked, np.full((2, 2), 0.1), np.ones(2), sides)
    yield kernel.similarities(pairs, np.array([[0.0, 0.1, 5, 900]]), sets), [0.8824969025845955, 0.5]
