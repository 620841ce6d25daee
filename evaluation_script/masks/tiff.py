"""TIFF bytes → the label of every pixel, of one picture or of the slices of a volume.

Read is what microscopes' tools write of label maps: grey of 8 or 16 bits in strips, as they are, by LZW or by deflate.
The picture must have the size of its frame, so that no header decides how much memory is taken.
"""

from __future__ import annotations

import struct
import zlib
from itertools import repeat
from typing import Dict, List, NamedTuple, Tuple

import numpy as np

from ..files import Flaw, kind_of
from ..files.inflate import inflate_stream
from .stack import Array, Size

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _SAMPLES = 256, 257, 258, 259, 277
_OFFSETS, _ROWS, _LENGTHS, _PREDICTOR, _TILES, _FORMAT = 273, 278, 279, 317, 322, 339
#: The types of numbers that the tags above have.
_TYPES = {3: "H", 4: "I"}
_PLAIN, _LZW, _DEFLATES = 1, 5, (8, 32946)
_OTHER_WAYS = {
    2: "CCITT",
    3: "fax",
    4: "fax",
    6: "JPEG",
    7: "JPEG",
    32773: "PackBits",
    34925: "LZMA",
    50000: "Zstandard",
}
#: A picture has no more entries than these, and takes no more bytes beside its pixels.
_MOST_TAGS, _BYTES_BESIDE = 256, 1 << 20
#: A truth has no more pages.
_MOST_PAGES = 1 << 16
_BIG_ENDINGS = (b"II+\0", b"MM\0+")
_SAVE_AGAIN = (
    "Save the labels as unsigned numbers of 8 or 16 bits, in strips, without compression, by LZW or by deflate"
)
_UPLOAD_AGAIN = "Write the file again and repeat the upload"

# ── LZW ──

_CLEAR, _END, _FIRST, _LONGEST = 256, 257, 258, 12
#: A writer fills the table before it begins anew, so a file that does so more often than once in these bytes is none.
_BYTES_OF_TABLE, _SPARE_TABLES = 1024, 16
#: The table's size is known before each code of a block is read, and so how wide the code is, and where it begins.
_CODE_WIDTHS = 9 + (np.arange(_FIRST - 1, 1 << _LONGEST)[:, None] >= np.array([511, 1023, 2047])).sum(axis=1)
_CODE_STARTS = np.cumsum(_CODE_WIDTHS) - _CODE_WIDTHS
_LITERALS = [bytes([value]) for value in range(256)]


class _Page(NamedTuple):
    """One picture of a file: what its tags say."""

    size: Size
    bits: int
    compression: int
    predictor: int
    rows: int
    strips: List[Tuple[int, int]]


def check_length(length: int, size: Size, pages: int = 1) -> None:
    """Refuse a file that is far larger than any label map of this (height, width), before it is read."""
    limit = pages * (_BYTES_BESIDE // 16 + 3 * size[0] * size[1]) + _BYTES_BESIDE
    if length > limit:
        raise Flaw(f"has {length:,} bytes, and labels of this size never take more than {limit:,}", _SAVE_AGAIN)


def size_of(data: bytes) -> Tuple[int, int, int]:
    """Return pages, height and width; of several pages the first one's."""
    pages = _read_pages(data, _MOST_PAGES)
    return (len(pages), *pages[0].size)


def read_labels(data: bytes, size: Size, pages: int = 1) -> Array:
    """Return the labels of so many pages of this (height, width) below each other, in 8 or 16 bits."""
    page_list = _read_pages(data, pages)
    if len(page_list) != pages:
        raise Flaw(f"has {len(page_list)} slices; the frame has {pages}", "Send the frame with all its slices")
    for page in page_list:
        if page.size != size:
            raise Flaw(
                f"is {page.size[1]}×{page.size[0]} pixels but the frame is {size[1]}×{size[0]}",
                "Save masks at the size of the frames, without resizing",
            )
    if sum(length for page in page_list for _, length in page.strips) > len(data):
        raise Flaw("is damaged: its strips overlap", _UPLOAD_AGAIN)
    order = "<" if data[:1] == b"I" else ">"
    pictures = [_read_page(data, page, order) for page in page_list]
    return pictures[0] if pages == 1 else np.concatenate(pictures)


def _read_pages(data: bytes, limit: int) -> List[_Page]:
    if data[:4] in _BIG_ENDINGS:
        raise Flaw("is a BigTIFF", "Save it as a usual TIFF")
    if data[:4] not in (b"II*\0", b"MM\0*"):
        kind = kind_of(data)
        fault = f"is {kind}, not a TIFF" if kind else "is not a TIFF" if data else "is empty"
        raise Flaw(fault, "Save masks as TIFF")
    order = "<" if data[:1] == b"I" else ">"
    pages: List[_Page] = []
    try:
        (offset,) = struct.unpack_from(f"{order}I", data, 4)
        while offset:
            if len(pages) == limit:
                raise Flaw(
                    f"has more than {limit} {'slice' if limit == 1 else 'slices'}",
                    "Send the frame with all its slices, and nothing else",
                )
            tags, offset = _read_tags(data, offset, order)
            pages.append(_page_of(tags))
    except struct.error:
        raise Flaw("is cut off: the file ends inside its tags", _UPLOAD_AGAIN) from None
    if not pages:
        raise Flaw("is damaged: it holds no picture", _UPLOAD_AGAIN)
    return pages


def _read_tags(data: bytes, offset: int, order: str) -> Tuple[Dict[int, Tuple[int, ...]], int]:
    """Return the numbers of the tags that count, and where the next picture's tags are."""
    (count,) = struct.unpack_from(f"{order}H", data, offset)
    if not 0 < count <= _MOST_TAGS:
        raise Flaw(f"is damaged: a picture of it has {count:,} tags", _UPLOAD_AGAIN)
    tags: Dict[int, Tuple[int, ...]] = {}
    for entry in range(offset + 2, offset + 2 + 12 * count, 12):
        tag, kind, length = struct.unpack_from(f"{order}HHI", data, entry)
        if not _WIDTH <= tag <= _FORMAT or kind not in _TYPES:
            continue
        form = f"{order}{length}{_TYPES[kind]}"
        if length > len(data):
            raise Flaw("is cut off: the file ends inside its tags", _UPLOAD_AGAIN)
        value_offset = entry + 8
        if struct.calcsize(form) > 4:
            (value_offset,) = struct.unpack_from(f"{order}I", data, value_offset)
        tags[tag] = struct.unpack_from(form, data, value_offset)
    (following,) = struct.unpack_from(f"{order}I", data, offset + 2 + 12 * count)
    return tags, following


def _page_of(tags: Dict[int, Tuple[int, ...]]) -> _Page:
    def number(tag: int, default: int) -> int:
        return tags[tag][0] if tags.get(tag) else default

    size, bits, samples = (number(_HEIGHT, 0), number(_WIDTH, 0)), number(_BITS, 1), number(_SAMPLES, 1)
    compression, predictor = number(_COMPRESSION, _PLAIN), number(_PREDICTOR, 1)
    if not all(size):
        raise Flaw("is damaged: it says no size", _UPLOAD_AGAIN)
    if _TILES in tags:
        raise Flaw("is written in tiles", _SAVE_AGAIN)
    if samples != 1:
        raise Flaw(f"has {samples} channels", _SAVE_AGAIN)
    if bits not in (8, 16) or number(_FORMAT, 1) != 1:
        kind = {2: "signed numbers", 3: "floating numbers"}.get(number(_FORMAT, 1), "numbers")
        raise Flaw(f"holds {kind} of {bits} bits", _SAVE_AGAIN)
    if compression not in (_PLAIN, _LZW, *_DEFLATES):
        way = _OTHER_WAYS.get(compression, f"way {compression}")
        raise Flaw(f"is compressed by {way}", _SAVE_AGAIN)
    if predictor not in (1, 2):
        raise Flaw(f"is written with the predictor {predictor}", _SAVE_AGAIN)
    rows = min(number(_ROWS, size[0]), size[0])
    offsets, lengths = tags.get(_OFFSETS, ()), tags.get(_LENGTHS, ())
    if not rows or not len(offsets) == len(lengths) == -(-size[0] // rows):
        raise Flaw("is damaged: its strips are not those of its size", _UPLOAD_AGAIN)
    return _Page(size, bits, compression, predictor, rows, list(zip(offsets, lengths)))


def _read_page(data: bytes, page: _Page, order: str) -> Array:
    height, width = page.size
    kind = np.dtype(f"{order}u{page.bits // 8}")
    strips = []
    for index, (offset, length) in enumerate(page.strips):
        count = min(page.rows, height - index * page.rows) * width * kind.itemsize
        if offset + length > len(data):
            raise Flaw("is cut off: the file ends inside its pixels", _UPLOAD_AGAIN)
        strips.append(_inflate(data[offset : offset + length], page.compression, count))
    numbers = np.frombuffer(strips[0] if len(strips) == 1 else b"".join(strips), kind).reshape(page.size)
    numbers = numbers.astype(kind.newbyteorder("="), copy=False)
    if page.predictor == 2:
        numbers = np.cumsum(numbers, axis=1, dtype=numbers.dtype)
    return numbers


def _inflate(strip: bytes, compression: int, count: int) -> bytes:
    """Return the bytes of a strip, which are so many."""
    if compression == _PLAIN:
        inflated = strip[:count]
    elif compression == _LZW:
        inflated = inflate_lzw(strip, count)
    else:
        whole = inflate_stream(strip, count)
        try:
            inflated = zlib.decompressobj().decompress(strip, count) if whole is None else bytes(whole)
        except zlib.error:
            raise Flaw("is damaged: its pixels cannot be inflated", _UPLOAD_AGAIN) from None
    if len(inflated) < count:
        raise Flaw("is cut off: it has fewer pixels than its size", _UPLOAD_AGAIN)
    return inflated


def inflate_lzw(strip: bytes, count: int) -> bytes:
    """Return the first so many bytes of a strip that TIFF's LZW wrote; fewer where it ends before.

    The codes of a block, from one clearing of the table to the next, are taken out at once, since the width of each
    follows from its place; a step of Python is left for each code, of which label maps have one in many pixels.
    """
    values = np.frombuffer(strip + bytes(3), np.uint8).astype(np.int64)
    words = (values[:-2] << 16) | (values[1:-1] << 8) | values[2:]
    inflated: List[bytes] = []
    length, bit, bits = 0, 0, 8 * len(strip)
    for _ in repeat(None, _SPARE_TABLES + count // _BYTES_OF_TABLE):
        places = bit + _CODE_STARTS
        places = places[: int(np.searchsorted(places + _CODE_WIDTHS, bits, side="right"))]
        widths = _CODE_WIDTHS[: len(places)]
        codes = (words[places >> 3] >> (24 - (places & 7) - widths)) & ((1 << widths) - 1)
        stops = np.flatnonzero((codes == _CLEAR) | (codes == _END))
        stop = int(stops[0]) if len(stops) else len(codes)
        inflated.append(_join_block(codes[:stop].tolist()))
        length += len(inflated[-1])
        if length >= count or stop == len(codes) or codes[stop] == _END:
            return b"".join(inflated)[:count]
        bit = int(places[stop] + widths[stop])
    raise Flaw("is damaged: its LZW begins anew far too often", _UPLOAD_AGAIN)


def _join_block(codes: List[int]) -> bytes:
    """Return the bytes that the codes between two clearings of the table stand for."""
    if not codes:
        return b""
    table = [*_LITERALS, b"", b""]
    before = b""
    block = []
    for code in codes:
        if code < len(table):
            entry = table[code]
        elif code == len(table) and before:
            entry = before + before[:1]
        else:
            raise Flaw("is damaged: its LZW has a code that nothing stands for", _UPLOAD_AGAIN)
        if before:
            table.append(before + entry[:1])
        block.append(entry)
        before = entry
    return b"".join(block)
