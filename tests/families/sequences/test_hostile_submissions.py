"""Every hostile submission is rejected with one sentence, quickly and in little memory, and the worker survives."""

from __future__ import annotations

import functools
import gzip
import json
import os
import resource
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import ANNOTATIONS, DEV, STRONG, chunk, files_of, png, raw_png, tarred, zipped

MEGABYTE = 1 << 20
SECONDS = 1.0
MEMORY = 300 * MEGABYTE
FIRST = "crossing/00001.png"
SIZE = (120, 160)


def with_file(name: str, data: bytes) -> bytes:
    return zipped({**files_of(), name: data})


def with_mask(data: bytes) -> bytes:
    return with_file(FIRST, data)


def good_mask() -> bytes:
    return files_of()[FIRST]


def rows(bytes_per_row: int, fill: bytes = b"\0") -> bytes:
    return (b"\0" + fill * bytes_per_row) * SIZE[0]


def raw_zip(entries: list[dict[str, Any]]) -> bytes:
    """Return a zip with forged headers."""
    body, directory = b"", b""
    compress, checksum = functools.cache(zlib.compress), functools.cache(zlib.crc32)
    for entry in entries:
        name, data = entry["name"], entry.get("data", b"")
        packed = data if entry.get("method", 0) == 0 else compress(data)[2:-4]
        packed = entry.get("packed", packed)
        common = struct.pack(
            "<HHHHHIII", 20, entry.get("flags", 0), entry.get("method", 0), 0, 33, entry.get("crc", checksum(data)),
            len(packed), entry.get("size", len(data)),
        )  # fmt: skip
        offset = entry.get("offset", len(body))
        if "offset" not in entry:
            body += b"PK\x03\x04" + common + struct.pack("<HH", len(name), 0) + name + packed
        directory += b"PK\x01\x02" + struct.pack("<H", 3 << 8 | 20) + common
        directory += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, entry.get("attributes", 0), offset) + name
    count = min(len(entries), 0xFFFF)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def raw_tar(kind: bytes = b"0", name: str = "crossing/x.png", size: bytes = b"00000000000", link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT)[-512:])
    header[124 : 124 + len(size)] = size
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def entry_link() -> bytes:
    return raw_zip([{"name": b"crossing/00001.png", "data": b"/etc/passwd", "attributes": 0o120777 << 16}])


def million_members() -> bytes:
    """Return a directory of a million entries for the same empty file."""
    name = b"a/b"
    local = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
    entry = (
        b"PK\x01\x02"
        + struct.pack("<HHHHHHIIIHHHHHII", 788, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)
        + name
    )
    directory = entry * 1_000_000
    end64 = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1_000_000, 1_000_000, len(directory), len(local))
    end = struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, len(local) + len(directory), 1)
    return local + directory + b"PK\x06\x06" + end64 + locator + b"PK\x05\x06" + end


def understated_members() -> bytes:
    """Return a directory of a million entries, whose end record states five."""
    data = bytearray(million_members())
    position = data.rfind(b"PK\x06\x06")
    data[position + 24 : position + 40] = struct.pack("<QQ", 5, 5)
    return bytes(data)


def lying_locator() -> bytes:
    """Return a zip whose end record states one entry, while the record that zipfile reads states a million."""
    data = bytearray(million_members())
    position = data.rfind(b"PK\x05\x06")
    data[position + 8 : position + 20] = struct.pack("<HHII", 1, 1, 49, 33)
    return bytes(data)


def pax(record: bytes) -> bytes:
    """Return a tar with one extended header."""
    return (
        raw_tar(b"x", size=b"%011o" % len(record))[:512]
        + record.ljust(-(-len(record) // 512) * 512, b"\0")
        + bytes(1024)
    )


def long_names(count: int) -> bytes:
    return (raw_tar(b"L", size=b"%011o" % 60_000)[:512] + b"x" * 60_416) * (count // 100)


def half_tar() -> bytes:
    data = tarred(files_of())
    return data[: len(data) // 2 // 512 * 512]


def altered_tar() -> bytes:
    """Return a compressed tar whose bytes differ from the packed ones."""
    data = tarred(files_of())
    stored = zlib.compressobj(0, zlib.DEFLATED, 31)
    packed = bytearray(stored.compress(data) + stored.flush())
    packed[-20_000] ^= 0xFF
    return bytes(packed)


def document(change: Callable[[Any], Any]) -> bytes:
    """Return the JSON sample with a change."""
    sample = json.loads((STRONG.parent / "first-mask.json").read_text())
    changed = change(sample)
    return json.dumps(sample if changed is None else changed).encode()


def with_rle(rle: Any) -> bytes:
    def change(sample: Any) -> None:
        sample["crossing"]["1"][1] = rle

    return document(change)


def with_masks(masks: Any) -> bytes:
    def change(sample: Any) -> None:
        sample["crossing"]["1"] = masks

    return document(change)


def overlap(sample: Any) -> None:
    sample["crossing"]["2"] = sample["crossing"]["1"]


def many_objects(sample: Any) -> None:
    nothing = [None] * len(sample["crossing"]["1"])
    sample["crossing"] = {str(number): nothing for number in range(1, 301)}


def encrypted() -> bytes:
    data = bytearray(zipped({FIRST: b"x"}, zipfile.ZIP_STORED))
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def wrong_crc() -> bytes:
    data = bytearray(zipped(files_of(), zipfile.ZIP_STORED))
    position = data.find(b"IDAT", data.find(FIRST.encode()))
    data[position + 10] ^= 0xFF
    return bytes(data)


def many_zeros(count: int) -> bytes:
    return zipped({**files_of(), "crossing/zeros.png": bytes(count)})


def label_image(values: Any, dtype: Any = np.uint8) -> bytes:
    labels = np.zeros(SIZE, dtype)
    labels.reshape(-1)[: len(values)] = values
    return png(labels)


#: name → (file, words of the refusal).
BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    # the upload as a whole
    "empty-file": (lambda: b"", "your file: is empty"),
    "placeholder": (lambda: b"file_content", "12-byte placeholder"),
    "rar": (lambda: b"Rar!\x1a\x07\x01\0" + bytes(99), "is a RAR archive"),
    "seven-zip": (lambda: b"7z\xbc\xaf\x27\x1c" + bytes(99), "is a 7z archive"),
    "bzip2": (lambda: b"BZh91AY&SY" + bytes(99), "is a bzip2 file"),
    "pickle": (lambda: b"\x80\x04\x95" + bytes(99), "is a pickle"),
    # zip
    "zip-cut-off": (lambda: zipped(files_of())[:20_000], "cut off: its table of contents is missing"),
    "zip-directory-too-large": (lambda: zipped({})[:12] + struct.pack("<IIH", 1 << 30, 0, 0), "larger than the file"),
    "zip-garbage-directory": (lambda: b"PK\x03\x04" + bytes(200) + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 100, 50, 0), "damaged zip"),
    "parent-name": (lambda: zipped({**files_of(), "../evil.png": b"x"}), r"\.\./evil.png: points outside"),
    "zip-link": (entry_link, "crossing/00001.png: is a link"),
    "encrypted": (encrypted, "crossing/00001.png: is encrypted"),
    "odd-method": (lambda: zipped(files_of(), zipfile.ZIP_LZMA), "an unsupported compression method"),
    "wrong-crc": (wrong_crc, "is damaged in the zip: its checksum is wrong"),
    "million-members": (million_members, "holds more than 20,000 files"),
    "million-understated": (understated_members, "holds more than 20,000 files|damaged zip"),
    "bomb-one-member": (lambda: many_zeros(60 * MEGABYTE), "crossing/zeros.png: unpacks to more than 200 times"),
    "bomb-huge-member": (lambda: many_zeros(100 * MEGABYTE), "crossing/zeros.png: has 105 MB when unpacked; the limit is 67 MB"),
    "bomb-declared": (lambda: raw_zip([{"name": b"a/1.png", "size": 0xFFFFFFF0, "method": 8, "data": b"x"}]), "unpacked; the limit is 67 MB"),
    "bomb-many": (
        lambda: raw_zip([{"name": b"a/%d.png" % k, "size": 60 * MEGABYTE, "data": bytes(400_000)} for k in range(50)]),
        "would unpack to more than 2 GB",
    ),
    "bomb-overlapping": (
        lambda zeros=bytes(3 * MEGABYTE): raw_zip(
            [{"name": b"crossing/00000.png", "data": zeros, "method": 8}]
            + [{"name": b"crossing/%05d.png" % k, "data": zeros, "method": 8, "offset": 0} for k in range(1, 500)]
        ),
        "shares its bytes with another file of the zip",
    ),
    "size-understated": (lambda: raw_zip([{"name": FIRST.encode(), "data": bytes(2 * MEGABYTE), "size": 10, "method": 8}]), "missing|damaged"),
    "zip64-lie": (lying_locator, "holds more than 20,000 files"),
    "compressed-size-lie": (
        lambda: raw_zip([{"name": FIRST.encode(), "packed": b"xyz", "data": bytes(9), "method": 8}]).replace(
            struct.pack("<II", 3, 9), struct.pack("<II", 0x7FFFFFFF, 9)
        ),
        "reach beyond the end of the zip",
    ),
    "no-name": (lambda: raw_zip([{"name": b"", "data": b"x"}]), "a file: has no name"),
    "name-not-utf-8-but-flagged": (lambda: raw_zip([{"name": b"crossing/\xff.png", "data": b"x", "flags": 0x800}]), "file name that is not UTF-8"),
    "json-in-zip-bomb": (lambda: zipped({"a.json": b"[" + b" " * (60 * MEGABYTE)}), "a.json: has 63 MB when unpacked"),
    "same-frame-twice": (lambda: with_file("crossing/00001.PNG", good_mask()), "crossing/00001.PNG: is the same frame as crossing/00001.png"),
    "many-homes": (
        lambda: zipped({f"{k}/crossing/00000.png": b"x" for k in range(19_000)}),
        "occurs more than once: 0/crossing, 1/crossing, 10/crossing and 18997 more",
    ),
    "directory-for-file": (
        lambda: zipped({**{n: d for n, d in files_of().items() if n != FIRST}, FIRST + "/x.txt": b"x"}),
        "crossing/00001.png: is missing",
    ),
    # tar and gzip
    "tar-cut-off": (lambda: tarred(files_of())[:30_000], "cut off|missing"),
    "tar-negative-size": (lambda: raw_tar(size=b"\xff" * 12), "impossible size"),
    "tar-huge-size": (lambda: raw_tar(size=b"77777777777"), "cut off, inside crossing/x.png"),
    "tar-endless-name": (lambda: raw_tar(b"L", size=b"07777777777"), "unterminated file name"),
    "tar-long-names": (lambda: gzip.compress(long_names(19_000)), "unterminated file name"),
    "tar-header-flood": (lambda: gzip.compress(raw_tar(b"g", size=b"00000000000")[:512] * 30_000), "more than 20,000"),
    "tar-pax-digits": (lambda: pax(b"9" * 5000 + b" path=x\n"), "extended header cannot be read"),
    "tar-json-lie": (lambda: raw_tar(name="a.json", size=b"00200000000")[:512] + b"{}", "cut off, inside a.json"),
    "tar-half": (half_tar, "cut off: its end is missing|cut off, inside"),
    "tar-gz-altered": (altered_tar, "damaged gzip"),
    "gzip-endless-name": (lambda: b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 20 * MEGABYTE, "damaged gzip"),
    "gzip-many-parts": (lambda: gzip.compress(b"") * 100_000, "damaged gzip"),
    "gzip-bomb": (lambda: gzip.compress(b"{" + b" " * (400 * MEGABYTE), 9), "unpack"),
    "tar-gz-bomb": (lambda: gzip.compress(raw_tar(size=b"02000000000")[:512] + bytes(200 * MEGABYTE), 9), "unpack"),
    # PNG
    "png-bomb": (lambda: with_mask(raw_png(60_000, 60_000, 8, 0, b"")), "60000x60000 pixels but the frame is 160x120"),
    "png-pixels-missing": (lambda: with_mask(raw_png(160, 120, 8, 0, rows(160)[:5000])), "pixels end in row 31 of 120"),
    "png-wrong-checksum": (lambda: with_mask(good_mask().replace(b"IDAT", b"IDAT\1", 1)), "damaged|cut off"),
    "png-empty-chunks": (lambda: with_mask(raw_png(160, 120, 8, 0, rows(160), chunk(b"IDAT", b"") * 50_000)), "has more than 4096 chunks"),
    "png-bloated": (lambda: with_mask(raw_png(160, 120, 8, 0, rows(160), chunk(b"teXt", bytes(3 * MEGABYTE)))), "a mask of this size takes at most"),
    "300-objects": (lambda: with_mask(label_image(range(300), np.uint16)), "has 299 objects; this phase allows 255"),
    # what belongs to what
    "frames-missing": (
        lambda: zipped({n: d for n, d in files_of().items() if "crossing/0000" not in n}),
        "crossing: 9 frames are missing: 00001.png, 00002.png, 00003.png and 6 more",
    ),
    "sequence-missing": (lambda: zipped({n: d for n, d in files_of().items() if "solo" not in n}), "1 of 3 sequences is missing: solo"),
    # JSON
    "json-deep": (lambda: b'{"crossing":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
    "json-deep-lists": (lambda: b'{"crossing":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested too deeply"),
    "json-key-twice": (lambda: b'{"crossing": {}, "crossing": {}}', "the key crossing twice"),
    "json-last-key-twice": (
        lambda: b'{"crossing": {' + b",".join(b'"%d": 1' % k for k in (*range(200_000), 0)) + b"}}",
        "the key 0 twice|too many lists",
    ),
    "json-large": (lambda: b'{"crossing": "' + b"x" * (60 * MEGABYTE) + b'"}', "is JSON of 63 MB"),
    "json-long-strings": (lambda: b'{"crossing": ["' + "\N{GRINNING FACE}".encode() * 10_000_000 + b'"]}', "too many lists"),
    "json-many-keys": (lambda: b'{"crossing": {' + b",".join(b'"%d":1' % k for k in range(3_000_000)) + b"}}", "too many lists and numbers"),
    "json-escapes": (lambda: with_rle({"size": "\x1b[31mRED\n 2. forged", "counts": []}), "has the size"),
    "json-too-many-lists": (lambda: b'{"crossing":[' + b"[]," * 3_000_000 + b"[]]}", "too many lists and numbers"),
    "json-no-objects": (lambda: document(lambda s: {**s, "crossing": [1]}), "crossing: is not an object of objects"),
    "json-short-list": (lambda: with_masks([None] * 3), "crossing, object 1: has 3 masks. Give one mask or null for each of the 16"),
    "json-300-objects": (lambda: document(many_objects), "has 300 objects; this phase allows 255"),
    "json-overlap": (lambda: document(overlap), "crossing, frame 00001: objects 1 and 2 share pixels"),
    "rle-no-counts": (lambda: with_rle({"size": [120, 160]}), "is not"),
    "rle-huge": (lambda: with_rle({"size": [120, 160], "counts": [10**30]}), "holds a number of 31 digits"),
    "rle-endless-text": (lambda: with_rle({"size": [120, 160], "counts": "o" * 1000}), "end too early or do not end"),
    "rle-text-overflow": (lambda: with_rle({"size": [120, 160], "counts": "oooooo?" * 50}), "end too early or do not end"),
    "rle-endless": (lambda: with_rle({"size": [120, 160], "counts": "0" * 30_000_000}), "more than 19200 pixels can need"),
}  # fmt: skip


def refused_in_child(path: Path) -> tuple[str, float, int]:
    """Evaluate in a separate process: the rejection, its seconds, the memory of the largest process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        started = sum(os.times()[:4])
        try:
            evaluate(str(ANNOTATIONS), str(path), DEV)
            text = "SCORED"
        except SubmissionError as error:
            text = str(error)
        except BaseException as error:  # noqa: BLE001
            text = f"CRASH {error!r}"
        seconds = sum(os.times()[:4]) - started  # of work, which others on the machine do not add to
        used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        os.write(writer, json.dumps([text, seconds, used * 1024]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    text, seconds, used = json.loads(answer)
    return text, seconds, used


@pytest.fixture(scope="module")
def memory_before() -> int:
    """Return the test's own memory, with which a forked child begins."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


#: These unpack to what a limit allows, or nearly, and take seconds.
SLOW = {"bomb-overlapping", "gzip-bomb", "tar-gz-bomb", "many-homes", "json-many-keys"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in BAD])
def test_a_bad_submission_is_refused_with_a_sentence(name: str, tmp_path: Path, memory_before: int) -> None:
    make, message = BAD[name]
    path = tmp_path / "0c5f.bin"
    path.write_bytes(make())

    text, seconds, used = refused_in_child(path)

    assert not text.startswith(("SCORED", "CRASH")), text
    with pytest.raises(SubmissionError, match=message):
        raise SubmissionError(text)
    assert "Traceback" not in text
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 22
    assert seconds < 2 * SECONDS, "seconds, twice the promise: machines are noisy"
    assert used - max(0, memory_before - 100 * MEGABYTE) < MEMORY, f"{used / MEGABYTE:.0f} MB"


def test_a_folder_with_links_and_pipes_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "crossing"
    folder.mkdir()
    (folder / "00001.png").symlink_to("/etc/passwd")
    os.mkfifo(folder / "00002.png")
    with pytest.raises(SubmissionError, match=r"each of 2 files \(00001.png, 00002.png\) is a link or a device"):
        evaluate(str(ANNOTATIONS), str(tmp_path), DEV)


LAYOUTS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "davis": lambda files: zipped({f"DAVIS/Annotations/480p/{n}": d for n, d in files.items()}),
    "litter": lambda files: zipped({**files, "__MACOSX/crossing/._00000.png": b"x", ".DS_Store": b"x", "crossing/Thumbs.db": b"x"}),
    "tar-dot": lambda files: tarred({f"./{n}": d for n, d in files.items()}),
    "extra-frame": lambda files: zipped({**files, "crossing/99999.png": files[FIRST]}),
    "no-first-and-last": lambda files: zipped({n: d for n, d in files.items() if n not in ("crossing/00000.png", "crossing/00015.png")}),
    "extra-sequence": lambda files: zipped({**files, "stranger/00000.png": files[FIRST]}),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_that_people_send_scores_the_same(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "submission"
    path.write_bytes(LAYOUTS[layout](files_of()))

    answer = evaluate(str(ANNOTATIONS), str(path), DEV)

    assert answer["result"] == evaluate(str(ANNOTATIONS), str(STRONG), DEV)["result"]
    assert len(answer["submission_result"]["warnings"]) == (1 if layout.startswith("extra") else 0)


if sys.platform == "darwin":  # ru_maxrss is in bytes there
    MEMORY *= 1024
