"""Hostile submissions derived from a valid one: their names, and functions that write them.

A submission is a file or a folder; variants are files, except those that only a folder can hold. Equal submissions give
equal variants, in the same order.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import random
import re
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

#: Writes a submission into an empty folder, and returns its path.
Writer = Callable[[Path], Path]
Variant = tuple[str, Writer]

#: Values that replace others in JSON; the last ones are written as JSON forbids.
_UNUSUAL_VALUES: tuple[Any, ...] = (
    None, True, -1, 0.5, 10**30, 1e308, "", "x", "../x", "\ud800", "\0", [], {}, [[]], [{}], [None],
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
#: The maximum number of changed places in a document: the first of each kind.
_MOST_PLACES = 24
_ZEROS = 96 << 20


def make_variants(submission: str | os.PathLike[str]) -> Iterator[Variant]:
    """Yield hostile variants of a valid submission: of its bytes, archive and files."""
    path = Path(submission)
    members = _members_of(path)
    whole = path.read_bytes() if path.is_file() else _zip(members)
    yield from _as_files("file", path.name if path.is_file() else "results.zip", _damage_bytes(whole))
    if path.is_file() and not members:
        yield from _as_files("file", path.name, _damage_content(path.name, whole))
        return
    yield from _as_files("archive", "results.zip", _damage_archive(members))
    for name in _list_first_members(members):
        variants = [*_damage_bytes(members[name]), *_damage_content(name, members[name])]
        changed = ((about, _zip({**members, name: data})) for about, data in variants)
        yield from _as_files(name, "results.zip", changed)
    yield from _damage_folder(members)


def make_refused(submission: str | os.PathLike[str]) -> Iterator[tuple[str, bytes, str]]:
    """Yield archives that every family rejects: name, bytes, and expected words."""
    path = Path(submission)
    members = _members_of(path) or {path.name: path.read_bytes()}
    name, good = next(iter(members)), _zip(members)
    yield "a name that leads upwards", _zip({**members, "../" + name: b""}), "points outside the archive"
    yield "an absolute name", _zip({**members, "/" + name: b""}), "is an absolute path"
    yield "a name in many folders", _zip({**members, "x/" * 40 + name: b""}), "folders deep"
    odd = _zip({**members, "\x1b[2J" + name: b""})
    yield "a name that clears a terminal", odd, "has forbidden characters in its name"
    yield "an archive inside", _zip({**members, "inner.zip": good}), "is an archive itself"
    yield "a link", _tar(members, name, tarfile.SYMTYPE), "is a link"
    yield "a zip that is cut", good[: len(good) // 2], "zip"
    yield "a tar that is cut", _tar(members)[:700], "cut off"
    yield "a RAR archive", b"Rar!\x1a\x07" + bytes(99), "is a RAR archive"
    yield "nothing", b"", "is empty"


def _as_files(subject: str, name: str, variants: Iterable[tuple[str, bytes]]) -> Iterator[Variant]:
    for about, data in variants:

        def write(folder: Path, data: bytes = data) -> Path:
            (folder / name).write_bytes(data)
            return folder / name

        yield f"{subject}: {about}", write


def _members_of(path: Path) -> dict[str, bytes]:
    """Return the files of a folder, zip or tar; empty for other files."""
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as tar:
            entries = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
            return {name: file.read() for name, file in entries.items() if file is not None}
    return {}


def _list_first_members(members: dict[str, bytes]) -> list[str]:
    """Return the first member of each ending."""
    kinds: dict[str, str] = {}
    for name in sorted(members):
        kinds.setdefault(os.path.splitext(name)[1].lower(), name)
    return list(kinds.values())


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip as `zipfile` writes it, without dates, but sooner: of many members, and of bombs."""
    files, directory = bytearray(), bytearray()
    for name, data in members.items():
        packed, checksum = (_compress(data)[2:-4], _crc32(data)) if method else (data, zlib.crc32(data))
        raw, flags = name.encode(), 0 if name.isascii() else 0x800
        fields = struct.pack("<4H3I2H", flags, method, 0, 0x21, checksum, len(packed), len(data), len(raw), 0)
        directory += struct.pack("<4sBBH", b"PK\1\2", 20, 3, 20) + fields
        directory += struct.pack("<3H2I", 0, 0, 0, 0o600 << 16, len(files)) + raw
        files += b"PK\3\4\x14\0" + fields + raw + packed
    count = len(members)
    return bytes(
        files + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), len(files), 0)
    )


def _compress(data: bytes) -> bytes:
    return _compress_zeros()[0] if len(data) == _ZEROS else zlib.compress(data)


def _crc32(data: bytes) -> int:
    return _compress_zeros()[1] if len(data) == _ZEROS else zlib.crc32(data)


@cache
def _compress_zeros() -> tuple[bytes, int, bytes]:
    """Return the zeros of bombs, compressed once, their checksum, and them in gzip: nothing else has their length."""
    zeros = bytes(_ZEROS)
    return zlib.compress(zeros), zlib.crc32(zeros), gzip.compress(zeros, 1, mtime=0)


# ── any file ────────────────────────────────────────────────────────────────


def _damage_bytes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies of a file: cut, overwritten, replaced by other kinds."""
    half, draw = len(data) // 2, random.Random(1)
    yield "empty", b""
    yield "one byte", data[:1]
    yield "cut in the middle", data[:half]
    yield "without its end", data[:-20]
    yield "without its beginning", data[8:]
    yield "zeros in the middle", data[:half] + bytes(16) + data[half + 16 :]
    yield "twice", data + data
    yield "with data after its end", data + b"\0" * 100
    for number in range(6):
        changed = bytearray(data or b"\0")
        for _ in range(4):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        yield f"with four other bits ({number})", bytes(changed)
    yield "text", b"hello"
    yield "lot", draw.randbytes(1 << 16)
    yield "zeros", bytes(1 << 20)
    heads = (
        b"Rar!\x1a\x07",
        b"7z\xbc\xaf\x27\x1c",
        b"BZh9",
        b"%PDF-1.4",
        b"\xff\xd8\xff",
        b"\x80\x04N.",
        b"\xff\xfe{\0}\0",
    )
    yield from ((f"begins as {head[:4]!r}", head + bytes(64)) for head in heads)
    yield "gzip of zeros", _compress_zeros()[2]
    yield "gzip of itself", gzip.compress(data, mtime=0)


def _damage_content(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged contents of a known kind: JSON, JSON lines, PNG, TIFF, or text."""
    if data.startswith(b"\x1f\x8b"):
        yield from (
            (about, gzip.compress(inner, mtime=0)) for about, inner in _damage_content(name, gzip.decompress(data))
        )
    elif data.startswith(b"\x89PNG"):
        yield from _damage_png(data)
    elif data.startswith((b"II*\0", b"MM\0*")):
        yield from _damage_tiff(data)
    elif data.lstrip()[:1] in (b"{", b"["):
        line, _, below = data.lstrip().partition(b"\n")
        if below.strip() and _is_json(line):
            yield from _damage_lines(data)
            yield from ((f"line 1 {about}", changed + b"\n" + below) for about, changed in _damage_json(line))
        else:
            yield from _damage_json(data)
    elif b"\0" not in data[:4096]:
        yield from _damage_lines(data)


# ── JSON ────────────────────────────────────────────────────────────────────


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _damage_json(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged JSON: changed text, types, huge and odd numbers, missing keys."""
    for value in (*_UNUSUAL_VALUES, 0, [0], {"": {}}):
        yield f"is {value!r}", _json(value)
    yield "nested lists", b"[" * 200_000
    yield "nested objects", b'{"a":' * 200_000
    yield "nested lists that end", b"[" * 5000 + b"]" * 5000
    yield "millions of lists", b"[" + b"[]," * 4_000_000 + b"[]]"
    yield "an endless number", b"[" + b"9" * 100_000 + b"]"
    yield "an endless text", b'["' + b"x" * 8_000_000 + b'"]'
    yield "not UTF-8", data.replace(b'"', b'"\xff\xfe', 2)
    yield "a byte order mark", b"\xef\xbb\xbf" + data
    yield "UTF-16", data.decode("utf-8", "replace").encode("utf-16")
    yield "data after its end", data + b"]}"
    yield "a comment", b"/* */" + data
    yield "a key twice", re.sub(rb'\{\s*("[^"]*"\s*:)', rb"{\1 null, \1", data, count=1)
    document = json.loads(data)
    for steps in _places_of(document):
        place_in_json = "/".join(map(str, steps))
        for value in _UNUSUAL_VALUES:
            yield f"{place_in_json} is {value!r}", _json(_change(document, steps, partial(_replace_value, value)))
        yield f"{place_in_json} is missing", _json(_change(document, steps, None))
    lists = [steps for steps in _places_of(document, (list, dict)) if isinstance(_value_at(document, steps), list)]
    for steps in lists:
        place_in_json = "/".join(map(str, steps)) or "all"
        yield f"{place_in_json}: first one twice", _json(_change(document, steps, lambda rows: rows[:1] + rows))
        yield f"{place_in_json}: one less", _json(_change(document, steps, lambda rows: rows[1:]))
        yield f"{place_in_json}: reversed", _json(_change(document, steps, lambda rows: rows[::-1]))
        yield f"{place_in_json}: thousands", _json(_change(document, steps, lambda rows: rows[:1] * 20_000))


def _replace_value(value: object, _before: object) -> object:
    return value


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _places_of(document: Any, kinds: tuple[type, ...] = (object,)) -> list[tuple[Any, ...]]:
    """Return the first path of each kind in a document, ignoring positions."""
    places: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    pending: list[tuple[tuple[Any, ...], Any]] = [((), document)]
    while pending and len(places) < _MOST_PLACES:
        steps, value = pending.pop(0)
        depth_and_last = (*(type(step) if isinstance(step, int) else step for step in steps), type(value))
        if isinstance(value, kinds) and (steps or isinstance(value, list)):
            places.setdefault(depth_and_last, steps)
        entries = (
            list(value.items())
            if isinstance(value, dict)
            else list(enumerate(value))
            if isinstance(value, list)
            else []
        )
        pending += [((*steps, step), inner) for step, inner in entries[:8]]
    return list(places.values())


def _value_at(document: Any, steps: tuple[Any, ...]) -> Any:
    for step in steps:
        document = document[step]
    return document


def _change(document: Any, steps: tuple[Any, ...], change: Callable[[Any], Any] | None) -> Any:
    """Return a document with a value at a path changed or removed."""
    changed = [copy.deepcopy(document)]
    *above, last = (0, *steps)
    holder = _value_at(changed, tuple(above))
    if change is None:
        del holder[last]
    else:
        holder[last] = change(holder[last])
    return changed[0] if changed else None


# ── PNG, TIFF and text ────────────────────────────────────────────────────────────


def _damage_png(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged PNGs: size, form, pixels and chunks."""
    width, height = struct.unpack(">II", data[16:24])
    for across, down in ((height, width + 1), (1, 1), (0, 0), (1 << 30, 1 << 30), (width, 1 << 31)):
        yield f"header of {across}×{down}", _png(across, down, 8, 0, bytes(100))
    for about, depth, colour, size in (
        ("16 bits", 16, 0, 2), ("colours", 8, 2, 3), ("transparent", 8, 6, 4), ("a palette that is missing", 8, 3, 1),
        ("an unknown form", 7, 5, 1),
    ):  # fmt: skip
        yield about, _png(width, height, depth, colour, (b"\0" + b"\x09" * width * size) * height)
    yield "another value everywhere", _png(width, height, 8, 0, (b"\0" + b"\xfb" * width) * height)
    yield "an unknown filter", _png(width, height, 8, 0, (b"\x09" + bytes(width)) * height)
    yield "too few pixels", _png(width, height, 8, 0, bytes(width))
    yield "a bomb", _png(width, height, 8, 0, bytes(_ZEROS))
    yield "broken pixels", data[:33] + _chunk(b"IDAT", b"\xff" * 50) + _chunk(b"IEND", b"")
    yield "thousands of chunks", data[:33] + _chunk(b"tEXt", b"") * 20_000 + data[33:]
    yield "a long chunk", data[:33] + _chunk(b"tEXt", bytes(8 << 20)) + data[33:]
    yield "no end", data[:33] + _chunk(b"IDAT", zlib.compress(bytes(height * (width + 1))))
    yield "interlaced", data[:28] + b"\1" + struct.pack(">I", zlib.crc32(data[12:28] + b"\1")) + data[33:]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png(width: int, height: int, depth: int, colour: int, pixels: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", _compress(pixels)) + _chunk(b"IEND", b"")


def _damage_tiff(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged TIFFs: size, form, pixels and pages of a 16-bit label image."""
    order = "<" if data[:1] == b"I" else ">"
    (offset,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, offset)
    width, height = 1, 1
    for entry in range(offset + 2, offset + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(f"{order}HH", data, entry)
        (value,) = struct.unpack_from(f"{order}H" if kind == 3 else f"{order}I", data, entry + 8)
        width, height = (value if tag == 256 else width), (value if tag == 257 else height)
    plain = bytes(2 * width * height)
    make = partial(_tiff, width, height)
    yield "zeros everywhere", make(plain)
    yield "another value everywhere", make(b"\xff\xfb" * (width * height))
    yield "big-endian", make(plain, order=">")
    for across, down in ((height, width + 1), (1, 1), (0, 0), (1 << 16, 1 << 16), ((1 << 32) - 1, (1 << 32) - 1)):
        yield f"of {across}×{down}", _tiff(across, down, plain)
    for tag, values in (
        (258, (1, 4, 8, 12, 32, 64)), (259, (0, 2, 5, 7, 8, 32773, 34925, 50000, 65535)), (277, (0, 3, 65535)),
        (278, (0, 1, 7)), (317, (0, 2, 3)), (322, (16,)), (339, (2, 3, 9)),
        (273, (0, 1 << 31)), (279, (0, 1, (1 << 32) - 1)),
    ):  # fmt: skip
        yield from ((f"tag {tag} is {value}", make(plain, {tag: value})) for value in values)
    for name, compression, strip in (
        ("deflate: a bomb", 8, _compress(bytes(_ZEROS))),
        ("deflate: too few pixels", 8, zlib.compress(plain[:-2])),
        ("deflate: broken", 8, b"\x78\x9c" + b"\xff" * 40),
        ("LZW: too few pixels", 5, _lzw([256, 0, 257])),
        ("LZW: clearings alone", 5, _lzw([256] * 20_000)),
        ("LZW: a clear code before each pixel", 5, _lzw([256, 0] * 20_000)),
        ("LZW: a code not yet defined", 5, _lzw([256, 0, 400])),
        ("LZW: begins with an undefined code", 5, _lzw([256, 300])),
        ("LZW: ever longer", 5, _lzw([256, 0, *range(258, 500)])),
        ("LZW: ones", 5, b"\xff" * 4096),
    ):
        yield name, make(strip, {259: compression})
    good = make(plain)
    end = len(good) - len(plain) - 4
    for name, link in (("itself", 8), ("outside", 1 << 31), ("pixels", len(good) - 3)):
        yield f"the next picture is {name}", good[:end] + struct.pack("<I", link) + good[end + 4 :]
    for name, tags in (("no tags", 0), ("more tags than exist", 60_000)):
        yield name, good[:8] + struct.pack("<H", tags) + good[10:]
    yield "a tag with millions of values", good[:14] + struct.pack("<I", 1 << 30) + good[18:]
    yield "tags of an unknown kind", good[:12] + struct.pack("<H", 99) + good[14:]
    yield "tags outside the file", good[:4] + struct.pack("<I", 1 << 31) + good[8:]
    yield "BigTIFF", b"II+\0" + good[4:]


def _tiff(width: int, height: int, strip: bytes, changes: dict[int, int] | None = None, order: str = "<") -> bytes:
    tags = {256: width, 257: height, 258: 16, 259: 1, 262: 1, 273: 0, 277: 1, 278: height, 279: len(strip)}
    tags[273] = 8 + 2 + 12 * len(tags | (changes or {})) + 4
    tags |= changes or {}
    head = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, 8)
    entries = b"".join(struct.pack(f"{order}HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return head + struct.pack(f"{order}H", len(tags)) + entries + bytes(4) + strip


def _lzw(codes: list[int]) -> bytes:
    """Return codes packed as 9 bits each."""
    bits = "".join(f"{code:09b}" for code in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[bit : bit + 8], 2) for bit in range(0, len(bits), 8))


def _damage_lines(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged texts: changed lines and numbers."""
    lines = data.splitlines(keepends=True) or [b""]
    yield "no lines", b"\n" * 10
    yield "its first line twice", lines[0] + data
    yield "lines reversed", b"".join(reversed(lines))
    yield "a line that has no end", b"1 " * 4_000_000
    yield "millions of lines", lines[0] * 500_000
    yield "not UTF-8", b"\xff\xfe" + data
    for number in (b"nan", b"inf", b"-1", b"1e999", b"9" * 5000, b"x", b"", b"0.5", b"1" + b"0" * 30):
        for index, match in enumerate([*re.finditer(rb"-?\d[\d.]*", data[:400])][:8]):
            yield f"number {index} is {number[:20]!r}", data[: match.start()] + number + data[match.end() :]


# ── archives and folders ────────────────────────────────────────────────────


def _damage_archive(members: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield damaged archives: members, directory and kind."""
    name, data = next(iter(members.items()))
    remaining = {key: value for key, value in members.items() if key != name}
    good = _zip(members)
    yield "as it is", good
    yield "no members", _zip({})
    yield "one member less", _zip(remaining)
    for altered in (
        "../" + name, "/" + name, "a/../../" + name, "C:\\" + name, "..\\" + name, name + "/x", name.upper(),
        " " + name, "x" * 5000, "d/" * 300 + "x", "\u202e" + name, "name\n" + name, "__MACOSX/" + name,
        "a/" + name, name + ".zip",
    ):  # fmt: skip
        yield f"a member called {altered[:40]!r}", _zip({**remaining, altered: data})
        yield f"a member more, called {altered[:40]!r}", _zip({**members, altered: data})
    for raw, about in ((b"\xff\xfe", "not UTF-8"), (b"a\0b", "with a zero")):
        stand_in = "?" * len(raw)
        yield f"a name {about}", _zip({**members, stand_in: data}).replace(stand_in.encode(), raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = io.BytesIO(good)
        with zipfile.ZipFile(out, "a") as archive:
            archive.writestr(zipfile.ZipInfo(name), data)
        yield "a name twice", out.getvalue()
    link = zipfile.ZipInfo(name)
    link.external_attr, link.create_system = 0o120777 << 16, 3
    for target in (b"/etc/passwd", b".", name.encode()):
        out = io.BytesIO(_zip(remaining))
        with zipfile.ZipFile(out, "a") as archive:
            archive.writestr(link, target)
        yield f"a link to {target[:20]!r}", out.getvalue()
    yield "a bomb", _zip({**members, name: bytes(_ZEROS)})
    yield "a bomb beside", _zip({**members, "more": bytes(_ZEROS)})
    yield "an archive inside", _zip({**members, "inner.zip": good})
    yield "thousands of members", _zip(members | {f"more/{number}": b"" for number in range(30_000)})
    position = good.rindex(b"PK\1\2")
    for offset, value, about in (
        (8, 1, "encrypted"), (10, 99, "with an unknown compression method"), (24, 1 << 31, "a size that is too large"),
        (24, 3, "a size that is too small"), (16, 12345, "another checksum"), (42, 1 << 31, "an offset outside"),
    ):  # fmt: skip
        kind = "<H" if offset < 12 else "<I"
        yield (
            f"its last member: {about}",
            good[: position + offset] + struct.pack(kind, value) + good[position + offset + struct.calcsize(kind) :],
        )
    end = good.rindex(b"PK\5\6")
    yield "a directory that begins outside the archive", good[: end + 16] + b"\xff\xff\xff\x7f" + good[end + 20 :]
    yield "more members than exist", good[: end + 8] + b"\xff\xff\xff\xff" + good[end + 12 :]
    yield "stored", _zip(members, zipfile.ZIP_STORED)
    yield from _damage_tar(members)


def _damage_tar(members: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    name = next(iter(members))
    good = _tar(members)
    yield "a tar", good
    yield "a gzipped tar", gzip.compress(good, mtime=0)
    yield "a tar that is cut", good[: len(good) // 2]
    yield "a gzipped tar that is cut", gzip.compress(good, mtime=0)[: len(good) // 20]
    yield "a tar with a bomb", gzip.compress(_tar({**members, "more": bytes(_ZEROS)}), 1, mtime=0)
    for kind, about in (
        (tarfile.SYMTYPE, "a link"), (tarfile.LNKTYPE, "a hard link"), (tarfile.CHRTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"), (tarfile.DIRTYPE, "a folder"),
    ):  # fmt: skip
        yield f"a tar with {about}", _tar(members, name, kind)
    yield "a tar with a path outside itself", _tar({"../" + name: b"", "/" + name: b""})


def _tar(members: dict[str, bytes], changed_member: str = "", kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            if name == changed_member:
                entry.type, entry.linkname = kind, "/etc/passwd"
            else:
                entry.size = len(data)
            tar.addfile(entry, io.BytesIO(b"" if name == changed_member else data))
    return out.getvalue()


def _damage_folder(members: dict[str, bytes]) -> Iterator[Variant]:
    """Yield folders with content that archives cannot hold."""
    name = next(iter(members))

    def fill(folder: Path) -> Path:
        for member, data in members.items():
            path = folder / "results" / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder / "results"

    def change(make_special: Callable[[Path], object]) -> Writer:
        def write(folder: Path) -> Path:
            path = fill(folder) / name
            path.unlink()
            make_special(path)
            return folder / "results"

        return write

    yield "folder: empty", lambda folder: folder
    yield "folder: a link to a file", change(lambda path: path.symlink_to("/etc/passwd"))
    yield "folder: a link to itself", change(lambda path: path.symlink_to(path.name))
    yield "folder: a link to a folder above", change(lambda path: path.symlink_to(".."))
    yield "folder: a pipe", change(os.mkfifo)
    yield "folder: a folder in the place of a file", change(Path.mkdir)
    yield (
        "folder: a name that is not UTF-8",
        change(lambda path: Path(os.fsdecode(os.fsencode(path) + b"\xff")).touch()),
    )
