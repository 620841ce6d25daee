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
#: Options that stop a browser from sending requests of its own.
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-software-rasterizer", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
#: Finds the texts that differ too little from their ground.
_CONTRAST = """(() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const mixed = (layers) => {
    pen.clearRect(0, 0, 1, 1);
    for (const one of layers) { pen.fillStyle = one; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (rgb) => rgb.reduce((sum, v, k) => sum + [.2126, .7152, .0722][k] * linear(v), 0);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
    if (!text || !element.checkVisibility() || element.closest(".said, .skip, script, option, title")) continue;
    const style = getComputedStyle(element), layers = [];
    for (let one = element; one; one = one.parentElement) layers.unshift(getComputedStyle(one).backgroundColor);
    const stripe = style.backgroundImage === "none" ? [] : [style.getPropertyValue("--stripe")];
    for (const ground of [layers, [...layers, ...stripe]]) {
      const ink = mixed([...ground, element.closest("svg") ? style.fill : style.color]);
      const [a, b] = [light(mixed(ground)), light(ink)].sort((x, y) => y - x);
      if ((a + .05) / (b + .05) < LEAST) found.push(`${element.tagName} ${element.textContent.trim().slice(0, 30)}`);
    }
  }
  return found;
})()"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium, and stop it after the tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@contextmanager
def fresh_page(browser: Any, size: dict[str, int]) -> Iterator[tuple[Any, list[str]]]:
    """Open a page and yield it with the list of its requests; an error on the page fails the test."""
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
    # A refused form is answered by 4xx on purpose, and the browser logs that.
    assert [line for line in complaints if "status of 4" not in line] == []


def faint_texts(page: Any, least: float = 4.5) -> list[str]:
    """Return the texts of a page whose contrast is below a ratio; black on white has 21."""
    faults: list[str] = page.evaluate(_CONTRAST.replace("LEAST", str(least)))
    return faults
