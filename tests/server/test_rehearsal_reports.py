"""The rehearsal's reports: who sees what, of which submissions, and the effects of a bad one."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.server import report_pages
from segjudge.server.report_pages import HOSTS, PageOrder, ReportPages
from segjudge.server.report_program import LEVELS
from segjudge.server.services import Services
from segjudge.server.wire import Refusal
from segjudge.system import sandbox
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT, zipped
from tests.rehearsals import Rehearsal, bundle_with, edit_phases, many, waited

needs_bwrap = pytest.mark.skipif(sandbox.find_sandbox() is None, reason="BWRAP DOES NOT WORK HERE: install bubblewrap")
DEV, TEST, INSTANCES = 1, 2, 3
STRONG = ROOT / "examples/sequences-dev/strong.zip"
SECRET = ROOT / "examples/sequences-test/lagging.zip"
WAITING = "Preparing the report"
FULL = "Where the loss is"
STREAM = '<script type="text/plain" data-stream='
#: How a browser draws a page's text.
STYLE = "() => ['font', 'color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])"


def own_bundle(folder: Path, detail: str) -> Path:
    """Return the demo: its first phase is public or not, a split of the second is hidden, the third shows means."""

    def change(config: Any) -> None:
        many(config)
        config["challenge_phase_splits"][2]["visibility"] = 1

    path = bundle_with(folder, change)
    edit_phases(
        path,
        ('codename="sequences-dev",', f'codename="sequences-dev", detail="{detail}",'),
        ('codename="sequences-test",', 'codename="sequences-test", detail="all", report=True,'),
        ('"test-hard", "davis2017", LABELS', '"test-hard", "davis2017", LABELS, hidden=True'),
        ('INSTANCE_LABELS),),\n        detail="all"', 'INSTANCE_LABELS),),\n        detail="means"'),
    )
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("reports")
    with Rehearsal(
        folder / "data", ("--requests-per-minute", "100000"), bundle=own_bundle(folder, "all")
    ).start() as running:
        yield running
    assert list((folder / "data/reports").iterdir())


@pytest.fixture(scope="module")
def people(server: Rehearsal) -> dict[str, requests.Session]:
    return {who: server.session(who) for who in ("host", "aurora", "borealis")}


def scored(server: Rehearsal, file: Path | bytes, phase: int, **more: Any) -> int:
    number = int(server.submit("aurora", file, phase, **more).json()["id"])
    assert server.settled(number)["status"] == "finished"
    return number


def report(server: Rehearsal, reader: requests.Session, number: int) -> requests.Response:
    """Return the report, or the reason why there is none."""

    def look() -> Any:
        answer = reader.get(f"{server.address}/submissions/{number}/report", timeout=60)
        return [] if WAITING in answer.text else [answer]  # one that refuses is not true

    answer: requests.Response = waited(look, 60)[0]
    return answer


# ── who sees what ───────────────────────────────────────────────────────────


@pytest.mark.long
def test_where_the_truth_is_public_its_team_sees_the_hosts_page(
    server: Rehearsal, people: dict[str, requests.Session]
) -> None:
    number = scored(server, STRONG, DEV, method_name="<script>alert(1)</script>")
    seen = report(server, people["host"], number)
    assert seen.status_code == 200
    assert FULL in seen.text
    assert STREAM in seen.text, "masks of truth and prediction"
    assert "&lt;script&gt;alert(1)" in seen.text
    assert "<script>alert" not in seen.text
    assert "sandbox allow-scripts" in seen.headers["Content-Security-Policy"]
    assert report(server, people["aurora"], number).text == seen.text
    assert f'<a href="/submissions/{number}">' in seen.text, "the way back"
    for page in (f"/submissions/{number}", "/challenges/1/host"):
        assert f'href="/submissions/{number}/report"' in people["host"].get(server.address + page, timeout=60).text


@pytest.mark.long
def test_of_a_phase_with_a_hidden_split_the_team_sees_what_was_left_for_it(
    server: Rehearsal, people: dict[str, requests.Session]
) -> None:
    number = scored(server, SECRET, TEST)
    whole, team_report = (report(server, people[who], number).text for who in ("host", "aurora"))
    submission_result_file = server.get(f"/api/jobs/submission/{number}", "host").json()["submission_result_file"]
    shown = set(re.findall(r"\d\.\d{3}", team_report))
    assert "Summary: test-hard" in whole
    assert FULL in whole
    assert "test-hard" not in team_report
    assert 'data-stream="test/' in team_report, "the masks of the split that is public, since the phase leaves them"
    assert whole.count(STREAM) == 2 * team_report.count(STREAM)
    values = requests.get(submission_result_file, timeout=60).json()["result"]
    assert [list(value) for value in values] == [["test"]]
    assert f"{values[0]['test']['J&F-Mean']:.3f}" in shown
    hidden = re.search(r'id="summary-test-hard".*?class="big">(\d\.\d{3})', whole, re.DOTALL)
    assert hidden
    assert hidden.group(1) not in shown


@pytest.mark.long
def test_a_level_that_is_taken_back_holds_for_pages_that_are_there(
    server: Rehearsal, people: dict[str, requests.Session], tmp_path: Path
) -> None:
    number = scored(server, STRONG, DEV)
    assert FULL in report(server, people["aurora"], number).text
    config = server.get("/api/challenges/challenge/1/", "host").json()["github_repository"]
    try:
        assert server.push(own_bundle(tmp_path, "means"), repository=config).status_code in (200, 201)
        assert FULL not in report(server, people["aurora"], number).text
        assert FULL in report(server, people["host"], number).text
    finally:
        server.push(own_bundle(tmp_path, "all"), repository=config)


# ── of which submissions there is none ──────────────────────────────────────


# ── what a bad one can do ───────────────────────────────────────────────────

# ── the pages that are kept ─────────────────────────────────────────────────


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[ReportPages]:
    services = Services(str(tmp_path / "data"))
    services.report_pages.start()
    yield services.report_pages
    services.report_pages.stop()
    services.store.close()


def ordered(pages: ReportPages, script: bytes) -> PageOrder:
    return PageOrder(LEVELS, 1, {"script": pages._files.keep(script, "script.zip", "script")})


def levels(text: str = "") -> bytes:
    phases = (ROOT / "evaluation_script/phases.py").read_text()
    return zipped({"phases.py": phases + text})


def logged(pages: ReportPages) -> str:
    return "\n".join(pages._store.log_lines(1))


def test_a_script_that_breaks_off_is_a_sentence_and_its_reason_in_the_log(pages: ReportPages) -> None:
    order = ordered(pages, levels("\nprint('{}')\nraise ValueError('of the host')\n"))
    with pytest.raises(Refusal, match="could not be created"):
        waited(partial(pages.find_or_order, order, HOSTS))
    assert "of the host" in logged(pages)


@needs_bwrap
def test_in_the_sandbox_a_script_finds_nothing_of_the_rehearsal(pages: ReportPages) -> None:
    paths = [pages._store.folder, pages._files._folder, str(ROOT / "tests"), str(ROOT / "annotations")]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        look = f"""
import os, socket
seen = [path for path in {paths!r} if os.path.exists(path)] + [name for name in os.environ if "SEGJUDGE" in name]
try:
    socket.create_connection({listening.getsockname()!r}, 1)
    seen.append("the network")
except OSError:
    pass
raise ValueError(f"sees {{seen}}")
"""
        with pytest.raises(Refusal):
            waited(partial(pages.find_or_order, ordered(pages, levels(look)), HOSTS))
    assert "sees []" in logged(pages)


@pytest.mark.parametrize(
    ("code", "sentence", "noted"),
    [
        pytest.param("held = bytearray(4 << 30)", "could not be created", "MemoryError", id="memory"),
        pytest.param("import time; time.sleep(600)", "was not ready within 3 seconds", "", id="time"),
        pytest.param("import os; os.write(3, b'x' * (40 << 20))", "could not be created", "", id="flood"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "could not be created", "SIGKILL|137", id="killed"),
    ],
)
def test_a_script_that_takes_too_much_is_ended(
    pages: ReportPages, monkeypatch: pytest.MonkeyPatch, code: str, sentence: str, noted: str
) -> None:
    if "3 seconds" in sentence:
        monkeypatch.setattr(report_pages, "_LIMITS", replace(report_pages._LIMITS, seconds=3))
    order = ordered(pages, levels(f"\n{code}\n"))
    with pytest.raises(Refusal, match=sentence):
        waited(partial(pages.find_or_order, order, HOSTS))
    assert re.search(noted, logged(pages))
    assert pages._store.worker_folders() == [], "its folder is gone"


def test_a_stop_ends_what_is_under_way(pages: ReportPages) -> None:
    assert pages.find_or_order(ordered(pages, levels("\nimport time; time.sleep(600)\n")), HOSTS) is None
    waited(pages._store.worker_folders)
    pages.stop()
    assert not pages._threads[0].is_alive()
    assert pages._store.worker_folders() == []


def test_a_damaged_answer_is_made_again(pages: ReportPages) -> None:
    order = ordered(pages, levels())
    (Path(pages._folder) / order.key).write_text("<!doctype html>")
    assert "sequences-dev" in waited(partial(pages.find_or_order, order, HOSTS)).levels


def test_a_page_that_failed_is_ordered_again_only_by_readers(
    pages: ReportPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ordered(pages, levels("\nraise ValueError('of the host')\n"))
    with pytest.raises(Refusal):
        waited(partial(pages.find_or_order, order, HOSTS))
    monkeypatch.setattr(report_pages, "_FAILED_SECONDS", 0.0)
    assert pages.find_split_summaries(order) == {}
    assert pages._under_way == {}
    assert pages.find_or_order(order, HOSTS) is None
    assert list(pages._under_way) == [order.key]


# ── in a browser ────────────────────────────────────────────────────────────


@needs_chromium
@pytest.mark.long
def test_a_host_steps_through_the_frames(server: Rehearsal) -> None:
    number = scored(server, STRONG, DEV)
    with chromium() as browser, fresh_page(browser, {"width": 1440, "height": 900}) as (page, _):
        page.goto(f"{server.address}/login?next=/challenges/1/host")
        page.get_by_label("Name").fill("host")
        page.get_by_label("Password").fill(server.people["host"]["password"])
        with page.expect_navigation():
            page.get_by_role("main").get_by_role("button", name="Log in").click()
        before = page.evaluate(STYLE)
        page.get_by_label(f"Report of submission {number}").click()
        page.get_by_role("heading", name=FULL).wait_for(timeout=60_000)  # the page before it looked again by itself
        assert page.evaluate(STYLE) == before, "one stylesheet"
        page.keyboard.press("w")
        page.wait_for_function("() => document.querySelector('.views canvas')?.width > 0")
        page.get_by_role("button", name="Keys").click()
        page.locator("dialog[open]").get_by_role("button", name="Close").click()
        assert page.locator("dialog[open]").count() == 0
        with page.expect_download() as started:
            page.get_by_role("button", name="Save as CSV").first.click()
        assert started.value.suggested_filename.endswith(".csv")
