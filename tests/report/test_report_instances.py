"""The report of detections: what is lost where, and the worst images, in a real browser."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.families.instances.diagnosis import InstanceDiagnosis, count_confusions, diagnose
from segjudge.families.instances.pictures import make_mistake_pictures
from segjudge.families.instances.report import _list_costly
from segjudge.families.truths import TruthSource
from segjudge.report.confusion import list_pairs
from segjudge.report.page import PageOptions
from segjudge.scoring import score
from segjudge.scoring.scores import ScoreRequest, find_protocol, prepare
from tests.browser import chromium, faint_texts, fresh_page, needs_chromium
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
    """The report of the Places samples."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", str(RESULTS), "--truth", str(TRUTH), "--protocol", "places2017", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def diagnosis() -> tuple[InstanceDiagnosis, Report]:
    protocol = find_protocol("places2017")
    job = prepare(ScoreRequest(str(RESULTS), TruthSource(str(TRUTH)), protocol))
    (report,) = score(RESULTS, TRUTH, protocol).reports
    return diagnose(job, report), report


def test_what_categories_cost_sums_to_the_loss(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    found, report = diagnosis
    rows = _list_costly(found, report)
    average = report.values["AP"]
    assert average is not None
    assert sum(row["costs"] for row in rows) == pytest.approx(1 - average)
    assert [row["costs"] for row in rows] == sorted((row["costs"] for row in rows), reverse=True)
    by_name = {row["name"]: row["AP50"] for row in report.rows()["categories"]}
    for row in rows:
        assert row["AP50"] == pytest.approx(by_name[row["name"]])


def test_the_area_below_each_curve_is_its_average_precision(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    found, report = diagnosis
    areas = {iou: float(curve.mean()) for iou, curve in found.average_curves().items()}
    for metric, iou in (("AP50", 0.5), ("AP75", 0.75)):
        assert areas[iou] == pytest.approx(report.values[metric])
    assert np.mean(list(areas.values())) == pytest.approx(report.values["AP"])


def test_mistakes_on_pictures_are_those_that_are_counted(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    found, _ = diagnosis
    pictures, rows = make_mistake_pictures(found, 6, PageOptions()), {row["image"]: row for row in found.list_images()}
    assert len(pictures) == 6
    assert pictures[0].name == next(iter(rows))
    for one in pictures:
        row = rows[one.name]
        assert [one.right, one.wrong, one.missed] == [row["right"], row["wrong"], row["missed"]]
        assert one.words.count("missed: ") <= one.missed
        assert sum(map(int, re.findall(r"\d+", one.mistakes))) == one.wrong
        assert one.truth.startswith("data:image/")
        assert max(one.size) <= 480


def test_pictures_fit_into_a_page(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    small = make_mistake_pictures(diagnosis[0], 24, PageOptions(budget=200_000))
    assert 1 < len(small) < 24
    assert sum(len(one.truth) + len(one.detections) for one in small) < 200_000
    assert len(make_mistake_pictures(diagnosis[0], 24, PageOptions(budget=1))) == 1


def test_images_in_which_the_second_method_errs_more_come_first(tmp_path: Path) -> None:
    examples, out = ROOT / "examples/instances-dev", tmp_path / "page.html"
    methods = [f"{name}={examples / name}.json" for name in ("sharp", "coarse")]
    truth = str(ROOT / "annotations/instances-dev.zip")
    assert main(["compare", *methods, "--truth", truth, "--protocol", "places2017", "--out", str(out)]) == 0
    counts = re.findall(
        r"<figcaption><b>(\S+), (sharp|coarse)</b>: \d+ right, (\d+) wrong.*?, (\d+) missed<", out.read_text()
    )
    assert [method for _, method, _, _ in counts] == ["sharp", "coarse"] * (len(counts) // 2)
    mistakes = [int(wrong) + int(missed) for _, _, wrong, missed in counts]
    beyond = [coarse - sharp for sharp, coarse in zip(mistakes[::2], mistakes[1::2], strict=True)]
    assert beyond == sorted(beyond, reverse=True)
    assert beyond[0] > 0
    assert "Those first in which coarse makes most mistakes beyond those of sharp" in out.read_text()


def test_every_confusion_is_of_two_categories(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    judged = diagnosis[0]
    rows = list_pairs([*judged.names, "nothing"], count_confusions(judged.judged, judged.least), "detections")
    assert rows
    assert all(row["truth"] != row["taken for"] and row["detections"] > 0 for row in rows)
    suspects = diagnosis[0].list_suspects()
    assert [row["score"] for row in suspects] == sorted((row["score"] for row in suspects), reverse=True)


def test_a_report_of_nothing_detected_says_so(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]")
    out = tmp_path / "report.html"
    arguments = ["report", str(tmp_path / "none.json"), "--truth", str(TRUTH), "--protocol", "places2017"]
    assert main([*arguments, "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "No detection is right" in text
    assert "not detected at all" in text


def test_videos_are_listed_and_not_drawn(tmp_path: Path) -> None:
    mask = {"size": [4, 4], "counts": [0, 8, 8]}
    one = {
        "id": 1,
        "video_id": 1,
        "category_id": 1,
        "segmentations": [mask],
        "areas": [8],
        "bboxes": [[0, 0, 2, 4]],
        "iscrowd": 0,
    }
    video = {"id": 1, "width": 4, "height": 4, "length": 1, "file_names": ["a/0.jpg"]}
    truth = {"videos": [video], "categories": [{"id": 1, "name": "dog"}], "annotations": [one]}
    record = {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": [mask]}
    for name, document in (("truth", truth), ("results", [record])):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    out = tmp_path / "report.html"
    files = [str(tmp_path / f"{name}.json") for name in ("results", "truth")]
    assert main(["report", files[0], "--truth", files[1], "--protocol", "youtube-vis-2019", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "1 video without a mistake" in text
    assert "Worst images" not in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (375, "dark")])
def test_the_worst_image_is_one_click_away(page: Path, browser: Any, width: int, scheme: Any) -> None:
    with fresh_page(browser, {"width": width, "height": 900}) as (opened, asked):
        opened.emulate_media(color_scheme=scheme)
        opened.goto(page.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        opened.get_by_role("link", name="Worst images").click()
        picture = opened.locator(".sides img").first
        assert picture.evaluate("image => image.complete && image.naturalWidth > 100")
        assert picture.bounding_box()["y"] < 900
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@needs_chromium
def test_pictures_are_chosen_by_category_and_stepped_through_by_keys(page: Path, browser: Any) -> None:
    with fresh_page(browser, {"width": 1440, "height": 900}) as (opened, _):
        opened.goto(page.as_uri())
        assert opened.locator(".sides:visible").count() == 4
        opened.keyboard.press("n")
        opened.keyboard.press("n")
        second = opened.locator(".sides").nth(1)
        assert second.evaluate("figure => figure === document.activeElement")
        opened.keyboard.press("N")
        assert opened.locator(".sides").first.evaluate("figure => figure === document.activeElement")
        name = opened.locator("#table-categories tbody th button").first
        category = name.inner_text()
        name.click()
        shown = opened.locator(".sides:visible")
        assert 0 < shown.count() < 24
        for words in shown.evaluate_all("figures => figures.map(figure => figure.dataset.words)"):
            assert category in words
        cell = opened.locator(".matrix td button").first
        wanted = cell.get_attribute("title").removeprefix("pictures with ").split()
        cell.click()
        assert opened.locator("#worst-images input").input_value().split() == wanted


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(page: Path, browser: Any, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    opened = context.new_page()
    opened.goto(page.as_uri())
    assert faint_texts(opened) == []
    opened.evaluate(
        "document.querySelectorAll('.matrix td[style]').forEach((one) => one.style.setProperty('--share', 1))"
    )
    assert faint_texts(opened) == []
    context.close()
