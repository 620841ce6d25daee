"""A challenge that left one platform arrives in another with equal numbers, files and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segjudge.archive.event import open_event
from segjudge.cli import main
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from segjudge.server.event_import import import_event
from tests.builders import ROOT
from tests.rehearsals import Rehearsal

from .hosted import Platform, export, make_bundle, served

#: What differs between two servers.
_OWN = ("bundle/", "digests.json", "event.json", "teams.json", "missing.json")


def fill(platform: Platform) -> None:
    files, (small, big) = platform.services.files, platform.phases()[:2]
    teams = [platform.add_team(name) for name in ("ada", "bob")]
    for number in range(8):
        platform.submit(big.id, teams[number % 2], number)
    platform.submit(big.id, teams[0], 20, is_public=False)
    platform.submit(big.id, teams[0], 21, is_flagged=True)
    platform.submit(small.id, teams[1], 22, is_baseline=True, project_url="https://example.org/method")
    stderr = files.keep(b"ValueError: bad zip\n", "stderr.txt", "stderr_file")
    platform.submit(small.id, teams[1], 23, status="failed", stderr_file=stderr)


def test_a_challenge_arrives_with_equal_numbers_files_and_places(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    with served(tmp_path / "first", bundle) as first:
        fill(first)
        export(first, tmp_path / "event.zip")
    with open_event(str(tmp_path / "event.zip")) as event:
        event.copy_folder("bundle", tmp_path / "arrived")
        arrived = Path(build(str(tmp_path / "arrived"), str(tmp_path / "arrived.zip")).path)
        with served(tmp_path / "second", arrived, origin=event.path) as second:
            assert import_event(second.services, event, second.challenge) == 12
            assert import_event(second.services, event, second.challenge) == 0
            export(second, tmp_path / "again.zip")
    with open_event(str(tmp_path / "event.zip")) as event, open_event(str(tmp_path / "again.zip")) as again:
        names = [name for name in event.names() if not name.startswith(_OWN)]
        assert [name for name in again.names() if not name.startswith(_OWN)] == names
        teams, theirs = ({team.id: team.name for team in each.teams.values()} for each in (event, again))
        for one, other in zip(event.submissions.values(), again.submissions.values(), strict=True):
            assert teams[one.team or 0] == theirs[other.team or 0]
            assert vars(one) | {"team": 0} == vars(other) | {"team": 0}
        for board, second_board in zip(event.boards, again.boards, strict=True):
            places = [(row.by, row.submission, row.scores, row.is_baseline) for row in board.rows]
            assert places == [(row.by, row.submission, row.scores, row.is_baseline) for row in second_board.rows]
        files = [name for name in names if name.startswith("files/")]
        assert len(files) > 12
        assert [event.read(name) for name in files] == [again.read(name) for name in files]


@pytest.mark.long
def test_rehearse_imports_an_archive(tmp_path: Path) -> None:
    with served(tmp_path / "first", make_bundle(tmp_path)) as first:
        fill(first)
        export(first, tmp_path / "event.zip")
    with Rehearsal(tmp_path / "data", ("--import", str(tmp_path / "event.zip"), "--workers", "0")).start() as rehearsal:
        assert "Imported 12 submissions." in rehearsal.output
        rows = rehearsal.get("/api/jobs/challenge/1/submission/", "host").json()
        assert len(rows) == 12
        visible = [row["id"] for row in rehearsal.get("/api/challenges/1/challenge_phase_split").json()]
        hidden = {row["id"] for row in rehearsal.get("/api/challenges/1/challenge_phase_split", "host").json()}
        (secret,) = hidden - {*visible}
        assert rehearsal.get(f"/api/jobs/challenge_phase_split/{secret}/leaderboard/").status_code == 400


# ── the whole way, with real submissions ────────────────────────────────────

OPEN, SECRET = "instances-dev", "sequences-test"
FAST = ("--requests-per-minute", "1000000")


def board_of(rehearsal: Rehearsal, split: str, who: str = "") -> list[tuple[str, Any]]:
    """Return teams and results of a leaderboard."""
    rows = rehearsal.get("/api/challenges/1/challenge_phase_split", "host").json()
    (key,) = (row["id"] for row in rows if f"{row['challenge_phase_name']}/{row['dataset_split_name']}" == split)
    answer = rehearsal.get(f"/api/jobs/challenge_phase_split/{key}/leaderboard/", who)
    assert answer.status_code == 200, answer.text
    return [(row["submission__participant_team__team_name"], row["result"]) for row in answer.json()["results"]]


def list_boards(rehearsal: Rehearsal) -> dict[str, list[tuple[str, Any]]]:
    rows = rehearsal.get("/api/challenges/1/challenge_phase_split", "host").json()
    names = [f"{row['challenge_phase_name']}/{row['dataset_split_name']}" for row in rows]
    return {name: board_of(rehearsal, name, "host") for name in names}


def leave_disturbed(folder: Path, bundle: Path, expired: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Export while the platform throttles, a file is gone, and a submission arrives."""
    late = (ROOT / "examples" / OPEN / "wild.json").read_bytes()
    with served(folder / "data", bundle, str(bundle)) as platform:
        assert platform.challenge == 1
        platform.expire(expired)
        arrivals = iter([1])

        def disturb(count: int, path: str) -> int:
            if path.endswith("/submissions") and next(arrivals, None):
                file = platform.services.files.keep(late, "late.json", "input_file")
                team = platform.add_team("late")
                platform.submit(platform.phases()[2].id, team, 0, status="submitted", input_file=file, stdout_file=None)
            return 429 if count == 9 else 0

        platform.disturb = disturb
        monkeypatch.setenv("EVALAI_HOST", platform.address)
        monkeypatch.setenv("EVALAI_TOKEN", platform.token)
        assert main(["leave", "evalai", "1", "--out", str(folder / "event.zip"), *FAST]) == 0
        assert {method for method, _ in platform.calls} == {"GET"}


@pytest.mark.long
def test_a_challenge_leaves_arrives_and_is_scored_again_with_the_same_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(tmp_path)
    with Rehearsal(tmp_path / "data", FAST, bundle=bundle).start() as rehearsal:
        sent = []
        for phase, name in ((2, SECRET), (3, OPEN)):
            for who, path in zip(("aurora", "borealis", "aurora"), sorted((ROOT / "examples" / name).iterdir())):
                answer = rehearsal.submit(who, path, phase, is_public="true", method_name=path.stem)
                sent.append(answer.json()["id"])
        assert [rehearsal.settled(number)["status"] for number in sent] == ["finished"] * 6
        boards = list_boards(rehearsal)

    worst = sent[0]  # of a team with a better one, so that the leaderboards keep their rows
    leave_disturbed(tmp_path, bundle, worst, monkeypatch)
    event = tmp_path / "event.zip"
    with open_event(str(event)) as opened:
        assert opened.info.is_complete
        assert [row.status for row in opened.submissions.values()] == ["finished"] * 6 + ["submitted"]
        gaps = {(row.submission, row.what) for row in opened.missing if row.phase == SECRET}
        assert gaps == {(worst, "input file"), (worst, "scores of test-hard")}
        opened.copy_folder("bundle", tmp_path / "bundle")
    before, after = (
        {str(problem) for problem in check(str(path))}
        for path in (bundle, build(str(tmp_path / "bundle"), str(tmp_path / "built.zip")).path)
    )
    assert after <= before

    # It arrives, and the submission that waited is scored.
    with Rehearsal(tmp_path / "arrived", ("--import", str(event), *FAST)).start() as rehearsal:
        assert rehearsal.settled(7)["status"] == "finished"
        arrived = list_boards(rehearsal)
        late_rows = [row for rows in arrived.values() for row in rows if row[0] == "Team late"]
        assert len(late_rows) == 1
        assert {name: [row for row in rows if row not in late_rows] for name, rows in arrived.items()} == boards

    # It is scored again, by the archive's truth and by the released one.
    for codename, counts in ((SECRET, {"equal": 2, "no file": 1}), (OPEN, {"equal": 3, "not published": 1})):
        for number, truth in enumerate(([], ["--truth", str(ROOT / f"annotations/{codename}.zip")])):
            out = tmp_path / f"{codename}-{number}"
            assert main(["rescore", str(event), "--phase", codename, "--out", str(out), *truth]) == 0
            document = json.loads((out / "board.json").read_text())
            assert " equal, 0 differ, 0 places change" in document["summary"]
            assert counts.items() <= document["counts"].items()
            assert not any(board["split"] == "test-hard" for board in document["boards"])
    assert main(["rescore", str(event), "--phase", SECRET, "--out", str(tmp_path / "host"), "--as-host"]) == 0
    document = json.loads((tmp_path / "host/board.json").read_text())
    assert [board["split"] for board in document["boards"]] == ["test", "test-hard"]
    assert " 0 differ, 0 places change" in document["summary"]

    # The frozen page links the reports of the phase that shows everything.
    assert main(["board", str(event), "--out", str(tmp_path / "page")]) == 0
    reports = {int(path.stem) for path in (tmp_path / "page/reports").iterdir()}
    assert reports
    assert reports <= set(sent[3:])
    assert all(f'href="reports/{number}.html"' in (tmp_path / "page/index.html").read_text() for number in reports)
