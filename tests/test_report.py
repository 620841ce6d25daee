"""The report's page: whole in one file, closed to everything else, and right in a real browser."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.report.page import ReportPage, Section, rendered

from .browser import chromium, fresh_page, needs_chromium
from .builders import label_zip
from .test_arrays import PREDICTIONS, TRUTHS

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


def test_equal_scores_make_equal_pages(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.html"
    command = ["report", str(files / "predictions.zip"), "--truth", str(files / "truth.zip"), "--layout", "davis2017"]
    assert main([*command, "--out", str(out)]) == 0
    assert out.read_bytes() == (files / "report.html").read_bytes()


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
    table = {"columns": ["sequence", "J"], "rows": [[name, 0.5]]}
    page = ReportPage(name, [Section("tables", "Tables", {"tables": {name: table}}, data={name: name})])
    (tmp_path / "page.html").write_text(rendered(page), encoding="utf-8")
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
