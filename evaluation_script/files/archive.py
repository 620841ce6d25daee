"""An untrusted zip, tar, gzip, JSON or folder → names and bytes.

What a file is, is read from its content: EvalAI loses the original name.
Nothing is written to disk, and every limit is checked before inflating.
"""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Iterator, NoReturn, Union

from . import gzips as archive_gzip
from .folder import FolderFiles
from .gzips import InflatedStream
from .limits import CHUNK_BYTES, ArchiveLimits, Files, kind_of, size_text
from .problems import Flaw, HostError, Problem, SubmissionError
from .tars import BLOCK, CompressedTarFiles, TarFiles, begins_tar
from .zips import ZipFiles

#: What the upload itself is called in problems.
UPLOAD = "your file"

#: What EvalAI stores in place of a large upload that broke.
PLACEHOLDER = b"file_content"

#: The name of a JSON file that was sent alone.
JSON_NAME = "submission.json"


class FolderElsewhere(str):
    """The address of a folder that is not on this machine; the toolkit reads some."""

    __slots__ = ()

    def opened(self, limits: ArchiveLimits) -> Files:
        """Return its files."""
        raise NotImplementedError


def unreadable(path: str, error: Exception, found: str = "") -> HostError:
    """Return the error of a host's file that cannot be read, in words of its own and without a participant's."""
    text = str(error).replace(f"{UPLOAD}: ", "").replace("found in your submission:", "found in the truth:")
    if found:
        return HostError(f"{path}: {found} ({text[len(path) + 2 :] if text.startswith(f'{path}: ') else text})")
    return HostError(text if text.startswith(path) else f"{path}: {text}")


def open_files(path: str, limits: ArchiveLimits) -> Files:
    """Open a submission; raise SubmissionError when it is of no kind that is read here."""
    if isinstance(path, FolderElsewhere):
        return path.opened(limits)
    if os.path.isdir(path):
        return FolderFiles(path, limits)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SubmissionError.of(Problem(path, "is a device, not a file", "Check the path"))
        with open(path, "rb") as file:
            start = file.read(BLOCK)
    except OSError as error:
        raise SubmissionError.of(Problem(path, f"cannot be opened ({error.strerror})", "Check the path")) from None
    try:
        return _by_content(path, start, limits)
    except Flaw as flaw:
        raise SubmissionError.of(flaw.at(UPLOAD)) from None


def _by_content(path: str, start: bytes, limits: ArchiveLimits) -> Files:
    if start.strip() == PLACEHOLDER:
        raise Flaw(
            "did not arrive: EvalAI holds a placeholder of 12 bytes in its place, because the upload broke",
            "Submit it again",
        )
    if not start.strip(b"\0 \r\n\t"):
        raise Flaw("is empty" if os.path.getsize(path) == len(start) else "begins with blanks alone", limits.send)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ZipFiles(path, limits)
    if start.startswith(archive_gzip.MAGIC):
        return _gzipped(path, limits)
    if begins_tar(start):
        return TarFiles(path, limits)
    if kind := "a single PNG" if start.startswith(b"\x89PNG") else kind_of(start):
        raise Flaw(f"is {kind}", limits.send)
    if _is_json(start):
        return _JsonFile(path, limits, gzipped=False)
    raise Flaw("is neither a zip nor a tar archive nor JSON", limits.send)


def _is_json(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[")


def _gzipped(path: str, limits: ArchiveLimits) -> Files:
    start = InflatedStream(path, limits, limits.memory_bytes).read(BLOCK)
    if begins_tar(start):
        return CompressedTarFiles(InflatedStream(path, limits, limits.memory_bytes), limits)
    if not _is_json(start):
        raise Flaw("is a gzip file that holds neither a tar archive nor JSON", limits.send)
    return _JsonFile(path, limits, gzipped=True)


class _JsonFile(Files):
    """A JSON file that was sent alone, plain or gzipped."""

    def __init__(self, path: str, limits: ArchiveLimits, *, gzipped: bool) -> None:
        super().__init__()
        self._path, self._limits, self._gzipped = path, limits, gzipped
        self.sizes = {JSON_NAME: os.path.getsize(path)}
        if self.sizes[JSON_NAME] > limits.json_bytes:
            self._refuse(size_text(self.sizes[JSON_NAME]))

    def _refuse(self, size: str) -> NoReturn:
        raise Flaw(f"is JSON of {size}; {size_text(self._limits.json_bytes)} is the limit", self._limits.smaller)

    def parts(self, name: str) -> Iterator[bytes]:
        del name  # there is one
        most, count = self._limits.json_bytes, 0
        with open(self._path, "rb") as file:
            stream: Union[BinaryIO, InflatedStream] = file
            if self._gzipped:
                stream = InflatedStream(self._path, self._limits, most)
            while part := stream.read(CHUNK_BYTES):
                count += len(part)
                if count > most:
                    self._refuse(f"more than {size_text(most)}")
                yield part
