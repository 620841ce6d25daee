"""A challenge leaves a platform: complete, without a change there, and equal however often the export was cut."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from segjudge.archive.collecting import JOURNAL, Collector, read_result
from segjudge.archive.event import BOARD, RESULT, Event, open_event
from segjudge.evaluation_script.files import HostError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from tests.rehearsals import waited

from .hosted import FEW, MANY, CutError, Platform, export, fill, make_bundle, served


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[tuple[Platform, dict[str, int]]]:
    """Yield a platform that no test changes, and its unusual submissions."""
    with served(tmp_path_factory.mktemp("platform"), bundle) as platform:
        yield platform, fill(platform)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, filled: tuple[Platform, dict[str, int]]) -> Path:
    """Return the archive of the filled platform."""
    path = tmp_path_factory.mktemp("archive") / "event.zip"
    filled[0].calls.clear()
    export(filled[0], path)
    return path


@pytest.fixture
def event(archive: Path) -> Iterator[Event]:
    with open_event(str(archive)) as opened:
        yield opened


def test_nothing_is_written_to_the_platform_and_files_are_fetched_without_the_token(
    archive: Path, filled: tuple[Platform, dict[str, int]]
) -> None:
    platform, _ = filled
    assert archive.exists()
    assert {method for method, _ in platform.calls} == {"GET"}
    assert {*platform.authorized} == {""}


def test_every_submission_is_there_with_its_files_and_numbers(
    event: Event, filled: tuple[Platform, dict[str, int]]
) -> None:
    platform, unusual = filled
    second, first = (phase.codename for phase in platform.phases()[:2])
    assert [row.phase for row in event.submissions.values()] == [first] * MANY + [second] * FEW
    row = event.submissions[1]
    assert (row.number, row.method["name"], row.status, row.is_public) == (1, "method 0", "finished", True)
    assert event.read(str(row.file)) == b"PK masks 0"
    assert event.read(row.extra_files["stdout"]) == b"scored 0\n"
    assert event.submissions[unusual["failed"]].cause == "ValueError: bad zip"
    assert not event.submissions[unusual["private"]].is_public
    assert event.submissions[unusual["flagged"]].is_ignored
    assert event.info.is_complete


def test_boards_have_the_platforms_rows_in_its_order(event: Event, filled: tuple[Platform, dict[str, int]]) -> None:
    platform, _ = filled
    for phase in platform.phases()[:2]:
        for split in platform.services.store.splits_of(phase.id):
            board = next(
                b for b in event.boards if (b.phase, b.split) == (phase.codename, split.dataset_split.codename)
            )
            assert board.labels == split.labels
            for label in board.labels:
                path = routes.path(routes.LEADERBOARD, split=split.id)
                rows = platform.client().call(
                    "GET", routes.LEADERBOARD, {"split": split.id}, params={"order_by": label}
                )
                theirs = [(row["submission__id"], row["result"]) for row in rows["results"]]
                ours = [(row.submission, [row.scores[each] for each in board.labels]) for row in board.places(label)]
                assert ours == theirs, path
    scored = [row for row in event.submissions.values() if row.trust == BOARD]
    assert scored
    for row in scored:
        kept = {
            platform.services.store.require(type(split), split.id).dataset_split.codename: data.result
            for split in platform.services.store.splits_of(
                next(p.id for p in platform.phases() if p.codename == row.phase)
            )
            for data in platform.services.submissions.all_scores(row.id)
            if data.phase_split_id == split.id
        }
        assert row.scores == kept


def test_missing_files_are_named_with_their_reason(event: Event, filled: tuple[Platform, dict[str, int]]) -> None:
    _, unusual = filled
    reasons = {(row.submission, row.what): row.reason for row in event.missing}
    assert reasons[unusual["expired"], "input file"] == "expired or deleted (404)"
    assert reasons[unusual["placeholder"], "input file"].startswith("never uploaded")
    assert event.submissions[unusual["expired"]].file is None
    off_the_boards = [row for row in event.missing if row.what == "scores"]
    unscored = [row for row in event.submissions.values() if row.status == "finished" and not row.scores]
    assert len(off_the_boards) == len(unscored) > 100


def test_hidden_splits_are_in_the_archive_but_not_public(event: Event) -> None:
    hidden = [board for board in event.boards if board.hidden]
    assert hidden
    for board in hidden:
        for row in (row for row in event.submissions.values() if row.phase == board.phase and row.trust == BOARD):
            assert board.split in row.scores
            assert board.split in event.find_hidden(row.phase)


def test_the_rebuilt_bundle_passes_check(event: Event, tmp_path: Path, bundle: Path) -> None:
    event.copy_folder("bundle", tmp_path / "bundle")
    built = build(str(tmp_path / "bundle"), str(tmp_path / "built.zip")).path
    before, after = ([str(problem) for problem in check(str(path))] for path in (bundle, built))
    assert [line for line in after if line not in before] == []


@pytest.mark.long
def test_people_are_exported_only_on_request(
    event: Event, filled: tuple[Platform, dict[str, int]], tmp_path: Path
) -> None:
    assert all(team.members == [] for team in event.teams.values())
    everything = b"".join(event.read(name) for name in event.names() if not name.startswith("bundle/"))
    assert b"rehearsal.invalid" not in everything
    exported = export(filled[0], tmp_path / "people", people=True)
    assert {"name": "ada", "email": "ada@rehearsal.invalid"} in [m for team in exported.teams for m in team.members]


@pytest.mark.long
def test_an_export_that_is_cut_at_twenty_random_moments_ends_equal(
    filled: tuple[Platform, dict[str, int]], archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut leaves half a line in the journal, or a file without its line."""
    platform, target, chosen, note = filled[0], tmp_path / "event.zip", random.Random(7), Collector._note
    cuts, lines = sorted(chosen.sample(range(1, 250), 20)), itertools.count(1)

    def cut(self: Collector, entry: dict[str, object]) -> None:
        if cuts and next(lines) == cuts[0]:
            del cuts[0]
            if chosen.random() < 0.5:
                with (self.folder / JOURNAL).open("a") as journal:
                    journal.write(json.dumps(entry)[: chosen.randrange(1, 20)])
            raise CutError
        note(self, entry)

    monkeypatch.setattr(Collector, "_note", cut)
    while cuts:
        with pytest.raises(CutError):
            export(platform, target)
    export(platform, target)
    assert target.read_bytes() == archive.read_bytes()


def _has_calls(platform: Platform, number: int) -> bool:
    return len(platform.calls) > number


@pytest.mark.long
def test_a_killed_command_is_resumed_and_ends_equal(
    filled: tuple[Platform, dict[str, int]], archive: Path, tmp_path: Path
) -> None:
    platform, _ = filled
    command = [sys.executable, "-m", "segjudge", "leave", "evalai", str(platform.challenge), "--out", "event"]
    environment = {**os.environ, "EVALAI_HOST": platform.address, "EVALAI_TOKEN": platform.token}
    command += ["--requests-per-minute", "1000000"]
    for requests in (20, 200):
        until = len(platform.calls) + requests
        process = subprocess.Popen(command, cwd=tmp_path, env=environment)
        waited(partial(_has_calls, platform, until), 60)
        process.kill()
        process.wait()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Resuming event.partial" in done.stderr
    assert f"Wrote event: {MANY + FEW} submissions" in done.stderr
    assert not (tmp_path / "event.partial").exists()
    with open_event(str(tmp_path / "event")) as ours, open_event(str(archive)) as whole:
        assert ours.names() == whole.names()
        differing = [name for name in ours.names() if ours.read(name) != whole.read(name)]
    assert differing == ["digests.json", "event.json"]  # which has the times


# ── a platform that changes or fails ────────────────────────────────────────


@pytest.fixture
def small(tmp_path: Path, bundle: Path) -> Iterator[Platform]:
    with served(tmp_path / "platform", bundle) as platform:
        team = platform.add_team("ada")
        for number in range(3):
            platform.submit(platform.phases()[0].id, team, number)
        yield platform


@pytest.mark.long
def test_arrivals_while_lists_are_read_are_in_the_archive(small: Platform, tmp_path: Path) -> None:
    team, arrivals = small.add_team("late"), iter(range(50, 52))

    def arrive(_count: int, path: str) -> int:
        if path.endswith("/submissions") and (number := next(arrivals, 0)):
            small.submit(small.phases()[0].id, team, number)
        return 0

    small.disturb = arrive
    exported = export(small, tmp_path / "event.zip")
    assert exported.is_complete
    assert [row.id for row in exported.submissions] == [1, 2, 3, 4, 5]
    assert any(row.submission == 5 for board in exported.boards for row in board.rows)


@pytest.mark.long
def test_ignored_submissions_are_joined_from_the_workers_list(small: Platform, tmp_path: Path) -> None:
    small.ignored = frozenset({2})
    exported = export(small, tmp_path / "event.zip")
    assert exported.is_complete
    assert [(row.id, row.is_ignored, row.number) for row in exported.submissions] == [
        (1, False, 1), (2, True, 0), (3, False, 3),
    ]  # fmt: skip
    with open_event(str(tmp_path / "event.zip")) as event:
        row = event.submissions[2]
        assert (row.method["name"], event.read(str(row.file))) == ("method 1", b"PK masks 1")


@pytest.mark.long
def test_a_platform_that_never_rests_is_exported_and_named_incomplete(small: Platform, tmp_path: Path) -> None:
    team = small.add_team("late")

    def arrive(_count: int, path: str) -> int:
        if "submission_count" in path:
            small.submit(small.phases()[0].id, team, 60)
        return 0

    small.disturb = arrive
    with pytest.raises(HostError, match="never agreed. Run the same command later"):
        export(small, tmp_path / "event.zip")


@pytest.mark.long
def test_outages_are_waited_for(small: Platform, tmp_path: Path) -> None:
    answers = {4: 429, 9: 502, 10: 504, 30: 503}
    small.disturb = lambda count, _path: answers.get(count, 0)
    waits: list[float] = []
    exported = export(small, tmp_path / "event.zip", sleep=waits.append)
    assert exported.is_complete
    assert len(exported.submissions) == 3
    assert waits[0] == 3.0  # of Retry-After


@pytest.mark.long
def test_a_lasting_outage_says_how_to_go_on(small: Platform, tmp_path: Path) -> None:
    small.disturb = lambda count, _path: 502 if count > 12 else 0
    with pytest.raises(HostError, match=r"Run the same command later: it goes on where it stopped"):
        export(small, tmp_path / "event.zip")
    small.disturb = lambda _count, _path: 0
    assert len(export(small, tmp_path / "event.zip").submissions) == 3


@pytest.mark.long
def test_a_hosts_own_bundle_is_kept_and_its_differences_are_named(
    small: Platform, tmp_path: Path, bundle: Path
) -> None:
    own = tmp_path / "own"
    with zipfile.ZipFile(bundle) as files:
        files.extractall(own)
    with zipfile.ZipFile(own / "evaluation_script.zip") as script:
        script.extractall(own / "evaluation_script")
    config = yaml.safe_load((own / "challenge_config.yaml").read_text())
    config["title"], config["challenge_phases"][0]["max_submissions_per_day"] = "Renamed", 7
    (own / "challenge_config.yaml").write_text("# ours\n" + yaml.safe_dump(config))
    exported = export(small, tmp_path / "event.zip", bundle=str(own))
    assert "title: the platform has Segjudge demo challenge, the bundle Renamed" in exported.differences
    phase = "challenge_phases[sequences-dev].max_submissions_per_day"
    assert f"{phase}: the platform has 1000, the bundle 7" in exported.differences
    assert not [line for line in exported.differences if line.startswith(("evaluation_script", "templates"))]
    with open_event(str(tmp_path / "event.zip")) as event:
        assert event.read("bundle/challenge_config.yaml").startswith(b"# ours")


@pytest.mark.long
def test_scores_that_no_board_shows_come_from_result_files(small: Platform, tmp_path: Path) -> None:
    """A remote worker's file is a Python list of the shown splits' numbers; our scorers' names the splits."""
    phase, team, files = small.phases()[0].id, small.add_team("bob"), small.services.files
    texts = (b"[{'J&F-Mean': 0.25, 'J-Mean': None}]", b'{"result": [{"dev": {"J&F-Mean": 0.125}}]}', b"no result")
    numbers = []
    for text in texts:
        kept = files.keep(text, "result.json", "submission_result_file")
        numbers.append(small.submit(phase, team, 80, status="failed", submission_result_file=kept))
        small.services.submissions.update(numbers[-1], status="finished")  # without a row on a board
    best = small.submit(phase, team, 81)
    exported = export(small, tmp_path / "event.zip")
    rows = {row.id: row for row in exported.submissions}
    assert rows[best].trust == BOARD
    assert [rows[number].scores for number in numbers] == [
        {"dev": {"J&F-Mean": 0.25}},
        {"dev": {"J&F-Mean": 0.125}},
        {},
    ]
    assert [rows[number].trust for number in numbers] == [RESULT, RESULT, None]


def test_results_of_files_are_literals_and_never_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for text, value in (
        ("[{'J': 0.5, 'F': None}]", [{"J": 0.5, "F": None}]),
        ('[{"dev": {"J": 1}}]', [{"dev": {"J": 1}}]),
        ("__import__('os').remove('x')", None),
        ("(" * 5000, None),
    ):
        path.write_text(text)
        assert read_result(path) == value
