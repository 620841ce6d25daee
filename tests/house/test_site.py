"""The documentation is a site: it contains every page, every link works, and it fetches nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

import segjudge
from segjudge.commands import COMMANDS
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


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BUILD.parent))
    return import_module("build")


def test_a_site_takes_the_place_of_a_site_and_of_nothing_else(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = list[Path]()
    monkeypatch.setattr(builder, "build", lambda out: built.append(out) or [])
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    for arguments in (["--out", "mine"], ["mine"], ["--out=new"], []):
        assert builder.main(arguments) == 0
    assert built == [Path("mine"), Path("mine"), Path("new"), ROOT / "dist/site"]
    (mine / "thesis.txt").write_text("unsaved")
    for arguments, sentence in (
        (["--out", "mine"], "mine is not a site that this command wrote, and would be deleted"),
        (["--out"], "expected one argument"),
        (["--verbose"], "unrecognized arguments: --verbose"),
        (["a", "--out", "b"], "are two folders; name one"),
    ):
        with pytest.raises(SystemExit) as caught:
            builder.main(arguments)
        assert caught.value.code == 2
        assert sentence in capsys.readouterr().err
    assert len(built) == 4


def test_every_page_of_the_docs_is_in_the_navigation(site: Path) -> None:
    links = (site / "overview.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert pages
    assert [str(page) for page in pages if f'href="./{page}"' not in links] == []


def test_the_reference_describes_every_public_name_and_setting(site: Path) -> None:
    reference = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in segjudge.__all__:
        assert f'id="segjudge.{name}"' in reference
    for name in ("torch.SegmentationMetric", "drop_in.cocoeval.COCOeval", "drop_in.vos_benchmark.benchmark"):
        assert f'id="segjudge.{name}"' in reference
    assert "The maximum wall-clock seconds for scoring a submission." in reference
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in commands for name in COMMANDS)
    assert re.search(r"<td><code>--protocol NAME</code></td>\s*<td>the benchmark whose rules score", commands)
    assert 'id="interactive-serve"' in commands
    assert 'id="push-platform-codabench"' in commands
    settings = (site / "reference/challenge-config.html").read_text(encoding="utf-8")
    assert all(name in settings for name in ("default_order_by", "max_submissions_per_day", "1 host, 2 owner and host"))


def test_every_page_has_a_title_of_its_own_a_heading_and_its_neighbours(site: Path) -> None:
    titles: dict[str, str] = {}
    pages = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        title = re.findall(r"<title>(.+?) - Segjudge</title>", text)
        assert len(title) == text.count("<h1") == 1, path
        assert titles.setdefault(title[0], path.name) == path.name, path
        assert "md-footer__link--next" in text or "md-footer__link--prev" in text, path
    assert len(titles) == len(pages)
    hosts = (site / "hosts.html").read_text(encoding="utf-8")
    assert 'aria-label="Previous: ' in hosts
    assert 'aria-label="Next: ' in hosts


def test_a_link_that_leads_nowhere_fails_the_build(builder: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="a.html#here">1</a><a href="b.html">2</a><a href="#no">3</a>'
    )
    (tmp_path / "c.html").write_text('<script src="https://elsewhere.example/x.js"></script>')
    assert builder.broken_links(tmp_path) == [
        "a.html: b.html is not in the site",
        "a.html: #no is not in the site",
        "c.html: https://elsewhere.example/x.js is not in the site",
    ]


def test_the_notebook_prints_what_stands_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    without = [folder for folder in folders if not os.access(os.path.join(folder, "segjudge"), os.X_OK)]
    monkeypatch.setenv("PATH", os.pathsep.join(without))  # as in a kernel that an editor starts by its path
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
            """Log nothing."""

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
        page.locator("a:visible", has_text="Error bars come from a jackknife").first.wait_for()
    assert all(item.startswith((address, "data:", "blob:")) for item in asked)
