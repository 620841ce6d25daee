"""Pages are written to files, shown below a notebook's cell, or opened in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.report.browser import ShownPage
from segjudge.system.errors import UsageError


class _Page(ShownPage):
    def page(self, *_: Any, **options: Any) -> str:
        return f'<p title="{options.get("title", "none")}">J&amp;F</p>'


PAGE = '<p title="mine">J&amp;F</p>'


def test_a_page_is_written_to_a_file(tmp_path: Path) -> None:
    _Page().report(tmp_path / "page.html", title="mine")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == PAGE


def test_a_notebook_shows_a_page_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[dict[str, str]] = []
    shell = SimpleNamespace(kernel=1, display_pub=SimpleNamespace(publish=published.append))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    _Page().show(title="mine")
    frame = 'srcdoc="&lt;p title=&quot;mine&quot;&gt;J&amp;amp;F&lt;/p&gt;" width="100%" height="760"'
    assert frame in published[0]["text/html"]
    assert published[0]["text/plain"] == "<page of segjudge>"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_browser_opens_a_page_that_outlives_the_program(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[str] = []

    def open_address(address: str) -> bool:
        addresses.append(address)
        return is_there

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setattr(webbrowser, "open", open_address)
    try:
        if is_there:
            _Page().show(title="mine")
        else:
            with pytest.raises(UsageError, match="no browser was found; open "):
                _Page().show(title="mine")
        assert Path(addresses[0].removeprefix("file://")).read_text(encoding="utf-8") == PAGE
    finally:
        Path(addresses[0].removeprefix("file://")).unlink()
