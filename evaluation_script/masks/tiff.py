"""The TIFF reader: it returns the label of every pixel, of one picture or of the slices of a volume.

Supported are the label maps of microscopes' tools: 8-bit or 16-bit grey in strips, uncompressed, LZW or deflate. `wide`
maps may also have signed numbers, 32 and 64 bits, whole floats, their predictor, tiles, PackBits, BigTIFF, three equal
channels, and Zstandard if a package is installed. The picture must have the size of its frame, so that no header
decides how much memory is used.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from itertools import repeat
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from ..files import Flaw, kind_of, quantity
from ..files.inflate import inflate_stream
from .stack import Array, Size

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _SAMPLES, _PLANES = 256, 257, 258, 259, 277, 284
_OFFSETS, _ROWS, _LENGTHS, _PREDICTOR, _FORMAT = 273, 278, 279, 317, 339
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_LENGTHS = 322, 323, 324, 325
#: The types of numbers in these tags.
_TYPES = {3: "H", 4: "I", 16: "Q"}
#: Numbers are stored as differences from the previous one, or floats as differences of their bytes.
_PREVIOUS_PREDICTOR, _FLOAT_PREDICTOR = 2, 3
_PLAIN, _LZW, _DEFLATES, _PACK_BITS, _ZSTANDARD = 1, 5, (8, 32946), 32773, 50000
#: For wide maps: the kinds of numbers, and their bits.
_WIDE_KINDS = {1: ("u", (8, 16, 32, 64)), 2: ("i", (8, 16, 32, 64)), 3: ("f", (32, 64))}
_OTHER_WAYS = {
    2: "CCITT",
    3: "fax",
    4: "fax",
    6: "JPEG",
    7: "JPEG",
    _PACK_BITS: "PackBits",
    34925: "LZMA",
    _ZSTANDARD: "Zstandard",
}
#: The maximum number of tags, and of bytes in addition to the pixels.
_MOST_TAGS, _BYTES_BESIDE = 256, 1 << 20
#: The maximum number of pages of a truth.
_MOST_PAGES = 1 << 16
#: The number of channels of a wide map with several, and the value of the tag if each has strips of its own.
_CHANNELS, _SEPARATE = 3, 2
#: The maximum side of a tile.
_LONGEST_TILE = 1 << 12
#: The exclusive maximum of wide maps' labels: pairs of them must fit into 64 bits.
_LABELS_END = 1 << 24
_BIG_ENDINGS = (b"II+\0", b"MM\0+")
_SAVE_AGAIN = (
    "Save labels as unsigned 8-bit or 16-bit numbers in strips, uncompressed or compressed with LZW or deflate"
)
_UPLOAD_AGAIN = "Write the file again and repeat the upload"

# ── LZW ──

_CLEAR, _END, _FIRST, _LONGEST = 256, 257, 258, 12
#: The minimum bytes between restarts of the table, since a writer fills it before it restarts, and the restarts allowed
#: beyond that.
_BYTES_OF_TABLE, _SPARE_TABLES = 1024, 16
#: The width and position of each code of a block, which follow from the table's size.
_CODE_WIDTHS = 9 + (np.arange(_FIRST - 1, 1 << _LONGEST)[:, None] >= np.array([511, 1023, 2047])).sum(axis=1)
_CODE_STARTS = np.cumsum(_CODE_WIDTHS) - _CODE_WIDTHS
_LITERALS = [bytes([value]) for value in range(256)]


class _Page(NamedTuple):
    """One picture of a file, described by its tags."""

    size: Size
    #: The type of pixels: `u`, `i` or `f`, and the number of bytes.
    kind: str
    compression: int
    predictor: int
    #: The number of values of a pixel.
    channels: int
    #: Whether each channel has strips of its own, one channel after the other.
    is_apart: bool
    #: The (height, width) of a tile; a strip is as wide as the picture.
    tile: Size
    #: The start and length in bytes of each tile or strip.
    strips: List[Tuple[int, int]]


def check_length(length: int, size: Size, pages: int = 1, *, wide: bool = False) -> None:
    """Raise a Flaw for a file far larger than any label map of this (height, width), before reading it."""
    pixels = size[0] * size[1]
    picture = 9 * pixels + 2 * (size[0] + size[1]) * _LONGEST_TILE if wide else 3 * pixels
    limit = pages * (_BYTES_BESIDE // 16 + picture) + _BYTES_BESIDE
    if length > limit:
        raise Flaw(f"has {length:,} bytes; labels of this size take at most {limit:,}", _SAVE_AGAIN)


def size_of(data: bytes, *, wide: bool = False) -> Tuple[int, int, int]:
    """Return the number of pages, and the height and width of the first."""
    pages = _read_pages(data, _MOST_PAGES, wide=wide)
    return (len(pages), *pages[0].size)


def has_channels(data: bytes) -> bool:
    """Return whether the first page of a wide map has several channels."""
    return _read_pages(data, _MOST_PAGES, wide=True)[0].channels > 1


def read_labels(data: bytes, size: Size, pages: int = 1, *, wide: bool = False) -> Array:
    """Return the labels of this number of pages of this (height, width), stacked, in 8 or 16 bits."""
    page_list = _read_pages(data, pages, wide=wide)
    if len(page_list) != pages:
        raise Flaw(
            f"has {quantity(len(page_list), 'slice')}; the frame has {pages}", "Send the frame with all its slices"
        )
    for page in page_list:
        if page.size != size:
            raise Flaw(
                f"is {page.size[1]}x{page.size[0]} pixels but the frame is {size[1]}x{size[0]}",
                "Save masks at the size of the frames, without resizing",
            )
    if sum(length for page in page_list for _, length in page.strips) > len(data):
        raise Flaw("is damaged: its strips overlap", _UPLOAD_AGAIN)
    order = "<" if data[:1] == b"I" else ">"
    pictures = [_read_page(data, page, order) for page in page_list]
    if wide:
        pictures = [_narrow(numbers) for numbers in pictures]
    return pictures[0] if pages == 1 else np.concatenate(pictures)


def _narrow(numbers: Array) -> Array:
    """Return labels in the smallest type that holds them; a Flaw if some are not labels."""
    if numbers.dtype.kind == "f":
        odd = numbers[~(np.floor(numbers) == numbers)]
        if odd.size:
            raise Flaw(f"holds {float(odd[0]):.6g}, which is not a whole number", "Save labels as whole numbers")
    lowest, highest = numbers.min(), numbers.max()
    if lowest < 0 or highest >= _LABELS_END:
        label = f"{lowest if lowest < 0 else highest:.0f}"
        raise Flaw(f"holds the label {label}", f"Number objects from 1 to {_LABELS_END - 1:,}; 0 is background")
    return numbers.astype(np.result_type(np.min_scalar_type(int(highest)), np.uint8), copy=False)


def _read_pages(data: bytes, limit: int, *, wide: bool) -> List[_Page]:
    is_big = data[:4] in _BIG_ENDINGS
    if is_big and not wide:
        raise Flaw("is a BigTIFF", "Save it as a classic TIFF")
    if not is_big and data[:4] not in (b"II*\0", b"MM\0*"):
        kind = kind_of(data)
        fault = f"is {kind}, not a TIFF" if kind else "is not a TIFF" if data else "is empty"
        raise Flaw(fault, "Save masks as TIFF")
    order = "<" if data[:1] == b"I" else ">"
    pages: List[_Page] = []
    try:
        (offset,) = struct.unpack_from(f"{order}Q", data, 8) if is_big else struct.unpack_from(f"{order}I", data, 4)
        while offset:
            if len(pages) == limit:
                if wide:
                    raise Flaw("has several pages", "Save one picture per file")
                raise Flaw(
                    f"has more than {limit} {'slice' if limit == 1 else 'slices'}",
                    "Send the frame with all its slices, and nothing else",
                )
            tags, offset = _read_tags(data, offset, order, is_big=is_big)
            pages.append(_page_of(tags, wide=wide))
    except (struct.error, OverflowError):
        raise Flaw("is cut off: the file ends inside its tags", _UPLOAD_AGAIN) from None
    if not pages:
        raise Flaw("is damaged: it holds no picture", _UPLOAD_AGAIN)
    return pages


def _read_tags(data: bytes, offset: int, order: str, *, is_big: bool) -> Tuple[Dict[int, Tuple[int, ...]], int]:
    """Return the values of the used tags, and the position of the next picture's tags."""
    # Bytes of the count of tags, of a tag, and of an address.
    before, step, room = (8, 20, 8) if is_big else (2, 12, 4)
    (count,) = struct.unpack_from(f"{order}{'Q' if is_big else 'H'}", data, offset)
    address = f"{order}{'Q' if is_big else 'I'}"
    if not 0 < count <= _MOST_TAGS:
        raise Flaw(f"is damaged: one of its pictures has {count:,} tags", _UPLOAD_AGAIN)
    tags: Dict[int, Tuple[int, ...]] = {}
    for entry in range(offset + before, offset + before + step * count, step):
        tag, kind, length = struct.unpack_from(f"{order}HH{address[1]}", data, entry)
        if not _WIDTH <= tag <= _FORMAT or kind not in _TYPES:
            continue
        form = f"{order}{length}{_TYPES[kind]}"
        if length > len(data):
            raise Flaw("is cut off: the file ends inside its tags", _UPLOAD_AGAIN)
        value_offset = entry + 4 + room
        if struct.calcsize(form) > room:
            (value_offset,) = struct.unpack_from(address, data, value_offset)
        tags[tag] = struct.unpack_from(form, data, value_offset)
    (following,) = struct.unpack_from(address, data, offset + before + step * count)
    return tags, following


def _page_of(tags: Dict[int, Tuple[int, ...]], *, wide: bool) -> _Page:
    def number(tag: int, default: int) -> int:
        return tags[tag][0] if tags.get(tag) else default

    size, bits, samples = (number(_HEIGHT, 0), number(_WIDTH, 0)), number(_BITS, 1), number(_SAMPLES, 1)
    compression, predictor = number(_COMPRESSION, _PLAIN), number(_PREDICTOR, 1)
    if not all(size):
        raise Flaw("is damaged: it does not state its size", _UPLOAD_AGAIN)
    if _TILE_WIDTH in tags and not wide:
        raise Flaw("is written in tiles", _SAVE_AGAIN)
    if samples != 1 and not (wide and samples == _CHANNELS and number(_PLANES, 1) in (1, _SEPARATE)):
        raise Flaw(f"has {samples} channels", _SAVE_AGAIN)
    letter, widths = _WIDE_KINDS.get(number(_FORMAT, 1), ("", ())) if wide else _WIDE_KINDS[1]
    if bits not in (widths if wide else (8, 16)) or (number(_FORMAT, 1) != 1 and not wide):
        kind = {2: "signed numbers", 3: "floating numbers"}.get(number(_FORMAT, 1), "numbers")
        raise Flaw(f"holds {kind} of {bits} bits", _SAVE_AGAIN)
    if compression not in (_PLAIN, _LZW, *_DEFLATES, *((_PACK_BITS, _ZSTANDARD) if wide else ())):
        way = _OTHER_WAYS.get(compression, f"way {compression}")
        raise Flaw(f"is compressed by {way}", _SAVE_AGAIN)
    if predictor not in (1, _FLOAT_PREDICTOR if letter == "f" else _PREVIOUS_PREDICTOR):
        raise Flaw(f"is written with the predictor {predictor}", _SAVE_AGAIN)
    tile, keys = (min(number(_ROWS, size[0]), size[0]), size[1]), (_OFFSETS, _LENGTHS)
    if _TILE_WIDTH in tags:
        tile, keys = (number(_TILE_HEIGHT, 0), number(_TILE_WIDTH, 0)), (_TILE_OFFSETS, _TILE_LENGTHS)
        if max(tile) > _LONGEST_TILE:
            raise Flaw(f"has tiles of {tile[1]}x{tile[0]} pixels", f"Write tiles of at most {_LONGEST_TILE} pixels")
    offsets, lengths = (tags.get(key, ()) for key in keys)
    is_apart = samples > 1 and number(_PLANES, 1) == _SEPARATE
    count = -(-size[0] // max(1, tile[0])) * -(-size[1] // max(1, tile[1])) * (samples if is_apart else 1)
    if not all(tile) or not len(offsets) == len(lengths) == count:
        raise Flaw("is damaged: its strips do not match its size", _UPLOAD_AGAIN)
    strips = list(zip(offsets, lengths))
    return _Page(size, f"{letter}{bits // 8}", compression, predictor, samples, is_apart, tile, strips)


def _read_page(data: bytes, page: _Page, order: str) -> Array:
    """Return the numbers of a picture, put together from its strips or tiles."""
    (height, width), (tile_height, tile_width) = page.size, page.tile
    kind = np.dtype(f"{order}{page.kind}")
    across, is_tiled = -(-width // tile_width), tile_width != width or tile_height > height
    numbers = np.empty((*page.size, page.channels), kind.newbyteorder("="))
    down, channels = -(-height // tile_height), 1 if page.is_apart else page.channels
    for index, (offset, length) in enumerate(page.strips):
        channel, cell = divmod(index, across * down)
        top, column = cell // across * tile_height, cell % across * tile_width
        rows = tile_height if is_tiled else min(tile_height, height - top)
        if offset + length > len(data):
            raise Flaw("is cut off: the file ends inside its pixels", _UPLOAD_AGAIN)
        count = rows * tile_width * channels * kind.itemsize
        inflated = _inflate(data[offset : offset + length], page.compression, count)
        if page.predictor == _FLOAT_PREDICTOR:
            pixels = _join_floats(inflated, (rows, tile_width, channels), kind.itemsize)
        else:
            pixels = np.frombuffer(inflated, kind).reshape(rows, tile_width, channels)
        if page.predictor == _PREVIOUS_PREDICTOR:
            pixels = np.cumsum(pixels, axis=1, dtype=numbers.dtype)
        region = numbers[top : top + rows, column : column + tile_width, channel : channel + channels]
        region[:] = pixels[: region.shape[0], : region.shape[1]]
    if page.channels > 1 and (numbers[..., :1] != numbers).any():
        raise Flaw("is a colour picture", _SAVE_AGAIN)
    return np.ascontiguousarray(numbers[..., 0])


def _join_floats(inflated: bytes, shape: Tuple[int, int, int], length: int) -> Array:
    """Return floats of this length whose rows hold differences: of all first bytes, then of all second ones, ..."""
    rows, _, channels = shape
    sums = np.cumsum(np.frombuffer(inflated, np.uint8).reshape(rows, -1, channels), axis=1, dtype=np.uint8)
    joined = np.ascontiguousarray(sums.reshape(rows, length, -1).transpose(0, 2, 1))
    return joined.view(f">f{length}").reshape(shape)


def _inflate(strip: bytes, compression: int, count: int) -> bytes:
    """Return the inflated bytes of a strip of this length."""
    if compression == _PLAIN:
        inflated = strip[:count]
    elif compression == _LZW:
        inflated = inflate_lzw(strip, count)
    elif compression == _PACK_BITS:
        inflated = _unpack_bits(strip, count)
    elif compression == _ZSTANDARD:
        inflated = _inflate_zstandard(strip, count)
    else:
        whole = inflate_stream(strip, count)
        try:
            inflated = zlib.decompressobj().decompress(strip, count) if whole is None else bytes(whole)
        except zlib.error:
            raise Flaw("is damaged: its pixels cannot be inflated", _UPLOAD_AGAIN) from None
    if len(inflated) < count:
        raise Flaw("is cut off: it has fewer pixels than its size", _UPLOAD_AGAIN)
    return inflated


def _unpack_bits(strip: bytes, count: int) -> bytes:
    """Return the first bytes of a PackBits strip, up to a length; fewer if it ends early."""
    inflated = bytearray()
    begin = 0
    while begin < len(strip) and len(inflated) < count:
        head, begin = strip[begin], begin + 1
        if head < 128:  # this many bytes plus one, verbatim
            inflated += strip[begin : begin + head + 1]
            begin += head + 1
        elif head > 128:  # one byte, repeated
            inflated += strip[begin : begin + 1] * (257 - head)
            begin += 1
    return bytes(inflated[:count])


@lru_cache(maxsize=1)
def _find_zstandard() -> Any:
    """Return the module of Python 3.14, or the package, that inflates Zstandard; None without any."""
    for name in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            return import_module(name)
    return None


def _inflate_zstandard(strip: bytes, count: int) -> bytes:
    """Return the first bytes of a Zstandard strip, up to a length; fewer if it ends early."""
    module = _find_zstandard()
    if module is None:
        raise Flaw("is compressed by Zstandard, which needs the package zstandard here", _SAVE_AGAIN)
    try:
        decompressor = module.ZstdDecompressor()
        if hasattr(decompressor, "stream_reader"):
            return bytes(decompressor.stream_reader(strip).read(count))
        return bytes(decompressor.decompress(strip, count))
    except module.ZstdError:
        raise Flaw("is damaged: its pixels cannot be inflated", _UPLOAD_AGAIN) from None


def inflate_lzw(strip: bytes, count: int) -> bytes:
    """Return the first bytes of an LZW strip, up to a length; fewer if it ends early.

    All codes between two clearings of the table are extracted at once, because their widths follow from their
    positions. Python then takes one step per code, which usually covers many pixels.
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
    raise Flaw("is damaged: its LZW data restarts far too often", _UPLOAD_AGAIN)


def _join_block(codes: List[int]) -> bytes:
    """Return the bytes of the codes between two clearings of the table."""
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
            raise Flaw("is damaged: its LZW data has an undefined code", _UPLOAD_AGAIN)
        if before:
            table.append(before + entry[:1])
        block.append(entry)
        before = entry
    return b"".join(block)
