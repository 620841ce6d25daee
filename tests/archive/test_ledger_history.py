"""An event continues on a board without a server: equal numbers and places, and nothing hidden in public files."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from segjudge.archive.event import Event, open_event
from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.git_branch import GitBranch
from segjudge.ledger.ledger import Ledger
from segjudge.ledger.rows import LedgerEntry, RunOutcome, read_rows
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.github.challenge import read_rules
from tests.builders import zipped
from tests.platforms.hugging_face.boards import REPOSITORY, open_hub, push

from .hosted import export, make_bundle, served

#: A phase with a hidden split, and one without.
SECRET, OPEN = "sequences-test", "sequences-dev"
IMPORTED = 10**9


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of a rehearsal: three teams, a baseline, and submissions that visitors did not see."""
    folder = tmp_path_factory.mktemp("event")
    with served(folder / "data", make_bundle(folder)) as platform:
        teams = [platform.add_team(name) for name in ("ada", "bob", "cy")]
        first, second = (
            next(phase.id for phase in platform.phases() if phase.codename == name) for name in (SECRET, OPEN)
        )
        for number in range(7):
            platform.submit(first, teams[number % 3], number)
        platform.submit(second, teams[0], 30, is_baseline=True)
        platform.submit(second, teams[1], 31)
        platform.submit(second, teams[2], 40, is_public=False)
        platform.submit(second, teams[2], 41, is_flagged=True)
        platform.submit(second, teams[0], 42, status="failed")
        export(platform, folder / "event.zip")
    return folder / "event.zip"


@pytest.fixture(scope="module")
def board(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "cats"
    assert main(["new", str(folder), "--board", "github", "--history", str(archive), "--quiet"]) == 0
    return folder


def list_places(event: Event, phase: str, split: str) -> list[tuple[str, dict[str, float]]]:
    """Return teams and numbers of a leaderboard as its platform showed them."""
    (found,) = (each for each in event.boards if (each.phase, each.split) == (phase, split))
    return [(event.teams[row.team or 0].name, row.scores) for row in found.places()]


def test_the_page_has_the_numbers_and_places_of_the_platform(board: Path, archive: Path) -> None:
    with open_event(str(archive)) as event:
        shown = [(each.phase, each.split) for each in event.boards if not each.hidden and each.rows]
        assert len(shown) == 2
        for phase, split in shown:
            text = (board / f"history/public/page/{phase}-{split}.csv").read_text(encoding="utf-8")
            rows = list(csv.DictReader(io.StringIO(text)))
            places = list_places(event, phase, split)
            assert [(row["team"], {name: float(row[name]) for name in scores}) for row, (_, scores) in
                    zip(rows, places, strict=True)] == places  # fmt: skip
            assert [row["rank"] for row in rows] == [str(place) for place in range(1, len(places) + 1)]
            assert all(re.fullmatch(r"100000\d{4} \(imported\)", row["submission"]) for row in rows)
    page = (board / "history/public/page/index.html").read_text(encoding="utf-8")
    assert "of an earlier leaderboard, with the scores that it published" in page


def test_nothing_that_the_platform_hid_is_in_public_files(board: Path, archive: Path) -> None:
    with open_event(str(archive)) as event:
        (hidden,) = (each for each in event.boards if each.hidden)
        secrets = [f"{value:.5f}" for row in event.submissions.values() for value in
                   row.scores.get(hidden.split, {}).values() if value % 1]  # fmt: skip
        unseen = [row for row in event.submissions.values() if not row.is_public or row.is_ignored or not row.scores]
    assert len(secrets) > 10
    assert {row.method["name"] for row in unseen} >= {"method 40", "method 41", "method 42"}
    public = [path for part in ("public", "history/public") for path in (board / part).rglob("*") if path.is_file()]
    texts = "".join(path.read_text(encoding="utf-8", errors="replace") for path in public if path.suffix != ".whl")
    rows = read_rows({str(path.relative_to(board / "history/public")): path.read_bytes() for path in public
                      if path.is_relative_to(board / "history/public")})  # fmt: skip
    assert not any(hidden.split in outcome.scores for outcome in rows.outcomes.values())
    assert {entry.number for entry in rows.entries.values()}.isdisjoint(IMPORTED + row.id for row in unseen)
    open_numbers = {f"{value:.5f}" for outcome in rows.outcomes.values() for scores in outcome.scores.values()
                    for value in scores.values()}  # fmt: skip
    assert not [value for value in {*secrets} - open_numbers if value in texts]
    private = read_rows({str(path.relative_to(board / "history/private")): path.read_bytes()
                         for path in (board / "history/private").rglob("*.json")})  # fmt: skip
    assert {*private.outcomes} == {key for key in rows.outcomes if rows.entries[key[0]].phase == SECRET}
    assert all({*outcome.scores} == {hidden.split} for outcome in private.outcomes.values())


@pytest.mark.long
def test_a_board_on_the_hub_begins_with_the_same_rows(board: Path, archive: Path, tmp_path: Path) -> None:
    challenge = shutil.copytree(board / "private", tmp_path / "cats")
    phases = challenge / "evaluation_script/phases.py"
    text = phases.read_text(encoding="utf-8")
    phases.write_text(text.partition('    Phase(\n        codename="photo-videos"')[0] + ")\n", encoding="utf-8")
    with open_hub() as hub:
        output = push(challenge, "--history", str(archive))
        assert f"added the history to {REPOSITORY}-results" in output
        for half, name in (("public", f"{REPOSITORY}-results"), ("private", f"{REPOSITORY}-private")):
            rows = list((board / "history" / half).rglob("*.json"))
            assert rows
            for path in rows:
                assert hub.read(name, path.relative_to(board / "history" / half).as_posix()) == path.read_bytes()
        commits = [len(each.commits) for each in hub.repositories.values()]
        assert "history" not in push(challenge, "--history", str(archive))
        assert [len(each.commits) for each in hub.repositories.values()] == commits
        assert "costs nothing and never sleeps" in push(archive, "--static")
        page = hub.read(REPOSITORY, "index.html", "space").decode()
        assert "ada" in page
        assert "test-hard" not in page


@pytest.fixture
def ledger(board: Path, tmp_path: Path) -> Ledger:
    """Return the ledger of the board, after the steps of HOSTING.md."""
    branches = []
    for half in ("public", "private"):
        remote, copy = tmp_path / f"{half}.git", tmp_path / half
        commands: list[list[str | Path]] = [
            ["init", "--quiet", "--bare", remote],
            ["init", "--quiet", "-b", "ledger", copy],
            ["--work-tree", board / "history" / half, "-C", copy, "add", "."],
            ["-C", copy, "-c", "user.name=h", "-c", "user.email=h@a.test", "commit", "--quiet", "-m", "History"],
            ["-C", copy, "push", "--quiet", remote, "ledger"],
        ]
        for command in commands:
            subprocess.run(["git", *command], check=True)
        branches.append(GitBranch(str(remote), "ledger", str(tmp_path / f"{half}-ledger"), os.environ))
    return Ledger(branches[0], branches[1], read_rules(find_bundle(str(board / "private")), {}))


def test_imported_submissions_are_never_scored_again_and_new_ones_join_them(ledger: Ledger) -> None:
    ledger.read()
    count, labels = len(ledger.rows.entries), ledger.rules.phases[0].boards[0].labels
    assert ledger.rows.list_waiting() == []
    ledger.score_again(0, "a corrected truth", "order 1")
    assert ledger.rows.list_waiting() == []
    with pytest.raises(HostError, match="was imported without its file; ask its team to submit it again"):
        ledger.score_again(min(ledger.rows.entries), "", "order 2")
    phase = next(phase for phase in ledger.rules.phases if phase.codename == OPEN)
    entry = LedgerEntry(1, "7", "dan", "new", OPEN, "https://a.test/x", "", phase.start.isoformat())
    assert ledger.enter([entry]) == {}
    scores: dict[str, Any] = {phase.boards[0].split: dict.fromkeys(labels, 99.0)}
    runs = ledger.claim([1], "worker", 60)
    ledger.settle({item: RunOutcome(ledger.stamp(), scores) for item in runs.items()})
    ledger.publish()
    assert len(ledger.rows.entries) == count + 1
    text = ledger._files[f"page/{OPEN}-{phase.boards[0].split}.csv"].decode()
    best = next(csv.DictReader(io.StringIO(text)))
    assert (best["rank"], best["team"]) == ("1", "dan")


def test_the_board_passes_its_check_and_the_steps_name_its_history(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (board / "private/evaluation_script/phases.py").open("a") as phases:
        phases.write("PHASES = PHASES[:3]\n")  # the phases of the rehearsal
    assert main(["check", str(board), "--platform", "github"]) == 0, capsys.readouterr().err
    steps = (board / "HOSTING.md").read_text()
    assert [half for half in ("public", "private") if f"git -C history/{half} push" in steps] == ["public", "private"]
    assert (board / "private/requirements.txt").read_bytes() == (board / "public/requirements.txt").read_bytes()
    assert [path.name for path in (board / "private/evaluation_script").iterdir()] == ["phases.py"]


def test_other_options_and_archives_are_refused(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cats"
    options = ["new", str(folder), "--history", str(archive)]
    assert main(options) == 2
    assert main([*options, "--board", "github", "--protocol", "davis2017"]) == 2
    errors = capsys.readouterr().err
    assert "--history needs --board" in errors
    assert "omit --protocol, which the archive's challenge decides" in errors
    dump = tmp_path / "dump.zip"
    dump.write_bytes(zipped({"competition.yaml": b"title: Cups"}))
    assert main(["leave", "codalab", str(dump), "--out", str(tmp_path / "event.zip")]) == 0
    assert main(["new", str(folder), "--board", "github", "--history", str(tmp_path / "event.zip")]) == 3
    assert "Segjudge did not score this event" in capsys.readouterr().err
    assert not folder.exists()
