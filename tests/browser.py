"""A real Chromium for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .shared import IN_CI

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
needs_chromium = pytest.mark.skipif(not CHROMIUM and not IN_CI, reason="CHROMIUM ABSENT: install it to test the pages")
#: What a browser would otherwise look up on its own.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def chromium() -> Iterator[Any]:
    """Started, and ended."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@contextmanager
def fresh_page(browser: Any, size: dict[str, int]) -> Iterator[tuple[Any, list[str]]]:
    """A page of a browser that nobody used before, and what it asked for; its complaints fail the test."""
    context = browser.new_context(viewport=size)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    yield opened, asked
    context.close()
    # A refused form answers 4xx on purpose, which the browser notes.
    assert [line for line in complaints if "status of 4" not in line] == []
