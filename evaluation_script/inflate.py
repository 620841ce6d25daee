"""zlib streams → bytes, by the fastest inflater that is installed."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Callable

#: Inflates a whole stream of so many bytes; raises ValueError for one that is longer or damaged.
Inflater = Callable[[bytes, int], bytes]


def _by_zlib(data: bytes, length: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(data, length)
        rest = stream.decompress(stream.unconsumed_tail, 1)  # reads the checksum
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if rest or not stream.eof:
        raise ValueError("the stream does not end where it should")
    return inflated


@lru_cache(maxsize=None)
def inflater() -> Inflater:
    """Return libdeflate's, which takes about half of zlib's time, where the package `deflate` is installed."""
    try:
        from deflate import DeflateError, zlib_decompress
    except ImportError:
        return _by_zlib

    def by_libdeflate(data: bytes, length: int) -> bytes:
        try:
            return bytes(zlib_decompress(data, length))
        except DeflateError as error:
            raise ValueError(str(error)) from None

    return by_libdeflate
