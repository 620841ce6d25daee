"""The rehearsal's leaderboard shows which rows differ significantly, from the files of `evaluate()` for hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.server.leaderboards import Comparisons, history_of
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import png, zipped
from tests.rehearsals import Rehearsal

FRAMES = 3
TEAMS = ("aurora", "borealis", "host")


def square(video: int, moved: int = 0) -> bytes:
    labels = np.zeros((40, 60), np.uint8)
    labels[8 + video : 24 + video, 10 + moved : 30 + moved] = 1
    return png(labels)


def results(who: str, videos: int) -> bytes:
    """Aurora and Borealis are each better in about half of the videos; the host's baseline is worse than both."""
    moved = {"aurora": [0, 1], "borealis": [1, 0], "host": [6, 6]}[who]
    return zipped({f"v{k}/{t:05d}.png": square(k, moved[k % 2]) for k in range(videos) for t in range(FRAMES)})


#: The phase's detail, and the videos; of truth that is not public so few are not compared.
COMPARED = {("all", 9): True, ("means", 12): True, ("sequences", 9): False}


@pytest.fixture(scope="module", params=list(COMPARED))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, int, Rehearsal]]:
    folder = tmp_path_factory.mktemp("standings")
    detail, videos = request.param
    for k in range(videos):
        for name in ("JPEGImages", "Annotations"):
            (folder / "root" / name / "480p" / f"v{k}").mkdir(parents=True)
        for t in range(FRAMES):
            (folder / f"root/Annotations/480p/v{k}/{t:05d}.png").write_bytes(square(k))
    assert main(["new", str(folder / "own"), "--protocol", "davis2017", "--truth", str(folder / "root")]) == 0
    phases = folder / "own/evaluation_script/phases.py"
    text = phases.read_text()
    assert "codename=" in text
    phases.write_text(re.sub(r"(\n +)(codename=)", rf'\1detail="{detail}",\1\2', text, count=1))
    running = Rehearsal(folder / "data", ("--requests-per-minute", "100000"), root=folder / "own").start()
    numbers = {}
    for who in TEAMS:
        sent = running.submit(who, results(who, videos), is_public="true")
        assert sent.status_code == 201, sent.text
        numbers[who] = running.settled(sent.json()["id"])
        assert numbers[who]["status"] == "finished"
    path = f"/api/jobs/challenges/1/submissions/{numbers['host']['id']}/update_submission_meta/"
    assert running.call("PATCH", path, "host", json={"is_baseline": True}).status_code == 200
    yield detail, videos, running
    running.stop()
    assert "Traceback" not in running.errors()


@pytest.mark.long
@needs_chromium
def test_places_are_shown_where_enough_sequences_are_known(server: tuple[str, int, Rehearsal]) -> None:
    detail, videos, running = server
    with chromium() as browser, fresh_page(browser, {"width": 1440, "height": 900}) as (page, _):
        page.goto(f"{running.address}/challenges/1/leaderboard")
        rows = [text.split("\t") for text in page.locator("tbody tr").all_inner_texts()]
        assert len([row for row in rows if row[0] in "123"]) >= 3
        assert page.get_by_text("baseline").count() >= 1
        page.get_by_text("Scores over time").click()
        assert page.locator(".history circle").count() == 3
        assert page.locator(".history .baseline").count() == 1
        if not COMPARED[detail, videos]:
            assert page.locator(".map").count() == 0
            assert page.locator("abbr").count() == 0
            assert "differences are unknown: the files of submission 1 do not give" in page.locator("main").inner_text()
            return
        places = page.locator("table >> nth=0 >> tbody >> td:nth-child(2)").all_inner_texts()
        assert places == ["1–2", "1–2", "3"]
        page.get_by_text("Significant differences").click()
        with page.expect_response(re.compile("leaderboard")):  # the page renews itself and keeps what was opened
            pass
        marks = [text.strip() for text in page.locator(".map td").all_inner_texts()]
        assert marks == ["", "·", "▲", "·", "", "▲", "▼", "▼", ""]
        assert f"the same {videos} sequences" in page.locator(".board").first.inner_text()


# ── scores over time ────────────────────────────────────────────────────────


def drawn(*history: tuple[int, float, float], descending: bool = True) -> Any:
    entries = [
        SimpleNamespace(
            team_id=team, team_name=f"team {team}", is_baseline=team == 2, submitted_at=position, result={"AP": value}
        )
        for team, position, value in history
    ]
    rows = list({entry.team_id: entry for entry in entries}.values())
    board: Any = SimpleNamespace(rows=rows, order="AP", descending=descending, history=entries)
    return history_of(board)


def test_the_best_so_far_goes_down_where_small_values_are_good() -> None:
    # Team, when it submitted, and its score, in the order of time: the second team is the host's.
    history = [(1, 100.0, 0.5), (2, 150.0, 0.25), (1, 200.0, 0.0), (1, 250.0, 0.75), (1, 300.0, 1.0), (2, 300.0, 0.5)]
    team, baseline = drawn(*history, descending=False).teams
    assert (team.path, baseline.path) == ("M56.0 104.0H342.0V196.0H628", "M56 150.0H628")


@pytest.mark.parametrize("history", [[], [(1, 100.0, 0.5)], [(1, 100.0, 0.5), (1, 200.0, float("nan"))]])
def test_a_single_score_has_no_picture(history: list[tuple[int, float, float]]) -> None:
    assert drawn(*history) is None


# ── what the hosts' files say ───────────────────────────────────────────────

ORIGIN = {"protocols": {"val": {"name": "davis2017", "revision": 1}}, "truth": "zip:1"}
#: Three submissions in ten cases, with two objects in each.
SUMS = {number: [item + (k % 3) / 100 for k in range(10)] for number, item in ((1, 1.5), (2, 1.5), (3, 0.5))}


def document(number: int, **changes: Any) -> dict[str, Any]:
    return {"provenance": ORIGIN, "sums": {"val": {"J&F-Mean": [SUMS[number], [2] * 10]}}, **changes}


def compared(
    folder: Path, documents: dict[int, Any], split: str = "val", percent: int = 1, *, descending: bool = True
) -> Any:
    """Compare submissions whose files for hosts contain these documents."""
    for number, text in documents.items():
        (folder / str(number)).write_text(text if isinstance(text, str) else json.dumps(text))
    matches = [SimpleNamespace(id=number, metadata_file=str(number)) for number in documents]
    store: Any = SimpleNamespace(find=lambda *_: matches)
    files: Any = SimpleNamespace(
        path=lambda file: str(folder / file), row=lambda file: SimpleNamespace(size=(folder / file).stat().st_size)
    )
    results = {number: {"J&F-Mean": percent * sum(SUMS[number]) / 20} for number in documents}
    rows = [SimpleNamespace(submission=item, result=value) for item, value in results.items()]
    board: Any = SimpleNamespace(rows=rows, order="J&F-Mean", descending=descending)
    return Comparisons(store, files).compare(board, split)


def test_submissions_are_compared_by_the_sums_in_the_files_for_hosts(tmp_path: Path) -> None:
    documents = {number: document(number) for number in SUMS}
    results = compared(tmp_path, documents)
    assert results.places == {1: (1, 2), 2: (1, 2), 3: (3, 3)}
    assert (results.better, results.cases) == ({(1, 3), (2, 3)}, 10)
    assert compared(tmp_path, documents, percent=100) == results
    remote = {
        number: {"submission_result": {}, "submission_metadata": document} for number, document in documents.items()
    }
    assert compared(tmp_path, remote) == results
    smaller = compared(tmp_path, documents, descending=False)
    assert smaller.places == {1: (2, 3), 2: (2, 3), 3: (1, 1)}


@pytest.mark.parametrize(
    "changes",
    [
        {"provenance": {**ORIGIN, "truth": "zip:2"}},
        {"provenance": {**ORIGIN, "protocols": {"val": {"name": "davis2017", "revision": 2}}}},
        {"provenance": None},
        {"sums": {"val": {"J&F-Mean": [SUMS[3], [2] * 10]}}},
        {"sums": {"val": {"J&F-Mean": [SUMS[2], [2] * 9]}}},
        {"sums": {"val": {"J&F-Mean": [[sum(SUMS[2])], [20]]}}},
        {"sums": {"val": {"J&F-Mean": [[*SUMS[2][:9], float("nan")], [2] * 10]}}},
        {"sums": {"val": {"J&F-Mean": [[10**400] * 10, [2] * 10]}}},
        {"sums": {"val": {"J&F-Mean": SUMS[2]}}},
        {"sums": {"val": {}}},
        {"sums": []},
    ],
)
def test_submissions_that_were_not_scored_alike_are_not_compared(changes: dict[str, Any], tmp_path: Path) -> None:
    assert compared(tmp_path, {1: document(1), 2: document(2, **changes)}).startswith(
        ("the files of submission 2", "the rows were scored by different")
    )


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '"text"'])
def test_files_that_are_not_ours_compare_nothing(text: str, tmp_path: Path) -> None:
    assert compared(tmp_path, {1: document(1), 2: text}).startswith("the files of submission 2 do not give J&F-Mean")
    assert compared(tmp_path, {1: document(1), 2: document(2)}, split="other").startswith("the files of submission 1 ")
