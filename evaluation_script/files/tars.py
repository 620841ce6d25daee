"""An untrusted tar, plain or compressed.

Read by code of our own because the worker's Python 3.9 has a tarfile that a negative offset
sends into an endless loop (CVE-2025-8194), and that takes 25 µs a member,
where this takes 4.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Union

from .gzips import STEP, InflatedStream
from .limits import CHUNK_BYTES, PACK_AGAIN, ArchiveLimits, Files, MemberChecks
from .positioned_file import PositionedFile
from .problems import Flaw, printable

BLOCK = 512
#: A long name is in a member of its own, at most this large.
LONG_NAME = 1 << 13
FILE_KINDS = (b"0", b"\0", b"7")

#: The bytes of a tar, in their order.
Stream = Union[PositionedFile, InflatedStream]


def begins_tar(start: bytes) -> bool:
    """Return whether these bytes hold the first block of a tar."""
    return len(start) >= BLOCK and start[257:262] == b"ustar" and _checksum_matches(start[:BLOCK])


class TarFiles(Files):
    """The files of a plain tar, found by their position."""

    def __init__(self, path: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._file = PositionedFile(path)
        self._positions: dict[str, int] = {}
        try:
            self._find_members(MemberChecks(limits), os.path.getsize(path))
        except BaseException:
            self.close()
            raise

    def _find_members(self, checks: MemberChecks, size: int) -> None:
        for member in _members(self._file, checks.count):
            name = _clean_name(member, checks)
            if name is not None:
                self._positions[name] = self._file.tell()
                self.sizes[name] = member.size
            if self._file.tell() + member.size > size:
                raise _cut_off(member)
            self._file.seek(_padded(member), os.SEEK_CUR)
        checks.problems.raise_if_any()

    def parts(self, name: str) -> Iterator[bytes]:
        position, left = self._positions[name], self.sizes[name]
        while left > 0:
            self._file.seek(position)
            part = self._file.read(min(CHUNK_BYTES, left))
            if not part:
                raise Flaw("is cut off: the tar ends inside it", PACK_AGAIN)
            position, left = position + len(part), left - len(part)
            yield part

    def close(self) -> None:
        self._file.close()


class CompressedTarFiles(Files):
    """The files of a compressed tar, kept in memory: it can only be read from its beginning."""

    def __init__(self, stream: InflatedStream, limits: ArchiveLimits) -> None:
        super().__init__()
        self._contents: dict[str, bytes] = {}
        checks = MemberChecks(limits)
        for member in _members(stream, checks.count):
            name = _clean_name(member, checks)
            if name is not None:
                self._contents[name] = _content(stream, member)
            elif stream.skip(_padded(member)) < member.size:
                raise _cut_off(member)
        while stream.skip(STEP):  # to the end, where the checksum is
            pass
        checks.problems.raise_if_any()
        self.sizes = {name: len(content) for name, content in self._contents.items()}

    def parts(self, name: str) -> Iterator[bytes]:
        for start in range(0, self.sizes[name], CHUNK_BYTES):
            yield self._contents[name][start : start + CHUNK_BYTES]


def _clean_name(member: _Member, checks: MemberChecks) -> Optional[str]:
    if member.flaw is not None:
        checks.problems.add(member.flaw.at(member.name))
        return None
    return checks.clean_name(member.name, member.size, member.size, folder=member.folder)


@dataclass(frozen=True)
class _Member:
    """The header of a member, whose bytes follow it."""

    name: str
    size: int
    folder: bool = False
    flaw: Optional[Flaw] = None


def _members(stream: Stream, count: Callable[[], None]) -> Iterator[_Member]:
    """Yield every member in its order; the caller reads or skips its bytes before asking for the next.

    `count` is called for every header, those of long names included.
    """
    long_name = ""
    while True:
        header = stream.read(BLOCK)
        if len(header) < BLOCK:
            raise Flaw("is a tar that was cut off: its end is missing", PACK_AGAIN)
        if not header.strip(b"\0"):
            return
        if not _checksum_matches(header):
            raise Flaw("is a damaged tar: a header's checksum is wrong", PACK_AGAIN)
        count()
        kind, size = header[156:157], _number(header[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            if size > LONG_NAME:
                raise Flaw("is a tar with an endless file name", PACK_AGAIN)
            extra = _content(stream, _Member("a long name", size))
            if kind == b"L":
                long_name = _text(extra.rstrip(b"\0"))
            elif kind == b"x":
                long_name = _pax_path(extra) or long_name
            continue
        name = long_name or _name(header)
        long_name = ""
        if kind in FILE_KINDS:
            yield _Member(name, size, folder=name.endswith("/"))
        elif kind == b"5":
            yield _Member(name, size, folder=True)
        else:
            flaw = Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
            yield _Member(name, size if kind == b"S" else 0, flaw=flaw)


def _content(stream: Stream, member: _Member) -> bytes:
    """Return the bytes of the member whose header was just read."""
    data = stream.read(member.size)
    if len(data) < member.size:
        raise _cut_off(member)
    stream.read(_padded(member) - member.size)
    return data


def _padded(member: _Member) -> int:
    """Return the bytes that a member takes, in whole blocks."""
    return member.size + -member.size % BLOCK


def _cut_off(member: _Member) -> Flaw:
    return Flaw(f"is a tar that was cut off, inside {printable(member.name)}", PACK_AGAIN)


def _checksum_matches(header: bytes) -> bool:
    try:
        declared = int(header[148:156].strip(b"\0 ") or b"-1", 8)
    except ValueError:
        return False
    return declared == sum(header) - sum(header[148:156]) + 8 * ord(" ")


def _number(field: bytes) -> int:
    """Return a size: octal text, or base 256 when the first bit is set."""
    if field[0] & 0x80:
        size = int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1
    else:
        try:
            size = int(field.strip(b"\0 ") or b"0", 8)
        except ValueError:
            size = -1
    if not 0 <= size < 1 << 50:
        raise Flaw("is a damaged tar: a member has an impossible size", PACK_AGAIN)
    return size


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _pax_path(extra: bytes) -> str:
    """Return the path among records of the form `27 path=long/name` and a line feed; "" where there is none."""
    position = 0
    while position < len(extra):
        space = extra.find(b" ", position, position + 6)
        digits = extra[position:space] if space > 0 else b""
        length = int(digits) if digits.isdigit() else 0
        if not len(digits) < length <= len(extra) - position:
            raise Flaw("is a damaged tar: an extended header cannot be read", PACK_AGAIN)
        record = extra[space + 1 : position + length].rstrip(b"\n")
        if record.startswith(b"path="):
            return _text(record[len(b"path=") :])
        position += length
    return ""


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
