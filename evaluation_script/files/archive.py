"""The reader of an untrusted zip, tar, gzip, JSON or folder: it returns names and bytes.

The kind of a file follows from its content, because EvalAI loses the original name. Nothing is written to disk, and
every limit is checked before decompression.

On a server, links in folders are rejected: they would be read with the server's rights. On the user's own machine
(`ArchiveLimits.links`) they are followed; a link to a folder that contains it is skipped. Tars have their own reader:
in the worker's Python 3.9, a negative offset sends tarfile into an endless loop (CVE-2025-8194), and tarfile takes 25
µs per member instead of 4.
"""

from __future__ import annotations

import functools
import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from dataclasses import replace
from typing import BinaryIO, Callable, Dict, FrozenSet, Iterator, NamedTuple, NoReturn, Optional, Tuple, Union

from .inflate import MAGIC, STEP, Inflated, InflatedStream, PositionedFile, inflate_member
from .limits import (
    CHUNK_BYTES,
    FOLDER_MEMBERS,
    FOLDER_PROBLEMS,
    FOLDER_WAYS,
    PACK_AGAIN,
    SEND_LESS,
    ArchiveLimits,
    Files,
    MemberChecks,
    is_litter_name,
    kind_of,
    size_text,
)
from .packed import find_table
from .problems import Flaw, HostError, Problem, Problems, SubmissionError, explain_damage, printable

#: Device and inode of a folder.
_Identity = Tuple[int, int]

_CHECK = "Check it and its permissions"
_NAME_FOLDER = "Name the folder that holds the files"
#: The maximum size of a file that is read at once, so that its bytes are not copied.
_MOST_AT_ONCE = 1 << 30
#: The file in which Linux lists its file systems.
_MOUNTS = "/proc/self/mountinfo"
#: Virtual file systems of the kernel; those in memory (tmpfs) may contain user files.
_SYSTEM_KINDS = frozenset(
    {"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf", "mqueue"}
)


@functools.lru_cache(maxsize=1)
def _find_system_devices() -> Dict[int, str]:
    """Return the kernel's virtual file systems by device; empty if the system does not list them."""
    devices = {}
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                kind, (major, minor) = after.split()[0], map(int, before.split()[2].split(":"))
                if kind in _SYSTEM_KINDS:
                    devices[os.makedev(major, minor)] = kind
    except (OSError, ValueError, IndexError):
        return {}
    return devices


class _FolderFiles(Files):
    def __init__(self, root: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._root, self._limits = root, limits
        members = min(limits.members, FOLDER_MEMBERS)
        self._checks = MemberChecks(replace(limits, members=members), self.hidden_folders)
        #: How often each folder was visited, and the devices of virtual file systems.
        self._visits: Counter[_Identity] = Counter()
        self._system_devices = _find_system_devices()
        #: The paths of files below the root, by the names under which they are read.
        self._paths: dict[str, str] = {}
        try:
            if os.path.dirname(os.path.realpath(root)) == os.path.realpath(root):
                raise Flaw("is the root folder of this machine", _NAME_FOLDER)
            self._walk("", frozenset())
        except Flaw as flaw:
            raise SubmissionError.from_problem(flaw.as_problem(root)) from None
        self._checks.problems.raise_if_any()

    def _walk(self, folder: str, above: FrozenSet[_Identity]) -> None:
        """Add the files of a folder, then those of the folders in it."""
        path = os.path.join(self._root, folder)
        try:
            status = os.stat(path)
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._report(folder or self._root, f"cannot be read ({error.strerror})", "Check its permissions")
            return
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            return
        self._check_folder(folder, identity)
        hidden_entries = [entry for entry in entries if entry.name.startswith(".")]
        self.hidden_folders.update(entry.name for entry in hidden_entries if self._is_folder(entry))
        entries = [entry for entry in entries if not is_litter_name(entry.name)]
        folders = []
        for entry in entries:
            self._checks.count()
            if self._checks.problems.count >= FOLDER_PROBLEMS:
                self._checks.problems.stop()
                self._checks.problems.raise_if_any()
            name = f"{folder}/{entry.name}" if folder else entry.name
            if self._is_folder(entry):
                folders.append(name)
            else:
                self._add_file(entry, name)
        for name in folders:
            if name.count("/") < self._limits.depth:
                self._walk(name, above | {identity})
            else:
                self._checks.clean_name(name, 0, 0)  # its length is the depth

    def _check_folder(self, folder: str, identity: _Identity) -> None:
        """Raise a Flaw for a folder of the kernel, and for a folder that links reach on too many paths."""
        self._visits[identity] += 1
        kind = self._system_devices.get(identity[0])
        if kind is not None:
            subject = f"holds {printable(folder)}, which" if folder else "is a folder that"
            raise Flaw(f"{subject} the system makes ({kind})", _NAME_FOLDER)
        if self._visits[identity] > FOLDER_WAYS:
            fault = f"holds links that reach {printable(folder)} on more than {FOLDER_WAYS:,} paths"
            raise Flaw(fault, "Remove the links between folders")

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=self._limits.links)
        except OSError:  # a link that leads to itself
            return False

    def _add_file(self, entry: os.DirEntry[str], name: str) -> None:
        try:
            status = entry.stat(follow_symlinks=self._limits.links)
        except OSError as error:
            if entry.is_symlink():
                self._report(name, f"is a broken link ({error.strerror})", "Put the file there, or remove it")
            else:
                self._report(name, f"cannot be read ({error.strerror})", _CHECK)
            return
        if not stat.S_ISREG(status.st_mode):
            self._report(name, "is a link or a device, not a file", "Replace it by the file itself")
            return
        clean = self._checks.clean_name(name, status.st_size, status.st_size)
        if clean is not None:
            self.sizes[clean], self._paths[clean] = status.st_size, name

    def _report(self, path: str, fault: str, remedy: str) -> None:
        self._checks.problems.add(Problem(path, fault, remedy))

    def read_chunks(self, name: str) -> Iterator[bytes]:
        try:
            with open(os.path.join(self._root, self._paths[name]), "rb") as file:
                # One byte more, so that a file that has grown does not seem complete
                remaining_bytes = self.sizes[name] + 1
                while chunk := file.read(min(CHUNK_BYTES, remaining_bytes)):
                    remaining_bytes -= len(chunk)
                    yield chunk
        except OSError as error:
            raise Flaw(f"cannot be read ({error.strerror})", _CHECK) from None


#: The size of a member's own header.
_LOCAL_SIZE = 30
#: The maximum bytes of an entry in the table of contents.
_LONGEST_ENTRY = 400
_UTF_8 = 0x800
_ENCRYPTED = 0x1
#: The errors of reading a member whose header or bytes contradict the table of contents, besides zipfile's.
_DAMAGES = (zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error)


class _ZipFiles(Files):
    def __init__(self, path: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._infos: dict[str, zipfile.ZipInfo] = {}
        with open(path, "rb") as file:
            size = _check_table(file, limits)
        self._file = PositionedFile(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except UnicodeDecodeError:
            raise Flaw("is a zip with a file name that is not UTF-8", "Rename that file with plain letters") from None
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, OSError, ValueError, struct.error):
            raise Flaw("is a damaged zip: its table of contents cannot be read", PACK_AGAIN) from None
        try:
            self._find_members(MemberChecks(limits, self.hidden_folders), size)
        except BaseException:
            self.close()
            raise

    def _find_members(self, checks: MemberChecks, size: int) -> None:
        for info in self._zip.infolist():
            checks.count()
            self._add(info, checks, size)
        _check_overlaps(list(self._infos.values()), checks.problems)
        checks.problems.raise_if_any()

    def _add(self, info: zipfile.ZipInfo, checks: MemberChecks, size: int) -> None:
        flaw = _find_flaw(info, size)
        if flaw is not None:
            checks.problems.add(flaw.as_problem(info.filename))
            return
        raw = checks.with_slashes(info.filename)
        name = checks.clean_name(raw, info.file_size, info.compress_size, folder=raw.endswith("/"))
        if name is not None:
            self._infos[name] = info
            self.sizes[name] = info.file_size

    def read(self, name: str) -> bytes:
        return bytes(self.read_buffer(name))

    def read_buffer(self, name: str) -> Inflated:
        whole = inflate_member(self._zip.fp, self._infos[name])
        return super().read(name) if whole is None else whole

    def read_chunks(self, name: str) -> Iterator[bytes]:
        info = self._infos[name]
        remaining_bytes = info.file_size
        try:
            with self._zip.open(info) as member:
                while remaining_bytes > 0:  # not to the end, which would inflate undeclared bytes
                    chunk = member.read(min(CHUNK_BYTES, remaining_bytes))
                    if not chunk:
                        break
                    remaining_bytes -= len(chunk)
                    yield chunk
        except (zipfile.BadZipFile, *_DAMAGES) as error:
            checksum = isinstance(error, zipfile.BadZipFile) and "CRC" in str(error)
            what = "its checksum is wrong" if checksum else "it cannot be unpacked"
            raise Flaw(f"is damaged in the zip: {what}", PACK_AGAIN) from None
        if remaining_bytes > 0:
            raise Flaw("is damaged in the zip: it ends too early", PACK_AGAIN)

    def close(self) -> None:
        self._zip.close()
        self._file.close()


def _check_table(file: BinaryIO, limits: ArchiveLimits) -> int:
    """Raise a Flaw for a huge table of contents before zipfile reads it; return the file's size."""
    table = find_table(file)
    too_many = Flaw(f"holds more than {limits.members:,} files", SEND_LESS)
    if table.entries > limits.members or table.size > _LONGEST_ENTRY * limits.members:
        raise too_many
    file.seek(table.start)
    if file.read(table.size).count(b"PK\x01\x02") > limits.members:  # more entries than the record admits
        raise too_many
    return file.seek(0, os.SEEK_END)


def _find_flaw(info: zipfile.ZipInfo, size: int) -> Flaw | None:
    if info.flag_bits & _ENCRYPTED:
        return Flaw("is encrypted", "Make the zip without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Flaw(f"uses an unsupported compression method ({info.compress_type})", "Use deflate compression")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
    if info.header_offset + _LOCAL_SIZE + info.compress_size > size:
        return Flaw("is cut off: it would reach beyond the end of the zip", PACK_AGAIN)
    if "\0" in info.orig_filename:
        return Flaw("has forbidden characters in its name", "Rename it in UTF-8")
    if not info.flag_bits & _UTF_8 and not info.orig_filename.isascii():
        try:
            info.filename = info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            return Flaw("has a name that is not UTF-8", "Rename it with plain letters")
    return None


def _check_overlaps(infos: list[zipfile.ZipInfo], problems: Problems) -> None:
    """Report members that share bytes, which unpack to far more than the zip's size."""
    infos.sort(key=lambda info: info.header_offset)
    for info, following in zip(infos, infos[1:]):
        if info.header_offset + _LOCAL_SIZE + info.compress_size > following.header_offset:
            flaw = Flaw("shares its bytes with another file of the zip, as a zip bomb does", PACK_AGAIN)
            problems.add(flaw.as_problem(following.filename))


_BLOCK = 512
#: The maximum size of the member that contains a long name.
_LONG_NAME = 1 << 13
_FILE_KINDS = (b"0", b"\0", b"7")

#: The bytes of a tar in order.
_Stream = Union[PositionedFile, InflatedStream]


def _begins_tar(start: bytes) -> bool:
    """Return whether these bytes hold the first block of a tar."""
    return len(start) >= _BLOCK and start[257:262] == b"ustar" and _checksum_matches(start[:_BLOCK])


class _TarFiles(Files):
    """The files of a plain tar, read by position."""

    def __init__(self, path: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._file = PositionedFile(path)
        self._positions: dict[str, int] = {}
        try:
            self._find_members(MemberChecks(limits, self.hidden_folders), os.path.getsize(path))
        except BaseException:
            self.close()
            raise

    def _find_members(self, checks: MemberChecks, size: int) -> None:
        for member in _list_members(self._file, checks.count):
            name = _clean_name(member, checks)
            if name is not None:
                self._positions[name] = self._file.tell()
                self.sizes[name] = member.size
            if self._file.tell() + member.size > size:
                raise _cut_off(member)
            self._file.seek(_size_in_blocks(member), os.SEEK_CUR)
        checks.problems.raise_if_any()

    def read_chunks(self, name: str) -> Iterator[bytes]:
        position, remaining_bytes = self._positions[name], self.sizes[name]
        while remaining_bytes > 0:
            self._file.seek(position)
            chunk = self._file.read(min(CHUNK_BYTES, remaining_bytes))
            if not chunk:
                raise Flaw("is cut off: the tar ends inside it", PACK_AGAIN)
            position, remaining_bytes = position + len(chunk), remaining_bytes - len(chunk)
            yield chunk

    def close(self) -> None:
        self._file.close()


class _CompressedTarFiles(Files):
    """The files of a compressed tar, kept in memory, since it can be read only from its beginning."""

    def __init__(self, stream: InflatedStream, limits: ArchiveLimits) -> None:
        super().__init__()
        self._contents: dict[str, bytes] = {}
        checks = MemberChecks(limits, self.hidden_folders)
        for member in _list_members(stream, checks.count):
            name = _clean_name(member, checks)
            if name is not None:
                self._contents[name] = _read_content(stream, member)
            elif stream.skip(_size_in_blocks(member)) < member.size:
                raise _cut_off(member)
        while stream.skip(STEP):  # to the end, where the checksum is
            pass
        checks.problems.raise_if_any()
        self.sizes = {name: len(content) for name, content in self._contents.items()}

    def read_chunks(self, name: str) -> Iterator[bytes]:
        for start in range(0, self.sizes[name], CHUNK_BYTES):
            yield self._contents[name][start : start + CHUNK_BYTES]


def _clean_name(member: _Member, checks: MemberChecks) -> Optional[str]:
    if member.flaw is not None:
        checks.problems.add(member.flaw.as_problem(member.name))
        return None
    return checks.clean_name(member.name, member.size, member.size, folder=member.folder)


class _Member(NamedTuple):
    """The header of a tar member."""

    name: str
    size: int
    folder: bool = False
    flaw: Optional[Flaw] = None


def _list_members(stream: _Stream, count: Callable[[], None]) -> Iterator[_Member]:
    """Yield every member in its order; the caller reads or skips its bytes before asking for the next.

    `count` is called for every header, including those of long names.
    """
    long_name = ""
    while True:
        header = stream.read(_BLOCK)
        if len(header) < _BLOCK:
            raise Flaw("is a tar that was cut off: its end is missing", PACK_AGAIN)
        if not header.strip(b"\0"):
            return
        if not _checksum_matches(header):
            raise Flaw("is a damaged tar: a header's checksum is wrong", PACK_AGAIN)
        count()
        kind, size = header[156:157], _parse_size(header[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            if size > _LONG_NAME:
                raise Flaw("is a tar with an unterminated file name", PACK_AGAIN)
            extra = _read_content(stream, _Member("a long name", size))
            if kind == b"L":
                long_name = _decode_name(extra.rstrip(b"\0"))
            elif kind == b"x":
                long_name = _pax_path(extra) or long_name
            continue
        name = long_name or _name(header)
        long_name = ""
        if kind in _FILE_KINDS:
            yield _Member(name, size, folder=name.endswith("/"))
        elif kind == b"5":
            yield _Member(name, size, folder=True)
        else:
            flaw = Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
            yield _Member(name, size if kind == b"S" else 0, flaw=flaw)


def _read_content(stream: _Stream, member: _Member) -> bytes:
    """Return the bytes of the most recently opened member."""
    data = stream.read(member.size)
    if len(data) < member.size:
        raise _cut_off(member)
    stream.read(_size_in_blocks(member) - member.size)
    return data


def _size_in_blocks(member: _Member) -> int:
    """Return the size of a member in whole blocks."""
    return member.size + -member.size % _BLOCK


def _cut_off(member: _Member) -> Flaw:
    return Flaw(f"is a tar that was cut off, inside {printable(member.name)}", PACK_AGAIN)


def _checksum_matches(header: bytes) -> bool:
    try:
        declared = int(header[148:156].strip(b"\0 ") or b"-1", 8)
    except ValueError:
        return False
    return declared == sum(header) - sum(header[148:156]) + 8 * ord(" ")


def _parse_size(field: bytes) -> int:
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
    return _decode_name(prefix + b"/" + name if prefix else name)


def _pax_path(extra: bytes) -> str:
    """Return the path among records of the form `27 path=long/name` and a line feed; "" without one."""
    position = 0
    while position < len(extra):
        space = extra.find(b" ", position, position + 6)
        digits = extra[position:space] if space > 0 else b""
        length = int(digits) if digits.isdigit() else 0
        if not len(digits) < length <= len(extra) - position:
            raise Flaw("is a damaged tar: an extended header cannot be read", PACK_AGAIN)
        record = extra[space + 1 : position + length].rstrip(b"\n")
        if record.startswith(b"path="):
            return _decode_name(record[len(b"path=") :])
        position += length
    return ""


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


#: The name of the upload itself in problems.
UPLOAD = "your file"

#: The content that EvalAI stores for a large upload that was interrupted.
_PLACEHOLDER = b"file_content"

#: The name of a JSON file that was submitted alone.
JSON_NAME = "submission.json"


class FolderElsewhere(str):
    """The address of a remote folder; the toolkit reads some."""

    __slots__ = ()

    def open_files(self, limits: ArchiveLimits) -> Files:
        raise NotImplementedError


#: Advice that is not for hosts.
_SENDING = (" and upload it", " and repeat the upload")


def truth_error(path: str, error: Exception, fault: str = "") -> HostError:
    """Return the host's error about an unreadable truth, in words without advice to participants."""
    text = explain_damage(error).replace(f"{UPLOAD}: ", "").replace("found in your submission:", "found in the truth:")
    for advice in _SENDING:
        text = text.replace(advice, "")
    if fault:
        return HostError(f"{path}: {fault} ({text[len(path) + 2 :] if text.startswith(f'{path}: ') else text})")
    return HostError(text if text.startswith(path) else f"{path}: {text}")


def open_files(path: str, limits: ArchiveLimits) -> Files:
    """Open a submission; raises SubmissionError if its kind is not supported."""
    if isinstance(path, FolderElsewhere):
        return path.open_files(limits)
    if os.path.isdir(path):
        return _FolderFiles(path, limits)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SubmissionError.from_problem(Problem(path, "is a device, not a file", "Check the path"))
        with open(path, "rb") as file:
            start = file.read(_BLOCK)
    except OSError as error:
        raise SubmissionError.from_problem(
            Problem(path, f"cannot be opened ({error.strerror})", "Check the path")
        ) from None
    try:
        return _by_content(path, start, limits)
    except Flaw as flaw:
        raise SubmissionError.from_problem(flaw.as_problem(UPLOAD)) from None


def _by_content(path: str, start: bytes, limits: ArchiveLimits) -> Files:
    if start.strip() == _PLACEHOLDER:
        raise Flaw(
            "did not arrive: the upload failed, and EvalAI holds a 12-byte placeholder instead", "Submit it again"
        )
    if not start.strip(b"\0 \r\n\t"):
        raise Flaw("is empty" if os.path.getsize(path) == len(start) else "begins with too many blanks", limits.send)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _ZipFiles(path, limits)
    if start.startswith(MAGIC):
        return _open_gzip(path, limits)
    if _begins_tar(start):
        return _TarFiles(path, limits)
    if kind := "a single PNG" if start.startswith(b"\x89PNG") else kind_of(start):
        raise Flaw(f"is {kind}", limits.send)
    if _is_json(start):
        return _JsonFile(path, limits, gzipped=False)
    raise Flaw("is neither a zip nor a tar archive nor JSON", limits.send)


def _is_json(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[")


def _open_gzip(path: str, limits: ArchiveLimits) -> Files:
    start = InflatedStream(path, limits, limits.memory_bytes).read(_BLOCK)
    if _begins_tar(start):
        return _CompressedTarFiles(InflatedStream(path, limits, limits.memory_bytes), limits)
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
        raise Flaw(f"is JSON of {size}; the limit is {size_text(self._limits.json_bytes)}", self._limits.smaller)

    def read(self, name: str) -> bytes:
        size = self.sizes[JSON_NAME]  # there is one
        if self._gzipped or size > _MOST_AT_ONCE:
            return super().read(name)
        with open(self._path, "rb", buffering=0) as file:
            data = file.read(size + 1)
        return data if len(data) == size else super().read(name)

    def read_chunks(self, name: str) -> Iterator[bytes]:
        del name  # there is one
        limit, count = self._limits.json_bytes, 0
        with open(self._path, "rb") as file:
            stream: Union[BinaryIO, InflatedStream] = file
            if self._gzipped:
                stream = InflatedStream(self._path, self._limits, limit)
            while chunk := stream.read(CHUNK_BYTES):
                count += len(chunk)
                if count > limit:
                    self._refuse(f"more than {size_text(limit)}")
                yield chunk
