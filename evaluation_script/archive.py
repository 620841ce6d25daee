"""A stranger's zip, tar, gzip, JSON or folder → names and bytes.

What a file is, is read from its content: EvalAI loses the original name.
Nothing is written to disk, and every limit is checked before inflating.
"""

from __future__ import annotations

import gzip
import os
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO, Iterator

from . import tar
from .errors import Flaw, Problem, Problems, SubmissionError, shown

#: How the whole upload is called where it has no name of its own.
UPLOAD = "your file"

#: What EvalAI stores in place of a large upload that broke.
PLACEHOLDER = b"file_content"

#: The name under which a lone JSON file is found.
JSON_NAME = "submission.json"

#: What operating systems leave in archives.
LITTER = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN"})

ARCHIVE_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".rar", ".7z", ".bz2", ".xz")
SEND_ZIP = "Send one zip with a folder of PNG masks for each sequence, or one JSON file"
ZIP_AGAIN = "Make the archive again and repeat the upload"

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
)


@dataclass(frozen=True)
class Limits:
    """How much a submission may hold."""

    #: Files and folders in an archive.
    members: int = 200_000
    #: One file, inflated.
    member_bytes: int = 64 << 20
    #: All files, inflated.
    total_bytes: int = 8 << 30
    #: What has to be kept in memory at once: a JSON file, or a compressed tar.
    memory_bytes: int = 192 << 20
    #: Inflated to deflated size, for files above `ratio_from` bytes.
    ratio: int = 200
    ratio_from: int = 4 << 20
    #: Folders inside folders.
    depth: int = 12
    #: Objects that a prediction may hold in one sequence.
    objects: int = 255


class Files:
    """Names and bytes; litter is left out, names are checked."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def read(self, name: str) -> bytes:
        """The bytes of one file."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the file below."""


def open_files(path: str, limits: Limits, *, trusted: bool = False) -> Files:
    """Open what is at this path; raises SubmissionError when it is nothing we read.

    A trusted folder (a dataset on the host's disk) may hold links.
    """
    if os.path.isdir(path):
        return _Folder(path, limits, follow=trusted)
    try:
        with open(path, "rb") as file:
            start = file.read(tar.BLOCK)
    except OSError as error:
        raise SubmissionError.of(Problem(path, f"cannot be opened ({error.strerror})", "Check the path")) from None
    try:
        return _by_content(path, start, limits)
    except Flaw as flaw:
        raise SubmissionError.of(flaw.at(UPLOAD)) from None


def _by_content(path: str, start: bytes, limits: Limits) -> Files:
    if start.strip() == PLACEHOLDER:
        raise Flaw(
            "did not arrive: EvalAI holds a placeholder of 12 bytes in its place, because the upload broke",
            "Submit it again",
        )
    if not start.strip(b"\0 \r\n\t"):
        raise Flaw("is empty" if os.path.getsize(path) == len(start) else "begins with nothing but blanks", SEND_ZIP)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _Zip(path, limits)
    if start.startswith(b"\x1f\x8b"):
        return _gzipped(path, limits)
    if tar.begins(start):
        return _Tar(path, limits)
    if _is_json(start):
        return _plain_json(path, limits)
    for magic, kind in _UNREADABLE:
        if start.startswith(magic):
            raise Flaw(f"is {kind}", SEND_ZIP)
    raise Flaw("is neither a zip nor a tar archive nor JSON", SEND_ZIP)


def _is_json(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[")


class _Names:
    """Checks the names of an archive's members and adds up their sizes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.problems = Problems()
        self.members = 0
        self.total = 0
        self._taken: set[str] = set()

    def clean(self, raw: str, size: int, packed: int, *, folder: bool = False) -> str | None:
        """The name to know this member by; None for folders, litter and what is refused."""
        self.members += 1
        if self.members > self.limits.members:
            raise Flaw(f"holds more than {self.limits.members:,} files", SEND_ZIP)
        parts = [part for part in raw.replace("\\", "/").split("/") if part not in ("", ".")]
        flaw = _name_flaw(raw, parts, self.limits.depth)
        if flaw is None and not folder and parts and not _is_litter(parts):
            flaw = self._flaw("/".join(parts), size, packed)
        elif flaw is None:
            return None
        if flaw is not None:
            self.problems.add(flaw.at(raw))
            return None
        name = "/".join(parts)
        self._taken.add(name)
        return name

    def _flaw(self, name: str, size: int, packed: int) -> Flaw | None:
        limits = self.limits
        self.total += size
        if self.total > limits.total_bytes:
            raise Flaw(f"would unpack to more than {_bytes(limits.total_bytes)}", SEND_ZIP)
        if size > limits.member_bytes and not name.endswith(".json"):
            return Flaw(f"would unpack to {_bytes(size)}; {_bytes(limits.member_bytes)} is the limit", SEND_ZIP)
        if size > limits.ratio_from and size > limits.ratio * max(packed, 1):
            return Flaw(f"unpacks to more than {limits.ratio} times its size, as a zip bomb does", SEND_ZIP)
        if name in self._taken:
            return Flaw("is in the archive twice", ZIP_AGAIN)
        if name.lower().endswith(ARCHIVE_ENDINGS):
            return Flaw("is an archive inside the archive", "Unpack it first, and zip the masks themselves")
        return None


def _name_flaw(raw: str, parts: list[str], depth: int) -> Flaw | None:
    if raw.startswith(("/", "\\")) or raw[1:2] == ":":
        return Flaw("is an absolute path", "Zip the folder from inside, so that names are relative")
    if ".." in parts:
        return Flaw("points outside the archive", "Zip the folder from inside, so that no name contains ..")
    if len(parts) > depth:
        return Flaw(f"lies {len(parts) - 1} folders deep; {depth - 1} is the limit", SEND_ZIP)
    if any(ord(character) < 32 or 0xD800 <= ord(character) <= 0xDFFF for character in raw):
        return Flaw("has characters in its name that no file should have", "Rename it, in UTF-8")
    return None


def _is_litter(parts: list[str]) -> bool:
    return any(part in LITTER or part.startswith(".") for part in parts)


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.0f} {unit}"
    return f"{count} bytes"


class _Zip(Files):
    """A zip, read member by member."""

    #: Bytes of an entry of the table of contents, with a long name.
    LONGEST_ENTRY = 400

    def __init__(self, path: str, limits: Limits) -> None:
        super().__init__()
        with open(path, "rb") as file:
            self._check_directory(file, limits)
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, OSError, ValueError, struct.error):
            raise Flaw("is a damaged zip: its table of contents cannot be read", ZIP_AGAIN) from None
        self._infos: dict[str, zipfile.ZipInfo] = {}
        names = _Names(limits)
        for info in self._zip.infolist():
            self._take(info, names)
        names.problems.raise_if_any()

    @staticmethod
    def _check_directory(file: BinaryIO, limits: Limits) -> None:
        """Refuse a huge table of contents before zipfile makes an object of every entry."""
        end = file.seek(0, os.SEEK_END)
        tail_start = max(0, end - (1 << 16) - 22 - 20 - 56)
        file.seek(tail_start)
        tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or at + 22 > len(tail):
            raise Flaw("is a zip that was cut off: its table of contents is missing", ZIP_AGAIN)
        count, size, offset = struct.unpack_from("<HII", tail, at + 10)
        at64 = tail.rfind(b"PK\x06\x06", 0, at)
        if at64 >= 0 and at64 + 56 <= len(tail) and (count == 0xFFFF or size == 0xFFFFFFFF or offset == 0xFFFFFFFF):
            count, size = struct.unpack_from("<QQ", tail, at64 + 32)
            at = at64
        too_many = Flaw(f"holds more than {limits.members:,} files", SEND_ZIP)
        if count > limits.members:
            raise too_many
        if size > tail_start + at:
            raise Flaw("is a damaged zip: its table of contents is larger than the file", ZIP_AGAIN)
        if size > _Zip.LONGEST_ENTRY * limits.members:
            raise too_many
        file.seek(max(0, tail_start + at - size))
        if file.read(size).count(b"PK\x01\x02") > limits.members:
            raise too_many

    def _take(self, info: zipfile.ZipInfo, names: _Names) -> None:
        flaw = _member_flaw(info)
        if flaw is not None:
            names.problems.add(flaw.at(info.filename))
            return
        name = names.clean(info.filename, info.file_size, info.compress_size, folder=info.is_dir())
        if name is not None:
            self._infos[name] = info
            self.sizes[name] = info.file_size

    def read(self, name: str) -> bytes:
        try:
            return self._zip.read(self._infos[name])
        except zipfile.BadZipFile as error:
            what = "its checksum is wrong" if "CRC" in str(error) else "it cannot be unpacked"
            raise Flaw(f"is damaged in the zip: {what}", ZIP_AGAIN) from None
        except (zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError, struct.error):
            raise Flaw("is damaged in the zip: it cannot be unpacked", ZIP_AGAIN) from None

    def close(self) -> None:
        self._zip.close()


def _member_flaw(info: zipfile.ZipInfo) -> Flaw | None:
    if info.flag_bits & 0x1:
        return Flaw("is encrypted", "Make the zip without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Flaw(f"is packed by a method that is not read here ({info.compress_type})", "Use the ordinary deflate")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
    if not info.flag_bits & 0x800 and not info.orig_filename.isascii():
        try:
            info.filename = info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            return Flaw("has a name that is not UTF-8", "Rename it with plain letters")
    if "\0" in info.orig_filename:
        return Flaw("has characters in its name that no file should have", "Rename it, in UTF-8")
    return None


class _Tar(Files):
    """A plain tar: members are found by their place in the file."""

    def __init__(self, path: str, limits: Limits) -> None:
        super().__init__()
        self._file = open(path, "rb")  # noqa: SIM115 - open as long as this is
        self._offsets: dict[str, int] = {}
        names = _Names(limits)
        for member in _members(self._file, names):
            name = names.clean(member.name, member.size, member.size, folder=member.folder)
            if name is not None:
                self._offsets[name] = self._file.tell()
                self.sizes[name] = member.size
            tar.skip(self._file, member)
        names.problems.raise_if_any()

    def read(self, name: str) -> bytes:
        self._file.seek(self._offsets[name])
        data = self._file.read(self.sizes[name])
        if len(data) < self.sizes[name]:
            raise Flaw("is cut off: the tar ends inside it", ZIP_AGAIN)
        return data

    def close(self) -> None:
        self._file.close()


def _members(file: BinaryIO, names: _Names) -> Iterator[tar.Member]:
    for member in tar.members(file):
        if member.flaw is not None:
            names.clean("", 0, 0, folder=True)
            names.problems.add(member.flaw.at(member.name))
            tar.skip(file, member)
        else:
            yield member


class _Memory(Files):
    """Files that had to be inflated in one go."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        super().__init__()
        self._contents = contents
        self.sizes = {name: len(content) for name, content in contents.items()}

    def read(self, name: str) -> bytes:
        return self._contents[name]


class _Inflated:
    """A gzip stream that stops at the limits."""

    def __init__(self, path: str, limits: Limits, limit: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - likewise
        self._stream = gzip.GzipFile(fileobj=self._file)
        self._limits = limits
        self._limit = limit
        self._inflated = 0

    def read(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
        except (OSError, EOFError, zlib.error):
            raise Flaw("is a damaged gzip file", ZIP_AGAIN) from None
        self._inflated += len(data)
        if self._inflated > self._limit:
            raise Flaw(f"would unpack to more than {_bytes(self._limit)}", "Send a zip instead")
        packed = max(self._file.tell(), 1)
        if self._inflated > 8 * self._limits.ratio_from and self._inflated > self._limits.ratio * packed:
            raise Flaw(f"unpacks to more than {self._limits.ratio} times its size, as a bomb does", SEND_ZIP)
        return data

    def skip(self, count: int) -> None:
        while count > 0:
            data = self.read(min(count, 1 << 20))
            if not data:
                return
            count -= len(data)


def _gzipped(path: str, limits: Limits) -> Files:
    stream = _Inflated(path, limits, limits.total_bytes)
    start = stream.read(tar.BLOCK)
    if tar.begins(start):
        return _compressed_tar(_Inflated(path, limits, limits.total_bytes), limits)
    if not _is_json(start):
        raise Flaw("is a gzip file that holds neither a tar archive nor JSON", SEND_ZIP)
    stream = _Inflated(path, limits, limits.memory_bytes)
    parts = iter(lambda: stream.read(1 << 20), b"")
    return _Memory({JSON_NAME: b"".join(parts)})


def _compressed_tar(stream: _Inflated, limits: Limits) -> Files:
    """A compressed tar can only be read from its beginning, so its masks are kept in memory."""
    names, contents, kept = _Names(limits), {}, 0
    for member in tar.members(stream):
        name = None
        if member.flaw is not None:
            names.problems.add(member.flaw.at(member.name))
        else:
            name = names.clean(member.name, member.size, member.size, folder=member.folder)
        if name is None or not name.lower().endswith((".png", ".json")):
            tar.skip(stream, member)
            continue
        kept += member.size
        if kept > limits.memory_bytes:
            raise Flaw(f"is a compressed tar of more than {_bytes(limits.memory_bytes)}", "Send a zip instead")
        contents[name] = tar.content(stream, member)
    names.problems.raise_if_any()
    return _Memory(contents)


def _plain_json(path: str, limits: Limits) -> Files:
    size = os.path.getsize(path)
    if size > limits.memory_bytes:
        raise Flaw(f"is JSON of {_bytes(size)}; {_bytes(limits.memory_bytes)} is the limit", "Send a zip of PNG masks")
    with open(path, "rb") as file:
        return _Memory({JSON_NAME: file.read()})


class _Folder(Files):
    """A folder on this machine."""

    def __init__(self, root: str, limits: Limits, *, follow: bool) -> None:
        super().__init__()
        self._root = root
        names = _Names(limits)
        try:
            for folder, folders, files in os.walk(root, followlinks=follow):
                folders.sort()
                for entry in sorted(files) + ([] if follow else [f for f in folders if self._is_link(folder, f)]):
                    self._take(os.path.join(folder, entry), names, follow=follow)
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(root)) from None
        names.problems.raise_if_any()

    @staticmethod
    def _is_link(folder: str, name: str) -> bool:
        return os.path.islink(os.path.join(folder, name))

    def _take(self, path: str, names: _Names, *, follow: bool) -> None:
        raw = os.path.relpath(path, self._root)
        try:
            found = os.stat(path, follow_symlinks=follow)
        except OSError:
            names.problems.add(Problem(raw, "cannot be read", "Check the file and its permissions"))
            return
        if not stat.S_ISREG(found.st_mode):
            names.problems.add(Problem(raw, "is a link or a device, not a file", "Put the file itself there"))
            return
        name = names.clean(raw, found.st_size, found.st_size)
        if name is not None:
            self.sizes[name] = found.st_size

    def read(self, name: str) -> bytes:
        try:
            with open(os.path.join(self._root, name), "rb") as file:
                return file.read(self.sizes[name] + 1)
        except OSError as error:
            raise Flaw(f"cannot be read ({error.strerror})", f"Check the file {shown(name)}") from None
