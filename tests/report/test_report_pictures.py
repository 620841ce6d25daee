"""The player of segments: the fault and colour of each, over time, and the choice of moments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth, no_pixels
from segjudge.evaluation_script.masks.stack import Size
from segjudge.families import tools_of
from segjudge.families.base.drawing import RankedUnits, UnitPictures, draw_units
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter
from segjudge.families.base.segments import FAULTS, judge_segments
from segjudge.families.truths import TruthSource
from segjudge.report.page import PageOptions
from segjudge.scoring.request import ScoreRequest, prepare
from tests.browser import chromium, needs_chromium
from tests.builders import ROOT, zipped
from tests.families.contract import examples
from tests.published import published
from tests.report.test_report import NARROW, WIDE, open_player, shown, wait_for
from tests.streams import read_stream

#: Protocols whose pages have pictures.
PAINTED = examples("painted")
#: Those whose units ask for something in words.
ASKING = examples("painted questions")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


# ── what is wrong with each segment ─────────────────────────────────────────


def judged(truth: str, prediction: str) -> tuple[str, str]:
    """Judge two rows of pixels, in which each letter and digit is a segment, of one class regardless of case."""
    sides = [sorted(set(row) - {"."}) for row in (truth, prediction)]
    shared = np.array(
        [
            [sum(a == side and b == two for a, b in zip(truth, prediction, strict=True)) for two in sides[1]]
            for side in sides[0]
        ],
        float,
    ).reshape(len(sides[0]), len(sides[1]))
    areas = tuple(
        np.array([row.count(item) for item in side]) for row, side in zip((truth, prediction), sides, strict=True)
    )
    classes = tuple(np.array([item in "xyz" for item in side], int) for side in sides)
    kinds = judge_segments(shared, (areas[0], areas[1]), (classes[0], classes[1]))
    named = [" ".join(FAULTS[kind].name for kind in side.tolist()) for side in kinds[:2]]
    return named[0], named[1]


@pytest.mark.parametrize(
    ("truth", "prediction", "kinds"),
    [
        pytest.param("aaaa..", "aaaa..", ("right", "right"), id="equal"),
        pytest.param("aaaa..", "aaa...", ("right", "right"), id="most-of-it"),
        pytest.param("aaaa..", "......", ("missed", ""), id="missed"),
        pytest.param("......", "..aaaa", ("", "surplus"), id="surplus"),
        pytest.param("aaaa..", "xxxx..", ("wrong class", "wrong class"), id="another-class"),
        pytest.param("aaaa..", "a.....", ("partial", "partial"), id="a-part"),
        pytest.param("aaaabb", "cccccc", ("right merged", "right"), id="swallowed"),
        pytest.param("aabb", "cccc", ("merged merged", "merged"), id="merged"),
        pytest.param("aaaa", "ccdd", ("split", "split split"), id="split"),
        pytest.param("aaaaaa", "ccccdd", ("right", "right split"), id="a-piece-too-much"),
        pytest.param("aaaa....", "....aaaa", ("missed", "surplus"), id="elsewhere"),
    ],
)
def test_a_segment_is_judged_by_what_it_overlaps(truth: str, prediction: str, kinds: tuple[str, str]) -> None:
    assert judged(truth, prediction) == kinds


# ── what a page shows of it ─────────────────────────────────────────────────


class DrawnPainter(UnitPainter):
    """Paints frames that are drawn as text: for each, a picture of the truth and one of the prediction."""

    def __init__(self, videos: Mapping[str, Sequence[tuple[str, str]]], *, dense: bool = False) -> None:
        self.videos, self.dense, self.follows = videos, dense, True

    def close(self) -> None:
        """Do nothing."""

    def class_names(self) -> Sequence[str]:
        return ["small", "large"]

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index in range(len(frames)):
            pixels = [np.array([list(row) for row in side.split()]) for side in self.videos[unit.name][index]]
            letters = [sorted({*side.reshape(-1).tolist()} - {"."}) for side in pixels]
            sides = [
                Side(
                    own, own, np.array([(side == item).sum() for item in own]),
                    np.array([item.isupper() for item in own], int), np.ones(len(own), bool),
                )
                for side, own in zip(pixels, letters, strict=True)
            ]  # fmt: skip
            shared = np.array(
                [[((pixels[0] == letter) & (pixels[1] == two)).sum() for two in letters[1]] for letter in letters[0]],
                float,
            ).reshape(len(letters[0]), len(letters[1]))
            maps = [np.array([[1 + own.index(item) if item != "." else 0 for item in row] for row in side], np.uint16)
                    for side, own in zip(pixels, letters, strict=True)]  # fmt: skip
            excused = np.zeros(len(letters[1]), bool)
            yield SeenFrame(sides[0], sides[1], shared, excused, np.stack(maps) if index in drawn else None)


def draw(videos: Mapping[str, Sequence[tuple[str, str]]], *, dense: bool = False) -> UnitPictures:
    def load(name: str) -> list[TruthFrame]:
        rows = videos[name][0][0].split()
        return [TruthFrame(str(k), (len(rows), len(rows[0])), [], no_pixels) for k in range(len(videos[name]))]

    units = [Unit(name, 1, lambda name=name: load(name)) for name in videos]  # type: ignore[misc]
    truth = UnitTruth("drawn", "drawn", {}, units)
    order = [(index, [0.5 - 0.1 * index]) for index in range(len(units))]
    painters = {"": DrawnPainter(videos, dense=dense)}
    pictures = draw_units(painters, RankedUnits("val", truth, order, "videos"), PageOptions())
    assert pictures is not None
    return pictures


def faults(pictures: UnitPictures, video: str, method: int = 0) -> list[str]:
    """Return the fault of each pixel in a video's frames, as the faults' initials."""
    about, images = read_stream(pictures.player.streams[f"val/{video}/{method}/faults"])
    names = ["".join(FAULTS[fault].name[0] for fault in group) or "." for group in about["groups"]]
    return ["/".join(" ".join(names[label] for label in row) for row in image.tolist()) for image in images]


def test_every_pixel_has_the_colour_of_what_is_wrong_there() -> None:
    pictures = draw({"cat": [("aaaa. bbbbb", "aaa.. .....")], "dog": [("aaaa.", "AAAA.")]})
    assert faults(pictures, "cat") == ["r r r m ./m m m m m"]
    assert faults(pictures, "dog") == ["w w w w ."]


def test_the_costliest_moments_are_listed_first() -> None:
    moments = draw({"cat": [("aaaa.", "aaa..")], "dog": [("aaaa.", "AAAA.")]}).player.values["moments"]
    assert [(moment["number"], moment["cost"]) for moment in moments] == [(0, 0.5), (1, 0.4)]


def test_an_image_whose_masks_all_match_says_how_far_they_do_not() -> None:
    image = {"cat": [("aaaaaaaa..", "..aaaaaaaa")]}
    text = "everything matches: 25 % of the truth is missing, 25 % of the prediction is surplus"
    assert text in str(draw(image).player.values)
    assert "all segments match, but inexactly" in str(draw(image, dense=True).player.values)


def test_where_the_truth_has_no_label_nothing_is_wrong() -> None:
    assert faults(draw({"cat": [("aaa..", "aaabb")]}, dense=True), "cat") == ["r r r . ."]
    assert faults(draw({"cat": [("aaa..", "aaabb")]}), "cat") == ["r r r s s"]


def test_a_track_that_changes_objects_is_swapped_and_a_moment_says_when() -> None:
    frames = [("AA.BB", "AA.BB")] * 6 + [("AA.BB", "BB.AA")] * 2
    pictures = draw({"cat": frames})
    about, _ = read_stream(pictures.player.streams["val/cat/0"])
    rows = {row["name"]: [FAULTS[kind].name for kind in row["kinds"]] for row in about["rows"]}
    assert rows == {name: ["right"] * 6 + ["swapped"] * 2 for name in "AB"}
    moments = pictures.player.values["moments"]
    assert [(moment["kind"], moment["subject"], moment["text"]) for moment in moments] == [  # type: ignore[attr-defined]
        ("swapped", ", A, frames 6 to 7", "has the track of B"),
        ("swapped", ", B, frames 6 to 7", "has the track of A"),
    ]


def test_classes_taken_for_others_are_counted() -> None:
    pictures = draw({"cat": [("aaaa.C", "AAAAb.")]})
    assert pictures.confusions == {(0, 1): 1, (1, -1): 1, (-1, 0): 1}
    assert draw({"cat": [("a.C", "A.C")] * 2}).confusions == {(0, 1): 2, (1, 1): 2}


def test_a_page_can_match_masks_by_another_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = {"cat": [("AAAA.bb.", "CC...dd."), ("AAAA....", "........")]}
    assert "overlaps" not in read_stream(draw(frames).player.streams["val/cat/0"])[0]
    monkeypatch.setattr(DrawnPainter, "threshold", "IoU")
    about, _ = read_stream(draw(frames).player.streams["val/cat/0"])
    assert about["overlaps"] == [[[0, 0, 0.5], [1, 1, 1.0]], []]
    assert about["present"] == [[2, [0, 1]], [1, []]]
    assert about["scores"] == []


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


def test_units_are_named_by_what_they_ask_for() -> None:
    painter = DrawnPainter({})
    assert painter.describe(Unit("7", 1, list, {"text": "the\n red  car"})) == "“the red car” (7)"
    assert painter.describe(Unit("7", 1, list)) == "image 7"
    assert painter.describe(Unit("city-7", 1, list)) == "city-7"
    assert painter.describe(Unit("0007", 20, list)) == "0007"


# ── methods beside each other ───────────────────────────────────────────────


def draw_both(frames: Sequence[tuple[str, str, str]]) -> UnitPictures:
    """Draw a video with a truth and two methods' predictions in each frame; the second method loses more."""
    painters = {
        name: DrawnPainter({"cat": [(frame[0], frame[column]) for frame in frames]})
        for column, name in ((1, "base"), (2, "ours"))
    }
    size = len(frames[0][0].split()), len(frames[0][0].split()[0])
    unit = Unit("cat", 1, lambda: [TruthFrame(str(k), size, [], no_pixels) for k in range(len(frames))])
    truth = UnitTruth("drawn", "drawn", {}, [unit])
    pictures = draw_units(painters, RankedUnits("val", truth, [(0, [0.1, 0.4])], "videos"), PageOptions())
    assert pictures is not None
    return pictures


def test_methods_share_a_truth_and_have_masks_and_faults_of_their_own() -> None:
    pictures = draw_both([("aaaa.", "aaaa.", "....a")])
    assert list(pictures.player.streams) == [f"val/cat{end}" for end in ("/0", "/0/faults", "", "/1", "/1/faults")]
    assert faults(pictures, "cat") == ["r r r r ."]
    assert faults(pictures, "cat", 1) == ["m m m m s"]
    assert pictures.player.values["of"] == "ours"
    (moment,) = pictures.player.values["moments"]  # type: ignore[misc, attr-defined]
    assert (moment["cost"], moment["text"]) == (pytest.approx(0.3), "missed: a; surplus: a")
    (sequence,) = pictures.player.data["sequences"]  # type: ignore[index]
    assert sequence["lost"] == [0.1, 0.4]


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
@pytest.mark.parametrize("name", examples("painted beside"))
def test_two_methods_are_walked_beside_each_other_by_the_same_keys(name: str, browser: Any, tmp_path: Path) -> None:
    protocol, truth = PROTOCOLS[name], str(published(name, tmp_path))
    (split,) = prepare(ScoreRequest("", TruthSource(truth), protocol)).scorers.values()
    methods = [
        f"{method}={write_sample(protocol, split.truth, tmp_path / method, share)}"
        for method, share in (("base", 0.02), ("ours", 0.12))
    ]
    written = tmp_path / "page.html"
    assert main(["compare", *methods, "--truth", truth, "--protocol", name, "--out", str(written)]) == 0
    for size in (WIDE, NARROW):
        with open_player(browser, written.as_uri(), size) as opened:
            assert opened.evaluate("document.documentElement.scrollWidth") == size["width"]
            assert opened.locator(".verdict").inner_text().startswith("base ")
            assert opened.locator("button, th").filter(has_not_text=re.compile(r"\S")).count() == 0
            if size is NARROW:
                assert opened.locator("tbody th").first.bounding_box()["width"] < 60, "places leave room"
            assert opened.locator(".views figure:visible").count() == 2
            base, ours = opened.locator("[data-part=numbers] span").all_inner_texts()
            assert base.startswith("base: ")
            assert ours.startswith("ours: ")
            assert "Every segment matches" in base
            assert "Every segment matches" not in ours
            opened.get_by_role("heading", name=re.compile(r"Worst \w+ of ours")).wait_for()
            opened.wait_for_selector(".film")
            opened.keyboard.press("j")
            assert opened.locator("[data-part=sequence]").evaluate("one => one.selectedIndex") == 1
            opened.keyboard.press("s")
            assert opened.locator(".views figure:visible").count() == 1
            assert opened.locator("[data-part=faces]").inner_text() == "base | ours"
            opened.locator("table th a[data-open]").first.click()
            assert opened.locator("[data-part=sequence]").evaluate("one => one.selectedIndex") == 0


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
