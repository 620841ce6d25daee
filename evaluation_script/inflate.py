"""Deflated bytes → bytes, by the fastest inflater that is installed.

libdeflate (the package `deflate`) takes about half of zlib's time.  It says no more than that a stream is damaged, and
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
    deflate = None

Inflated = Union[bytes, bytearray]

crc32 = zlib.crc32 if deflate is None else deflate.crc32

#: Larger members of a zip are read in parts.
LARGEST_MEMBER = 16 << 20
_LOCAL = struct.Struct("<4s22xHH")


def whole_stream(data: bytes, length: int) -> Optional[Inflated]:
    """Return a zlib stream of exactly this length, or None when it is not quite that."""
    if deflate is not None:
        try:
            inflated: Inflated = deflate.zlib_decompress(data, length)
        except deflate.DeflateError:
            return None
        return inflated if len(inflated) == length else None
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(data, length)
        rest = stream.decompress(stream.unconsumed_tail, 1)  # reads the checksum
    except zlib.error:
        return None
    return inflated if len(inflated) == length and stream.eof and not rest else None


def whole_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Optional[Inflated]:
    """Return a member of a zip that is a file, or None when it is not quite as declared, or libdeflate is missing."""
    if deflate is None or info.compress_type != zipfile.ZIP_DEFLATED or not 0 < info.file_size <= LARGEST_MEMBER:
        return None
    try:
        file = archive.fp.fileno() if archive.fp else -1
        header = os.pread(file, _LOCAL.size, info.header_offset)
        signature, name, extra = _LOCAL.unpack(header)
        rest = os.pread(file, name + extra + info.compress_size, info.header_offset + _LOCAL.size)
        if signature != b"PK\x03\x04" or rest[:name].decode("ascii") != info.orig_filename:
            return None
        inflated: Inflated = deflate.deflate_decompress(rest[name + extra :], info.file_size)
    except (OSError, ValueError, struct.error, deflate.DeflateError):
        return None
    return inflated if len(inflated) == info.file_size and crc32(inflated) == info.CRC else None
