"""Inflation of a file's bytes with the fastest installed inflater; gzip within limits.

libdeflate (the package `deflate`) takes a fifth of zlib's time. It only reports that a stream is damaged, and rejects
more than zlib; streams that it rejects are read again with zlib, which decides and describes the fault. gzip is read by
zlib itself, because the gzip module reads an endless file name byte by byte.
"""

from __future__ import annotations

import errno
import io
import os
import struct
import zipfile
import zlib
from threading import Lock
from typing import IO, Iterator, Optional, Union

from .limits import PACK_AGAIN, ArchiveLimits, size_text
from .problems import Flaw

try:
    import deflate
except ImportError:
    LIBDEFLATE = False
else:
    LIBDEFLATE = True

Inflated = Union[bytes, bytearray]
#: Locked while a file's position is changed, on systems that cannot read at a position.
_POSITION = Lock()

crc32 = deflate.crc32 if LIBDEFLATE else zlib.crc32

#: Members of a zip above this size are read in parts.
_LARGEST_MEMBER = 16 << 20
_LOCAL = struct.Struct("<4s22xHH")
#: The usual bytes between a member's name and its data: times, user and group.
_USUAL_EXTRA = 28
#: Fewer bytes are read with the header and copied, which takes less time than a second call of the system.
_COPIED = 1 << 14


def inflate_stream(data: bytes, length: int, *, bare: bool = False) -> Optional[Inflated]:
    """Inflate a zlib stream to exactly this length; None on failure. A bare stream has no checksum."""
    if LIBDEFLATE:
        try:
            inflated: Inflated = (deflate.deflate_decompress if bare else deflate.zlib_decompress)(data, length)
        except deflate.DeflateError:
            return None
        return inflated if len(inflated) == length else None
    stream = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
    try:
        inflated = stream.decompress(data, length)
        surplus = stream.decompress(stream.unconsumed_tail, 1)  # reads the checksum
    except zlib.error:
        return None
    return inflated if len(inflated) == length and stream.eof and not surplus else None


def read_at(file: int, count: int, start: int) -> bytes:
    """Return bytes of an open file from a position, without moving the file's own."""
    if hasattr(os, "pread"):
        return os.pread(file, count, start)
    with _POSITION:
        before = os.lseek(file, 0, os.SEEK_CUR)
        try:
            os.lseek(file, start, os.SEEK_SET)
            return os.read(file, count)
        finally:
            os.lseek(file, before, os.SEEK_SET)


def inflate_member(archive: Optional[IO[bytes]], info: zipfile.ZipInfo) -> Optional[Inflated]:
    """Return a member of an open zip; None if it is large or differs from its header, which zipfile handles."""
    if not 0 < info.file_size <= _LARGEST_MEMBER:
        return None
    try:
        file, length = archive.fileno() if archive else -1, len(info.orig_filename)
        ahead = info.compress_size if info.compress_size < _COPIED else 0
        data = read_at(file, _LOCAL.size + length + _USUAL_EXTRA + ahead, info.header_offset)
        signature, name, extra = _LOCAL.unpack_from(data)
        start = _LOCAL.size + name + extra
        if signature != b"PK\x03\x04" or data[_LOCAL.size : start - extra].decode("ascii") != info.orig_filename:
            return None
        packed = data[start : start + info.compress_size]
        if len(packed) < info.compress_size:
            packed = read_at(file, info.compress_size, info.header_offset + start)
    except (OSError, ValueError, struct.error):
        return None
    if info.compress_type == zipfile.ZIP_DEFLATED:
        inflated = inflate_stream(packed, info.file_size, bare=True)
    else:
        inflated = packed if info.compress_type == zipfile.ZIP_STORED else None
    return inflated if inflated and len(inflated) == info.file_size and crc32(inflated) == info.CRC else None


MAGIC = b"\x1f\x8b"
#: zlib's constant for data with a gzip header, whose checksum it then verifies.
_WINDOW = 31
#: A gzip file may have several members; real files have a few.
_MOST_MEMBERS = 64
#: The number of bytes read and inflated at a time.
STEP = 1 << 16


class InflatedStream:
    """The inflated bytes of a gzip file; reading raises a Flaw beyond the limits or on damage."""

    def __init__(self, path: str, limits: ArchiveLimits, limit: int) -> None:
        self._chunks = _inflate(path, limits, limit)
        self._rest = bytearray()

    def read(self, count: int) -> bytes:
        while len(self._rest) < count and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        data = bytes(self._rest[:count])
        del self._rest[:count]
        return data

    def skip(self, count: int) -> int:
        """Skip this many bytes; return the number skipped."""
        passed = 0
        while passed < count:
            data = self.read(min(count - passed, STEP))
            if not data:
                break
            passed += len(data)
        return passed


def _inflate(path: str, limits: ArchiveLimits, limit: int) -> Iterator[bytes]:
    inflated, members = 0, 1
    stream = zlib.decompressobj(_WINDOW)
    damaged = Flaw("is a damaged gzip file", PACK_AGAIN)
    with open(path, "rb") as file:
        waiting = b""
        while True:
            waiting = waiting or file.read(STEP)
            if not waiting:
                raise damaged
            try:
                data = stream.decompress(waiting, STEP)
            except zlib.error:
                raise damaged from None
            waiting = stream.unconsumed_tail
            inflated += len(data)
            if inflated > limit:
                raise Flaw(f"would unpack to more than {size_text(limit)}", "Send a zip instead")
            if inflated > 8 * limits.ratio_from and inflated > limits.ratio * file.tell():
                raise Flaw(f"unpacks to more than {limits.ratio} times its size, like a gzip bomb", PACK_AGAIN)
            if data:
                yield data
            if stream.eof:
                waiting = stream.unused_data.lstrip(b"\0") or file.read(STEP).lstrip(b"\0")
                if not waiting:
                    return
                members += 1
                if members > _MOST_MEMBERS or not waiting.startswith(MAGIC[: len(waiting)]):
                    raise damaged
                stream = zlib.decompressobj(_WINDOW)


class PositionedFile(io.FileIO):
    """A file read at its own position, so that forked processes share only the open file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._position, self._length = 0, os.fstat(self.fileno()).st_size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        remaining_bytes = max(0, self._length - self._position)
        chunks, missing_bytes = [], remaining_bytes if size is None or size < 0 else min(size, remaining_bytes)
        while missing_bytes > 0:
            chunk = read_at(self.fileno(), missing_bytes, self._position)
            if not chunk:
                break
            chunks.append(chunk)
            self._position += len(chunk)
            missing_bytes -= len(chunk)
        return b"".join(chunks)

    def __del__(self) -> None:
        self.close()  # here instead of in FileIO, which would warn
