"""A gzip stream, inflated within limits.

By zlib itself: the gzip module reads an endless file name byte by byte.
"""

from __future__ import annotations

import zlib
from typing import Iterator

from .limits import PACK_AGAIN, ArchiveLimits, size_text
from .problems import Flaw

MAGIC = b"\x1f\x8b"
#: zlib's constant for data with a gzip header, whose checksum it then verifies.
WINDOW = 31
#: A gzip file may be several in a row; real ones are a few.
MOST_MEMBERS = 64
#: Bytes read and inflated at a time.
STEP = 1 << 16


class InflatedStream:
    """The inflated bytes of a gzip file; a Flaw where they exceed the limits or are damaged."""

    def __init__(self, path: str, limits: ArchiveLimits, most: int) -> None:
        self._parts = _inflated(path, limits, most)
        self._rest = bytearray()

    def read(self, count: int) -> bytes:
        """Return up to so many bytes."""
        while len(self._rest) < count and (part := next(self._parts, b"")):
            self._rest += part
        data = bytes(self._rest[:count])
        del self._rest[:count]
        return data

    def skip(self, count: int) -> int:
        """Pass over so many bytes; return how many there were."""
        passed = 0
        while passed < count:
            data = self.read(min(count - passed, STEP))
            if not data:
                break
            passed += len(data)
        return passed


def _inflated(path: str, limits: ArchiveLimits, most: int) -> Iterator[bytes]:
    inflated, members = 0, 1
    stream = zlib.decompressobj(WINDOW)
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
            if inflated > most:
                raise Flaw(f"would unpack to more than {size_text(most)}", "Send a zip instead")
            if inflated > 8 * limits.ratio_from and inflated > limits.ratio * file.tell():
                raise Flaw(f"unpacks to more than {limits.ratio} times its size, as a bomb does", PACK_AGAIN)
            if data:
                yield data
            if stream.eof:
                waiting = stream.unused_data.lstrip(b"\0") or file.read(STEP).lstrip(b"\0")
                if not waiting:
                    return
                members += 1
                if members > MOST_MEMBERS or not waiting.startswith(MAGIC[: len(waiting)]):
                    raise damaged
                stream = zlib.decompressobj(WINDOW)
