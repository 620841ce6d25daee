"""The player of segments: the fault and colour of each, over time, and the choice of moments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from tests.browser import chromium, needs_chromium
from tests.builders import ROOT, zipped
from tests.families.contract import examples
from tests.published import published
from tests.report.test_report import NARROW, WIDE, open_player, shown, wait_for

#: Protocols whose pages have pictures.
PAINTED = examples("painted")
#: Those whose units ask for something in words.
ASKING = examples("painted questions")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


# ── what a page shows of it ─────────────────────────────────────────────────


@pytest.mark.long
@needs_chromium
def test_sliders_match_by_another_overlap_and_drop_low_scores(browser: Any, tmp_path: Path) -> None:
    page_path = tmp_path / "page.html"
    command = ["report", "examples/instances-dev/coarse.json", "--truth", "annotations/instances-dev.zip"]
    assert main([*(str(ROOT / part) if "/" in part else part for part in command), "--protocol", "places2017",
                 "--out", str(page_path)]) == 0  # fmt: skip
    with open_player(browser, page_path.as_uri(), WIDE) as page:
        matched, counts = page.locator("[data-part=matched]"), []
        assert matched.inner_text() == ""
        for overlap in ("0.1", "0.5", "0.9"):
            page.locator("[data-part=overlap]").fill(overlap)
            text = matched.inner_text()
            assert text.startswith(f"From IoU {float(overlap):.2f}: ")
            counts.append([int(number) for number in re.findall(r"(\d+) (?:of|surplus)", text)])
        assert sorted(counts, reverse=True) == counts, "fewer match from a larger overlap"
        assert {found + surplus for found, surplus in counts} == {sum(counts[0])}
        slider = page.locator("[data-part=score]")
        slider.fill(slider.get_attribute("max"))
        assert "and score" in matched.inner_text()
        page.locator("[data-part=scored]").click()
        assert matched.inner_text() == ""


# ── pages of families ───────────────────────────────────────────────────────


def write_sample(protocol: Any, truth: Any, folder: Path, share: float) -> Path:
    """Write a submission that is the truth, moved by a share of the width."""
    members = dict(tools_of(protocol.family).make_sample([truth], protocol, share))
    sample = folder / ("sample.zip" if len(members) > 1 else next(iter(members)))
    sample.parent.mkdir(exist_ok=True)
    sample.write_bytes(zipped(members) if len(members) > 1 else next(iter(members.values())))
    return sample


@pytest.fixture(scope="module", params=PAINTED)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """Return the protocol, and the pages of a sample whose masks were moved, and of its truth alone."""
    protocol, folder = PROTOCOLS[request.param], tmp_path_factory.mktemp(request.param)
    truth = str(published(request.param, folder))
    (split,) = prepare(ScoreRequest("", TruthSource(truth), protocol)).scorers.values()
    sample = write_sample(protocol, split.truth, folder, 0.12)
    options = ["--truth", truth, "--protocol", request.param]
    assert main(["report", str(sample), *options, "--out", str(folder / "page.html")]) == 0
    assert main(["report", *options, "--out", str(folder / "truth.html")]) == 0
    return request.param, folder / "page.html", folder / "truth.html"


def test_pages_have_the_masks_of_both_sides_and_what_is_wrong(page: tuple[str, Path, Path]) -> None:
    text = page[1].read_text(encoding="utf-8")
    assert 'class="player"' in text
    assert re.search(r'data-stream="[^"#]+/0/faults"', text)
    assert 'class="moments"' in text
    if page[0] in ASKING:
        (asked,) = re.findall(r'class="verdict".*Worst: <a href[^>]*>“([^”]+)” \(', text)
        assert text.count(asked) > 3, "the choice, moments, table"
    truth = page[2].read_text(encoding="utf-8")
    assert "data-stream=" in truth
    assert 'class="moments"' not in truth


@pytest.mark.long
@needs_chromium
def test_a_page_is_walked_by_keys_and_its_moments_by_choice(page: tuple[str, Path, Path], browser: Any) -> None:
    for size in (WIDE, NARROW):
        with open_player(browser, page[1].as_uri(), size) as opened:
            assert opened.evaluate("document.documentElement.scrollWidth") == size["width"]
            opened.wait_for_selector(".film")
            before = shown(opened)
            opened.keyboard.press("n")
            opened.keyboard.press("n")
            assert opened.locator("[data-part=numbers]").inner_text()
            for key, layer in (("t", "Truth"), ("p", "Prediction"), ("d", "Difference")):
                opened.keyboard.press(key)
                assert opened.get_by_role("button", name=layer).get_attribute("aria-pressed") == "true"
            message = opened.locator(".chooser-of-moments [data-word]")
            if message.count():
                message.first.click()
                count = int(message.first.locator("small").inner_text())
                assert opened.locator("[data-part=chosen]").inner_text().startswith(f"{count} of ")
                assert opened.locator("ol.moments li").count() == min(count, 60)
                word = message.first.get_attribute("data-word")
                message.first.click()
                opened.locator(".chooser-of-moments input").fill(f"{word}, ")
                chosen = opened.locator("[data-part=chosen]").inner_text()
                assert int(chosen.partition(" ")[0]) >= count, "typed words choose by kind and size too"
            assert before


@pytest.mark.long
@needs_chromium
def test_a_link_leads_to_the_frame_it_was_copied_from(page: tuple[str, Path, Path], browser: Any) -> None:
    with open_player(browser, page[1].as_uri(), WIDE) as opened:
        first = re.escape(shown(opened).split(",")[0])
        opened.keyboard.press("j")
        wait_for(opened, f"(?!{first},)")  # the next sequence is unpacked first
        opened.keyboard.press("t")
        opened.keyboard.press("End")
        text = shown(opened)
        opened.keyboard.press("l")
        opened.locator("[data-part=notice]").filter(has_text="link").or_(
            opened.locator("[data-part=notice]").filter(has_text="address")
        ).wait_for()
        address = opened.url
    assert "layer=truth" in address
    with open_player(browser, address, WIDE) as opened:
        wait_for(opened, re.escape(text.split(".")[0]))
        assert shown(opened) == text
        assert opened.get_by_role("button", name="Truth").get_attribute("aria-pressed") == "true"


@pytest.mark.long
@needs_chromium
def test_a_frame_is_saved_as_a_picture(page: tuple[str, Path, Path], browser: Any, tmp_path: Path) -> None:
    with open_player(browser, page[1].as_uri(), WIDE) as opened:
        with opened.expect_download() as waiting:
            opened.get_by_role("button", name="Save PNG").click()
        waiting.value.save_as(tmp_path / "saved.png")
        canvas = opened.evaluate("(({ width, height }) => [width, height])(document.querySelector('.views canvas'))")
    with Image.open(tmp_path / "saved.png") as saved:
        assert saved.size == (canvas[0], canvas[1] + 28)
        assert len(np.unique(np.asarray(saved.convert("L")))) > 2
