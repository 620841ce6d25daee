"""The format of an archive: what is written is read again, and damaged or foreign archives are rejected."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from segjudge.archive.event import (
    BOARD,
    EventBoard,
    EventInfo,
    EventRow,
    EventSubmission,
    EventTeam,
    EventWriter,
    Exported,
    MissingFile,
    describe_missing,
    file_path,
    is_event,
    open_event,
)
from segjudge.evaluation_script.files import HostError
from segjudge.system.errors import UsageError

INFO = EventInfo("segjudge 1", "evalai", "https://eval.ai", 7, "Cups & Plätze", {"begin": "2026-01-01T00:00:00Z"})
FILE = file_path("dev", 3, "masks.zip")
ROWS = [EventRow(3, 1, "J", {"J": 0.1 + 0.2, "F": 1e-17}, {"J": 0.5}), EventRow(3, 1, "F", {"J": 0.3}, {}, True)]
BOARDS = [
    EventBoard("dev", "all", "3", False, "J", ["J", "F"], ["F"], 4, ROWS),
    EventBoard("dev", "secret", "1", True, "J", ["J"], rows=[EventRow(3, 1, "J", {"J": 0.75})]),
]
SUBMISSION = EventSubmission(
    3,
    "dev",
    1,
    12,
    "finished",
    "2026-01-01T00:00:00Z",
    method={"name": "ours"},
    is_public=True,
    file=FILE,
    scores={"all": {"J": 0.1 + 0.2}, "secret": {"J": 0.75}},
    trust=BOARD,
)
MISSING = [MissingFile("dev", "input file", "expired (404)", number) for number in (9, 10)]


def write(folder: Path, target: Path) -> Path:
    writer = EventWriter(folder)
    writer.write(FILE, b"PK masks")
    writer.write("bundle/challenge_config.yaml", b"title: x\n")
    (folder / "journal.jsonl").write_bytes(b"{}")
    teams = [EventTeam(2, "guests"), EventTeam(1, "hosts", is_host=True)]
    writer.write_records(INFO, Exported(teams=teams, boards=BOARDS, submissions=[SUBMISSION], missing=MISSING))
    writer.finish(str(target))
    return target


@pytest.fixture(params=["event.zip", "event"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "event.partial", tmp_path / str(request.param))


def test_an_archive_is_read_as_it_was_written(archive: Path, tmp_path: Path) -> None:
    assert is_event(str(archive))
    with open_event(str(archive)) as event:
        assert (event.info, event.missing, event.boards) == (INFO, MISSING, BOARDS)
        assert list(event.teams) == [1, 2]
        assert event.submissions == {3: SUBMISSION}
        assert event.read(FILE) == b"PK masks"
        assert event.names("bundle/") == ["bundle/challenge_config.yaml"]
        assert not [name for name in event.names() if "journal" in name]
        event.copy_folder("bundle", tmp_path / "out")
    assert (tmp_path / "out/challenge_config.yaml").read_bytes() == b"title: x\n"
    assert not (tmp_path / "event.partial").exists()


def test_hidden_splits_and_the_order_of_a_label(archive: Path) -> None:
    with open_event(str(archive)) as event:
        assert event.find_hidden("dev") == {"secret"}
        assert [row.by for row in event.boards[0].places("F")] == ["F"]


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f"{name}.partial", tmp_path / f"{name}.zip") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_rows_without_a_team_and_without_scores_are_read_again(tmp_path: Path) -> None:
    row = EventSubmission(3, "dev", None, 0, "failed", "")
    board = EventBoard("dev", "all", "3", False, "", rows=[EventRow(3, None, "J")])
    writer = EventWriter(tmp_path / "event.partial")
    writer.write_records(INFO, Exported(boards=[board], submissions=[row]))
    writer.finish(str(tmp_path / "event"))
    with open_event(str(tmp_path / "event")) as event:
        assert (event.submissions, event.boards) == ({3: row}, [board])


def change(archive: Path, name: str, data: bytes | None) -> None:
    """Replace or remove a file of an archive."""
    if archive.is_dir():
        (archive / name).unlink() if data is None else (archive / name).write_bytes(data)
        return
    with zipfile.ZipFile(archive) as old:
        files = {each: old.read(each) for each in old.namelist() if each != name}
    with zipfile.ZipFile(archive, "w") as new:
        for each, content in {**files, **({} if data is None else {name: data})}.items():
            new.writestr(each, content)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("teams.json", b"[]", "teams.json differs from its digest"),
        ("event.json", json.dumps({"archive": 2}).encode(), "version 2; this Segjudge reads versions up to 1"),
        ("event.json", b"[]", "event.json is not a JSON object"),
        ("event.json", b'{"archive": 1, "made_by": 4}', "event.json.made_by is 4"),
        ("event.json", b"{", "event.json: is not valid JSON"),
        ("digests.json", None, "lacks digests.json"),
        (FILE, None, f"names {FILE}, which the archive lacks"),
    ],
)
def test_a_changed_archive_is_rejected(archive: Path, name: str, data: bytes | None, words: str) -> None:
    change(archive, name, data)
    with pytest.raises(HostError) as error, open_event(str(archive)):
        pass
    assert words in str(error.value)


def test_a_changed_file_is_found_when_it_is_read(archive: Path, tmp_path: Path) -> None:
    change(archive, FILE, b"PK maskz")
    with open_event(str(archive)) as event, pytest.raises(HostError, match=r"masks\.zip differs from its digest"):
        event.copy(FILE, tmp_path / "masks.zip")
    assert not (tmp_path / "masks.zip").exists()


def test_other_files_are_no_archives(tmp_path: Path) -> None:
    text, folder = tmp_path / "text.zip", tmp_path / "folder"
    text.write_text("no zip")
    folder.mkdir()
    for path in (text, folder):
        assert not is_event(str(path))
        with pytest.raises(HostError), open_event(str(path)):
            pass


def test_a_folder_with_content_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").write_text("x")
    with pytest.raises(UsageError, match="name another folder with --out"):
        write(tmp_path / "event.partial", tmp_path / "taken")
    shutil.rmtree(tmp_path / "taken")
    assert is_event(str(write(tmp_path / "event.partial", tmp_path / "taken")))


def test_missing_files_are_reported_by_phase() -> None:
    rows = [*MISSING, MissingFile("", "logo", "deleted (403)")]
    assert describe_missing(rows) == [
        "challenge: no logo: deleted (403)",
        "dev: no input file of submissions 9, 10: expired (404)",
    ]
