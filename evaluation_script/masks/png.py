"""The PNG reader: it returns the label of every pixel, exactly as the file holds it.

The image must have the size of its frame, so an untrusted header never decides how much memory is used. Only the chunks
of the picture are read. Data beyond its last row are never inflated: libpng calls them surplus in a warning, and reads
the picture, as Pillow and OpenCV do.
"""

from __future__ import annotations

import struct
import zlib
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from ..files import Flaw, kind_of
from ..files.inflate import crc32
from .stack import Array, Size

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: The position after the header's chunk.
_HEADER_END = 33
GREY, RGB, PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_CHANNELS = {RGB: 3, _RGBA: 4}
_DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), _GREY_ALPHA: (8, 16), _RGBA: (8, 16)}
#: The maximum number of chunks. Encoders write a few dozen; an untrusted file could contain millions of empty ones.
_MOST_CHUNKS = 4096
#: The maximum bytes of a mask per pixel, and besides its pixels.
_BYTES_PER_PIXEL, _BYTES_BESIDE = 8, 1 << 20
#: The rectangles of an interlaced PNG in order: first column and row, steps between them.
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
#: The value of undecoded pixels, which is no 4-bit label and no palette colour.
_UNDECODED = 173
#: The weights of red, green and blue in a pixel's brightness, in 32,768ths: those of OpenCV 4.8.1, which rounds down.
_BRIGHTNESS = np.array([9797, 19234, 3737], np.uint32)
_SAVE_AGAIN = "Save the mask again as a palette or grey PNG"
_UPLOAD_AGAIN = "Write the file again and repeat the upload"


class Header(NamedTuple):
    """The header of a PNG: its size and format."""

    width: int
    height: int
    depth: int
    colour: int
    interlaced: int

    @property
    def channels(self) -> int:
        """Return the number of values per pixel; grey with alpha counts as one."""
        return _CHANNELS.get(self.colour, 1)

    def row_bytes(self, width: int) -> int:
        """Return the number of bytes of a row: its filter and pixels."""
        return 1 + (width * self.depth * self.channels + 7) // 8

    def pixel_bytes(self) -> int:
        """Return the number of bytes of all inflated rows."""
        if not self.interlaced:
            return self.height * self.row_bytes(self.width)
        sizes = [(-(-(self.width - x) // dx), -(-(self.height - y) // dy)) for x, y, dx, dy in _ADAM7]
        return sum(height * self.row_bytes(width) for width, height in sizes if width > 0 and height > 0)


def read_labels(data: bytes, size: Size) -> Array:
    """Return the labels of a mask of this (height, width), in 8 or 16 bits."""
    _, numbers = _read_numbers(data, size)
    return numbers if numbers.ndim == 2 else _labels_of_colours(numbers)


def read_greys(data: bytes, size: Size) -> Array:
    """Return the grey of every pixel of a picture of this (height, width), in 8 bits, as OpenCV reads it."""
    header, numbers = _read_numbers(data, size)
    if header.colour == GREY:
        greys = numbers >> 8 if header.depth == 16 else numbers * (255 // ((1 << header.depth) - 1))
        return greys.astype(np.uint8)
    wide = (numbers if numbers.ndim == 3 else palette_of(data)[numbers])[..., :3].astype(np.uint32)
    return (wide @ _BRIGHTNESS >> 15).astype(np.uint8)


def palette_of(data: bytes) -> Array:
    """Return the 256 palette colours of a valid picture, padded with black."""
    colours, position, kind = np.zeros((256, 3), np.uint8), len(SIGNATURE), b""
    while kind not in (b"PLTE", b"IEND"):
        length, kind = struct.unpack_from(">I4s", data, position)
        if kind == b"PLTE":
            count = min(length // 3, 256)
            colours[:count] = np.frombuffer(data, np.uint8, 3 * count, position + 8).reshape(-1, 3)
        position += 12 + length
    return colours


def _read_numbers(data: bytes, size: Size) -> Tuple[Header, Array]:
    """Return the header and pixels (numbers or colours) of a picture of this (height, width)."""
    header, pixels = _chunks_of_size(data, size)
    if header.colour == _GREY_ALPHA:
        raise Flaw("is grey with an alpha channel", _SAVE_AGAIN)
    refuse_deep_colours(data, _SAVE_AGAIN)
    return header, _read_by_pillow(header, pixels)


def read_codes(data: bytes, size: Size) -> Array:
    """Return red + 256 × green + 65,536 × blue for every pixel of a picture of this (height, width)."""
    header, pixels = _chunks_of_size(data, size)
    if (header.colour, header.depth) not in ((RGB, 8), (_RGBA, 8)):
        raise Flaw("is not an RGB picture with 8 bits per channel", "Write the ids of segments as colours, in RGB")
    return _join_channels(_read_by_pillow(header, pixels))


def sample_kind_of(data: bytes) -> Tuple[int, int]:
    """Return bit depth and colour type from an unchecked header; 0 and -1 if it is not a PNG."""
    return (data[24], data[25]) if data[:8] == SIGNATURE and len(data) > 25 else (0, -1)


def is_coloured(data: bytes) -> bool:
    """Return whether a picture has colour channels; False if it is not a PNG."""
    return sample_kind_of(data)[1] in (RGB, _RGBA)


def refuse_colours(data: bytes, remedy: str) -> None:
    """Raise a Flaw for a colour picture where label images are expected."""
    if is_coloured(data):
        raise Flaw("is a colour picture", remedy)


def refuse_deep_colours(data: bytes, remedy: str) -> None:
    """Raise a Flaw for a 16-bit colour picture, which is not supported."""
    if is_coloured(data) and sample_kind_of(data)[0] > 8:
        raise Flaw("is a 16-bit colour image", remedy)


def check_length(length: int, size: Size) -> None:
    """Raise a Flaw for a file far larger than any mask of this (height, width), before reading it."""
    limit = _BYTES_BESIDE + _BYTES_PER_PIXEL * size[0] * size[1]
    if length > limit:
        raise Flaw(f"has {length:,} bytes; a mask of this size takes at most {limit:,}", _SAVE_AGAIN)


def size_of(data: bytes) -> Size:
    """Return the (height, width) in the header; the rest is read only if the header is damaged."""
    start = data[:_HEADER_END]
    sound = len(start) == _HEADER_END and start.startswith(SIGNATURE + b"\0\0\0\rIHDR")
    sound = sound and crc32(start[12:29]) == int.from_bytes(start[29:], "big")
    header = _read_header(start[16:29]) if sound else _read_chunks(data)[0]
    return header.height, header.width


def _chunks_of_size(data: bytes, size: Size) -> Tuple[Header, bytes]:
    """Return the result of `_read_chunks` for a picture of this (height, width)."""
    header, pixels = _read_chunks(data)
    if (header.height, header.width) != size:
        raise Flaw(
            f"is {header.width}x{header.height} pixels but the frame is {size[1]}x{size[0]}",
            "Save masks at the size of the frames, without resizing",
        )
    return header, pixels


def _read_chunks(data: bytes) -> tuple[Header, bytes]:
    """Return the header and the compressed pixels, skipping all other chunks."""
    if not data.startswith(SIGNATURE):
        kind = kind_of(data)
        fault = f"is {kind}, not a PNG" if kind else "is not a PNG" if data else "is empty"
        raise Flaw(fault, "Save masks as PNG")
    header: Optional[Header] = None
    pixels: List[bytes] = []
    position, view = len(SIGNATURE), memoryview(data)
    for _ in range(_MOST_CHUNKS):
        if position + 12 > len(data):
            raise Flaw("is cut off: the file ends before its last chunk", _UPLOAD_AGAIN)
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            raise Flaw("is cut off: the file ends inside a chunk", _UPLOAD_AGAIN)
        if kind in (b"IHDR", b"IDAT"):
            if crc32(view[position + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
                raise Flaw(f"is damaged: the checksum of its {kind.decode()} chunk is wrong", _UPLOAD_AGAIN)
            body = data[position + 8 : end]
            if kind == b"IHDR":
                if header is not None:
                    raise Flaw("is damaged: it has two headers", _UPLOAD_AGAIN)
                header = _read_header(body)
            else:
                pixels.append(body)
        if header is None:
            raise Flaw("is damaged: it does not begin with its header", _UPLOAD_AGAIN)
        if kind == b"IEND":
            break
        position = end + 4
    else:
        raise Flaw(f"has more than {_MOST_CHUNKS} chunks", _SAVE_AGAIN)
    if not pixels:
        raise Flaw("is damaged: it has no pixels", _UPLOAD_AGAIN)
    return header, b"".join(pixels)


def _read_header(body: bytes) -> Header:
    if len(body) != 13:
        raise Flaw("is damaged: its header has the wrong length", _UPLOAD_AGAIN)
    width, height, depth, colour, compression, filtering, interlaced = struct.unpack(">IIBBBBB", body)
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlaced > 1 or not width or not height:
        raise Flaw("is damaged: its header holds invalid values", _UPLOAD_AGAIN)
    return Header(width, height, depth, colour, interlaced)


def _read_by_pillow(header: Header, pixels: bytes) -> Array:
    """Return the pixels, decoded by Pillow's decoder, which takes half the time of opening a file.

    Grey of up to 8 bits is decoded as if it had a palette: Pillow would stretch
    2 and 4 bits to 255, and a palette index is the raw value.  Pillow accepts
    pixels that end between two rows and leaves the rows below as they were.
    """
    from PIL import Image  # the kernel needs none: its import takes a tenth of a small submission

    mode, raw_mode = _modes(header)
    value = _UNDECODED if header.channels == 1 else (_UNDECODED,) * header.channels
    image = Image.new(mode, (header.width, header.height), value)
    try:
        image.frombytes(pixels, "zip", raw_mode, header.interlaced)
        labels = np.asarray(image)
        suspicious = header.interlaced or (labels[-1, -1] == _UNDECODED).all()  # rare, since inflating again is slow
        if suspicious and len(_inflate(header, pixels)) < header.pixel_bytes():
            raise ValueError("rows are missing")
    except (ValueError, OSError, SyntaxError, zlib.error):
        raise _decoding_flaw(header, pixels) from None
    return labels


def _modes(header: Header) -> Tuple[str, str]:
    """Return Pillow's modes of this kind of image and of its raw pixels."""
    if header.colour in _CHANNELS:
        return ("RGB",) * 2 if header.colour == RGB else ("RGBA",) * 2
    if header.depth == 16:
        return "I;16", "I;16B"
    return "P", "P" if header.depth == 8 else f"P;{header.depth}"


def _decoding_flaw(header: Header, pixels: bytes) -> Flaw:
    """Return the fault of pixels that could not be decoded."""
    try:
        raw = _inflate(header, pixels)
    except zlib.error:
        return Flaw("is damaged: its pixels cannot be inflated", _UPLOAD_AGAIN)
    if len(raw) < header.pixel_bytes() and not header.interlaced:
        row = len(raw) // header.row_bytes(header.width)
        return Flaw(f"is cut off: its pixels end in row {row} of {header.height}", _UPLOAD_AGAIN)
    return Flaw("is damaged: its pixels cannot be decoded", _UPLOAD_AGAIN)


def _inflate(header: Header, pixels: bytes) -> bytes:
    return zlib.decompressobj().decompress(pixels, header.pixel_bytes())


def davis_palette(bright: int = 192) -> Array:
    """Return the DAVIS colours of the labels 0 to 255 (PASCAL VOC's bit order)."""
    labels = np.arange(256)[:, None]
    channels = np.arange(3)[None, :]
    levels = np.zeros((256, 3), np.int64)
    for bit in range(3):
        levels |= (labels >> (channels + 3 * bit) & 1) << (7 - bit)
    levels[(levels == 192)] = bright
    return levels.astype(np.uint8)


def _colour_table() -> tuple[Array, Array]:
    """Return colour codes in rising order, and their labels.

    Some tools of DAVIS write 191 for 192, and white is the foreground of DAVIS-2016.
    """
    palettes = [davis_palette(), davis_palette(bright=191), np.full((1, 3), 255, np.uint8)]
    labels = np.concatenate([np.arange(256), np.arange(256), [255]])
    codes, indices = np.unique(_join_channels(np.concatenate(palettes)), return_index=True)
    return codes, labels[indices].astype(np.uint8)


#: The greys of the DAVIS palette; images with only these greys are read by the palette.
_PALETTE_GREYS = bytes([0, 64, 128, 191, 192, 255])


def merge_channels(codes: Array, remedy: str) -> Array:
    """Return the label that all channels hold, given colours as `read_codes` does; raises a Flaw where they differ."""
    labels = codes & 0xFF
    if (codes != labels * 0x010101).any():
        raise Flaw("is a colour picture", remedy)
    return labels.astype(np.uint8)


def holds_equal_channels(data: bytes, size: Size) -> bool:
    """Return whether `read_labels` takes one channel of a colour PNG of this (height, width) for all."""
    _, image = _read_numbers(data, size)
    return _channel_of(_join_channels(image)) is not None


def _channel_of(codes: Array) -> Optional[Array]:
    """Return one channel of colours, if all are equal and hold a grey that the DAVIS palette lacks."""
    labels = codes.astype(np.uint8)
    if not np.array_equal(codes, labels * np.uint32(0x010101)):
        return None
    return labels if labels.tobytes().translate(None, _PALETTE_GREYS) else None


def _labels_of_colours(image: Array) -> Array:
    """Return the labels of an RGB(A) picture painted in the DAVIS palette, or with the label in each channel."""
    if image.shape[2] == 4 and image[:, :, 3].min() < 255:
        y, x = np.argwhere(image[:, :, 3] < 255)[0]
        raise Flaw(f"is transparent at pixel ({x}, {y})", _SAVE_AGAIN)
    return labels_of_codes(_join_channels(image))


def labels_of_codes(codes: Array) -> Array:
    """Return the labels of colours, given as `read_codes` does, as `read_labels` does."""
    if (channel := _channel_of(codes)) is not None:
        return channel
    colours, labels = _colour_table()
    pixels = codes.reshape(-1)
    starts = np.flatnonzero(np.append(True, pixels[1:] != pixels[:-1]))  # neighbours mostly have the same colour
    runs = pixels[starts]
    index = np.searchsorted(colours, runs)  # always in range: white is the highest code
    if (unknown := colours[index] != runs).any():
        y, x = divmod(int(starts[unknown.argmax()]), codes.shape[1])
        colour = tuple(int(codes[y, x]) >> bits & 0xFF for bits in (0, 8, 16))
        raise Flaw(
            f"is a colour image whose pixel ({x}, {y}) has the colour {colour}, which is not the colour of a label",
            _SAVE_AGAIN,
        )
    return np.repeat(labels[index], np.diff(starts, append=len(pixels))).reshape(codes.shape)


def _join_channels(image: Array) -> Array:
    wide = image[..., :3].astype(np.uint32)
    return wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16
