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


def test_videos_are_listed_and_not_drawn(tmp_path: Path) -> None:
    mask = {"size": [4, 4], "counts": [0, 8, 8]}
    item = {
        "id": 1,
        "video_id": 1,
        "category_id": 1,
        "segmentations": [mask],
        "areas": [8],
        "bboxes": [[0, 0, 2, 4]],
        "iscrowd": 0,
    }
    video = {"id": 1, "width": 4, "height": 4, "length": 1, "file_names": ["a/0.jpg"]}
    truth = {"videos": [video], "categories": [{"id": 1, "name": "dog"}], "annotations": [item]}
    record = {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": [mask]}
    for name, document in (("truth", truth), ("results", [record])):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    out = tmp_path / "report.html"
    files = [str(tmp_path / f"{name}.json") for name in ("results", "truth")]
    assert main(["report", files[0], "--truth", files[1], "--protocol", "youtube-vis-2019", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "1 video without a mistake" in text
    assert 'class="player"' not in text


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


@pytest.mark.long
@needs_chromium
def test_moments_are_chosen_by_category_and_by_a_cell_of_the_confusion(page: Path, browser: Any) -> None:
    with fresh_page(browser, {"width": 1440, "height": 900}) as (opened, _):
        opened.goto(page.as_uri())
        moments, field = opened.locator("ol.moments li"), opened.locator(".chooser-of-moments input")
        every = moments.count()
        name = opened.locator("#table-categories tbody th button").first
        category = name.inner_text()
        name.click()
        assert field.input_value() == category
        assert moments.count() > 0
        cell = opened.locator(".matrix td button").first
        wanted = cell.get_attribute("title").removeprefix("moments with ")
        cell.click()
        assert field.input_value() == wanted
        assert moments.count() > 0
        field.fill("nothing like this")
        assert moments.count() == 0
        field.fill("")
        assert moments.count() == every
