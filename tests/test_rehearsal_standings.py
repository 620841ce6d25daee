"""The rehearsal's leaderboard says which rows can be told apart, as far as the phase's detail allows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from segjudge.cli import main

from .browser import chromium, fresh_page, needs_chromium
from .builders import png, zipped
from .rehearsals import Rehearsal

VIDEOS, FRAMES = 9, 4
TEAMS = ("aurora", "borealis", "host")


def square(video: int, moved: int = 0) -> bytes:
    labels = np.zeros((40, 60), np.uint8)
    labels[8 + video : 24 + video, 10 + moved : 30 + moved] = 1
    return png(labels)


def results(moved: dict[int, int]) -> bytes:
    """Masks of every video, moved by so many pixels."""
    return zipped({f"v{k}/{t:05d}.png": square(k, moved.get(k, 0)) for k in range(VIDEOS) for t in range(FRAMES)})


#: Aurora and Borealis are each better in about half of the videos; the host's baseline is worse than both in all of them.
SENT = {
    "aurora": results({k: k % 2 for k in range(VIDEOS)}),
    "borealis": results({k: 1 - k % 2 for k in range(VIDEOS)}),
    "host": results(dict.fromkeys(range(VIDEOS), 6)),
}


@pytest.fixture(scope="module", params=["all", "means"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Rehearsal]]:
    folder = tmp_path_factory.mktemp("standings")
    for k in range(VIDEOS):
        for name in ("JPEGImages", "Annotations"):
            (folder / "root" / name / "480p" / f"v{k}").mkdir(parents=True)
        for t in range(FRAMES):
            (folder / f"root/Annotations/480p/v{k}/{t:05d}.png").write_bytes(square(k))
    assert main(["new", str(folder / "own"), "--protocol", "davis2017", "--truth", str(folder / "root")]) == 0
    phases = folder / "own/evaluation_script/phases.py"
    text = phases.read_text()
    assert "codename=" in text
    phases.write_text(re.sub(r"(\n +)(codename=)", rf'\1detail="{request.param}",\1\2', text, count=1))
    running = Rehearsal(folder / "data", ("--requests-per-minute", "100000"), root=folder / "own").start()
    numbers = {}
    for who in TEAMS:
        sent = running.submit(who, SENT[who], is_public="true")
        assert sent.status_code == 201, sent.text
        numbers[who] = running.settled(sent.json()["id"])
        assert numbers[who]["status"] == "finished"
    path = f"/api/jobs/challenges/1/submissions/{numbers['host']['id']}/update_submission_meta/"
    assert running.call("PATCH", path, "host", json={"is_baseline": True}).status_code == 200
    yield request.param, running
    running.stop()
    assert "Traceback" not in running.errors()


@needs_chromium
def test_places_are_shown_where_participants_may_read_of_sequences(server: tuple[str, Rehearsal]) -> None:
    detail, running = server
    with chromium() as browser, fresh_page(browser, {"width": 1440, "height": 900}) as (page, _):
        page.goto(f"{running.address}/challenges/1/leaderboard")
        rows = [text.split("\t") for text in page.locator("tbody tr").all_inner_texts()]
        assert len([row for row in rows if row[0] in "123"]) >= 3
        assert page.get_by_text("baseline").count() >= 1
        page.get_by_text("Scores over time").click()
        assert page.locator(".history circle").count() == 3
        assert page.locator(".history .baseline").count() == 1
        if detail == "means":
            assert page.get_by_text("Which rows can be told apart").count() == 0
            assert page.locator("abbr").count() == 0
            return
        places = page.locator("table >> nth=0 >> tbody >> td:nth-child(2)").all_inner_texts()
        assert places == ["1–2", "1–2", "3"]
        page.get_by_text("Which rows can be told apart").click()
        with page.expect_response(re.compile("leaderboard")):  # the page renews itself and keeps what was opened
            pass
        marks = [text.strip() for text in page.locator(".map td").all_inner_texts()]
        assert marks == ["", "·", "▲", "·", "", "▲", "▼", "▼", ""]
        assert f"the same {VIDEOS} sequences" in page.locator(".board").first.inner_text()
