"""The pictures of README and docs: `python -m demo.shown`.

`docs/methods.webp` moves: six films, each with the masks of a method beside the truth, in the colours of a report.
`docs/report.webp` and `docs/leaderboard.webp` are what a browser shows of the demo, which needs Chromium.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from segjudge.evaluation_script.masks.run_lengths import flags
from segjudge.report.colours import MISSING, OTHER, RIGHT, SURPLUS

from .drawing import SIZE, Labels
from .films import FILMS, Film
from .sequences import PHASE

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
#: What each tile of the moving picture shows: a film, and a method at its worst in it.
_TILES = (
    ("shell-game", "swapping"),
    ("peekaboo", "forgetful"),
    ("holiday-snaps", "drifting"),
    ("roll-call", "leaking"),
    ("round-the-planet", "coarse"),
    ("two-raccoons", "careful"),
)
_TILE, _COLUMNS, _FRAMES = (300, 169), 3, 18
#: The colours of a report: missing, too much, another object, right; and how much of each covers the picture.
_COLOURS = np.array([MISSING, SURPLUS, OTHER, RIGHT], np.float32)
_COVERS = np.array([0.8, 0.8, 0.75, 0.38], np.float32)


def draw_methods(path: Path) -> None:
    """Draw the moving picture."""
    films = {film.name: film for film in FILMS}
    tiles = [_draw_tile(films[name], method) for name, method in _TILES]
    width, height = _TILE
    pages = []
    for frame in range(_FRAMES):
        page = Image.new("RGB", (_COLUMNS * width + 2 * 4, 2 * (height + 26) + 4), "white")
        for place, tile in enumerate(tiles):
            page.paste(tile[frame], (place % _COLUMNS * (width + 4), place // _COLUMNS * (height + 30)))
        pages.append(page)
    pages[0].save(path, save_all=True, append_images=pages[1:], duration=180, loop=0, quality=62, method=6)


def _draw_tile(film: Film, method: str) -> list[Image.Image]:
    """Return a film's frames under a method's masks, with the method's loss in each frame so far."""
    drawn = [film.draw(frame) for frame in range(film.frames)]
    predicted = _read_masks(film, method)
    losses = [_loss(labels, masks, film) for (_, labels), masks in zip(drawn, predicted, strict=True)]
    font = ImageFont.load_default(size=14)
    tiles = []
    for step in range(_FRAMES):
        frame = round(step * (film.frames - 1) / (_FRAMES - 1))
        tile = Image.new("RGB", (_TILE[0], _TILE[1] + 26), "white")
        picture = _cover(drawn[frame][0], drawn[frame][1], predicted[frame])
        tile.paste(Image.fromarray(picture).resize(_TILE, Image.Resampling.LANCZOS))
        pen = ImageDraw.Draw(tile)
        pen.text((2, _TILE[1] + 4), method, fill=(28, 36, 48), font=font)
        for at, loss in enumerate(losses):
            left = 100 + 200 * at / film.frames
            box = (left, _TILE[1] + 24 - 20 * loss if at <= frame else _TILE[1] + 23, left + 200 / film.frames - 2)
            pen.rectangle((*box, _TILE[1] + 24), fill=OTHER if at <= frame else (217, 222, 230))
        tiles.append(tile)
    return tiles


def _read_masks(film: Film, method: str) -> list[Labels]:
    """Read the masks of a film from a sample."""
    document = json.loads(gzip.decompress((ROOT / "examples" / PHASE / f"{method}.json.gz").read_bytes()))
    masks = [np.zeros(SIZE, np.uint8) for _ in range(film.frames)]
    for number, entries in document[film.name].items():
        for labels, entry in zip(masks, entries, strict=True):
            if entry:
                labels[flags(entry, SIZE)[0, :, : SIZE[1]]] = int(number)
    return masks


def _loss(truth: Labels, predicted: Labels, film: Film) -> float:
    """Return the loss of J in a frame, over the objects that either side shows."""
    losses = []
    for number in film.object_numbers():
        either = np.count_nonzero((truth == number) | (predicted == number))
        if either:
            losses.append(1 - np.count_nonzero((truth == number) & (predicted == number)) / either)
    return float(np.mean(losses)) if losses else 0.0


def _cover(picture: NDArray[np.uint8], truth: Labels, predicted: Labels) -> NDArray[np.uint8]:
    """Draw the differences over a picture, as a report does."""
    kinds = np.select(
        [(truth > 0) & (predicted == 0), (truth == 0) & (predicted > 0), truth != predicted, truth > 0], [1, 2, 3, 4], 0
    )
    colours, covers = np.vstack([np.zeros(3, np.float32), _COLOURS])[kinds], np.append(np.float32(0), _COVERS)[kinds]
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    stripes = np.where(kinds == 1, (x + y) & 8, np.where(kinds == 2, (x - y) & 8, 8)) > 0
    share = np.where(stripes, covers, 0.6 * covers)[..., None]
    return np.rint(picture * (1 - share) + colours * share).astype(np.uint8)


# ── what a browser shows ────────────────────────────────────────────────────

#: The parts of a report that are shown, each from what begins it to what comes after it.
_PARTS = (("#where-the-loss-is", "#where-the-loss-is h3"), ("#frames", "#frames h3"))
#: Where a part begins in the page, and how high it is.
_BANDS = """(ends) => {
  const [top, end] = ends.map((end) => document.querySelector(end).getBoundingClientRect().top + scrollY);
  return [Math.round(top), Math.round(end - top)];
}"""


def photograph_pages(docs: Path) -> None:
    """Photograph the demo's board and a report in Chromium, on a rehearsal of this checkout."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, sync_playwright() as tool:
        arguments = ["--seed-demo", "--port", "0", "--data", folder, "--requests-per-minute", "100000"]
        command = [sys.executable, "-P", "-m", "segjudge", "rehearse", *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            try:
                address, password = _read_start(server.stdout or io.StringIO())
                browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"] * (os.geteuid() == 0))
                page = browser.new_page(viewport={"width": 1180, "height": 900})
                page.goto(f"{address}/login?next=/challenges/1/leaderboard")
                page.fill("input[name=username]", "host")
                page.fill("input[name=password]", password)
                page.click("main button")
                page.wait_for_selector("tbody tr:nth-child(6)", timeout=120_000)
                for line in page.query_selector_all("main summary"):
                    line.click()
                _photograph(page.screenshot(full_page=True), docs / "leaderboard.webp")
                page.goto(f"{address}/submissions/3/report")
                page.wait_for_selector(".player canvas", timeout=300_000)
                page.locator("a[data-open$='/holiday-snaps']").first.click()
                bands = tuple(page.evaluate(_BANDS, list(part)) for part in _PARTS)
                _photograph(page.screenshot(full_page=True), docs / "report.webp", bands)
                browser.close()
            finally:
                server.terminate()


def _read_start(lines: Iterable[str]) -> tuple[str, str]:
    """Return the address and the host's password from a rehearsal's first output."""
    password = ""
    for line in lines:
        password = password or "".join(re.findall(r"^  host +password (\S+)", line))
        for address in re.findall(r"runs at (\S+)", line):
            return address, password
    raise RuntimeError("the rehearsal did not start")


def _photograph(png: bytes, path: Path, bands: tuple[tuple[int, int], ...] = ()) -> None:
    """Write a screenshot, or bands of it below each other, given the top and height of each."""
    with Image.open(io.BytesIO(png)) as image:
        chosen = bands or ((0, image.height),)
        page = Image.new("RGB", (image.width, sum(height for _, height in chosen)))
        below = 0
        for top, height in chosen:
            page.paste(image.convert("RGB").crop((0, top, image.width, top + height)), (0, below))
            below += height
    page.save(path, "WEBP", quality=86, method=6)


def main() -> None:
    """Write the pictures, or only `methods` or `pages` if named."""
    chosen = sys.argv[1:] or ["methods", "pages"]
    if "methods" in chosen:
        draw_methods(DOCS / "methods.webp")
    if "pages" in chosen:
        photograph_pages(DOCS)


if __name__ == "__main__":
    main()
