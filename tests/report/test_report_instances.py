"""The report of detections: the losses, and the worst images, in a real browser."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT
from tests.data import GOLDEN

PLACES = GOLDEN / "places"
TRUTH, RESULTS = PLACES / "official_converter_gt.json.gz", PLACES / "preds.json.gz"


def records_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    records: list[dict[str, Any]] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return records


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report page of the Places samples."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", str(RESULTS), "--truth", str(TRUTH), "--protocol", "places2017", "--out", str(out)]) == 0
    return out


def test_images_in_which_the_second_method_errs_more_come_first(tmp_path: Path) -> None:
    examples, out = ROOT / "examples/instances-dev", tmp_path / "page.html"
    methods = [f"{name}={examples / name}.json" for name in ("sharp", "coarse")]
    truth = str(ROOT / "annotations/instances-dev.zip")
    assert main(["compare", *methods, "--truth", truth, "--protocol", "places2017", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    beyond = [moment["cost"] for moment in json.loads(data)["frames"]["moments"]]
    assert beyond == sorted(beyond, reverse=True)
    assert beyond[0] > 1, "mistakes, not only inexact masks"
    assert "Worst images of coarse" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (375, "dark")])
def test_the_worst_image_is_on_the_first_screen_and_opens_the_player(
    page: Path, browser: Any, width: int, scheme: Any
) -> None:
    with fresh_page(browser, {"width": width, "height": 900}) as (opened, asked):
        opened.emulate_media(color_scheme=scheme)
        opened.goto(page.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        for canvas in opened.locator(".first canvas").all():
            box = canvas.bounding_box()
            assert box["y"] + box["height"] < 900
        link = opened.locator(".first a")
        name = link.locator("b").inner_text()
        link.click()
        opened.locator("[data-part=numbers] span").filter(has_text=f"{name}.").wait_for()
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
