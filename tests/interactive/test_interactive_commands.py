"""`segjudge interactive` as people use it: try a method, look at the results."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from segjudge.cli import main
from tests.browser import chromium, faint_texts, fresh_page, needs_chromium
from tests.data import SEQUENCES
from tests.interactive.test_interactive_wire import ANN, hosting, served

BASELINE = "examples.interactive.baseline:Baseline"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "root"
    assert main(["interactive", "demo", "--out", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def runs(demo: Path) -> dict[str, Path]:
    """Return the reports of the baseline and of the drawn lines, with their steps."""
    return {name: play(demo, name, "3") for name in ("Baseline", "lines")}


def play(demo: Path, name: str, interactions: str) -> Path:
    """Run a method of the examples; return the report, which lies beside its steps."""
    out = demo.parent / f"{name}-{interactions}"
    command = ["interactive", "run", f"examples.interactive.baseline:{name}", "--root", str(demo)]
    assert main([*command, "--out", str(out), "--steps", "--max-nb-interactions", interactions]) == 0
    (report,) = out.glob("result_*.csv")
    return report


def test_a_broken_dataset_is_not_the_methods_fault(demo: Path, tmp_path: Path, capsys: Any) -> None:
    broken = Path(shutil.copytree(demo, tmp_path / "broken"))
    Image.new("L", (9, 9)).save(broken / "Annotations/480p/drift/00003.png")
    command = ["interactive", "run", "examples.interactive.baseline:lines", "--root", str(broken)]
    assert main([*command, "--out", str(tmp_path)]) == 3
    output = capsys.readouterr().err
    assert "00003.png: differs in size" in output
    assert "Traceback" not in output


@pytest.mark.long
def test_a_run_over_the_wire(demo: Path, tmp_path: Path) -> None:
    pictures = str(demo / "JPEGImages/480p")
    with served(hosting(demo)) as address:
        command = ["interactive", "run", BASELINE, "--host", address, "--user-key", ANN, "--images", pictures]
        assert main([*command, "--out", str(tmp_path), "--steps"]) == 0
    (report,) = tmp_path.glob("result_*.csv")
    assert pd.read_csv(report)["j_and_f"].min() > 0.3
    assert main(["interactive", "plot", str(report), "--out", str(tmp_path / "page")]) == 0


@pytest.mark.long
@needs_chromium
def test_the_page_steps_through_interactions(runs: dict[str, Path], tmp_path: Path) -> None:
    named = [f"{name} <b>&={path}" for name, path in runs.items()]
    assert main(["interactive", "plot", *named, "--out", str(tmp_path)]) == 0
    with Image.open(tmp_path / "curves.png") as curves:
        assert curves.width == 1200
    assert "<svg" in (tmp_path / "curves.svg").read_text()

    def colours(page: Any) -> Any:
        return page.locator("[data-part=view]").screenshot()

    def wait_for(page: Any, message: str) -> None:
        page.locator("[data-part=numbers]").filter(has_text=message).wait_for()

    with chromium() as browser, fresh_page(browser, {"width": 900, "height": 1200}) as (page, asked):
        page.goto((tmp_path / "index.html").as_uri())
        wait_for(page, "J&F")
        assert page.locator("tbody th").all_text_contents() == ["Baseline <b>&", "lines <b>&"]
        assert page.locator("[data-part=interactions] button").all_text_contents() == ["1", "2", "3"]
        scribbled = json.loads(next((runs["Baseline"].with_suffix(".steps")).glob("drift-1-01.json")).read_text())
        frame = next(k for k, lines in enumerate(scribbled["scribbles"]) if lines)
        page.locator("[data-part=frame]").fill(str(frame))
        wait_for(page, "line")
        first = colours(page)
        page.locator("[data-part=lines]").uncheck()
        without = colours(page)
        assert first != without
        page.locator("[data-part=masks]").uncheck()
        assert colours(page) != without
        page.locator("h2").first.click()
        page.keyboard.press("ArrowRight")
        assert f"Frame {frame + 1} of 23" in page.locator("[data-part=numbers]").text_content()
        page.keyboard.press("ArrowUp")
        assert page.locator("[data-part=interactions] [aria-pressed=true]").text_content() == "2"
        page.locator("[data-part=run]").select_option("1")
        page.locator("[data-part=sample]").select_option("pair, 1")
        wait_for(page, "J&F")
        assert all(url.startswith("file:") for url in asked)
        assert faint_texts(page) == []
        page.set_viewport_size({"width": 320, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.long
def test_a_report_without_frames_is_drawn(demo: Path, tmp_path: Path) -> None:
    played, report = play(demo, "lines", "1"), tmp_path / "run.csv"
    pd.read_csv(played, index_col=0).drop(columns="frame").to_csv(report)
    shutil.copytree(played.with_suffix(".steps"), report.with_suffix(".steps"))
    assert main(["interactive", "plot", str(report), "--out", str(tmp_path / "page")]) == 0


def real_root(folder: Path) -> Path:
    """Return the four real sequences as a DAVIS root."""
    with zipfile.ZipFile(SEQUENCES / "open_frames.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".jpg"):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(archive.read(name))
    names = sorted(path.name for path in (folder / "JPEGImages/480p").iterdir())
    with zipfile.ZipFile(SEQUENCES / "open_gt2016.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".png") and name.split("/")[-2] in names:
                mask = np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("L")) > 127
                path = folder / "Annotations/480p" / Path(*name.split("/")[-2:])
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(mask.astype(np.uint8)).save(path)
    (folder / "ImageSets/2017").mkdir(parents=True)
    (folder / "ImageSets/2017/val.txt").write_text("".join(f"{name}\n" for name in names))
    return folder
