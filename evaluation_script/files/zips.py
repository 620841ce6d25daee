"""An untrusted zip, read member by member; what its headers claim is checked before it is believed."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from typing import BinaryIO, Iterator

from .inflate import whole_member
from .limits import CHUNK_BYTES, PACK_AGAIN, SEND_LESS, ArchiveLimits, Files, MemberChecks
from .positioned_file import PositionedFile
from .problems import Flaw, Problems

END, END64, LOCATOR = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
END_SIZE, END64_SIZE, LOCATOR_SIZE, LOCAL_SIZE = 22, 56, 20, 30
LONGEST_COMMENT = 1 << 16
#: An entry of the table of contents with a long name.
LONGEST_ENTRY = 400
UTF_8 = 0x800
ENCRYPTED = 0x1
#: Errors that reading a member raises when its header or its bytes differ from the table of contents.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error)


class ZipFiles(Files):
    """The files of a zip."""

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
            self._find_members(MemberChecks(limits), size)
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
        flaw = _flaw(info, size)
        if flaw is not None:
            checks.problems.add(flaw.at(info.filename))
            return
        raw = checks.with_slashes(info.filename)
        name = checks.clean_name(raw, info.file_size, info.compress_size, folder=raw.endswith("/"))
        if name is not None:
            self._infos[name] = info
            self.sizes[name] = info.file_size

    def read(self, name: str) -> bytes:
        whole = whole_member(self._zip, self._infos[name])
        return super().read(name) if whole is None else bytes(whole)

    def parts(self, name: str) -> Iterator[bytes]:
        info = self._infos[name]
        left = info.file_size
        try:
            with self._zip.open(info) as member:
                while left > 0:  # not to the end: it would inflate what was never declared
                    part = member.read(min(CHUNK_BYTES, left))
                    if not part:
                        break
                    left -= len(part)
                    yield part
        except DAMAGED as error:
            checksum = isinstance(error, zipfile.BadZipFile) and "CRC" in str(error)
            what = "its checksum is wrong" if checksum else "it cannot be unpacked"
            raise Flaw(f"is damaged in the zip: {what}", PACK_AGAIN) from None
        if left > 0:
            raise Flaw("is damaged in the zip: it ends too early", PACK_AGAIN)

    def close(self) -> None:
        self._zip.close()
        self._file.close()


def _check_table(file: BinaryIO, limits: ArchiveLimits) -> int:
    """Refuse a huge table of contents before zipfile makes an object of every entry; return the file's size."""
    length = file.seek(0, os.SEEK_END)
    start = max(0, length - LONGEST_COMMENT - END_SIZE - LOCATOR_SIZE - END64_SIZE)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or at + END_SIZE > len(tail):
        raise Flaw("is a zip that was cut off: its table of contents is missing", PACK_AGAIN)
    count, size = struct.unpack_from("<HI", tail, at + 10)
    if tail[: max(0, at - LOCATOR_SIZE) + 4].endswith(LOCATOR):  # zipfile follows it whatever the numbers say
        at -= LOCATOR_SIZE + END64_SIZE
        if at < 0 or not tail.startswith(END64, at):
            raise Flaw("is a damaged zip: its table of contents cannot be found", PACK_AGAIN)
        count, size = struct.unpack_from("<QQ", tail, at + 32)
    if size > start + at:
        raise Flaw("is a damaged zip: its table of contents is larger than the file", PACK_AGAIN)
    too_many = Flaw(f"holds more than {limits.members:,} files", SEND_LESS)
    if count > limits.members or size > LONGEST_ENTRY * limits.members:
        raise too_many
    file.seek(start + at - size)
    if file.read(size).count(b"PK\x01\x02") > limits.members:  # more entries than the record admits
        raise too_many
    return length


def _flaw(info: zipfile.ZipInfo, size: int) -> Flaw | None:
    if info.flag_bits & ENCRYPTED:
        return Flaw("is encrypted", "Make the zip without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Flaw(f"is packed by a method that is not read here ({info.compress_type})", "Use the ordinary deflate")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Flaw("is a link or a device, not a file", "Put the files themselves into the archive")
    if info.header_offset + LOCAL_SIZE + info.compress_size > size:
        return Flaw("is cut off: it would reach beyond the end of the zip", PACK_AGAIN)
    if "\0" in info.orig_filename:
        return Flaw("has characters in its name that no file should have", "Rename it, in UTF-8")
    if not info.flag_bits & UTF_8 and not info.orig_filename.isascii():
        try:
            info.filename = info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            return Flaw("has a name that is not UTF-8", "Rename it with plain letters")
    return None


def _check_overlaps(infos: list[zipfile.ZipInfo], problems: Problems) -> None:
    """Report members that share bytes: they unpack to far more than the zip's size."""
    infos.sort(key=lambda info: info.header_offset)
    for info, following in zip(infos, infos[1:]):
        if info.header_offset + LOCAL_SIZE + info.compress_size > following.header_offset:
            flaw = Flaw("shares its bytes with another file of the zip, as a zip bomb does", PACK_AGAIN)
            problems.add(flaw.at(following.filename))
