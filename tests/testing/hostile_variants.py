"""Every hostile submission that the kit makes of small ones, as one text."""

from __future__ import annotations

import io
import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from segjudge.testing import hostile

FILE = Path(__file__).parent.parent / "golden/hostile.txt"
#: What is longer is shown by its beginning, its length and a checksum.
_BYTES = 60
#: Where a variant has its value.
_VALUE = re.compile(r"(\w+:(?: .*?)? (?:is|called|as|bits)) (.*?): ((?:[\d,]+ bytes )?b['\"].*)")
#: What is shown of every submission.
_ALWAYS = ("empty", "as it is")


def write_variants() -> str:
    """Return the variants of a submission of each kind, one per line, without those of earlier ones."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, _nothing_compressed():
        shown: set[str] = set()
        for name, data in _submissions():
            path = Path(folder, name)
            path.write_bytes(data)
            lines += ["", f"── {name}: {_show(data)}", *_join_values([*_list_variants(path, shown)])]
        whole = Path(folder, "folder")
        for member in ("a/1.txt", "b/2.txt"):
            (whole / member).parent.mkdir(parents=True)
            (whole / member).write_bytes(b"1\n")
        lines += ["", "── a folder", *_join_values([*_list_variants(whole, shown)])]
        for path in (whole, Path(folder, "lines.txt")):
            lines += ["", f"── refused, of {path.name}"]
            lines += [f"{about}: {_show(data)} → {message}" for about, data, message in hostile.make_refused(path)]
    return "\n".join(lines[1:]) + "\n"


def _join_values(lines: list[str]) -> Iterator[str]:
    """Yield the lines; one line for a place with many values: the values, and the first and a checksum of all."""
    matches = [(line, _VALUE.match(line)) for line in lines]
    places, joined = Counter(match[1] for _, match in matches if match), set[str]()
    for line, match in matches:
        if not match or places[match[1]] < 3:
            yield line
        elif match[1] not in joined:
            same = [each for _, each in matches if each and each[1] == match[1]]
            texts = [each[3] for each in same]
            yield f"{match[1]} {', '.join(each[2] for each in same)}: {texts[0]} … {zlib.crc32(repr(texts).encode()):08x}"
            joined.add(match[1])


def _submissions() -> Iterator[tuple[str, bytes]]:
    rows = b'[{"id": 1, "size": [3, 4]}, {"id": 2, "x": {}}]'
    yield "rows.json", rows
    yield "one.json.gz", b'\x1f\x8b9 0|{"a": 1}\n'
    yield "rows.jsonl", b'{"id": 1}\n{"id": 2}\n'
    yield "lines.txt", b"a 1 2.5\nb -3 4 5 6 7 8 9 10\n"
    yield "picture.png", hostile._png(3, 2, 8, 0, b"\0\1\1\1\0\2\2\2")
    yield "labels.tif", hostile._tiff(3, 2, bytes(range(12)))
    yield "labels-big.tif", hostile._tiff(5, 4, bytes(range(40)), order=">")
    yield "numbers.bin", bytes(range(100))
    members = {"b/2.txt": b"2\n", "a/1.txt": b"1\n", "a/3.TXT": b"3\n", "rows.json": b"[77]", "c/empty/": b""}
    yield "results.zip", hostile._zip(members)
    yield "results.tar", hostile._tar({"1.csv": b"1\n"})


@contextmanager
def _nothing_compressed() -> Iterator[None]:
    """Compressors differ between machines, and bombs take long; other tests send both unchanged."""
    squeeze = SimpleNamespace(
        compress=lambda data, level=9, mtime=None: b"\x1f\x8b%d %a|" % (level, mtime) + data,
        decompress=lambda data: data.partition(b"|")[2],
    )
    shrink = SimpleNamespace(compress=lambda data: b"z|" + data, crc32=zlib.crc32)
    hostile._compress_zeros.cache_clear()
    with (
        mock.patch.multiple(hostile, gzip=squeeze, zlib=shrink, _ZEROS=1000),
        mock.patch.object(hostile._zip, "__defaults__", (zipfile.ZIP_STORED,)),
    ):
        yield
    hostile._compress_zeros.cache_clear()


def _list_variants(path: Path, shown: set[str]) -> Iterator[str]:
    for about, write in hostile.make_variants(path):
        subject, _, damage = about.partition(": ")
        if damage in shown and damage not in _ALWAYS:
            continue
        shown.add(damage)
        with tempfile.TemporaryDirectory(prefix="segjudge-") as place:
            made = write(Path(place))
            text = (", ".join(_list_tree(made)) or "nothing") if subject == "folder" else _show(made.read_bytes())
        yield f"{about}: {text}" if made.name == path.name else f"{about} → {made.relative_to(place)}: {text}"


def _list_tree(path: Path) -> Iterator[str]:
    for entry in sorted(path.rglob("*")):
        name, mode = ascii(entry.relative_to(path).as_posix())[1:-1], entry.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield f"{name} is a link to {os.readlink(entry)}"
        elif stat.S_ISFIFO(mode):
            yield f"{name} is a pipe"
        elif not stat.S_ISDIR(mode):
            yield f"{name} {entry.read_bytes()!r}"
        elif not any(entry.iterdir()):
            yield f"{name}/"


def _show(data: bytes) -> str:
    if len(data) <= _BYTES:
        return repr(data)
    return f"{len(data):,} bytes {data[: _BYTES // 3]!r}… {zlib.crc32(data):08x}{_list_names(data)}"


def _list_names(data: bytes) -> str:
    """Return the files of an archive that can be opened, if there are few."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [f"{entry.filename[:20]} {entry.file_size}" for entry in archive.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return ""
    return f" ({', '.join(names)})" if len(names) < 8 else f" ({len(names)} files)"


if __name__ == "__main__":
    FILE.write_text(write_variants(), encoding="utf-8")
