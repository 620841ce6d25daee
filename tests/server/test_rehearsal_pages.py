"""The rehearsal's pages, in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.server.models import ChallengePhaseSplit, LeaderboardData, Submission, Team
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT
from tests.demo_challenge import leaderboard_path
from tests.rehearsals import Rehearsal, waited

pytestmark = [needs_chromium, pytest.mark.long]
STRONG = ROOT / "examples/sequences-dev/strong.zip"
DESKTOP, PHONE = {"width": 1100, "height": 800}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    options = ("--requests-per-minute", "100000", "--seed-demo")
    with Rehearsal(tmp_path_factory.mktemp("pages") / "data", options).start() as running:
        waited(lambda: len(running.get(leaderboard_path("instances-dev")).json().get("results", ())) == 3)
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Yield a new page of a browser; any error in it fails the test."""
    with fresh_page(browser, DESKTOP) as (opened, asked):
        yield opened
    assert {re.sub(r":\d+/.*", "", url) for url in asked} <= {"http://127.0.0.1", "data:,"}, "nothing from elsewhere"


def log_in(page: Any, server: Rehearsal, who: str, path: str = "/challenges/1/submit") -> None:
    page.goto(server.address + path)
    page.get_by_label("Name").fill(who)
    page.get_by_label("Password").fill(server.people[who]["password"])
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.wait_for_url(server.address + path)


def test_two_rows_are_compared(server: Rehearsal) -> None:
    waited(lambda: len(server.get(leaderboard_path("photo-videos")).json().get("results", ())) == 6)
    host, aurora = server.session("host"), server.session("aurora")
    board = host.get(f"{server.address}/challenges/1/leaderboard/5").text
    assert len(re.findall(r'<input type="checkbox" name="submission" value="\d+" form="compare"', board)) == 6
    address = f"{server.address}/leaderboard/5/compare?submission="

    def comparison() -> str:
        page = host.get(f"{address}1&submission=6", timeout=60).text
        return page if "Significant differences" in page else ""

    text = waited(comparison, 60)
    assert "Swapping loses 0.178 more than Careful: swap" in text
    assert ".place { background-color" in text, "bars have the colours of kinds"
    assert 'id="frames"' in text
    ticks, visitor = re.compile('form="compare"'), requests.Session()  # the truth is public
    waited(lambda: len(ticks.findall(aurora.get(f"{server.address}/challenges/1/leaderboard/5").text)) == 6)
    waited(lambda: len(ticks.findall(visitor.get(f"{server.address}/challenges/1/leaderboard/5").text)) == 6)
    assert "form=" not in aurora.get(f"{server.address}/challenges/1/leaderboard/1").text


def test_a_visitor_goes_from_the_landing_page_to_a_report_and_back(server: Rehearsal, page: Any) -> None:
    waited(lambda: len(server.get(leaderboard_path("photo-videos")).json().get("results", ())) == 6)
    waited(lambda: "</a> in Photographs, videos: " in server.get("/challenges/1").text, 60)  # of the first phase
    page.goto(server.address)
    film = page.get_by_role("group", name="Worst frames").locator("img")
    assert min(film.evaluate_all("images => images.map(image => image.naturalWidth)")) > 100
    page.get_by_role("link", name="Open the report").click()
    page.wait_for_selector("#verdict", timeout=60_000)
    assert re.search(r'data-stream="dev/[a-z-]+#\d+"', page.content()), "a picture under the masks of a frame"
    assert page.locator(".poster").count()
    page.get_by_label("Way back").get_by_role("link", name="Photographs, videos").click()
    page.wait_for_url(re.compile("/leaderboard/5$"))
    rows = page.locator("tr.about")
    assert rows.count() == 6
    waited(lambda: "exchange their tracks" in server.get("/challenges/1/leaderboard/5").text, 60)


def test_a_submission_from_the_form_to_the_leaderboard(server: Rehearsal, page: Any) -> None:
    log_in(page, server, "aurora")
    page.get_by_label("Sequences, development").check()
    page.get_by_label("File", exact=True).set_input_files(STRONG)
    page.get_by_label(re.compile("^Method")).fill("From the form")
    page.get_by_label("shown", exact=True).check()
    page.get_by_role("button", name="Submit").click()

    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    page.locator(".status.finished").wait_for(timeout=30_000)  # the page renews itself
    assert page.locator(".facts:not(.words) dd").first.inner_text() == "0.9325"
    assert "scored" in page.locator("pre").first.inner_text()
    assert page.locator("details.board[open] > summary").all_inner_texts() == ["stdout"], "numbers are shown already"

    page.get_by_role("link", name="Leaderboard").click()
    page.get_by_role("link", name="Sequences, development", exact=True).click()
    mine = page.locator("tr.mine")
    assert "Aurora" in mine.inner_text()
    assert "From the form" in mine.inner_text()


def test_a_refusal_is_shown_in_the_form(server: Rehearsal, page: Any, tmp_path: Path) -> None:
    log_in(page, server, "aurora")
    (tmp_path / "empty.zip").touch()
    page.get_by_label("Sequences, development").check()
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "empty.zip")
    page.get_by_role("button", name="Submit").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert alert.inner_text() == "empty.zip is empty."
    assert page.url.endswith("/challenges/1/submit"), "what was filled in is still there"


def test_a_failed_submission_says_why_at_a_glance(server: Rehearsal, page: Any) -> None:
    number = server.submit("aurora", b"PK\x03\x04").json()["id"]
    server.settled(number)
    log_in(page, server, "aurora", "/challenges/1/submissions")
    assert "is a zip that was cut off" in page.locator("tr.reason").first.inner_text()
    page.set_viewport_size(PHONE)
    box = page.locator("tr.reason .said-of").first.bounding_box()
    assert box["x"] + box["width"] <= PHONE["width"], "it is whole where the table is wider"
    assert "My submissions" in page.locator(".tabs").inner_text()
    assert page.title() == "Submissions – Segjudge demo challenge"
    page.goto(f"{server.address}/submissions/{number}")
    sentence = page.get_by_role("alert").inner_text()
    assert sentence.startswith("your file: is a zip that was cut off")
    assert "SubmissionError" not in page.get_by_role("main").inner_text(), "the traceback is folded"
    page.get_by_text("stderr", exact=True).click()
    assert "SubmissionError: " + sentence in page.locator("pre").inner_text()


def test_a_list_renews_itself_and_says_so(server: Rehearsal, page: Any) -> None:
    log_in(page, server, "borealis", "/challenges/1/submissions")
    assert "None yet" in page.get_by_role("main").inner_text()
    number = server.submit("borealis", STRONG).json()["id"]
    page.locator(".status.finished").wait_for(timeout=30_000)
    assert f"Submission {number}: finished" in page.locator("#said").inner_text()


@pytest.fixture(scope="module")
def phone(server: Rehearsal, browser: Any) -> Iterator[Any]:
    """Yield a page of a host's phone."""
    context = browser.new_context(viewport=PHONE)
    opened = context.new_page()
    log_in(opened, server, "host")
    yield opened
    context.close()


@pytest.mark.parametrize("path", ["", "/evaluation", "/phases", "/leaderboard", "/submit", "/submissions", "/host"])
def test_a_phone_shows_it_without_scrolling_sideways(server: Rehearsal, phone: Any, path: str) -> None:
    phone.goto(f"{server.address}/challenges/1{path}")
    phone.evaluate("document.querySelector('.head h1').textContent = 'Wettbewerb'.repeat(10)")
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert phone.evaluate("getComputedStyle(document.body).fontSize") == "16px"


def test_the_keyboard_reaches_everything(server: Rehearsal, page: Any) -> None:
    log_in(page, server, "aurora", "/challenges/1/submit")
    page.goto(f"{server.address}/challenges/1/submit")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("input[name=phase]").first.is_checked()
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.innerText"))
    assert {"input_file", "method_name", "is_public", "Submit"} <= reached


def test_screen_readers_get_names_for_everything(server: Rehearsal, page: Any) -> None:
    log_in(page, server, "host", "/challenges/1/host")
    for path in ("", "/phases", "/leaderboard", "/submit", "/submissions", "/host"):
        page.goto(f"{server.address}/challenges/1{path}")
        nameless = page.evaluate(
            "() => [...document.querySelectorAll('a, button, input:not([type=hidden]), textarea, progress')].filter(one =>"
            " !(one.innerText || one.ariaLabel || (one.labels && one.labels.length))).map(one => one.outerHTML)"
        )
        assert nameless == []
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.locator("table th:not([scope])").count() == 0
        assert page.locator("img:not([alt])").count() == 0


def contrast(page: Any, selector: str) -> float:
    """Return the contrast of a text with its ground, by WCAG's definition."""
    scores: float = page.evaluate(
        """selector => {
          const light = text => {
            const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(v => {
              const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const one = document.querySelector(selector);
          const a = light(getComputedStyle(one).color), b = light(getComputedStyle(document.body).backgroundColor);
          return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }""",
        selector,
    )
    return scores


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_readable_by_day_and_by_night(server: Rehearsal, browser: Any, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{server.address}/challenges/1/leaderboard/1")
    for selector in ("main td", "main th a", ".hint", ".tabs a", "footer"):
        assert contrast(page, selector) >= 4.5, selector
    log_in(page, server, "aurora", "/challenges/1/submissions")
    for status in {
        re.sub(".*status ", "", name)
        for name in page.locator(".status").evaluate_all("all => all.map(one => one.className)")
    }:
        assert contrast(page, f".status.{status}") >= 4.5, status
    context.close()


def test_without_scripts_it_works_too(server: Rehearsal, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    log_in(page, server, "borealis")
    page.get_by_label("Instances, development").check()
    page.get_by_label("File", exact=True).set_input_files(ROOT / "examples/instances-dev/sharp.json")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    number = int(page.url.rpartition("/")[2])
    server.settled(number)
    page.reload()
    assert page.locator(".status.finished").count() == 1
    context.close()


def test_a_long_board_has_pages_ties_a_filter_and_ones_own_row(server: Rehearsal, page: Any) -> None:
    own_team, split = int(server.people["aurora"]["team"]), 3
    with server.store() as store, store.write() as session:
        board = store.require(ChallengePhaseSplit, split)
        for k in range(240):
            team = own_team
            if k != 150:
                row = Team(kind="participant", team_name=f"Crowd {k:03d}", created_by=1)
                session.add(row)
                session.flush()
                team = row.id
            sent = Submission(
                phase_id=board.phase_id, team_id=team, created_by=1, status="finished", is_public=True, submitted_at=k
            )
            session.add(sent)
            session.flush()
            values = dict.fromkeys(board.labels, 0.2 - k // 2 / 1000)
            session.add(LeaderboardData(submission_id=sent.id, phase_split_id=split, result=values))
    log_in(page, server, "aurora")
    page.goto(f"{server.address}/challenges/1/leaderboard/{split}")
    ranks = page.locator("table >> nth=0 >> tbody >> tr >> td:first-child")
    assert ranks.count() == 100
    assert ranks.all_inner_texts()[-4:] == ["96=", "98=", "98=", "100="]
    page.get_by_role("link", name="Your row: rank 154 of 243").click()
    page.wait_for_url(re.compile(r"page=2#mine$"))
    assert page.locator("#mine").inner_text().startswith("154=\tAurora")
    assert page.get_by_role("navigation", name="Pages").locator("[aria-current]").inner_text() == "2"
    page.get_by_label("Team or method").fill("crowd 23")
    with page.expect_navigation():
        page.get_by_role("button", name="Filter").click()
    assert ranks.count() == 10
    assert ranks.first.inner_text() == "234="
    with page.expect_navigation():
        page.get_by_role("link", name="Crowd 231").click()
    assert page.title() == "Crowd 231 – Segjudge demo challenge"
    assert "rank 234 of 243" in page.get_by_role("main").inner_text()
    for message in ("page=99999999999999999999", "page=-1", "team=%ED%A0%80", "team=" + "x" * 5000):
        assert server.get(f"/challenges/1/leaderboard/{split}?{message}").status_code == 200
    for team in (0, 10**30, 999):
        assert server.get(f"/challenges/1/teams/{team}").status_code == 404
