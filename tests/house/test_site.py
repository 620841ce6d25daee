"""The documentation is a site: every page is in it, every link leads somewhere, and nothing is fetched from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import segjudge
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT

pytestmark = pytest.mark.long
BUILD = ROOT / "docs/site/build.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([sys.executable, str(BUILD), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_docs_is_in_the_navigation(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert pages
    assert [str(page) for page in pages if f'href="./{page}"' not in start] == []


def test_the_reference_describes_every_public_name_and_setting(site: Path) -> None:
    reference = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in segjudge.__all__:
        assert f'id="segjudge.{name}"' in reference
    for name in ("torch.SegmentationMetric", "drop_in.cocoeval.COCOeval", "drop_in.vos_benchmark.benchmark"):
        assert f'id="segjudge.{name}"' in reference
    assert "Wall clock for one submission, in seconds." in reference
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert 'id="score"' in commands
    assert "--protocol PROTOCOL" in commands
    settings = (site / "reference/challenge-config.html").read_text(encoding="utf-8")
    assert all(name in settings for name in ("default_order_by", "max_submissions_per_day", "1 host, 2 owner and host"))


def test_a_link_that_leads_nowhere_fails_the_build(site: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(BUILD.parent))
    try:
        import build
    finally:
        sys.path.remove(str(BUILD.parent))
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="a.html#here">1</a><a href="b.html">2</a><a href="#no">3</a>'
    )
    (tmp_path / "c.html").write_text('<script src="https://elsewhere.example/x.js"></script>')
    assert build.broken_links(tmp_path) == [
        "a.html: b.html is not in the site",
        "a.html: #no is not in the site",
        "c.html: https://elsewhere.example/x.js is not in the site",
    ]


def test_the_notebook_prints_what_stands_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # its cells call us
    monkeypatch.delenv("SEGJUDGE_BUNDLE", raising=False)  # as installed, and not from `run.sh`
    command = [sys.executable, "-W", "ignore", "-c", "import json, notebook; print(json.dumps(notebook.executed()))"]
    done = subprocess.run(command, cwd=BUILD.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = json.loads((ROOT / "docs/tutorials/notebook.ipynb").read_text(encoding="utf-8"))
    assert json.loads(done.stdout)["cells"] == kept["cells"], "run `python docs/site/notebook.py`, and read it"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@needs_chromium
@pytest.mark.parametrize("width", [375, 1440])
def test_the_site_is_searched_in_a_browser_and_asks_nobody_else(address: str, width: int) -> None:
    with chromium() as browser, fresh_page(browser, {"width": width, "height": 900}) as (page, asked):
        page.goto(f"{address}/hosts.html")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Control+k")
        page.locator("input:focus").wait_for()
        page.keyboard.type("jackknife")
        page.locator("a:visible", has_text="leaves out a sequence at a time").first.wait_for()
    assert all(one.startswith((address, "data:", "blob:")) for one in asked)
