"""The report's pages for eyes, hands and paper: contrast, keys alone, small screens, comparing by blink and bar, print."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families.base.reports import Row
from segjudge.report.page import ReportPage, Section, make_kinds, make_list, render_page
from tests.browser import faint_texts, fresh_page, needs_chromium
from tests.builders import label_zip
from tests.report.test_report import (
    NARROW,
    WIDE,
    browser,
    compared,
    files,
    open_player,
    shown,
    wait_for,
    write_report_with_pictures,
)
from tests.scoring.test_arrays import TRUTHS

__all__ = ["browser", "compared", "files"]
TINY = {"width": 320, "height": 640}

pytestmark = [needs_chromium, pytest.mark.long]


def picture(page: Any, view: int = 0) -> str:
    return str(page.evaluate(f"document.querySelectorAll('.views canvas')[{view}].toDataURL()"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(files: Path, compared: Path, browser: Any, scheme: str) -> None:
    context = browser.new_context(viewport=WIDE, color_scheme=scheme)
    page = context.new_page()
    for address in ((files / "report.html").as_uri(), compared.as_uri()):
        page.goto(address)
        page.wait_for_selector(".film")
        page.keyboard.press("?")
        assert faint_texts(page) == []
        assert len(faint_texts(page, 22)) > 50, "it looks at the texts"
    context.close()


def test_the_smallest_phones_scroll_in_boxes_alone(files: Path, compared: Path, browser: Any) -> None:
    for address in ((files / "report.html").as_uri(), compared.as_uri()):
        with open_player(browser, address, TINY) as page:
            page.keyboard.press("s")
            page.wait_for_selector(".film")
            assert page.evaluate("document.documentElement.scrollWidth") == TINY["width"]


@pytest.mark.usefixtures("compared")
def test_long_names_of_methods_fit_the_smallest_phones(files: Path, browser: Any, tmp_path: Path) -> None:
    name = f"{'a method that has a long name ' * 2}{'x' * 60}"
    assert len(name) == 120
    methods = [f"{title}={files}/{file}.zip" for title, file in ((name, "predictions"), ("worse", "worse"))]
    truth = ["--truth", str(files / "data/packed.zip")]
    assert main(["compare", *methods, *truth, "--out", str(tmp_path / "compared.html")]) == 0
    assert main(["report", str(files / "worse.zip"), *truth, "--title", name, "--out", str(tmp_path / "one.html")]) == 0
    table = tmp_path / "scores.csv"
    table.write_text("algorithm,case,value\n" + "".join(f"{row},c{k},{k}\n" for k in range(3) for row in (name, "b")))
    assert main(["rank", str(table), "--draws", "10", "--out", str(tmp_path / "ranked.html")]) == 0
    for page in ("compared", "one", "ranked"):
        with fresh_page(browser, TINY) as (opened, _):
            opened.goto((tmp_path / f"{page}.html").as_uri())
            assert name.rsplit(maxsplit=1)[-1] in opened.inner_text("main") + opened.inner_text(".top"), page
            assert opened.evaluate("document.documentElement.scrollWidth") == TINY["width"], page


def test_typed_words_choose_an_object_a_kind_and_a_size(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        page.wait_for_selector(".film")
        texts = page.locator("ol.moments li").all_inner_texts()
        field = page.locator(".chooser-of-moments input")

        def typed(text: str) -> list[str]:
            field.fill(text)
            return [str(one) for one in page.locator("ol.moments li").all_inner_texts()]

        first = [text for text in texts if "object 1," in text]
        assert 0 < len(first) < len(texts)
        assert {*first} <= {*typed("object 1")}
        assert all("object 1," in text for text in typed("Object  1")), "a number is a whole one"
        group = page.locator(".chooser-of-moments [data-word]").first
        word, count = group.get_attribute("data-word"), int(group.locator("small").inner_text())
        assert len(typed(word[:4])) >= count, "the beginning of a word is enough"
        assert len(typed(f"{word}, object 1")) == len([text for text in typed(word) if "object 1," in text])
        assert typed("(nothing like this*") == []


def test_a_held_key_shows_the_other_layer(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        page.keyboard.press("t")
        truth = picture(page)
        page.keyboard.press("p")
        prediction = picture(page)
        assert truth != prediction
        page.keyboard.down("b")
        assert picture(page) == truth
        page.keyboard.up("b")
        assert picture(page) == prediction
        button = page.get_by_role("button", name="Blink")
        button.focus()
        page.keyboard.down("Enter")
        assert picture(page) == truth
        page.keyboard.up("Enter")
        assert picture(page) == prediction


def test_a_bar_lies_between_two_layers(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        page.keyboard.press("t")
        truth = picture(page)
        page.keyboard.press("p")
        prediction = picture(page)
        page.keyboard.press("s")
        between = picture(page)
        assert len({truth, prediction, between}) == 3
        bar = page.locator("[data-part=bar]")
        assert "the truth to the left of 50 %, the prediction" in bar.get_attribute("aria-valuetext")
        assert page.locator("[data-part=faces]").inner_text() == "the truth | the prediction"
        page.keyboard.press("]")
        assert bar.input_value() == "55"
        page.locator(".views canvas").scroll_into_view_if_needed()
        box = page.locator(".views canvas").bounding_box()
        page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 20)
        page.mouse.up()
        assert bar.input_value() == "30"
        page.keyboard.press("s")
        assert picture(page) == prediction
        assert not bar.is_visible()


def test_two_methods_blink_and_share_a_picture(compared: Path, browser: Any) -> None:
    with open_player(browser, compared.as_uri(), WIDE) as page:
        page.keyboard.press("p")
        left, right = picture(page), picture(page, 1)
        page.keyboard.down("b")
        assert (picture(page), picture(page, 1)) == (right, left)
        page.keyboard.up("b")
        page.keyboard.press("s")
        assert page.locator(".views canvas:visible").count() == 1
        assert "good to the left" in page.locator("[data-part=bar]").get_attribute("aria-valuetext")


def test_keys_work_while_a_slider_has_the_focus(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        worst = shown(page)
        page.locator("[data-part=frame]").focus()
        page.keyboard.press("Home")
        first = shown(page)
        page.keyboard.press("ArrowRight")
        assert len({worst, first, shown(page)}) == 3
        page.keyboard.press("w")
        assert shown(page) == worst


def test_every_key_is_listed_and_every_button_has_a_key_or_a_name(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        page.keyboard.press("?")
        listed = set(page.locator("#keys kbd").all_inner_texts())
        assert {
            "ArrowLeft",
            "Home",
            "w",
            "m",
            "n",
            "N",
            "j",
            "k",
            "t",
            "p",
            "d",
            "b",
            "s",
            "space",
            "1",
            "/",
            "?",
        } <= listed
        assert {*page.evaluate("page.keys.flatMap((one) => one.names)")} - {" "} <= listed
        page.keyboard.press("Escape")
        names = page.evaluate("[...document.querySelectorAll('button')].map((one) => one.ariaLabel ?? one.textContent)")
        assert all(name.strip() for name in names[:20])


def test_bounds_hold_for_columns_of_any_name(browser: Any, tmp_path: Path) -> None:
    rows = [["a b", 0.1, 7.0], ["b", 0.7, -2.0], ["c", 0.7, None]]
    tables = {"rows": (["name", "mixed up", "B − A (95 %)"], rows)}
    page = ReportPage("Bounds", [Section("tables", "Tables", {"tables": tables})])
    (tmp_path / "page.html").write_text(render_page(page), encoding="utf-8")
    with fresh_page(browser, WIDE) as (opened, _):
        opened.goto((tmp_path / "page.html").as_uri())
        field, names = opened.locator("input[data-table]"), opened.locator("tbody tr:visible th")
        for text, left in (
            ("b", ["a b", "b"]),
            ("mixed up>0.5", ["b", "c"]),
            ("B − A (95 %)<0", ["b"]),
            ("Mixed Up<0.5 B − A (95 %)>-1 b", ["a b"]),
            ("mixed up>0.5 mixed up<0.6", []),
        ):
            field.fill(text)
            assert names.all_inner_texts() == left, text


def test_the_skip_link_leads_past_the_navigation(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        page.keyboard.press("Tab")
        assert page.locator(".skip").evaluate("(one) => one === document.activeElement")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("seed", range(2))
def test_no_sequence_of_keys_breaks_a_page(files: Path, compared: Path, browser: Any, seed: int) -> None:
    """Keys may come from the first moment on, while the page still unpacks its masks."""
    keys = [
        "ArrowLeft",
        "ArrowRight",
        "Home",
        "End",
        "Tab",
        "Enter",
        "Escape",
        "Space",
        "Shift+ArrowRight",
        *"wmdtpbsnNjk129+-0[]?/",
    ]
    draw = random.Random(seed)
    for address in ((files / "report.html").as_uri(), compared.as_uri()):
        with fresh_page(browser, (WIDE, NARROW)[seed]) as (page, _):
            page.goto(address)
            for _ in range(100):
                page.keyboard.press(draw.choice(keys))
            page.keyboard.press("Escape")
            page.locator("[data-part=numbers] span").first.wait_for()


def test_worst_moments_are_filmstrips_that_open_the_player(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), NARROW) as page:
        moment = page.locator("a[data-moment]").last
        moment.locator("canvas").nth(1).wait_for()
        label = moment.locator("canvas").nth(1).get_attribute("aria-label")
        name, frame = re.match(r"(.+), frame (\S+)\. ", label).groups()  # type: ignore[union-attr]
        page.keyboard.press("Home")
        moment.click()
        wait_for(page, re.escape(f"{name}, frame {frame}."))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_first_screen_has_the_verdict_the_worst_moment_and_the_causes(
    files: Path, browser: Any, size: dict[str, int]
) -> None:
    with open_player(browser, (files / "report.html").as_uri(), size) as page:
        first = page.locator("section.verdict")
        assert first.locator(".first canvas").count() == 3
        assert first.locator(".faces span").all_inner_texts() == ["truth", "prediction", "difference"]
        causes = first.locator(".causes").bounding_box()
        assert causes["y"] + causes["height"] <= size["height"], "numbers follow"
        page.keyboard.press("Home")
        label = first.locator("canvas").first.get_attribute("aria-label")
        first.locator("a[data-moment]").click()
        wait_for(page, re.escape(label.removeprefix("truth: ").split(".")[0]))


def test_the_worst_moment_plays_and_stands_still_where_less_motion_is_asked_for(files: Path, browser: Any) -> None:
    for motion, says in (("no-preference", "Pause"), ("reduce", "Play")):
        context = browser.new_context(viewport=WIDE, reduced_motion=motion)
        page = context.new_page()
        page.goto((files / "report.html").as_uri())
        button = page.locator(".first [data-do=run]")
        before = picture_of_first(page)
        assert button.inner_text() == says
        if says == "Play":
            button.click()
            assert button.inner_text() == "Pause"
        changed = f"document.querySelectorAll('.first canvas')[2].toDataURL() !== {before!r}"
        page.locator(".first").evaluate(
            f"() => new Promise((done) => {{ const look = () => {changed} ? done() : setTimeout(look, 50); look(); }})"
        )
        button.click()
        assert button.inner_text() == "Play"
        context.close()


def test_pictures_of_the_worst_moment_follow_an_object_through_the_frame(browser: Any, tmp_path: Path) -> None:
    truth = np.zeros((12, 48, 160), np.uint8)
    for frame, shown_there in enumerate(truth):
        shown_there[20:28, 4 + 12 * frame : 12 + 12 * frame] = 1
    prediction = truth.copy()
    prediction[6, 22:] = 0
    for name, frames in (("truth", truth), ("prediction", prediction)):
        (tmp_path / f"{name}.zip").write_bytes(label_zip({"cat": list(frames)}))
    command = ["report", str(tmp_path / "prediction.zip"), "--truth", str(tmp_path / "truth.zip")]
    assert main([*command, "--layout", "davis2017", "--out", str(tmp_path / "report.html")]) == 0
    copy = (
        "const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });"
        "const pen = copy.getContext('2d', { willReadFrequently: true }); pen.drawImage(canvas, 0, 0);"
        "const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);"
    )
    colours = f"(canvas) => {{ {copy} return new Set(new Uint32Array(data.buffer)).size; }}"
    with open_player(browser, (tmp_path / "report.html").as_uri(), WIDE) as page:
        least, pictures = page.locator(".first canvas").first.evaluate(
            f"""(canvas) => new Promise((done) => {{
                const counts = [], pictures = new Set();
                const look = () => {{
                    counts.push(({colours})(canvas));
                    pictures.add(canvas.toDataURL());
                    if (counts.length < 60) setTimeout(look, 50); else done([Math.min(...counts), pictures.size]);
                }};
                look();
            }})"""
        )
        assert pictures > 1, "it plays"
        assert least > 1, "the object is in sight in each frame"
        strip = page.locator("ol.moments li .film").first.locator("canvas")
        assert [strip.nth(place).evaluate(colours) > 1 for place in range(strip.count())] == [True] * 3


def picture_of_first(page: Any) -> str:
    return str(page.evaluate("document.querySelectorAll('.first canvas')[2].toDataURL()"))


def test_a_page_counts_as_loaded_once_its_pictures_can_be_printed(files: Path, compared: Path, browser: Any) -> None:
    for address in ((files / "report.html").as_uri(), compared.as_uri()):
        with fresh_page(browser, WIDE) as (page, _):
            page.goto(address, wait_until="load")
            assert page.evaluate("document.documentElement.dataset.films") == "ready"
            assert page.locator("iframe").count() == 0


def test_strips_have_a_pattern_for_each_kind_and_hatch_absence(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), WIDE) as page:
        fills = set(
            page.evaluate("[...document.querySelectorAll('.strip .area')].map((one) => one.getAttribute('fill'))")
        )
        assert fills
        for fill in fills:
            assert page.locator(fill.removeprefix("url(").removesuffix(")")).count() == 1


def test_on_paper_moments_stand_in_for_the_player(files: Path, browser: Any) -> None:
    with open_player(browser, (files / "report.html").as_uri(), {"width": 1040, "height": 1400}) as page:
        page.locator(".film").last.wait_for()
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert not page.locator(".player").is_visible()
        assert not page.get_by_role("button", name="Swipe").is_visible()
        assert page.locator(".film canvas").first.is_visible()
        assert page.locator("details:not([open])").count() == 0
        paper = page.pdf(format="A4", print_background=True, prefer_css_page_size=True)
        assert paper.count(b"/Type /Page\n") >= 2


def test_on_a_phone_a_kind_has_its_colour_beside_its_name_and_a_date_one_line(browser: Any, tmp_path: Path) -> None:
    kinds: list[Row] = [{"kind": "surplus", "about": "", "cost": 0.25}, {"kind": "missed", "about": "", "cost": 0.1}]
    rows = {"changes": (["name", "change", "submitted"], [["a", -0.25, "2026-11-22"]])}
    sections = [make_kinds("Kinds", kinds, ""), Section("tables", "Tables", {"tables": rows})]
    (tmp_path / "page.html").write_text(render_page(ReportPage("Kinds", sections)), encoding="utf-8")
    for size, is_narrow in ((TINY, True), (WIDE, False)):
        with fresh_page(browser, size) as (page, _):
            page.goto((tmp_path / "page.html").as_uri())
            assert page.locator(".swatch.narrow.extra").is_visible() == is_narrow
            assert page.locator(".kinds .bar").first.is_visible() != is_narrow
            assert page.locator("#tables-changes td.number").inner_text() == "−0.250"  # as bars have it
            assert page.get_by_role("cell", name="2026-11-22").evaluate("(one) => one.clientHeight") < 40


@pytest.mark.parametrize(("columns", "wide"), [(5, 0), (12, 1)])
def test_on_paper_wide_tables_alone_have_a_page_that_lies(
    columns: int, wide: int, browser: Any, tmp_path: Path
) -> None:
    tables = {"rows": ([f"c{column}" for column in range(columns)], [["a", *([0.5] * (columns - 1))]])}
    page = ReportPage("Paper", [make_list("Cases", [], "All."), Section("tables", "Tables", {"tables": tables})])
    (tmp_path / "page.html").write_text(render_page(page), encoding="utf-8")
    with fresh_page(browser, WIDE) as (opened, _):
        opened.goto((tmp_path / "page.html").as_uri())
        paper = opened.pdf(format="A4", prefer_css_page_size=True)
    boxes = [
        (float(width), float(height)) for width, height in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    ]
    assert sum(width > height for width, height in boxes) == wide
    assert boxes


def test_the_foot_of_a_page_names_what_was_scored(files: Path, compared: Path) -> None:
    text = (files / "report.html").read_text(encoding="utf-8")
    (origin,) = re.findall(r'@bottom-left \{ content: "([^"]+)"', text)
    assert re.fullmatch(r"truth [0-9a-f]{12}, results [0-9a-f]{12}", origin)
    assert f"of {origin}. This file" in text
    assert compared.read_text(encoding="utf-8").count(", results ") >= 2


def test_tables_have_a_poster_where_pictures_are_given(files: Path, compared: Path, tmp_path: Path) -> None:
    write_report_with_pictures(files, tmp_path)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count('<img class="poster" alt="frame 0') == len(TRUTHS)
    assert 'class="poster"' not in (files / "report.html").read_text(encoding="utf-8")
