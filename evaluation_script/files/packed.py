"""Packed annotation files of every family: a zip with a manifest, written in one step."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple, Type, Union

from .inflate import Inflated, PositionedFile, inflate_member
from .limits import PACK_AGAIN
from .problems import Flaw, HostError, explain_damage

FORMAT = "segjudge truth 1"
MANIFEST = "manifest.json"

#: The earliest time of a zip, which has no time zone; equal input gives equal bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)

#: The errors of a full disk.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def list_damages() -> Tuple[Type[Exception], ...]:
    """Return the errors of a damaged zip, or of an invalid manifest."""
    of_zips = (OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError)
    return (*of_zips, KeyError, ValueError, TypeError, AttributeError)


#: The manifest's key of the family, which every annotation file has had since the first.
FAMILY_KEY = "track"
#: How a manifest begins, with its family.
_START = rf'\s*{{\s*"format":\s*"[^"\\]*",\s*"{FAMILY_KEY}":\s*"([a-z_]+)",'.encode()

#: The records at the end of a zip, and their sizes without the comment.
_END, _END64, _LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_END_SIZE, _END64_SIZE, _LOCATOR_SIZE = 22, 56, 20
_LONGEST_COMMENT = 1 << 16
#: A path, or an open file.
Source = Union[str, BinaryIO]


class NotWritten(OSError):
    """Raised if a file could not be written completely; an older file of that name is kept."""

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written ({self.strerror})"


@contextmanager
def replace_file(path: str) -> Iterator[str]:
    """Yield the name of a partial file, which replaces `path` at the end of the block and is removed on failure."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise NotWritten(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(target) and not os.path.isfile(target):
        try:
            yield path  # a device or a pipe
        except OSError as error:
            if error.errno in (*DISK_FULL, errno.EPIPE) or error.filename == path:
                raise NotWritten(error.errno, error.strerror, path) from None
            raise
        return
    partial = f"{target}.{os.getpid()}.partial"
    try:
        yield partial
        with suppress(OSError):
            os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(partial, target)
    except BaseException as error:
        with suppress(OSError):
            os.remove(partial)
        if isinstance(error, OSError) and (error.errno in DISK_FULL or error.filename == partial):
            raise NotWritten(error.errno, error.strerror, path) from None
        raise


def add_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file to a zip with reproducible metadata."""
    info = make_entry(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def make_entry(name: str) -> zipfile.ZipInfo:
    """Return a zip entry with the same bytes on every system and day."""
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system = 3
    return info


class ZipTable(NamedTuple):
    """Where a zip's table of contents lies, and how many entries the zip claims."""

    start: int
    size: int
    entries: int


def find_table(file: BinaryIO) -> ZipTable:
    """Find a zip's table of contents as zipfile does; raises a Flaw if the zip is cut off or damaged."""
    length = file.seek(0, os.SEEK_END)
    start = max(0, length - _LONGEST_COMMENT - _END_SIZE - _LOCATOR_SIZE - _END64_SIZE)
    file.seek(start)
    tail = file.read()
    position = tail.rfind(_END)
    if position < 0 or position + _END_SIZE > len(tail):
        raise Flaw("is a zip that was cut off: its table of contents is missing", PACK_AGAIN)
    count, size = struct.unpack_from("<HI", tail, position + 10)
    if tail[: max(0, position - _LOCATOR_SIZE) + 4].endswith(_LOCATOR):  # zipfile follows it regardless of the numbers
        position -= _LOCATOR_SIZE + _END64_SIZE
        if position < 0 or not tail.startswith(_END64, position):
            raise Flaw("is a damaged zip: its table of contents cannot be found", PACK_AGAIN)
        count, size = struct.unpack_from("<QQ", tail, position + 32)
    if size > start + position:
        raise Flaw("is a damaged zip: its table of contents is larger than the file", PACK_AGAIN)
    return ZipTable(start + position - size, size, count)


def table_of(path: str) -> bytes:
    """Return a zip's table of contents: names, sizes and checksums; empty for other files."""
    with open(path, "rb") as file, suppress(Flaw):
        table = find_table(file)
        file.seek(table.start)
        return file.read(table.size)
    return b""


def _read_manifest(source: Source) -> Dict[str, Any]:
    """Return the manifest of a file made by `segjudge pack`; an empty one for other files."""
    try:
        return dict(json.loads(_manifest_of(source)))
    except list_damages() as error:
        raise annotations_error(source, error) from None


def _manifest_of(source: Source) -> bytes:
    """Return the bytes of such a manifest."""
    if not zipfile.is_zipfile(source):
        return b"{}"
    with zipfile.ZipFile(source) as archive:
        return archive.read(MANIFEST) if MANIFEST in archive.namelist() else b"{}"


class PackedFile:
    """The members of a packed file by name."""

    def __init__(self, source: Source) -> None:
        """Open a file; raises an error of `list_damages` if it is not a zip."""
        self._file = PositionedFile(source) if isinstance(source, str) else source
        self._archive = zipfile.ZipFile(self._file)

    def read(self, name: str) -> Inflated:
        """Return a member; raises an error of `list_damages` if it is missing or damaged."""
        return inflate_member(self._file, self._archive.getinfo(name)) or self._archive.read(name)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._archive.close()
        if isinstance(self._file, PositionedFile):
            self._file.close()


def open_packed(source: Source, family: str = "") -> Tuple[PackedFile, Dict[str, Any]]:
    """Open a packed file and return it with its manifest; raises HostError for another family."""
    try:
        archive = PackedFile(source)
        manifest = dict(json.loads(archive.read(MANIFEST)))
        content, form, splits = manifest[FAMILY_KEY], manifest["format"], dict(manifest["splits"])
    except list_damages() as error:
        raise annotations_error(source, error) from None
    if family not in ("", content):
        raise HostError(f"{source}: holds {content}, not {family}; choose another file or protocol")
    if form != FORMAT:
        raise HostError(f"{source}: has the format {form!r}; this version reads {FORMAT!r}. Pack it again")
    if not splits:
        raise HostError(f"{source}: holds no splits, so nothing can be scored. Pack it again")
    return archive, manifest


def annotations_error(source: Source, error: Exception) -> HostError:
    """Return the error for a damaged annotation file."""
    return HostError(f"{source}: is not a readable annotation file ({_explain(error)}). Pack it again")


def _explain(error: Exception) -> str:
    return explain_damage(error) if isinstance(error, RecursionError) else repr(error)


def make_manifest(family: str, splits: Dict[str, Any]) -> Dict[str, Any]:
    """Return the manifest of an annotation file: format, family, and the entry of each split."""
    return {"format": FORMAT, FAMILY_KEY: family, "splits": splits}


def family_of(source: Source) -> str:
    """Return the family of a packed file; "" for other files."""
    try:
        data = _manifest_of(source)
        start = re.match(_START, data)  # the whole manifest of a large truth takes a while
        return start[1].decode() if start else str(dict(json.loads(data)).get(FAMILY_KEY, ""))
    except list_damages() as error:
        raise annotations_error(source, error) from None


def splits_of(source: Source) -> List[str]:
    """Return the names of a packed file's splits; none for other files."""
    return list(_read_manifest(source).get("splits", {}))
