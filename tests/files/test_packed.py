"""A file is written completely or not at all; packed truths name their kind, and several readers' problems merge."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.files import packed
from segjudge.evaluation_script.files.packed import NotWritten, add_member, open_packed, replace_file, table_of
from segjudge.evaluation_script.files.problems import HostError
from tests.builders import zipped

WHOLE = {"track": "sequences", "format": "segjudge truth 1", "splits": {"b": {}, "a": {}}}


def write(path: Path, text: str, error: Any = None) -> None:
    with replace_file(str(path)) as partial:
        with open(partial, "a", encoding="utf-8") as file:
            file.write(text)
        if error:
            raise error


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    write(path, "new")
    path.chmod(0o640)
    link.symlink_to(path)
    write(link, "newer")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("newer", 0o640, True)
    assert sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_a_file_that_cannot_be_written_stays_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    full, other_error = (
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EIO, "Input/output error", "other"),
    )
    partial = f"{os.path.realpath(path)}.{os.getpid()}.partial"
    own = OSError(errno.EIO, "Input/output error", partial)
    for error, raised in ((full, NotWritten), (own, NotWritten), (other_error, OSError), (KeyError("x"), KeyError)):
        with pytest.raises(raised) as caught:
            write(path, "new", error)
        if raised is NotWritten:
            assert str(caught.value) == f"{path}: cannot be written ({error.args[1]})"
        else:
            assert caught.value is error
    assert (os.listdir(tmp_path), path.read_text()) == (["a"], "old")
    with pytest.raises(NotWritten, match=r"cannot be written \(Is a directory\)$"):
        write(tmp_path, "new")


def test_a_device_is_written_to_and_says_that_it_is_full(tmp_path: Path) -> None:
    write(Path(os.devnull), "new")
    with pytest.raises(NotWritten, match=r"^/dev/full: cannot be written \(No space left on device\)$"):
        write(Path("/dev/full"), "new")
    gone, other_error = OSError(errno.EPIPE, "Broken pipe"), OSError(errno.EIO, "Input/output error", "other")
    own = OSError(errno.EIO, "Input/output error", os.devnull)
    for error, raised in ((gone, NotWritten), (own, NotWritten), (other_error, OSError)):
        with pytest.raises(raised) as caught:
            write(Path(os.devnull), "new", error)
        assert isinstance(caught.value, NotWritten) == (raised is NotWritten)


def test_a_member_has_nothing_of_the_day_and_the_machine() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        add_member(archive, "a.txt", b"x" * 99)
        (info,) = archive.infolist()
    assert (info.date_time, info.create_system, info.external_attr >> 16) == ((1980, 1, 1, 0, 0, 0), 3, 0o644)
    assert info.compress_type == zipfile.ZIP_DEFLATED


def test_the_table_of_a_zip_is_found_and_nothing_of_other_files(tmp_path: Path) -> None:
    path, data = tmp_path / "z", zipped({"a": "x", "b": "y"})
    table = data[data.index(b"PK\1\2") : data.rindex(b"PK\5\6")]
    for content, results in ((data, table), (b"before" + data, table), (data[:-5], b""), (b"", b""), (zipped({}), b"")):
        path.write_bytes(content)
        assert table_of(str(path)) == results


def manifest(**changes: Any) -> bytes:
    return zipped({"manifest.json": json.dumps({**WHOLE, **changes})})


AGAIN = "Pack it again"


@pytest.mark.parametrize(
    ("data", "family", "message"),
    [
        (manifest(), "", ""),
        (manifest(), "sequences", ""),
        (manifest(), "instances", "holds sequences, not instances; choose another file or protocol"),
        (manifest(format="2"), "", f"has the format '2'; this version reads 'segjudge truth 1'. {AGAIN}"),
        (manifest(splits={}), "", f"holds no splits, so nothing can be scored. {AGAIN}"),
        (manifest(splits=7), "", f"is not a readable annotation file (TypeError(…)). {AGAIN}"),
        (zipped({"manifest.json": "{}"}), "", f"is not a readable annotation file (KeyError(…)). {AGAIN}"),
        (zipped({"manifest.json": "{"}), "", f"is not a readable annotation file (JSONDecodeError(…)). {AGAIN}"),
        (zipped({"other": ""}), "", f"is not a readable annotation file (KeyError(…)). {AGAIN}"),
        (b"odd", "", f"is not a readable annotation file (BadZipFile(…)). {AGAIN}"),
    ],
)  # fmt: skip
def test_a_packed_truth_says_what_it_is(data: bytes, family: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.zip"
    path.write_bytes(data)
    try:
        archive, read = open_packed(str(path), family)
        archive.close()
        assert (read, packed.family_of(str(path)), packed.splits_of(str(path))) == (WHOLE, "sequences", ["b", "a"])
        assert (packed.family_of(io.BytesIO(data)), packed.splits_of(io.BytesIO(data))) == ("sequences", ["b", "a"])
        text = ""
    except HostError as error:
        text = str(error).partition(": ")[2]
        head, middle, tail = text.partition("(")
        text = f"{head}({tail.partition('(')[0]}(…)). {AGAIN}" if middle and "readable" in head else text
    assert text == message
