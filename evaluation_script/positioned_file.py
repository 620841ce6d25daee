"""A file whose position belongs to the object that reads it, so that forked processes do not move each other's."""

from __future__ import annotations

import errno
import io
import os
from typing import BinaryIO, cast


class PositionedFile(io.RawIOBase):
    """A file that is read at positions of its own; forked processes share nothing but the open file."""

    def __init__(self, path: str) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._position, self._length = 0, os.fstat(self._descriptor).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        rest = max(0, self._length - self._position)
        parts, left = [], rest if size is None or size < 0 else min(size, rest)
        while left > 0:
            part = os.pread(self._descriptor, left, self._position)
            if not part:
                break
            parts.append(part)
            self._position += len(part)
            left -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()


def opened(path: str) -> BinaryIO:
    """Open a file to be read by this process and by those that it forks."""
    if not hasattr(os, "pread"):  # where nothing forks either
        return open(path, "rb")
    return cast(BinaryIO, PositionedFile(path))
