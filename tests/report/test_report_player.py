"""The report's pages for eyes, hands and paper: contrast, keys alone, small screens, comparing by blink and bar, print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser import faint_texts, needs_chromium
from tests.report.test_report import NARROW, WIDE, browser, compared, files, open_player, wait_for

__all__ = ["browser", "compared", "files"]

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


def picture_of_first(page: Any) -> str:
    return str(page.evaluate("document.querySelectorAll('.first canvas')[2].toDataURL()"))


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


def test_the_foot_of_a_page_names_what_was_scored(files: Path, compared: Path) -> None:
    text = (files / "report.html").read_text(encoding="utf-8")
    (origin,) = re.findall(r'@bottom-left \{ content: "([^"]+)"', text)
    assert re.fullmatch(r"truth [0-9a-f]{12}, results [0-9a-f]{12}", origin)
    assert f"of {origin}. This file" in text
    assert compared.read_text(encoding="utf-8").count(", results ") >= 2
