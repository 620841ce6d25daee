"""The content of a zip, tar, gzip or folder: each rule at its limit, and every byte as it was packed."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tarfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.files import archive
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.inflate import inflate_member, inflate_stream
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS, SEND_LESS, ArchiveLimits, MemberChecks, read_json
from segjudge.evaluation_script.files.problems import Flaw, SubmissionError
from tests.builders import tarred, zipped
from tests.families.sequences.test_hostile_submissions import raw_tar, raw_zip

LIMITS = ArchiveLimits()
DEEP = "/".join("abcdefghijk")  # eleven folders


def opened(data: bytes, folder: Path, limits: ArchiveLimits = LIMITS) -> dict[str, bytes]:
    """Return every file by its name; both readers agree."""
    path = folder / "upload"
    path.write_bytes(data)
    files = open_files(str(path), limits)
    try:
        contents = {name: files.read(name) for name in files.sizes}
        assert {name: len(content) for name, content in contents.items()} == files.sizes
        assert {name: b"".join(files.read_chunks(name)) for name in files.sizes} == contents
        if isinstance(files, archive._ZipFiles):  # the quick way, which leaves only unusual entries to `parts`
            for name, content in contents.items():
                if content and name.isascii():
                    assert inflate_member(files._zip.fp, files._infos[name]) == content
        return contents
    finally:
        files.close()


def refused(data: bytes, folder: Path, limits: ArchiveLimits = LIMITS) -> str:
    try:
        opened(data, folder, limits)
    except SubmissionError as error:
        return str(error)
    return "it is read"


FORMS = {
    "zip": zipped,
    "stored": lambda files: zipped(files, zipfile.ZIP_STORED),
    "tar": tarred,
    "tar.gz": lambda files: tarred(files, "w:gz"),
}
#: Contents around the sizes of blocks and chunks.
CONTENTS = {f"a/{size}.png": bytes(k % 251 for k in range(size)) for size in (0, 1, 511, 512, 513, 1024, 70_000)}


@pytest.mark.parametrize("form", FORMS)
def test_every_byte_is_read_as_it_was_packed(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = FORMS[form](CONTENTS)
    assert opened(data, tmp_path) == CONTENTS
    monkeypatch.setattr(archive, "CHUNK_BYTES", 1000)
    assert opened(data, tmp_path) == CONTENTS


def test_a_folder_is_read_as_an_archive_is(tmp_path: Path) -> None:
    for name, content in {**CONTENTS, ".hidden/x.png": b"x", "a/Thumbs.db": b"x"}.items():
        (tmp_path / "f" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "f" / name).write_bytes(content)
    files = open_files(str(tmp_path / "f"), LIMITS)
    assert {name: files.read(name) for name in files.sizes} == CONTENTS
    with open(tmp_path / "f/a/1.png", "ab") as file:
        file.write(b"it grew meanwhile")
    assert len(files.read("a/1.png")) == 2, "one byte more tells it, and no more is read"
    (tmp_path / "f/a/1.png").unlink()
    with pytest.raises(Flaw, match="cannot be read"):
        files.read("a/1.png")


def test_what_a_folder_cannot_hold_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/link.png").symlink_to("/etc/passwd")
    (tmp_path / "a/large.png").write_bytes(bytes(11))
    limits = replace(LIMITS, member_bytes=10, members=3)
    with pytest.raises(SubmissionError) as caught:
        open_files(str(tmp_path), limits)
    assert "a/link.png: is a link or a device, not a file" in str(caught.value)
    assert "a/large.png: has 11 bytes when unpacked; the limit is 10 bytes" in str(caught.value)
    with pytest.raises(SubmissionError, match="holds more than 2 files"):
        open_files(str(tmp_path), replace(limits, members=2))


@pytest.mark.parametrize("follows", [True, False])
def test_a_link_to_itself_is_a_file_that_is_named_unless_it_is_hidden(follows: bool, tmp_path: Path) -> None:
    tmp_path.joinpath("a.png").write_bytes(b"x")
    tmp_path.joinpath(".hidden").symlink_to(".hidden")
    limits = replace(LIMITS, links=follows)
    files = open_files(str(tmp_path), limits)
    assert (files.sizes, files.hidden_folders) == ({"a.png": 1}, set())
    tmp_path.joinpath("b.png").symlink_to("b.png")
    message = "is a broken link" if follows else "is a link or a device, not a file"
    with pytest.raises(SubmissionError, match=f"b.png: {message}"):
        open_files(str(tmp_path), limits)


OWN = replace(LIMITS, links=True)


@pytest.mark.parametrize("path", ["/", "/etc/..", "//", "/."])
def test_the_root_of_the_machine_is_not_walked(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive._FolderFiles, "_walk", None)
    with pytest.raises(
        SubmissionError, match="is the root folder of this machine. Name the folder that holds the files"
    ):
        open_files(path, OWN)


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="NO LINUX: no list of file systems")
def test_folders_that_the_system_makes_are_not_walked(tmp_path: Path) -> None:
    for path in ("/proc", "/proc/self", "/sys"):
        with pytest.raises(
            SubmissionError, match=rf"{path}: is a folder that the system makes \((proc|sysfs)\)\. Name"
        ):
            open_files(path, OWN)
    (tmp_path / "a").symlink_to("/proc")
    with pytest.raises(SubmissionError, match=r"holds a, which the system makes \(proc\)"):
        open_files(str(tmp_path), OWN)


def test_the_walk_of_a_folder_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/x.png").write_bytes(b"x" * 11)
    assert len(open_files(str(tmp_path), OWN).sizes) == 9
    with monkeypatch.context() as patch:
        patch.setattr(archive, "FOLDER_MEMBERS", 17)
        with pytest.raises(SubmissionError, match="holds more than 17 files"):
            open_files(str(tmp_path), OWN)
    with monkeypatch.context() as patch:
        patch.setattr(archive, "FOLDER_PROBLEMS", 3)
        with pytest.raises(SubmissionError, match="^3 or more problems found"):
            open_files(str(tmp_path), replace(OWN, member_bytes=10))


@pytest.mark.parametrize(("depth", "fits"), [(11, True), (12, False)])
def test_files_lie_at_most_eleven_folders_deep(depth: int, fits: bool, tmp_path: Path) -> None:
    name = "/".join(["d"] * depth + ["x.png"])
    (tmp_path / "f" / name).parent.mkdir(parents=True)
    (tmp_path / "f" / name).write_bytes(b"x")
    text = f"{name}: is 12 folders deep; the limit is 11. Move it to a higher folder"
    for data in (zipped({name: b"x"}), tarred({name: b"x"})):
        if fits:
            assert opened(data, tmp_path) == {name: b"x"}
        else:
            assert text in refused(data, tmp_path)
    if fits:
        assert list(open_files(str(tmp_path / "f"), LIMITS).sizes) == [name]
    else:
        with pytest.raises(SubmissionError, match="is 12 folders deep; the limit is 11"):
            open_files(str(tmp_path / "f"), LIMITS)


# ── names ───────────────────────────────────────────────────────────────────

CLEAN = {
    "a.png": "a.png", "./a//b/./c.png": "a/b/c.png", "a..b/..c.png": None, "a..b/c...png": "a..b/c...png",
    "__MACOSX/a.png": None, "a/.git/b.png": None, "a/desktop.ini": None, "$RECYCLE.BIN/a.png": None, "a/b/": "a/b",
    "C:a.png": "C:a.png", ".": None, "./": None, DEEP + "/x.png": DEEP + "/x.png", "é/ü.png": "é/ü.png",
    "x" * 4096: "x" * 4096, "my results/~a.png": "my results/~a.png",
}  # fmt: skip


@pytest.mark.parametrize("raw", CLEAN, ids=lambda raw: raw[:20])
def test_a_name_is_cleaned(raw: str) -> None:
    checks = MemberChecks(LIMITS)
    assert checks.clean_name(raw, 5, 5) == CLEAN[raw]
    assert not checks.problems
    assert checks.clean_name(raw, 5, 5, folder=True) is None


# ── sizes ───────────────────────────────────────────────────────────────────


def test_the_limits_are_those_that_the_docs_name() -> None:
    assert (LIMITS.members, LIMITS.depth, LIMITS.objects, LIMITS.records) == (200_000, 12, 255, 1_000_000)
    assert (LIMITS.member_bytes, LIMITS.total_bytes) == (64 << 20, 8 << 30)
    assert (LIMITS.memory_bytes, LIMITS.json_bytes, INSTANCE_LIMITS.json_bytes) == (192 << 20, 48 << 20, 512 << 20)
    assert (LIMITS.ratio, LIMITS.ratio_from, LIMITS.links) == (200, 4 << 20, False)


@pytest.mark.parametrize(
    ("limits", "name", "size", "packed", "message"),
    [
        ({"member_bytes": 10}, "a.png", 10, 10, None),
        ({"member_bytes": 10}, "a.png", 11, 11, f"has 11 bytes when unpacked; the limit is 10 bytes. {SEND_LESS}."),
        ({"member_bytes": 10, "json_bytes": 20}, "a.JSON", 20, 20, None),
        ({"member_bytes": 30, "json_bytes": 20}, "a.json", 21, 21, f"has 21 bytes when unpacked; the limit is 20 bytes. {LIMITS.smaller}."),
        ({"ratio": 3, "ratio_from": 30}, "a.png", 31, 11, None),
        ({"ratio": 3, "ratio_from": 30}, "a.png", 30, 1, None),
        ({"ratio": 3, "ratio_from": 30}, "a.png", 33, 11, None),
        ({"ratio": 3, "ratio_from": 30}, "a.png", 34, 11, "unpacks to more than 3 times its size"),
        ({"ratio": 3, "ratio_from": 0}, "a.png", 3, 0, None),
        ({"ratio": 3, "ratio_from": 0}, "a.png", 4, 0, "unpacks to more than 3 times its size"),
    ],
)  # fmt: skip
def test_a_file_fits_up_to_its_limit(limits: Any, name: str, size: int, packed: int, message: Any) -> None:
    checks = MemberChecks(replace(LIMITS, **limits))
    cleaned = checks.clean_name(name, size, packed)
    assert (cleaned is None) == bool(message)
    assert [message in str(problem) for problem in checks.problems] == [True] * bool(message)


def test_all_files_together_fit_up_to_their_limits() -> None:
    checks = MemberChecks(replace(LIMITS, total_bytes=10, members=2))
    assert checks.clean_name("a", 4, 4)
    assert checks.clean_name("b", 6, 6)
    assert checks.clean_name("c", 0, 0)
    with pytest.raises(Flaw, match="would unpack to more than 10 bytes"):
        checks.clean_name("d", 1, 1)
    checks.count()
    checks.count()
    with pytest.raises(Flaw, match="holds more than 2 files"):
        checks.count()


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_holds_as_many_files_as_are_allowed(form: str, tmp_path: Path) -> None:
    data = FORMS[form]({f"{k}.png": b"x" for k in range(5)})
    assert len(opened(data, tmp_path, replace(LIMITS, members=5))) == 5
    assert "holds more than 4 files" in refused(data, tmp_path, replace(LIMITS, members=4))


# ── zip ─────────────────────────────────────────────────────────────────────


def two_members(overlap: int) -> bytes:
    """Return two stored files in the order of the second; the first one's bytes end this far inside it."""
    first, second = b"a.png", b"b.png"
    item, another = b"1" * 200, b"2" * 90
    common = [
        struct.pack("<HHHHHIII", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data)) for data in (item, another)
    ]
    body = b"PK\x03\x04" + common[0] + struct.pack("<HH", len(first), 0) + first + item
    start = len(body) - overlap
    body = body[:start] + b"PK\x03\x04" + common[1] + struct.pack("<HH", len(second), 0) + second + another
    directory = b""
    for name, facts, offset in ((second, common[1], start), (first, common[0], 0)):
        directory += b"PK\x01\x02" + struct.pack("<H", 3 << 8 | 20) + facts
        directory += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, offset) + name
    return body + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 2, 2, len(directory), len(body), 0)


@pytest.mark.parametrize("overlap", [6, 94, 150])
def test_files_that_share_a_few_bytes_are_refused(overlap: int, tmp_path: Path) -> None:
    assert "b.png: shares its bytes with another file of the zip" in refused(two_members(overlap), tmp_path)


@pytest.mark.parametrize("length", [1, 65_535])
def test_a_zip_may_have_a_comment(length: int, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a.png", b"x")
        file.comment = b"c" * length
    assert opened(out.getvalue(), tmp_path) == {"a.png": b"x"}


def test_a_zip_of_the_large_kind_is_read(tmp_path: Path) -> None:
    """The end record of such a zip refers to another one, which contains the numbers."""
    data = zipped({"a.png": b"x", "b.png": b"y"})
    position = data.rfind(b"PK\x05\x06")
    size, offset = struct.unpack_from("<II", data, position + 12)
    end64 = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 2, 2, size, offset)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, position, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    large = data[:position] + end64 + locator + end
    assert opened(large, tmp_path) == {"a.png": b"x", "b.png": b"y"}
    assert "holds more than 1 files" in refused(large, tmp_path, replace(LIMITS, members=1))
    lost = data[:position] + b"PK\x06\x05" + end64[4:] + locator + end
    assert "its table of contents cannot be found" in refused(lost, tmp_path)


def test_a_table_of_contents_has_room_for_names_of_a_usual_length(tmp_path: Path) -> None:
    limits = replace(LIMITS, members=2)
    for length, fits in ((350, True), (360, False)):  # 46 bytes more for each entry, 400 are allowed
        data = zipped({f"{k}" * length: b"x" for k in range(2)})
        if fits:
            assert len(opened(data, tmp_path, limits)) == 2
        else:
            assert "holds more than 2 files" in refused(data, tmp_path, limits)


def test_a_zip_after_other_bytes_is_read(tmp_path: Path) -> None:
    assert opened(b"PK\x03\x04 before" + zipped({"a.png": b"x"}), tmp_path) == {"a.png": b"x"}


@pytest.mark.parametrize(
    ("mode", "fits"),
    [(0, True), (0o100644, True), (0o40755, True), (0o120777, False), (0o20666, False), (0o140777, False)],
)
def test_a_member_is_a_file_or_a_folder(mode: int, fits: bool, tmp_path: Path) -> None:
    data = raw_zip([{"name": b"a.png", "data": b"x", "attributes": mode << 16}])
    if fits:
        assert opened(data, tmp_path) == {"a.png": b"x"}
    else:
        assert "a.png: is a link or a device, not a file" in refused(data, tmp_path)


def test_names_are_utf_8_whether_they_say_so_or_not(tmp_path: Path) -> None:
    for flags in (0, 0x800):
        data = raw_zip([{"name": "ü/ß.png".encode(), "data": b"x", "flags": flags}])
        assert opened(data, tmp_path) == {"ü/ß.png": b"x"}
    assert "has a name that is not UTF-8" in refused(raw_zip([{"name": b"\xff.png", "data": b"x"}]), tmp_path)


def test_folders_of_a_zip_are_no_files(tmp_path: Path) -> None:
    data = raw_zip([{"name": b"a/"}, {"name": b"b\\"}, {"name": b"a/x.png", "data": b"x"}])
    assert opened(data, tmp_path) == {"a/x.png": b"x"}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_with_much_beside_their_names_are_read(method: int, tmp_path: Path) -> None:
    out, files = io.BytesIO(), {"a.png": b"first" * 9, "b.png": b"second" * 40}
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type, info.extra = method, struct.pack("<HH", 0x7777, 300) + bytes(300)
            packed.writestr(info, data)
    assert opened(out.getvalue(), tmp_path) == files


def test_a_stream_is_inflated_if_it_is_whole_and_of_the_length_that_is_said() -> None:
    """Both inflaters accept only whole streams of the stated length."""
    data = bytes(range(200))
    whole, bare = zlib.compress(data), zlib.compress(data)[2:-4]
    assert inflate_stream(whole, 200) == inflate_stream(bare, 200, bare=True) == data
    for stream, length in ((whole, 199), (whole, 201), (whole[:-1], 200), (whole[:-1] + b"x", 200), (b"odd", 200)):
        assert inflate_stream(stream, length) is None
    for stream, length in ((bare, 199), (bare, 201), (bare[:-1], 200), (whole, 200)):
        assert inflate_stream(stream, length, bare=True) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1, "b": {"c": 2}}', ""),
        (b'{"b": 1, "a": 2, "a": 3}', "has the key a twice in one object. Write each key once"),
        (b'[{"a": 1}, {"a": 1, "a": 1}]', "has the key a twice in one object. Write each key once"),
        (b'["\xff"]', "is not UTF-8 text. Write the JSON in UTF-8"),
        (b"[123456789012]", ""),
        (b"[1234567890123]", "holds a number of 13 digits. Write numbers of at most 12 digits"),
        *[
            (start + b" " * 1200 + end, message)
            for start in (b"[", b"[0.123456789012345678, 1e5,")
            for end, message in (
                (b"123456789012]", ""),
                (b"-12345678901]", ""),
                (b"0.1234567890123]", ""),
                (b"1234567890123]", "holds a number of 13 digits. Write numbers of at most 12 digits"),
                (b"-123456789012]", "holds a number of 13 digits. Write numbers of at most 12 digits"),
            )
        ],
        (b"[NaN]", "holds NaN, which is not JSON. Write whole numbers"),
        (b"[" + b" " * 3998 + b"]", ""),
        (b"[" + b" " * 3999 + b"]", "is larger than 4 kB. Send a zip of PNG masks"),
        (b"[1", "is not valid JSON (Expecting ',' delimiter: line 1 column 3 (char 2)). Write it with a JSON library"),
    ],
)
def test_json_that_is_none_is_refused_in_a_sentence(data: bytes, message: str) -> None:
    limits = replace(LIMITS, json_bytes=4000)
    try:
        assert str(read_json(data, limits, "[1]")) == str(eval(data))
        text = ""
    except Flaw as flaw:
        text = str(flaw.as_problem("x")).removeprefix("x: ")
    assert text == (message and f"{message}.")


def test_punctuation_of_long_texts_takes_no_memory() -> None:
    document = {"counts": "[{:\\" * (2 << 20), "more": "[{:" * 99}
    data = json.dumps(document).encode()
    assert read_json(data, replace(LIMITS, memory_bytes=30 << 20), "{}") == document
    for lists in (data[:-1] + b', "lists": [' + b"[]," * 99_999 + b"[]]}", data[:-2] + b'\\""}', b'"' * 2_000_000):
        with pytest.raises(Flaw, match="holds too many lists and numbers"):
            read_json(lists, replace(LIMITS, memory_bytes=30 << 20), "{}")


# ── tar ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_long_names_are_read_in_every_form_of_tar(kind: int, mode: str, tmp_path: Path) -> None:
    files = {f"{'d' * 90}/{'e' * 40}/{k}.png": bytes([k]) for k in range(3)}
    if kind != tarfile.USTAR_FORMAT:
        files[f"{'é' * 120}.png"] = b"x"
    files["short.png"] = b"y"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=kind) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if kind == tarfile.PAX_FORMAT:
                info.pax_headers = {"comment": "path=none", "mtime": "1.5"}
            archive.addfile(info, io.BytesIO(data))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    assert opened(out.getvalue(), tmp_path) == files


def test_sizes_of_a_tar_are_octal_or_binary(tmp_path: Path) -> None:
    for size in (b"00000000003 ", b"         3 \0", b"\x80" + bytes(10) + b"\x03", b"3" + bytes(11)):
        data = bytearray(raw_tar(name="a.png", size=size))
        assert opened(bytes(data[:512]) + b"abc".ljust(512, b"\0") + bytes(1024), tmp_path) == {"a.png": b"abc"}
    for size in (b"\x81" + bytes(10) + b"\x03", b"\x80\x01" + bytes(9) + b"\x03", b"00000000009 ", b"0000000-001 "):
        assert "a member has an impossible size" in refused(raw_tar(name="a.png", size=size), tmp_path)


def with_checksum(data: bytes, place: int, value: bytes) -> bytes:
    """Return a tar with a changed byte in its first header, and the checksum that follows."""
    header = bytearray(data[:512])
    header[place : place + 1] = value
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


def test_the_checksum_of_a_header_counts_its_own_field_as_blanks(tmp_path: Path) -> None:
    data = bytearray(raw_tar(name="a.png"))
    data[500] ^= 1
    assert "neither a zip nor a tar archive" in refused(bytes(data), tmp_path)
    assert opened(with_checksum(raw_tar(name="a.png"), 147, b" "), tmp_path) == {"a.png": b""}
    second = bytearray(tarred({"a.png": b"", "b.png": b""}))
    second[512 + 150] ^= 1
    assert "a header's checksum is wrong" in refused(bytes(second), tmp_path)


@pytest.mark.parametrize(("size", "fits"), [(8192, True), (8193, False)])
def test_a_long_name_has_its_limit(size: int, fits: bool, tmp_path: Path) -> None:
    header = raw_tar(b"L", size=b"%011o" % size)[:512]
    data = header + b"n.png".ljust(-(-size // 512) * 512, b"\0") + raw_tar(name="x")
    if fits:
        assert opened(data, tmp_path) == {"n.png": b""}
    else:
        assert "an unterminated file name" in refused(data, tmp_path)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (b"14 path=n.png\n", "n.png"),
        (b"9 uid=12\n14 path=n.png\n", "n.png"),
        (b"14 path=n.png\n14 path=m.png\n", "n.png"),
        (b"9 uid=12\n", "x.png"),
        (b"14 pbth=n.png\n", "x.png"),
    ],
)
def test_the_path_of_an_extended_header_is_the_name(record: bytes, name: str, tmp_path: Path) -> None:
    header = raw_tar(b"x", size=b"%011o" % len(record))[:512]
    assert opened(header + record.ljust(512, b"\0") + raw_tar(name="x.png"), tmp_path) == {name: b""}


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"6", b"Z"])
def test_the_bytes_after_a_link_are_the_next_header(kind: bytes, tmp_path: Path) -> None:
    """A link's header states the size of its target, whose bytes do not follow."""
    data = raw_tar(kind, "a.png", b"00000001000")[:512] + raw_tar(b"2", "b.png")
    text = refused(data, tmp_path)
    assert "a.png: is a link or a device" in text
    assert "b.png: is a link or a device" in text


def test_a_tar_ends_where_it_says_so(tmp_path: Path) -> None:
    data = tarred({"a.png": b"abc"})
    assert opened(data[:1024] + bytes(512), tmp_path) == {"a.png": b"abc"}
    assert "is a tar that was cut off: its end is missing" in refused(data[:1024], tmp_path)
    assert "is a tar that was cut off, inside a.png" in refused(data[:514], tmp_path)
    assert "its end is missing" in refused(tarred({"a.png": bytes(512)})[:1024], tmp_path)
    assert opened(zipped({}), tmp_path) == {}
    for cut, message in ((1024, "its end is missing"), (514, "cut off, inside a.png")):
        assert message in refused(gzip.compress(data[:cut]), tmp_path)
    skipped = tarred({"a.txt": b"abc"})
    assert "cut off, inside a.txt" in refused(gzip.compress(skipped[:514]), tmp_path)
    assert opened(gzip.compress(skipped), tmp_path) == {"a.txt": b"abc"}


# ── gzip and JSON ───────────────────────────────────────────────────────────


def test_a_gzip_file_may_have_some_parts_and_zeros_after_them(tmp_path: Path) -> None:
    parts = [gzip.compress(b"[1")] + [gzip.compress(b", 1")] * 62 + [gzip.compress(b"]")]
    whole = b"[" + b", ".join([b"1"] * 63) + b"]"
    name = archive.JSON_NAME
    path = tmp_path / "upload"
    for data, fits in ((parts, True), ([*parts, gzip.compress(b" ")], False)):
        path.write_bytes(b"\0\0".join(data) + bytes(100))
        if fits:
            assert open_files(str(path), LIMITS).read(name) == whole
        else:
            with pytest.raises(SubmissionError, match="is a damaged gzip file"):
                open_files(str(path), LIMITS)
    for rubbish in (b"\x1f", b"\x1f\x8a", b"x"):
        path.write_bytes(parts[0] + rubbish)
        with pytest.raises((Flaw, SubmissionError), match="is a damaged gzip file"):
            open_files(str(path), LIMITS).read(name)


@pytest.mark.parametrize("packed", [False, True])
def test_json_is_as_large_as_is_allowed(packed: bool, tmp_path: Path) -> None:
    limits = replace(LIMITS, json_bytes=1000)
    path = tmp_path / "upload"
    for size, fits in ((1000, True), (1001, False)):
        data = b"[" + b" " * (size - 2) + b"]"
        path.write_bytes(gzip.compress(data) if packed else data)
        try:
            assert len(open_files(str(path), limits).read("")) == size
            assert fits
        except (Flaw, SubmissionError) as error:
            assert not fits, error
            assert "1 kB" in str(error)


def test_a_gzip_file_is_bounded_by_memory_and_by_its_own_size(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    tar = tarred({"a.png": os.urandom(3000), "b.txt": bytes(100_000)}, "w:gz")
    assert opened(tar, tmp_path, replace(LIMITS, memory_bytes=112_640))
    assert "would unpack to more than 113 kB" in refused(tar, tmp_path, replace(LIMITS, memory_bytes=112_639))
    bomb = replace(LIMITS, ratio=40, ratio_from=1000)
    assert opened(tar, tmp_path, bomb)["a.png"]
    assert "unpacks to more than 40 times its size" in refused(
        gzip.compress(tarred({"a.png": bytes(100_000)})), tmp_path, bomb
    )
    for length, fits in ((8000, True), (8001, False)):
        path.write_bytes(gzip.compress(b"[" + b" " * (length - 1)))
        if fits:
            assert len(open_files(str(path), bomb).read("")) == length
        else:
            with pytest.raises(SubmissionError, match="unpacks to more than 40 times its size"):
                open_files(str(path), bomb)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "your file: is empty"),
        (b" \0\r\n\t", "your file: is empty"),
        (b" " * 512, "your file: is empty"),
        (b" " * 513, "your file: begins with too many blanks"),
        (b" file_content\n", "did not arrive"),
        (b"file_content!", "is neither a zip nor a tar archive nor JSON"),
        (b"\xfe\xff\0[", "is UTF-16 text"),
        (b"\xff\xd8\xff\xe0", "is a JPEG image"),
        (b"\x28\xb5\x2f\xfd", "is a zstd file"),
        (b"%PDF-1.4", "is a PDF"),
        (b"\x89HDF\r\n", "is an HDF5 file"),
        (b"\x93NUMPY", "is a numpy file"),
        (b'"text"', "is neither a zip nor a tar archive nor JSON"),
        (gzip.compress(b'"text"', mtime=0), "is a gzip file that holds neither a tar archive nor JSON"),
    ],
)
def test_what_a_file_is_is_read_from_its_beginning(data: bytes, message: str, tmp_path: Path) -> None:
    assert message in refused(data, tmp_path)


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_what_follows_large_litter_and_a_large_member_of_a_gzipped_tar_is_found(size: int, tmp_path: Path) -> None:
    members = {"large": os.urandom(size), "next": b"here", "last": b"there"}
    (tmp_path / "sent.tar.gz").write_bytes(tarred({"__MACOSX/._large": os.urandom(size), **members}, "w:gz"))
    files = open_files(str(tmp_path / "sent.tar.gz"), LIMITS)
    assert {name: files.read(name) for name in members} == members
