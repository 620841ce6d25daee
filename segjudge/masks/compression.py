"""Label images and numbers as PNGs of few bytes, and bytes in their smallest gzipped form."""

import struct
import zlib

import numpy as np

from segjudge.evaluation_script.files.inflate import LIBDEFLATE, crc32
from segjudge.evaluation_script.masks import png
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.stack import Array

_LIBDEFLATE_EFFORT = 12
#: zlib's constants for the zlib and gzip formats.
_ZLIB, _GZIP = zlib.MAX_WBITS, 31
#: The maximum bits of a sample that fits a byte.
_BITS_OF_BYTE = 8


def write_gzipped(data: bytes, out: str) -> None:
    """Write bytes to a file with the best gzip compression."""
    packed = _deflate(data, _GZIP)
    if zlib.decompress(packed, _GZIP) != data:
        raise AssertionError("the gzipped bytes differ from the original ones")
    with open(out, "wb") as file:
        file.write(packed)


def _deflate(data: bytes, form: int, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return bytes in one of zlib's forms, by default the smallest."""
    if LIBDEFLATE:
        import deflate

        pack = deflate.gzip_compress if form == _GZIP else deflate.zlib_compress
        return bytes(pack(data, effort))
    packer = zlib.compressobj(min(effort, zlib.Z_BEST_COMPRESSION), wbits=form)
    return packer.compress(data) + packer.flush()


def read_pixels(data: bytes) -> Array:
    """Return the number of each pixel, or its colour as a number."""
    read = backend().read_codes if png.is_coloured(data) else backend().read_labels
    return read(data, png.size_of(data))


def encode_smallest(data: bytes, pixels: Array) -> bytes:
    """Return the smallest PNG of the same kind and pixels."""
    if png.is_coloured(data):
        return code_png(pixels)
    depth, kind = png.sample_kind_of(data)
    if kind == png.PALETTE:
        depth, colours = _least_depth(pixels), png.palette_of(data).tobytes()
        palette = ((b"PLTE", colours[: 3 << depth]),)
        return _png(pixels.shape, (depth, kind), _pack_bits(pixels, depth), palette)
    rows = pixels.astype(">u2").view(np.uint8) if depth > _BITS_OF_BYTE else _pack_bits(pixels, depth)
    return _png(pixels.shape, (depth, kind), rows)


def code_png(codes: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return an image whose colours are 24-bit numbers."""
    channels = codes.astype("<u4")[..., None].view(np.uint8)[..., :3]
    return _png(codes.shape, (8, png.RGB), channels.reshape(len(codes), -1), effort=effort)


def grey_png(labels: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return a grey image, with 8 bits for bytes, else 16."""
    depth, kind = (8, "u1") if labels.dtype == np.uint8 else (16, ">u2")
    return _png(labels.shape, (depth, png.GREY), labels.astype(kind, order="C").view(np.uint8), effort=effort)


def label_png(labels: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return a label image in DAVIS's palette, with the fewest bits per pixel that its labels need."""
    depth, palette = _least_depth(labels), png.davis_palette()[: int(labels.max(initial=0)) + 1].tobytes()
    return _png(labels.shape, (depth, png.PALETTE), _pack_bits(labels, depth), ((b"PLTE", palette),), effort)


def _least_depth(labels: Array) -> int:
    """Return how many bits the labels of a palette need."""
    return next(bits for bits in (1, 2, 4, _BITS_OF_BYTE) if labels.max(initial=0) < 1 << bits)


def _pack_bits(labels: Array, depth: int) -> Array:
    """Return byte rows packed to the given bits per pixel."""
    in_byte = _BITS_OF_BYTE // depth
    columns = np.pad(labels, ((0, 0), (0, -labels.shape[1] % in_byte))).reshape(len(labels), -1, in_byte)
    rows = np.zeros(columns.shape[:2], np.uint8)
    for column in range(in_byte):
        rows |= columns[:, :, column] << (_BITS_OF_BYTE - depth * (column + 1))
    return rows


def _png(
    size: tuple[int, ...],
    kind: tuple[int, int],
    rows: Array,
    palette: tuple[tuple[bytes, bytes], ...] = (),
    effort: int = _LIBDEFLATE_EFFORT,
) -> bytes:
    """Return a PNG of a (height, width), a (depth, colour type) and rows of bytes."""
    raw = np.pad(rows, ((0, 0), (1, 0))).tobytes()  # no filter: the others make masks larger
    header = struct.pack(">IIBBBBB", size[1], size[0], *kind, 0, 0, 0)
    chunks = ((b"IHDR", header), *palette, (b"IDAT", _deflate(raw, _ZLIB, effort)), (b"IEND", b""))
    return png.SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in chunks
    )
