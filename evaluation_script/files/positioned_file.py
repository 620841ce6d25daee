"""A file whose position belongs to the object that reads it, so that forked processes do not move each other's."""

from __future__ import annotations

import errno
import io
import os


class PositionedFile(io.FileIO):
    """A file that is read at positions of its own; forked processes share nothing but the open file."""

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
        rest = max(0, self._length - self._position)
        parts, left = [], rest if size is None or size < 0 else min(size, rest)
        while left > 0:
            part = os.pread(self.fileno(), left, self._position)
            if not part:
                break
            parts.append(part)
            self._position += len(part)
            left -= len(part)
        return b"".join(parts)

    def __del__(self) -> None:
        self.close()  # here and not by FileIO itself, which would warn
