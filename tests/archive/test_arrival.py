"""A challenge that left one platform arrives in another with equal numbers, files and places."""

from __future__ import annotations

from pathlib import Path

from segjudge.archive.event import open_event
from segjudge.platforms.evalai.bundle.build import build
from segjudge.server import first_run
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
            assert first_run.import_archive(second.services, event, second.challenge) == 12
            assert first_run.import_archive(second.services, event, second.challenge) == 0
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
