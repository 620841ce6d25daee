"""Names of files, checks of outputs, drafts, and folders that one process holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segjudge.system import files
from segjudge.system.files import BuiltFile, OutputFolder
from tests.calls import outcome


def test_a_path_has_the_name_of_its_end() -> None:
    paths = ("/a/b/", "a/../c", "https://u:p@h/x/y.zip?k=1#f", "s3://b/c/")
    assert [files.name_of(path) for path in paths] == ["b", "c", "y.zip", "c"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with some files."""
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    for name in ("full/a.png", "full/a.csv", "file"):
        Path(name).touch()
    Path("link").symlink_to("file")
    return tmp_path


NOWHERE, NO_FOLDER = "cannot be written (No such file or directory)", "cannot be written (Not a directory)"
TWICE = "is named for two outputs; name a file for each"


@pytest.mark.parametrize(
    ("outputs", "inputs", "error"),
    [
        (["/dev/null", "/dev/null"], [], None),
        (["/dev/null", "none/x"], [], f"none: {NOWHERE}"),
        (["new"], ["file"], None),
        (["file", "link"], [], f"link: {TWICE}"),
        (["new", "./new"], [], f"./new: {TWICE}"),
        (["new", "other"], [], None),
        (["file"], ["link"], "file: is an input and would be overwritten; name another file"),
        (["full/a.png"], ["full"], "full/a.png: is in the input full and would be overwritten; name another file"),
        (["full/a.csv"], ["full"], None),
        (["full/new.png"], ["full"], None),
        ([OutputFolder("full")], ["full"], None),
        ([OutputFolder("x.zip")], [], "x.zip: names a file, but the output is a folder; name a folder"),
        ([OutputFolder("full"), "full/new"], [], None),
        ([OutputFolder("made"), "made/x"], [], None),
        ([BuiltFile("made/deep/x")], [], None),
        (["made/deep/x"], [], f"made/deep: {NOWHERE}"),
        ([BuiltFile("file/x")], [], f"file: {NO_FOLDER}"),
        (["full"], [], "full: cannot be written (Is a directory)"),
        ([OutputFolder("file")], [], f"file: {NO_FOLDER}"),
    ],
)
def test_outputs_are_checked_before_they_are_written(
    outputs: list[Any], inputs: list[str], error: str | None, folder: Path
) -> None:
    assert outcome(lambda: files.check_outputs(outputs, inputs)) == (error and f"UsageError: {error}")


def test_a_closed_folder_is_no_place_of_outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(files.os, "access", lambda *asks, **_: asked.append(asks))
    error = f"UsageError: {folder}: cannot be written (Permission denied)"
    assert outcome(lambda: files.check_outputs([str(folder / "closed")], [])) == error
    assert asked == [(str(folder), files.os.W_OK)]


def draft(folder: str, error: Exception | None = None) -> None:
    with files.open_draft(folder) as path:
        Path(path, "inner").mkdir()
        if error is not None:
            raise error


def test_a_draft_becomes_a_new_folder_or_nothing(folder: Path) -> None:
    files.replace(folder / "private", "x", private=True)
    assert (folder / "private").stat().st_mode & 0o777 == 0o600
    exists = "already exists and is not overwritten; name another folder"
    for name, error, expected in (
        ("draft", None, None),
        ("full", None, f"UsageError: full: {exists}"),
        ("file", None, f"UsageError: file: {exists}"),
        ("half", OSError(5, "broken", "elsewhere"), "HostError: elsewhere: cannot be read (broken)"),
        ("half", OSError(28, "full"), "NotWritten: half: cannot be written (full)"),
    ):
        assert outcome(lambda name=name, error=error: draft(name, error)) == expected
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert paths == ["draft", "draft/inner", "file", "full", "full/a.csv", "full/a.png", "link", "private"]


def test_a_draft_removes_those_of_killed_processes(folder: Path) -> None:
    for name in ("killed__/draft/inner", "occupied/draft/inner", "empty___", "yours/draft/inner"):
        Path(folder, f".new-{name}").mkdir(parents=True)
    with files._lock_draft(str(folder / ".new-occupied")):
        draft("draft")
    assert sorted(path.name for path in folder.glob(".*")) == [".new-empty___", ".new-occupied", ".new-yours"]


def test_one_process_holds_a_folder(folder: Path) -> None:
    assert outcome(lambda: files.make_folder(Path("file/x"))) == f"NotWritten: file/x: {NO_FOLDER}"
    with files.hold_folder("held", "rehearsal"):
        assert outcome(lambda: files.hold_folder("held", "rehearsal")) == (
            "HostError: held: another rehearsal uses this folder; stop it, or name another with --data"
        )
    error = f"HostError: file/x: {NO_FOLDER}; name another folder with --data"
    assert outcome(lambda: files.hold_folder("file/x", "rehearsal")) == error
