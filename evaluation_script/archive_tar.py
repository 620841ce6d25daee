"""Tar streams: names, sizes and bytes, and nothing that could hurt.

Our own because the worker's Python 3.9 has a tarfile that a negative offset
sends into an endless loop (CVE-2025-8194), and that takes 25 µs a member,
where this takes 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

from .errors import Flaw, printable

BLOCK = 512
#: A long name is held in a member of its own, which is never larger than this.
LONG_NAME = 1 << 13
FILE_KINDS = (b"0", b"\0", b"7")
PACK_AGAIN = "Make the archive again and repeat the upload"


@dataclass(frozen=True)
class Member:
    """What a header says of the bytes that follow it."""

    name: str
    size: int
    folder: bool = False
    flaw: Optional[Flaw] = None


def begins(start: bytes) -> bool:
    """Is this the first block of a tar?"""
    return len(start) >= BLOCK and start[257:262] == b"ustar" and _sum_agrees(start[:BLOCK])


def members(stream: Any, count: Callable[[], None]) -> Iterator[Member]:
    """Every member in its order; the caller reads or skips its bytes before asking for the next.

    `count` is called for every header, those of long names included.
    """
    long_name = ""
    while True:
        header = stream.read(BLOCK)
        if len(header) < BLOCK:
            raise Flaw("is a tar that was cut off: its end is missing", PACK_AGAIN)
        if not header.strip(b"\0"):
            return
        if not _sum_agrees(header):
            raise Flaw("is a damaged tar: a header's checksum is wrong", PACK_AGAIN)
        count()
        kind, size = header[156:157], _number(header[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            if size > LONG_NAME:
                raise Flaw("is a tar with an endless file name", PACK_AGAIN)
            extra = content(stream, Member("a long name", size))
            if kind == b"L":
                long_name = _text(extra.rstrip(b"\0"))
            elif kind == b"x":
                long_name = _pax_path(extra) or long_name
            continue
        name = long_name or _name(header)
        long_name = ""
        if kind in FILE_KINDS:
            yield Member(name, size, folder=name.endswith("/"))
        elif kind == b"5":
            yield Member(name, size, folder=True)
        else:
            flaw = Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
            yield Member(name, size if kind == b"S" else 0, flaw=flaw)


def content(stream: Any, member: Member) -> bytes:
    """The bytes of the member whose header was just read."""
    data: bytes = stream.read(member.size)
    if len(data) < member.size:
        raise Flaw(f"is a tar that was cut off, inside {printable(member.name)}", PACK_AGAIN)
    stream.read(room(member) - member.size)
    return data


def room(member: Member) -> int:
    """How many bytes a member takes, in whole blocks."""
    return member.size + -member.size % BLOCK


def _sum_agrees(header: bytes) -> bool:
    try:
        declared = int(header[148:156].strip(b"\0 ") or b"-1", 8)
    except ValueError:
        return False
    return declared == sum(header) - sum(header[148:156]) + 8 * ord(" ")


def _number(field: bytes) -> int:
    """A size: octal text, or base 256 when the first bit is set."""
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
    """The path among records of the form `27 path=long/name` and a line feed."""
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
