"""The Space as its visitors see it: the real Gradio with the Hub's login, against the stand-in, in Chromium."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from huggingface_hub import HfApi
from playwright.sync_api import TimeoutError as Late

from segjudge.cli import main
from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.rows import ENTRIES, RESULTS, LedgerEntry, RunOutcome, row_path, to_bytes
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.hugging_face.settings import find_rules
from tests.browser import chromium, needs_chromium
from tests.builders import ROOT
from tests.hub.played import PlayedHub

from .boards import OWNER, REPOSITORY, make_challenge, open_hub, push

pytestmark = [pytest.mark.long, needs_chromium]
HOSTILE = '<img src=x onerror="document.title=1">${document.title=2}{{constructor}}'
USERS = {"ann": "a1", HOSTILE: "b2"}
PHONE = {"width": 390, "height": 800}
SECONDS = 100


@pytest.fixture(scope="module")
def hub() -> Iterator[PlayedHub]:
    with open_hub() as played:
        yield played


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_challenge(tmp_path_factory.mktemp("new") / "cats")


@pytest.fixture(scope="module")
def address(hub: PlayedHub, challenge: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Push the challenge, and run the files of its Space with the environment that the Hub gives them."""
    push(challenge)
    token = hub.add_token(OWNER, {f"{REPOSITORY}-submissions": "write"})
    folder, own_port, port = tmp_path_factory.mktemp("space"), find_port(), find_port()
    for name in hub.list_files(REPOSITORY, "space"):
        (folder / name).write_bytes(hub.read(REPOSITORY, name, "space"))
    users = [argument for name in USERS for argument in ("--user-claims", json.dumps(claims_of(name)))]
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1",
        "SUBMISSIONS_TOKEN": token, "SYSTEM": "spaces", "SPACE_ID": REPOSITORY, "OAUTH_CLIENT_ID": "client",
        "OAUTH_CLIENT_SECRET": "secret", "OAUTH_SCOPES": "openid profile", "GRADIO_SERVER_PORT": str(own_port),
        "OPENID_PROVIDER_URL": f"http://127.0.0.1:{port}", "HOME": str(folder),
    }  # fmt: skip
    environment.pop("HF_TOKEN", None)
    provider = [sys.executable, "-m", "oidc_provider_mock", *users, "--port", str(port)]
    with started(provider, folder, dict(os.environ)), started([sys.executable, "app.py"], folder, environment) as app:
        wait_for(f"http://localhost:{own_port}/", app)
        yield f"http://localhost:{own_port}/"


@contextmanager
def started(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        open(folder / "log", "a") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def claims_of(name: str) -> dict[str, object]:
    links = {"profile": "https://a.test/a", "picture": "https://a.test/a.png"}
    # The Hub's `aud` is text; Gradio fails on the provider's list.
    return {"sub": USERS[name], "aud": "client", "name": name, "preferred_username": name, **links}


def wait_for(address: str, app: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and app.poll() is None:
        try:
            requests.get(address, timeout=30).raise_for_status()
        except requests.ConnectionError:
            time.sleep(1)
        else:
            return
    pytest.fail("the Space did not start")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


def open_page(browser: Any, address: str) -> Any:
    page = browser.new_context(viewport=PHONE).new_page()
    page.set_default_timeout(1000 * SECONDS)
    page.goto(address)
    page.get_by_role("tab", name="Leaderboard").wait_for()
    return page


def open_board(browser: Any, address: str, rows: int) -> Any:
    """Open the page until its leaderboard has some rows: the Space shows for some seconds what it has read."""
    page = open_page(browser, address)
    for _ in range(SECONDS):
        page.get_by_role("heading", name="val / val").wait_for()
        if page.locator(".board tbody tr").count() >= min(rows, 100):
            break
        time.sleep(1)
        page.reload()
    return page


def log_in(page: Any, sub: str) -> None:
    page.get_by_role("button", name="Sign in with Hugging Face").click()
    page.get_by_role("button", name=sub).click()
    page.get_by_role("button", name="Logout").wait_for()


def open_tab(page: Any, name: str) -> None:
    """Open a tab of the bar, or of the menu beside it, into which Gradio moves tabs at any moment."""
    bar, menu = page.get_by_role("tab", name=name), page.locator(".overflow-dropdown").get_by_text(name)
    for _ in range(SECONDS // 5):
        with contextlib.suppress(Late):
            if not bar.first.is_visible():
                page.locator(".overflow-menu > button").click(timeout=5000)
            (bar if bar.first.is_visible() else menu).first.click(timeout=5000)
            return
    pytest.fail(f"no tab {name}")


def submit(page: Any, file: Path, method: str) -> str:
    open_tab(page, "Submit")
    page.get_by_label("Method").fill(method)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text(file.stem).first.wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    answer = page.locator(".answer [role=status]").first
    answer.wait_for()
    return str(answer.inner_text())


def widths_of(page: Any) -> list[int]:
    """Return the widths of the document and of the window."""
    widths: list[int] = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return widths


def test_a_submission_goes_from_the_form_to_the_board(
    hub: PlayedHub, challenge: Path, address: str, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(browser, address)
    page.get_by_text("No submissions yet.").wait_for()
    log_in(page, "b2")
    (sample,) = challenge.glob("examples/*/poor.zip")
    assert submit(page, sample, HOSTILE).startswith("Submission 1 was stored.")
    open_tab(page, "My submissions")
    page.get_by_text("next", exact=True).wait_for()
    assert widths_of(page) == [390, 390]

    rights = {
        f"{REPOSITORY}-submissions": "read",
        **{f"{REPOSITORY}-{name}": "write" for name in ("results", "private")},
    }
    monkeypatch.setenv("HF_TOKEN", hub.add_token(OWNER, rights))
    with contextlib.redirect_stderr(io.StringIO()) as log:
        assert main(["worker", "--platform", "hugging-face", REPOSITORY, "--once"]) == 0, log.getvalue()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.chdir(challenge):
        assert main(["score", str(sample), "--phase", "val", "--json", "-"]) == 0
    (scores,) = json.loads(out.getvalue())["result"]

    visitor = open_board(browser, address, 1)
    row = visitor.locator(".board tbody tr").first
    assert HOSTILE in row.inner_text()
    value = scores["val"]["J&F-Mean"]
    assert float(row.locator("td.number").first.get_attribute("data-value")) == value
    assert (visitor.title(), widths_of(visitor)) == ("Cats", [390, 390])
    for _ in range(SECONDS // 10):  # a click may go astray while Gradio moves the tabs
        open_tab(page, "Leaderboard")
        open_tab(page, "My submissions")
        with contextlib.suppress(Late):
            page.get_by_text(f"Scored: val: place 1 of 1; J&F-Mean {value:.4f}").wait_for(timeout=10000)
            break
    else:
        pytest.fail(page.inner_text("body"))
    page.get_by_label("Submission to withdraw").fill("1")
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_text("Submission 1 was withdrawn.").wait_for()


def test_a_board_of_2000_rows_is_shown_whole(hub: PlayedHub, challenge: Path, address: str, browser: Any) -> None:
    labels = find_rules(find_bundle(str(challenge))).phases[0].boards[0].labels
    files: dict[str, bytes] = {}
    for number in range(101, 2101):
        entry = LedgerEntry(number, f"k{number}", f"team {number}", "net", "val", "", "", "2027-01-01T00:00:00+00:00")
        outcome = RunOutcome("2027-01-01", {"val": dict.fromkeys(labels, 1 / number)})
        files |= {row_path(ENTRIES, number): to_bytes(entry), row_path(RESULTS, number, 1): to_bytes(outcome)}
    storage = HubDataset(HfApi(), f"{REPOSITORY}-results")
    storage.read()
    storage.write(files, "rows")
    page = open_board(browser, address, 2000)
    page.locator(".board tbody tr").nth(1999).wait_for()
    assert "team 101" in page.locator(".board tbody tr").first.inner_text()
    assert widths_of(page) == [390, 390]
    page.get_by_role("region", name="Table: val / val").focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.scrollTop") >= 0
