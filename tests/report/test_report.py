"""The report's page: complete in one file, closed to everything else, and correct in a real browser."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge import score
from segjudge.cli import main
from segjudge.report.page import ReportPage, Section, render_page
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT, label_zip
from tests.scoring.test_arrays import PREDICTIONS, TRUTHS

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 375, "height": 800}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name, videos in (("predictions", PREDICTIONS), ("truth", TRUTHS)):
        (folder / f"{name}.zip").write_bytes(label_zip({video: list(frames) for video, frames in videos.items()}))
    command = ["report", str(folder / "predictions.zip"), "--truth", str(folder / "truth.zip")]
    assert main([*command, "--layout", "davis2017", "--out", str(folder / "report.html")]) == 0
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


def test_the_page_is_one_file_that_lets_nothing_else_in(files: Path) -> None:
    text = (files / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in html.unescape(text)
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)
    assert "http:" not in text
    assert "https:" not in text


@needs_chromium
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_it_opens_from_disk_and_fits(files: Path, browser: Any, size: dict[str, int]) -> None:
    with fresh_page(browser, size) as (page, asked):
        page.goto((files / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@needs_chromium
def test_names_in_a_page_are_text_and_run_nothing(browser: Any, tmp_path: Path) -> None:
    name = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    table = (["sequence", "J"], [[name, 0.5]])
    page = ReportPage(name, [Section("tables", "Tables", {"tables": {name: table}}, data={name: name})])
    (tmp_path / "page.html").write_text(render_page(page), encoding="utf-8")
    with fresh_page(browser, WIDE) as (opened, asked):
        opened.goto((tmp_path / "page.html").as_uri())
        assert opened.title() == name
        assert opened.locator("tbody th").inner_text() == name
        assert opened.evaluate("Object.keys(page.data.tables)[0]") == name
        assert len(asked) == 1, asked  # the page itself


@needs_chromium
def test_tables_sort_and_filter(files: Path, browser: Any) -> None:
    with fresh_page(browser, WIDE) as (page, _):
        page.goto((files / "report.html").as_uri())
        table = page.locator("#tables-sequences")
        names = table.locator("tbody tr:visible th")
        first = names.all_inner_texts()
        table.get_by_role("button", name="J-Mean").click()
        values = [float(text) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
        assert values == sorted(values)
        assert table.locator("th[aria-sort=ascending]").inner_text().startswith("J-Mean")
        page.keyboard.press("/")
        page.keyboard.type(first[0])
        assert names.all_inner_texts() == [first[0]]
        page.locator("input[data-table=tables-sequences]").fill("J-Mean<-1")
        assert names.all_inner_texts() == []


def opened(browser: Any, files: Path, size: dict[str, int] = WIDE) -> Any:
    """Open a report, and return the page once its first frame is drawn."""
    return open_player(browser, (files / "report.html").as_uri(), size)


@contextmanager
def open_player(browser: Any, address: str, size: dict[str, int]) -> Iterator[Any]:
    with fresh_page(browser, size) as (page, _):
        page.goto(address)
        page.wait_for_selector(".player:not([hidden])")
        yield page


def wait_for(page: Any, message: str, row: int = 0) -> None:
    """Wait until a line of the frame's numbers begins like this; scripts given as text may not poll here."""
    line = page.locator("[data-part=numbers] span").nth(row)
    line.filter(has_text=re.compile(rf"^{message}")).wait_for()


def shown(page: Any) -> str:
    return str(page.locator("[data-part=numbers]").inner_text())


def test_the_kinds_on_the_page_sum_to_the_loss_that_it_shows(files: Path) -> None:
    text = (files / "report.html").read_text(encoding="utf-8")
    kept = float(re.search(r'class="big">([\d.]+)', text)[1])  # type: ignore[index]
    shares = [float(share) for share in re.findall(r"<b>([\d.]+)</b></dt>", text)]
    assert len(shares) == 9
    assert sum(shares) == pytest.approx(1 - kept, abs=0.005)  # nine numbers of three decimals


@needs_chromium
def test_the_worst_frame_of_the_worst_sequence_is_there_at_once(files: Path, browser: Any) -> None:
    with opened(browser, files) as page:
        scores = score(files / "predictions.zip", files / "truth.zip", layout="davis2017").reports[0].scores  # type: ignore[attr-defined]
        lost: dict[str, list[float]] = {}
        frames: dict[tuple[str, str], list[float]] = {}
        for item in scores:
            lost.setdefault(item.sequence, []).append(float(((item.j + item.f) / 2).mean()))
            for frame, j, f in zip(item.frames, item.j, item.f):
                frames.setdefault((item.sequence, frame), []).append(1 - (j + f) / 2)
        worst = min(lost, key=lambda name: sum(lost[name]) / len(lost[name]))
        costs = {frame: sum(values) / len(values) for (name, frame), values in frames.items() if name == worst}
        text = shown(page)
        name, frame = re.match(r"(.+), frame (\S+)\. ", text).groups()  # type: ignore[union-attr]
        assert name == worst
        assert costs[frame] == pytest.approx(max(costs.values()), abs=0.002)


@needs_chromium
def test_frames_are_drawn_as_the_masks_are(files: Path, browser: Any) -> None:
    with opened(browser, files) as page:
        for layer, key, videos in (("truth", "t", TRUTHS), ("prediction", "p", PREDICTIONS)):
            page.keyboard.press(key)
            name, frame = re.match(r"(.+), frame (\S+)\. ", shown(page)).groups()  # type: ignore[union-attr]
            labels = videos[name][int(frame)]
            data = page.evaluate("document.querySelector('.views canvas').toDataURL()")
            drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))
            assert drawn.shape == (2 * labels.shape[0], 2 * labels.shape[1], 4), layer
            alpha = drawn[::2, ::2, 3]
            page.keyboard.press("1")
            objects = page.evaluate("document.querySelectorAll('.strips .row').length")
            page.keyboard.press("1")
            assert np.array_equal(alpha > 0, (labels > 0) & (labels <= objects)), layer


@needs_chromium
def test_the_player_is_worked_by_keys_alone(files: Path, browser: Any) -> None:
    with opened(browser, files, NARROW) as page:
        page.keyboard.press("Home")
        first = shown(page)
        page.keyboard.press("ArrowRight")
        assert shown(page) != first
        page.keyboard.press("ArrowLeft")
        assert shown(page) == first
        page.keyboard.press("End")
        assert page.locator("[data-part=frame]").get_attribute("aria-valuetext") == shown(page)
        page.keyboard.press("j")
        wait_for(page, f"(?!{re.escape(first.split(',')[0])},)")
        before = page.locator("[data-part=object]").input_value()
        page.keyboard.press("n")
        page.locator(".strips button[aria-pressed=true]").wait_for()
        assert before == "-1" != page.locator("[data-part=object]").input_value()
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible()
        assert page.locator("#keys dt").count() > 10
        page.keyboard.press("Escape")
        assert not page.locator("#keys").is_visible()


@needs_chromium
def test_without_scripts_the_numbers_are_there(files: Path, browser: Any) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "report.html").as_uri())
    assert page.locator(".big").is_visible()
    assert page.locator(".bar").first.is_visible()
    assert page.locator("#tables-sequences tbody tr").first.is_visible()
    assert not page.locator("#theme").is_visible()
    context.close()


@needs_chromium
def test_dark_mode_follows_the_system_and_can_be_switched(files: Path, browser: Any) -> None:
    context = browser.new_context(viewport=WIDE, color_scheme="dark")
    page = context.new_page()
    page.goto((files / "report.html").as_uri())
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(ground) != dark
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(ground) == dark
    context.close()


@pytest.fixture(scope="module")
def compared(files: Path) -> Path:
    """Return a page on two methods, of which the second omits an object that the first shows."""
    worse = {video: np.where(frames == 1, 0, frames) for video, frames in PREDICTIONS.items()}
    (files / "worse.zip").write_bytes(label_zip({video: list(frames) for video, frames in worse.items()}))
    (files / "data").mkdir()
    pack = [
        "pack", "--layout", "davis2017", "--root", str(files / "truth.zip"), "--out", str(files / "data/packed.zip"),
    ]  # fmt: skip
    assert main(pack) == 0
    methods = [f"{name}={files}/{file}.zip" for name, file in (("good", "predictions"), ("worse", "worse"))]
    command = ["compare", *methods, "--truth", str(files / "data/packed.zip"), "--out", str(files / "compared.html")]
    assert main([*command, "--kinds", "--json", str(files / "compared.json")]) == 0
    return files / "compared.html"


def test_sequences_in_which_the_second_method_loses_come_first(compared: Path) -> None:
    rows = re.findall(
        r"<tr><th scope=\"row\"><a href=\"#frames\"[^>]*>([^<]+)</a></th>(.*?)</tr>", compared.read_text()
    )
    differences = [float(re.findall(r'data-value="([^"]+)"', cells)[3]) for _, cells in rows]
    assert len(rows) == len(TRUTHS)
    assert differences == sorted(differences)
    document = json.loads(compared.with_suffix(".json").read_text())
    assert differences[0] < 0
    assert document["pairs"][0]["difference"] > 0


@needs_chromium
def test_two_methods_are_stepped_through_side_by_side(compared: Path, browser: Any) -> None:
    with open_player(browser, compared.as_uri(), WIDE) as page:
        lines = page.locator("[data-part=numbers] span")
        assert lines.count() == page.locator(".views canvas").count() == 2
        assert [text.split(":")[0] for text in lines.all_inner_texts()] == ["good", "worse"]
        picture = "[...document.querySelectorAll('.views canvas')].map((one) => one.toDataURL())"
        page.keyboard.press("p")
        left, right = page.evaluate(picture)
        assert left != right
        page.get_by_label("Method on the right").select_option("good")
        wait_for(page, "good", 1)
        left, right = page.evaluate(picture)
        assert left == right
        page.keyboard.press("Home")
        first = lines.all_inner_texts()
        page.keyboard.press("ArrowRight")
        assert all(item != inner_text for item, inner_text in zip(first, lines.all_inner_texts()))


def write_report_with_pictures(files: Path, folder: Path) -> None:
    """Write yellow pictures of all frames below a folder, and its report as page.html."""
    for video, frames in TRUTHS.items():
        pictures = folder / "JPEGImages" / video
        pictures.mkdir(parents=True)
        for frame, labels in enumerate(frames):
            Image.new("RGB", labels.shape[::-1], (250, 240, 10)).save(pictures / f"{frame:05d}.jpg")
    command = ["report", str(files / "predictions.zip"), "--truth", str(files / "data/packed.zip")]
    assert main([*command, "--images", str(folder), "--out", str(folder / "page.html")]) == 0


@needs_chromium
def test_masks_lie_over_the_pictures_where_there_are_some(
    files: Path, compared: Path, browser: Any, tmp_path: Path
) -> None:
    write_report_with_pictures(files, tmp_path)
    count = sum(map(len, TRUTHS.values()))
    assert f"Pictures of {count} of {count} frames." in (tmp_path / "page.html").read_text()
    with open_player(browser, (tmp_path / "page.html").as_uri(), WIDE) as page:
        page.wait_for_timeout(200)
        data = page.evaluate("document.querySelector('.views canvas').toDataURL()")
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))
        yellow = np.abs(drawn[..., :3].astype(int) - (250, 240, 10)).max(axis=-1) < 30
        assert yellow.any()
        assert (drawn[..., 3] == 255).all()


@pytest.mark.long
@needs_chromium
def test_a_truth_alone_is_stepped_through_too(files: Path, browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "truth.html"
    assert main(["report", "--truth", str(files / "truth.zip"), "--layout", "davis2017", "--out", str(out)]) == 0
    with open_player(browser, out.as_uri(), NARROW) as page:
        name, frame = re.match(r"(.+), frame (\S+)\.", shown(page)).groups()  # type: ignore[union-attr]
        data = page.evaluate("document.querySelector('.views canvas').toDataURL()")
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))
        labels = TRUTHS[name][int(frame)]
        assert np.array_equal(drawn[::2, ::2, 3] > 0, (labels > 0) & (labels < 255))
        page.keyboard.press("d")  # there is nothing that could differ
        assert page.evaluate("document.querySelector('.views canvas').toDataURL()") == data
        page.keyboard.press("ArrowRight")
        assert shown(page) != f"{name}, frame {frame}."
        assert not page.get_by_role("button", name="Difference").count()


def test_only_the_truth_of_sequences_has_a_page_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = str(ROOT / "annotations/instances-dev.zip")
    assert main(["report", "--truth", truth, "--protocol", "coco", "--out", str(tmp_path / "a.html")]) == 2
    assert "`report --draw FOLDER` draws" in capsys.readouterr().err
