"""An untrusted zip, tar, gzip, JSON or folder → names and bytes.

What a file is, is read from its content: EvalAI loses the original name.
Nothing is written to disk, and every limit is checked before inflating.
"""

from __future__ import annotations

import os
import stat
import zlib
from typing import Any, Iterator, NoReturn

from . import archive_tar
from .archive_folder import FolderFiles
from .archive_limits import PACK_AGAIN, PIECE, ArchiveLimits, Files, Names, told
from .archive_zip import ZipFiles
from .errors import Flaw, Problem, SubmissionError, printable

#: How the whole upload is called where it has no name of its own.
UPLOAD = "your file"

#: What EvalAI stores in place of a large upload that broke.
PLACEHOLDER = b"file_content"

#: The name under which a lone JSON file is found.
JSON_NAME = "submission.json"

GZIP = b"\x1f\x8b"
#: zlib's word for a gzip header, whose checksum it then holds against the data.
GZIP_WINDOW = 31
#: A gzip file may be several in a row; nobody makes more than a few.
GZIP_PARTS = 64
PART = 1 << 16

_UNREADABLE = (
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x89PNG", "a single PNG"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a numpy file"),
    (b"\x80\x04", "a pickle"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def open_files(path: str, limits: ArchiveLimits) -> Files:
    """Open what is at this path; raises SubmissionError when it is nothing we read."""
    if os.path.isdir(path):
        return FolderFiles(path, limits)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SubmissionError.of(Problem(path, "is a device, not a file", "Check the path"))
        with open(path, "rb") as file:
            start = file.read(archive_tar.BLOCK)
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
    if start.startswith(GZIP):
        return _gzipped(path, limits)
    if archive_tar.begins(start):
        return _Tar(path, limits)
    for magic, kind in _UNREADABLE:
        if start.startswith(magic):
            raise Flaw(f"is {kind}", limits.send)
    if _is_json(start):
        return _Json(path, limits, gzipped=False)
    raise Flaw("is neither a zip nor a tar archive nor JSON", limits.send)


def _is_json(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[")


class _Tar(Files):
    """A plain tar: members are found by their place in the file."""

    def __init__(self, path: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._file = open(path, "rb")  # noqa: SIM115 - open as long as this is
        self._offsets: dict[str, int] = {}
        names, size = Names(limits), os.path.getsize(path)
        for member in archive_tar.members(self._file, names.count):
            name = _tar_name(member, names)
            if name is not None:
                self._offsets[name] = self._file.tell()
                self.sizes[name] = member.size
            if self._file.tell() + member.size > size:
                raise Flaw(f"is a tar that was cut off, inside {printable(member.name)}", PACK_AGAIN)
            self._file.seek(archive_tar.room(member), os.SEEK_CUR)
        names.problems.raise_if_any()

    def read(self, name: str) -> bytes:
        return b"".join(self.parts(name))

    def parts(self, name: str) -> Iterator[bytes]:
        position, left = self._offsets[name], self.sizes[name]
        while left > 0:
            self._file.seek(position)
            part = self._file.read(min(PIECE, left))
            if not part:
                raise Flaw("is cut off: the tar ends inside it", PACK_AGAIN)
            position, left = position + len(part), left - len(part)
            yield part

    def close(self) -> None:
        self._file.close()


def _tar_name(member: archive_tar.Member, names: Names) -> str | None:
    if member.flaw is not None:
        names.problems.add(member.flaw.at(member.name))
        return None
    return names.clean(member.name, member.size, member.size, folder=member.folder)


class _Memory(Files):
    """Files that had to be inflated in one go."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        super().__init__()
        self._contents = contents
        self.sizes = {name: len(content) for name, content in contents.items()}

    def read(self, name: str) -> bytes:
        return self._contents[name]


class _Inflated:
    """A gzip stream that stops at the limits.

    By zlib itself: the gzip module reads an endless file name byte by byte.
    """

    def __init__(self, path: str, limits: ArchiveLimits, most: int) -> None:
        self._parts = self._inflate(path, limits, most)
        self._held = b""

    def read(self, count: int) -> bytes:
        """Up to so many bytes."""
        got = [self._held]
        length = len(self._held)
        while length < count:
            part = next(self._parts, b"")
            if not part:
                break
            got.append(part)
            length += len(part)
        data = b"".join(got)
        self._held = data[count:]
        return data[:count]

    def skip(self, count: int) -> int:
        """Pass over so many bytes; how many there were."""
        passed = 0
        while passed < count:
            data = self.read(min(count - passed, PART))
            if not data:
                break
            passed += len(data)
        return passed

    @staticmethod
    def _inflate(path: str, limits: ArchiveLimits, most: int) -> Iterator[bytes]:
        inflated, packed, parts = 0, 0, 1
        stream = zlib.decompressobj(GZIP_WINDOW)
        damaged = Flaw("is a damaged gzip file", PACK_AGAIN)
        with open(path, "rb") as file:
            waiting = b""
            while True:
                waiting = waiting or file.read(PART)
                if not waiting and not stream.eof:
                    raise damaged
                try:
                    data = stream.decompress(waiting, PART)
                except zlib.error:
                    raise damaged from None
                waiting = stream.unconsumed_tail
                packed, inflated = file.tell(), inflated + len(data)
                if inflated > most:
                    raise Flaw(f"would unpack to more than {told(most)}", "Send a zip instead")
                if inflated > 8 * limits.ratio_from and inflated > limits.ratio * packed:
                    raise Flaw(f"unpacks to more than {limits.ratio} times its size, as a bomb does", PACK_AGAIN)
                if data:
                    yield data
                if stream.eof:
                    waiting = stream.unused_data.lstrip(b"\0") or file.read(PART).lstrip(b"\0")
                    if not waiting:
                        return
                    parts += 1
                    if parts > GZIP_PARTS or not waiting.startswith(GZIP[: len(waiting)]):
                        raise damaged
                    stream = zlib.decompressobj(GZIP_WINDOW)


def _gzipped(path: str, limits: ArchiveLimits) -> Files:
    most = limits.memory_bytes
    start = _Inflated(path, limits, most).read(archive_tar.BLOCK)
    if archive_tar.begins(start):
        return _compressed_tar(_Inflated(path, limits, most), limits)
    if not _is_json(start):
        raise Flaw("is a gzip file that holds neither a tar archive nor JSON", limits.send)
    return _Json(path, limits, gzipped=True)


def _compressed_tar(stream: _Inflated, limits: ArchiveLimits) -> Files:
    """A compressed tar can only be read from its beginning, so its masks are kept in memory."""
    names, contents = Names(limits), {}
    for member in archive_tar.members(stream, names.count):
        name = _tar_name(member, names)
        if name is not None and name.lower().endswith((".png", ".json")):
            contents[name] = archive_tar.content(stream, member)
        elif stream.skip(archive_tar.room(member)) < member.size:
            raise Flaw(f"is a tar that was cut off, inside {printable(member.name)}", PACK_AGAIN)
    while stream.skip(PART):  # to the end, where the checksum is
        pass
    names.problems.raise_if_any()
    return _Memory(contents)


class _Json(Files):
    """A lone JSON file, plain or gzipped."""

    def __init__(self, path: str, limits: ArchiveLimits, *, gzipped: bool) -> None:
        super().__init__()
        self._path, self._limits, self._gzipped = path, limits, gzipped
        self.sizes = {JSON_NAME: os.path.getsize(path)}
        if self.sizes[JSON_NAME] > limits.json_bytes:
            self._refuse(told(self.sizes[JSON_NAME]))

    def _refuse(self, size: str) -> NoReturn:
        raise Flaw(f"is JSON of {size}; {told(self._limits.json_bytes)} is the limit", self._limits.smaller)

    def read(self, name: str) -> bytes:
        return b"".join(self.parts(name))

    def parts(self, name: str) -> Iterator[bytes]:
        del name  # there is one
        most, count = self._limits.json_bytes, 0
        with open(self._path, "rb") as file:
            source: Any = _Inflated(self._path, self._limits, most) if self._gzipped else file
            for part in iter(lambda: source.read(PIECE), b""):
                count += len(part)
                if count > most:
                    self._refuse(f"more than {told(most)}")
                yield part
