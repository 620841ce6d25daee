"""The limits of a submission: sizes, checks of archive members, and bounded JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, NoReturn, Set, Tuple, TypeVar, Union

from .problems import Flaw, Problems, printable, quantity

#: Files that operating systems add to archives.
_LITTER = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN"})

ARCHIVE_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".rar", ".7z", ".bz2", ".xz")
_SEND_ZIP = "Send one zip with a folder of PNG masks for each sequence, or one JSON file"
_SEND_SMALLER = "Send a zip of PNG masks"
SEND_LESS = "Remove files that are not part of the results"
PACK_AGAIN = "Create the archive again and upload it"

#: The first bytes of files that are submitted instead of archives and masks.
_KINDS = (
    (b"Rar!", "a RAR archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"), (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a bzip2 file"), (b"\xfd7zXZ", "an xz file"), (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x1f\x8b", "gzipped"), (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"), (b"BM", "a BMP image"), (b"RIFF", "a WebP image"), (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"), (b"%PDF", "a PDF"), (b"\x89HDF", "an HDF5 file"), (b"\x93NUMPY", "a numpy file"),
    (b"\x80\x04", "a pickle"), (b"\xff\xfe", "UTF-16 text"), (b"\xfe\xff", "UTF-16 text"),
)  # fmt: skip

#: The maximum length of a path on any file system.
_LONGEST_NAME = 4096
_UNFIT = r"[\x00-\x1f\x7f\ud800-\udfff]"

#: How to read a backslash in a name: as a separator, which some programs on Windows write instead of a slash or beside
#: one; as a separator only in names without a slash; or as a letter.
SEPARATOR, LONE_SEPARATOR, LETTER = "separator", "lone separator", "letter"


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of a submission."""

    #: The maximum number of files and folders in an archive.
    members: int = 200_000
    #: The maximum size of a file, inflated.
    member_bytes: int = 64 << 20
    #: The maximum size of all files, inflated.
    total_bytes: int = 8 << 30
    #: The maximum memory of data that must be in memory at once: a compressed tar, or parsed JSON.
    memory_bytes: int = 192 << 20
    #: The maximum size of a JSON file.
    json_bytes: int = 48 << 20
    #: The maximum ratio of inflated to deflated size, for files above `ratio_from` bytes.
    ratio: int = 200
    ratio_from: int = 4 << 20
    #: The maximum depth of folders.
    depth: int = 12
    #: The maximum number of predicted objects in a sequence.
    objects: int = 255
    #: The maximum number of instance masks in a submission.
    records: int = 1_000_000
    #: Follow links in a folder: on the user's machine, never on a server.
    links: bool = False
    #: How to read a backslash in a name.
    backslash: str = SEPARATOR
    #: The endings of files with a compressed format that look like archives.
    compressed: Tuple[str, ...] = ()
    #: The slug of the output of grand-challenge's jobs to read; if empty, their files decide.
    socket: str = ""
    #: Remedies in the family's terms: the accepted files, and a smaller form than JSON.
    send: str = _SEND_ZIP
    smaller: str = _SEND_SMALLER


#: A JSON file of instance masks is read in chunks, so it may exceed the memory.
INSTANCE_LIMITS = ArchiveLimits(json_bytes=512 << 20)

#: The JSON of panoptic segments and of tracks is held in memory.
UNIT_LIMITS = ArchiveLimits(
    json_bytes=192 << 20, memory_bytes=448 << 20, send="Send one zip, or one JSON file", smaller="Make it smaller"
)

#: A participant's machine has more memory and disk than EvalAI's worker, and links in a folder are the participant's
#: own.
LOCAL_LIMITS = ArchiveLimits(
    members=50_000_000, total_bytes=1 << 40, memory_bytes=1 << 32, json_bytes=1 << 34, records=50_000_000, links=True
)

#: A host's own dataset is trusted more than a participant's file.
HOST_LIMITS = ArchiveLimits(
    members=10_000_000,
    member_bytes=1 << 30,
    total_bytes=1 << 42,
    memory_bytes=1 << 36,
    json_bytes=1 << 32,
    ratio=100_000,
    objects=65_535,
    links=True,
    backslash=LONE_SEPARATOR,
    send="Name the folder or the zip of a dataset",
    smaller="Remove it",
)

#: The maximum number of files and folders below one folder, whatever the limits of archives, so that naming `/` fails
#: early.
FOLDER_MEMBERS = 5_000_000
#: The number of problems in a folder's members after which the check ends.
FOLDER_PROBLEMS = 1_000
#: The maximum number of ways in which links lead to one folder.
FOLDER_WAYS = 1_000

#: The number of bytes read at a time.
CHUNK_BYTES = 1 << 20


class Files:
    """The files of a submission by checked name, without litter."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        #: Hidden folders, whose names begin with a dot; they are not read.
        self.hidden_folders: set[str] = set()

    def read(self, name: str) -> bytes:
        return b"".join(self.read_chunks(name))

    def read_buffer(self, name: str) -> Union[bytes, bytearray]:
        """Return a file's bytes as they were inflated, without a copy."""
        return self.read(name)

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file in chunks."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the archive."""


class MemberChecks:
    """A checker of archive members that adds up their sizes."""

    def __init__(self, limits: ArchiveLimits, hidden_folders: set[str] | None = None) -> None:
        self.limits = limits
        self._hidden_folders: set[str] = set() if hidden_folders is None else hidden_folders
        self.problems = Problems()
        self._members = 0
        self._total = 0
        self._names: set[str] = set()

    def count(self) -> None:
        """Count one more header; raises a Flaw if there are too many."""
        self._members += 1
        if self._members > self.limits.members:
            raise Flaw(f"holds more than {self.limits.members:,} files", SEND_LESS)

    def with_slashes(self, raw: str) -> str:
        """Return a name with forward slashes between its folders."""
        rule = self.limits.backslash
        separates = rule == SEPARATOR or (rule == LONE_SEPARATOR and "/" not in raw)
        return raw.replace("\\", "/") if separates else raw

    def clean_name(self, raw: str, size: int, packed: int, *, folder: bool = False) -> str | None:
        """Return the checked name of a member; None for folders, litter and rejected members."""
        raw = self.with_slashes(raw)
        segments = [segment for segment in raw.split("/") if segment not in ("", ".")]
        flaw = _name_flaw(raw, segments, self.limits.depth)
        if flaw is None and (folder or is_litter(segments)):
            self._hidden_folders.update(segment for segment in segments[:-1] if segment.startswith("."))
            return None
        name = "/".join(segments)
        flaw = flaw or self._size_flaw(name, size, packed)
        if flaw is not None:
            self.problems.add(flaw.as_problem(raw or "a file"))
            return None
        self._names.add(name)
        return name

    def _size_flaw(self, name: str, size: int, packed: int) -> Flaw | None:
        limits = self.limits
        lower = name.lower()
        is_json = lower.endswith(".json")
        limit = limits.json_bytes if is_json else limits.member_bytes
        if size > limit:
            remedy = limits.smaller if is_json else SEND_LESS
            return Flaw(f"has {size_text(size)} when unpacked; the limit is {size_text(limit)}", remedy)
        self._total += size
        if self._total > limits.total_bytes:
            raise Flaw(f"would unpack to more than {size_text(limits.total_bytes)}", SEND_LESS)
        if size > limits.ratio_from and size > limits.ratio * max(packed, 1):
            return Flaw(f"unpacks to more than {limits.ratio} times its size, like a zip bomb", PACK_AGAIN)
        if name in self._names:
            return Flaw("is in the archive twice", PACK_AGAIN)
        if lower.endswith(ARCHIVE_ENDINGS) and not lower.endswith(limits.compressed):
            return Flaw("is an archive itself", "Unpack it first")
        return None


def _name_flaw(raw: str, segments: list[str], depth: int) -> Flaw | None:
    if len(raw) > _LONGEST_NAME:
        return Flaw(f"has a name of more than {_LONGEST_NAME:,} characters", "Rename it")
    if not (raw.isascii() and raw.isprintable()) and re.search(_UNFIT, raw):
        return Flaw("has forbidden characters in its name", "Rename it in UTF-8")
    if not segments:
        return None if raw in (".", "./") else Flaw("has no name", PACK_AGAIN)
    if raw.startswith("/") or (raw[1:3] == ":/" and re.match("[A-Za-z]", raw)):
        return Flaw("is an absolute path", "Zip the folder from inside, so that names are relative")
    if ".." in segments:
        return Flaw("points outside the archive", "Zip the folder from inside, so that no name contains ..")
    if len(segments) > depth:
        return Flaw(f"is {len(segments) - 1} folders deep; the limit is {depth - 1}", "Move it to a higher folder")
    return None


def is_litter_name(name: str) -> bool:
    """Return whether a name is one of such litter."""
    return name.startswith(".") or name in _LITTER


def is_litter(segments: list[str]) -> bool:
    """Return whether a path is litter of operating systems or editors."""
    return not segments or any(map(is_litter_name, segments))


def kind_of(start: bytes) -> str:
    """Return the kind of a file by its first bytes; "" if unknown."""
    return next((kind for signature, kind in _KINDS if start.startswith(signature)), "")


def size_text(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.0f} {unit}"
    return quantity(count, "byte")


_Value = TypeVar("_Value")

#: The maximum number of digits of a whole number.
_LONGEST_NUMBER = 12

#: All digits as zeros, and other bytes as blanks.
_FIGURES = bytes(48 if 48 <= byte < 58 else 32 for byte in range(256))
#: The number of commas up to which a look at each number costs less than one at each character.
_FEW_COMMAS = 16

#: The approximate bytes of memory that JSON takes for each of these characters.
_MEMORY_COSTS = {b"{": 240, b"[": 80, b",": 40, b'"': 30, b":": 60}
_COSTLESS = bytes(byte for byte in range(256) if bytes([byte]) not in _MEMORY_COSTS)
#: The maximum estimate of a character.
_MOST_COST = 8 + max(_MEMORY_COSTS.values())
#: The mean number of characters between quotes from which texts are long, as run lengths are.
_LONG_TEXT = 128


def check_memory(text: Union[str, bytes], limit: int, remedy: str) -> None:
    """Raise a Flaw for JSON whose punctuation shows that it would exceed a memory limit."""
    data = text.encode() if isinstance(text, str) else text
    if len(data) * _MOST_COST <= limit:
        return
    room = limit - len(data) * (2 if data.isascii() else 8)
    if _estimate_punctuation(data) > room and _estimate_punctuation(_drop_long_texts(data)) > room:
        raise Flaw("holds too many lists and numbers", f"Write compressed run lengths. {remedy}")


def _drop_long_texts(data: bytes) -> bytes:
    """Return JSON of long texts without them, since their punctuation takes no memory; other JSON as it is."""
    plain = data.replace(b"\\\\", b"")
    if b'\\"' in plain or plain.count(b'"') * _LONG_TEXT > len(plain):
        return data
    return b'""'.join(plain.split(b'"')[::2])


def _estimate_punctuation(data: bytes) -> int:
    """Return the memory of the values that the punctuation of JSON separates."""
    marks = data.translate(None, _COSTLESS)  # `count` would read each byte five times
    return sum(cost * marks.count(mark) for mark, cost in _MEMORY_COSTS.items())


def unique_keys(pairs: List[Tuple[str, _Value]]) -> Dict[str, _Value]:
    """Return the object of these pairs; raises a Flaw for a repeated key."""
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: Set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Flaw(f"has the key {printable(key)} twice in one object", "Write each key once")
            seen.add(key)
    return values


def read_json(data: bytes, limits: ArchiveLimits, example: str, digits: int = _LONGEST_NUMBER) -> object:
    """Parse untrusted JSON, rejecting repeated keys and NaN; `example` is named as the remedy.

    Whole numbers may have up to `digits` digits.
    """

    def parse_int(text: str) -> int:
        if len(text) > digits:
            raise Flaw(f"holds a number of {len(text)} digits", f"Write numbers of at most {digits} digits")
        return int(text)

    if len(data) > limits.json_bytes:
        raise Flaw(f"is larger than {size_text(limits.json_bytes)}", limits.smaller)
    check_memory(data, limits.memory_bytes, limits.smaller)
    may_be_long = data.count(b",") <= _FEW_COMMAS or b"0" * digits in data.translate(_FIGURES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=unique_keys,
            parse_constant=_refuse_constant,
            parse_int=parse_int if may_be_long else None,
        )
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {example}") from None
    except ValueError as error:
        raise Flaw(f"is not valid JSON ({printable(error)})", "Write it with a JSON library") from None


def _refuse_constant(name: str) -> NoReturn:
    raise Flaw(f"holds {name}, which is not JSON", "Write whole numbers")
