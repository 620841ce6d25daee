"""Deflated bytes → bytes, by the fastest inflater that is installed.

libdeflate (the package `deflate`) takes a fifth of zlib's time.  It says no more than that a stream is damaged, and
takes less than zlib does; whatever it refuses is read again with zlib, which decides, and has the words.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import Optional, Union

try:
    import deflate
except ImportError:
    LIBDEFLATE = False
else:
    LIBDEFLATE = True

Inflated = Union[bytes, bytearray]

crc32 = deflate.crc32 if LIBDEFLATE else zlib.crc32

#: Larger members of a zip are read in parts.
LARGEST_MEMBER = 16 << 20
_LOCAL = struct.Struct("<4s22xHH")


def whole_stream(data: bytes, length: int, *, bare: bool = False) -> Optional[Inflated]:
    """Return a zlib stream of exactly this length, or None when it is not quite that; bare it has no checksum."""
    if LIBDEFLATE:
        try:
            inflated: Inflated = (deflate.deflate_decompress if bare else deflate.zlib_decompress)(data, length)
        except deflate.DeflateError:
            return None
        return inflated if len(inflated) == length else None
    stream = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
    try:
        inflated = stream.decompress(data, length)
        rest = stream.decompress(stream.unconsumed_tail, 1)  # reads the checksum
    except zlib.error:
        return None
    return inflated if len(inflated) == length and stream.eof and not rest else None


def quickly_inflated(data: bytes, length: int) -> bytes:
    """Return a zlib stream of the same bytes that zlib inflates in no time, where libdeflate is installed."""
    inflated = whole_stream(data, length) if LIBDEFLATE else None
    return data if inflated is None else bytes(deflate.zlib_compress(inflated, 0))


def whole_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Optional[Inflated]:
    """Return a member of a zip, or None when it is large or not quite as declared: zipfile reads those."""
    if not 0 < info.file_size <= LARGEST_MEMBER:
        return None
    try:
        file = archive.fp.fileno() if archive.fp else -1
        signature, name, extra = _LOCAL.unpack(os.pread(file, _LOCAL.size, info.header_offset))
        rest = os.pread(file, name + extra + info.compress_size, info.header_offset + _LOCAL.size)
        if signature != b"PK\x03\x04" or rest[:name].decode("ascii") != info.orig_filename:
            return None
    except (OSError, ValueError, struct.error):
        return None
    packed = rest[name + extra :]
    if info.compress_type == zipfile.ZIP_DEFLATED:
        inflated = whole_stream(packed, info.file_size, bare=True)
    else:
        inflated = packed if info.compress_type == zipfile.ZIP_STORED else None
    return inflated if inflated and len(inflated) == info.file_size and crc32(inflated) == info.CRC else None
