"""The Space as its visitors see it: the real Gradio with the Hub's login, against the stand-in, in Chromium."""

from __future__ import annotations

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

from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.ledger import Ledger
from segjudge.ledger.rows import LedgerEntry, RunOutcome
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.hugging_face.settings import find_rules
from tests.browser import chromium, faint_texts, needs_chromium
from tests.builders import ROOT
from tests.hub.played import PlayedHub

from .boards import OWNER, REPOSITORY, make_challenge, open_hub, push, submissions_of

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
    claims = {
        "name": name,
        "preferred_username": name,
        "profile": "https://a.test/a",
        "picture": "https://a.test/a.png",
    }
    # The Hub's `aud` is text; Gradio fails on the provider's list.
    return {"sub": USERS[name], "aud": "client", **claims}


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
    page.set_default_timeout(30_000)
    page.goto(address)
    page.get_by_role("tab", name="Leaderboard").wait_for()
    return page


def log_in(page: Any, sub: str) -> None:
    page.get_by_role("button", name="Sign in with Hugging Face").click()
    page.get_by_role("button", name=sub).click()
    page.get_by_role("button", name="Logout").wait_for()


def open_tab(page: Any, name: str) -> None:
    tab = page.get_by_role("tab", name=name)
    if not (tab.count() and tab.first.is_visible()):
        page.locator(".overflow-menu > button").click()
        tab = page.locator(".overflow-dropdown").get_by_text(name)
    tab.first.click()


def submit(page: Any, file: Path, method: str) -> str:
    open_tab(page, "Submit")
    page.get_by_label("Method").fill(method)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text(file.stem).first.wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    answer = page.locator(".answer [role=status]").first
    answer.wait_for()
    return str(answer.inner_text())


def test_a_submission_goes_from_the_form_to_the_board(
    hub: PlayedHub, challenge: Path, address: str, browser: Any
) -> None:
    page = open_page(browser, address)
    page.get_by_text("No submissions yet.").wait_for()
    page.screenshot(path="/tmp/p1.png")
    log_in(page, "b2")
    (sample,) = challenge.glob("examples/*/good.zip")
    said = submit(page, sample, HOSTILE)
    page.screenshot(path="/tmp/p2.png")
    assert said.startswith("Submission 1 was stored.")
    open_tab(page, "My submissions")
    page.get_by_text("next", exact=True).wait_for()
    page.screenshot(path="/tmp/p3.png")
    print(submissions_of(hub))
    assert page.title() == "Cats"
    open_tab(page, "Rules")
    time.sleep(1)
    page.screenshot(path="/tmp/p4.png")
    print(faint_texts(page), page.title(), HfApi, HubDataset, Ledger, LedgerEntry, RunOutcome, find_bundle, find_rules)
