"""`segjudge interactive` as people use it: try a method, look at what came of it."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from segjudge.cli import main
from segjudge.interactive import DavisInteractiveSession
from segjudge.interactive.baseline import Baseline, lines
from segjudge.interactive.dataset import Davis
from segjudge.interactive.other_datasets import DrawnScribbles
from segjudge.interactive.runs import Frames, run
from tests.browser import chromium, faint_texts, fresh_page, needs_chromium
from tests.data import SEQUENCES
from tests.interactive.tale import Clock
from tests.interactive.test_interactive_wire import ANN, hosting, served
from tests.shared import needs_shared

BASELINE = "segjudge.interactive.baseline:Baseline"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "root"
    assert main(["interactive", "demo", "--out", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def runs(demo: Path) -> dict[str, Path]:
    """Reports of the baseline and of the drawn lines, with their steps."""
    found = {}
    for name in ("Baseline", "lines"):
        out = demo.parent / name
        command = ["interactive", "run", f"segjudge.interactive.baseline:{name}", "--root", str(demo)]
        assert main([*command, "--out", str(out), "--steps", "--max-nb-interactions", "3"]) == 0
        (found[name],) = out.glob("result_*.csv")
    return found


def test_a_method_is_run_and_its_numbers_are_shown(demo: Path, tmp_path: Path, capsys: Any) -> None:
    command = [
        "interactive",
        "run",
        "segjudge.interactive.baseline:lines",
        "--root",
        str(demo),
        "--out",
        str(tmp_path),
    ]
    assert main([*command, "--max-nb-interactions", "2"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"interaction +seconds +J&F\n1 .*\n2 .*\nAUC 0\.\d{4}, J&F at 60 s 0\.\d{4}\nReport: ", output)
    (report,) = tmp_path.glob("result_*.csv")
    summary = json.loads(report.with_suffix(".summary.json").read_text())
    assert f"AUC {summary['auc']:.4f}" in output
    assert len(pd.read_csv(report)) == (24 * 1 + 24 * 2) * 2
    assert not list(tmp_path.glob("*.steps")), "only when they are asked for"


@pytest.mark.long
def test_two_objects_are_told_apart_by_the_baseline(runs: dict[str, Path]) -> None:
    scores = {}
    for name, path in runs.items():
        report = pd.read_csv(path)
        pair = report[(report["sequence"] == "pair") & (report["interaction"] == 3)]
        scores[name] = pair.groupby("object_id")["j_and_f"].mean()
    assert (scores["Baseline"] > scores["lines"] + 0.15).all()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with methods of a participant's."""
    (tmp_path / "methods.py").write_text(
        "import numpy as np\n"
        "def breaks(**told): raise KeyError('weights')\n"
        "class Broken:\n"
        "    def __init__(self): raise RuntimeError('no weights')\n"
        "def small(*, images, **told): return np.zeros((len(images), 2, 2))\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (["methods:breaks"], 1, r"methods:breaks: failed at drift, scribbles 1, interaction 1 \(KeyError: 'weights'\)"),
        (["methods:small"], 1, r"failed at drift.*must have the same shape"),
        (["methods:nothing"], 2, "is not a MODULE:FUNCTION that can be imported here"),
        (["methods:Broken"], 1, "methods:Broken: cannot be made .RuntimeError: no weights"),
        (["methods:small", "--max-time", "nan"], 2, ""),
        (["nowhere:f"], 2, "No module named 'nowhere'"),
        (["methods:breaks", "--subset", "test"], 3, r"must be a valid subset: \['val'\]"),
    ],
    ids=lambda output: output[0] if isinstance(output, list) else None,
)
def test_a_methods_mistakes(here: Path, demo: Path, words: list[str], code: int, output: str, capsys: Any) -> None:
    try:
        found = main(["interactive", "run", *words, "--root", str(demo), "--out", str(here / "out")])
    except SystemExit as error:
        found = int(str(error.code))
    assert found == code
    assert re.search(output, capsys.readouterr().err)


def test_a_broken_dataset_is_not_the_methods_fault(demo: Path, tmp_path: Path, capsys: Any) -> None:
    broken = Path(shutil.copytree(demo, tmp_path / "broken"))
    Image.new("L", (9, 9)).save(broken / "Annotations/480p/drift/00003.png")
    command = ["interactive", "run", "segjudge.interactive.baseline:lines", "--root", str(broken)]
    assert main([*command, "--out", str(tmp_path)]) == 3
    output = capsys.readouterr().err
    assert "00003.png: has another size" in output
    assert "Traceback" not in output


def test_a_defect_of_ours_is_not_taken_for_the_hosts_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(_seed: int) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr("segjudge.interactive.other_datasets.make_demo_scenes", fail)
    assert main(["interactive", "demo", "--out", str(tmp_path / "demo")]) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("text", [b"ann \xff", b"ann"], ids=["no UTF-8", "no key"])
def test_a_wrong_list_of_users_is_the_hosts_to_mend(demo: Path, tmp_path: Path, text: bytes, capsys: Any) -> None:
    (tmp_path / "users").write_bytes(text)
    assert main(["interactive", "serve", "--root", str(demo), "--users", str(tmp_path / "users"), "--port", "0"]) == 3
    output = capsys.readouterr().err
    assert f"{tmp_path / 'users'}:" in output
    assert "Traceback" not in output


def test_a_run_without_a_dataset_is_asked_for_one(capsys: Any) -> None:
    for words, output in (
        ([], "give --root, or --host"),
        (["--host", "http://127.0.0.1:9"], "--host needs --user-key, or the variable SEGJUDGE_USER_KEY"),
        (["--root", "x", "--max-nb-interactions", "0"], "would never end"),
    ):
        assert main(["interactive", "run", BASELINE, *words]) == 2
        assert output in capsys.readouterr().err


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

    def wait_for(page: Any, words: str) -> None:
        page.locator("[data-part=numbers]").filter(has_text=words).wait_for()

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


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda report: report.with_suffix(".summary.json").write_text("[]"), "is not a summary"),
        (lambda report: report.with_suffix(".summary.json").write_text('{"auc": NaN}'), "is not a summary"),
        (lambda report: report.write_text(report.read_text().replace(",1,1,1,", ",1,10000000,1,")), "from 1 to 16"),
        (lambda report: report.write_text(report.read_text().replace(",1,1,1,0,", ",1,1,1,0,x")), "is not a report"),
        (lambda report: next(report.with_suffix(".steps").iterdir()).write_text("{}"), "is not an interaction"),
    ],
    ids=["list", "nan", "many", "words", "step"],
)
def test_a_broken_run_is_said_in_a_sentence(
    runs: dict[str, Path], tmp_path: Path, spoil: Any, words: str, capsys: Any
) -> None:
    report = tmp_path / "run.csv"
    for ending in (".csv", ".summary.json"):
        shutil.copy(runs["lines"].with_suffix(ending), report.with_suffix(ending))
    shutil.copytree(runs["lines"].with_suffix(".steps"), report.with_suffix(".steps"))
    spoil(report)
    assert main(["interactive", "plot", str(report), "--out", str(tmp_path / "page")]) == 3
    output = capsys.readouterr().err
    assert re.search(words, output)
    assert "Traceback" not in output


def test_names_are_names(runs: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    named = [f"{name}={runs['lines']}" for name in ("@ROWS@", "a$\\frac{$", "_x")]
    assert main(["interactive", "plot", *named, "--out", str(tmp_path)]) == 0
    assert "own time" not in capsys.readouterr().err
    assert main(["interactive", "plot", *map(str, runs.values()), "--out", str(tmp_path / "two")]) == 0
    assert "Each area is over its run's own time" in capsys.readouterr().err
    page = (tmp_path / "index.html").read_text()
    assert '"@ROWS@"' in page
    assert "_x" in (tmp_path / "curves.svg").read_text()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "\x00\x01"], ids=["empty", "other", "binary"])
def test_what_is_no_report_is_said(tmp_path: Path, text: str, capsys: Any) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert main(["interactive", "plot", str(tmp_path / "r.csv"), "--out", str(tmp_path / "page")]) == 3
    assert "r.csv: is not a report of an interactive session" in capsys.readouterr().err


def test_a_curve_without_its_summary_counts_every_sample_of_a_named_dataset(
    demo: Path, runs: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    """Half of the samples came too late: their rows are missing from the report."""
    report = pd.read_csv(runs["lines"], index_col=0)
    report[report["sequence"] == "drift"].to_csv(tmp_path / "half.csv")
    (objects,) = {len(report[report["sequence"] == name]["object_id"].unique()) for name in ("pair",)}
    found = {}
    for name, more in (("alone", []), ("named", ["--root", str(demo)])):
        assert main(["interactive", "plot", str(tmp_path / "half.csv"), "--out", str(tmp_path / name), *more]) == 0
        output = capsys.readouterr()
        assert ("samples without masks in time are left out" in output.err) is (name == "alone")
        found[name] = float(re.search(r"AUC ([0-9.]+)", output.out)[1])  # type: ignore[index]
    assert found["named"] == pytest.approx(found["alone"] / (1 + objects), abs=0.06)
    assert found["named"] < found["alone"]


def test_a_report_without_frames_is_drawn(runs: dict[str, Path], tmp_path: Path) -> None:
    report = tmp_path / "run.csv"
    pd.read_csv(runs["lines"], index_col=0).drop(columns="frame").to_csv(report)
    shutil.copytree(runs["lines"].with_suffix(".steps"), report.with_suffix(".steps"))
    assert main(["interactive", "plot", str(report), "--out", str(tmp_path / "page")]) == 0


def test_runs_of_different_metrics_are_not_drawn_together(runs: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    other = tmp_path / "other.csv"
    other.write_bytes(runs["lines"].read_bytes())
    summary = json.loads(runs["lines"].with_suffix(".summary.json").read_text())
    for part in ("curve", "metric_at_threshold"):
        summary[part]["J"] = summary[part].pop("J_AND_F")
    other.with_suffix(".summary.json").write_text(json.dumps(summary))
    assert main(["interactive", "plot", str(runs["lines"]), str(other), "--out", str(tmp_path / "page")]) == 3
    assert "measured by different metrics" in capsys.readouterr().err


def real_root(folder: Path) -> Path:
    """The four real sequences as a DAVIS root."""
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


@pytest.mark.long
@needs_shared
def test_the_baseline_is_far_above_the_drawn_lines_on_real_frames(tmp_path: Path) -> None:
    """By a clock that takes a second for each interaction, so that only masks count."""
    dataset = DrawnScribbles(Davis(str(real_root(tmp_path / "real"))))
    areas = {}
    for name, model in (("baseline", Baseline()), ("lines", lines)):
        clock = Clock()

        def timed(*, clock: Clock = clock, model: Any = model, **output: Any) -> Any:
            clock.now += 1
            return model(**output)

        session = DavisInteractiveSession(
            dataset=dataset, report_save_dir=tmp_path / name, clock=clock, max_nb_interactions=2
        )
        found = run(session, timed, dataset.image_paths, lambda *_: None, steps=False)
        areas[name] = found["auc"]
        assert len(session.samples) == 4
    assert areas["baseline"] > areas["lines"] + 0.15, areas


def test_pictures_are_read_when_they_are_asked_for(demo: Path, tmp_path: Path) -> None:
    (path,) = sorted((demo / "JPEGImages/480p/drift").glob("00000.jpg"))
    frames = Frames([str(path), str(tmp_path / "none.jpg")])
    assert (len(frames), frames[0].shape) == (2, (120, 160, 3))
    assert len(frames[:1]) == 1
    with pytest.raises(FileNotFoundError):
        frames[1]
