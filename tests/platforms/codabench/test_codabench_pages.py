"""The page of a submission on Codabench: made in the image from the phase's data, or a plain one."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import numpy as np
import PIL
import pytest

from segjudge.cli import main
from segjudge.platforms.codabench import scoring_program
from segjudge.platforms.codabench.build import BuiltCompetitions, build
from segjudge.platforms.codabench.opened_competition import open_competition
from segjudge.platforms.codabench.trial import FINISHED, ComputeWorker, ScoredSubmission
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT
from tests.scoring.test_phase_report import left_by

PLAIN = "<footer>segjudge"


def bundle_with(folder: Path, phases: dict[str, str]) -> Path:
    """Return a copy of the bundle whose phases have more settings."""
    for name in ("annotations", "templates", "evaluation_script", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so*", "__pycache__"))
    for name in ("challenge_config.yaml", "logo.png"):
        shutil.copy(ROOT / name, folder / name)
    path = folder / "evaluation_script/phases.py"
    text = path.read_text()
    for codename, settings in phases.items():
        text = text.replace(f'codename="{codename}",', f'codename="{codename}", {settings},')
    path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a competition whose first phase stores everything, the second one sequences, and the third nothing."""
    settings = {"sequences-dev": 'detail="all", report=True', "sequences-test": 'detail="sequences", report=True'}
    return bundle_with(tmp_path_factory.mktemp("bundle"), settings)


@pytest.fixture(scope="module")
def built(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltCompetitions:
    return build(find_bundle(str(bundle)), str(tmp_path_factory.mktemp("competitions")))


def scored(built: BuiltCompetitions, number: int, sample: str, changes: dict[str, str] | None = None) -> Any:
    """Return the outcome of a sample, by a program with some files changed, and the files in it."""
    worker = ComputeWorker(Interpreter.open(sys.executable))
    (codename,) = built.competitions[number].codenames
    with open_competition(built.competitions[number].path) as opened:
        program = opened.path("scoring_program.zip")
        with zipfile.ZipFile(program) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        changed = Path(opened.folder, "changed.zip")
        with zipfile.ZipFile(changed, "w") as archive:
            for name, data in {**files, **(changes or {})}.items():
                archive.writestr(name, data)
        submission = Path(opened.folder, "submission.zip")
        with zipfile.ZipFile(submission, "w") as archive:
            archive.write(ROOT / "examples" / codename / sample, sample)
        task = {
            "scoring_program": str(changed), "reference_data": opened.path(f"reference_data/{codename}.zip")
        }  # fmt: skip
        columns = [column["key"] for column in opened.config["leaderboards"][0]["columns"]]
        return worker.score(task, str(submission), columns)


@pytest.fixture(scope="module")
def outcome(built: BuiltCompetitions) -> ScoredSubmission:
    return scored(built, 0, "lagging.zip")


def without_provenance(text: str) -> str:
    """Return a page without its title, and without the digests that differ because the submission is in another zip."""
    return re.sub(r"<pre>.*?</pre>|<title>.*?</title>|<h1>.*?</h1>", "", text, flags=re.DOTALL)


@pytest.mark.long
def test_the_page_is_that_of_what_the_phase_left(outcome: ScoredSubmission) -> None:
    from segjudge.scoring.report import make_stored_report

    assert (outcome.status, outcome.stderr, outcome.log) == (FINISHED, "", "")
    assert outcome.output == ("detailed_results.html", "scores.json")
    left = left_by(detail="all", report=True)
    assert without_provenance(outcome.page) == without_provenance(make_stored_report(left, ""))
    assert "Sequences, development" in re.findall("<title>(.*?)</title>", outcome.page)[0]


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("width", [375, 1440])
def test_it_opens_under_its_policy(outcome: ScoredSubmission, tmp_path: Path, width: int) -> None:
    (tmp_path / "page.html").write_text(outcome.page, encoding="utf-8")
    with chromium() as browser, fresh_page(browser, {"width": width, "height": 900}) as (page, asked):
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".player:not([hidden])")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert len([url for url in asked if not url.startswith(("data:", "blob:"))]) == 1


@pytest.mark.long
def test_where_the_truth_is_not_public_everybody_reads_means_alone(built: BuiltCompetitions) -> None:
    results = scored(built, 1, "lagging.zip")
    assert (results.status, results.log) == (FINISHED, "")
    assert "Summary: test-hard" in results.page
    with zipfile.ZipFile(ROOT / "annotations/sequences-test.zip") as archive:
        sequences = {name.split("/")[2] for name in archive.namelist() if name.startswith("masks/")}
    assert sequences
    assert [name for name in sequences if name in results.page] == []


@pytest.mark.long
def test_a_phase_without_a_report_has_the_plain_page(built: BuiltCompetitions) -> None:
    with zipfile.ZipFile(built.competitions[2].path) as archive:
        program = zipfile.ZipFile(io.BytesIO(archive.read("scoring_program.zip")))
    assert not [name for name in program.namelist() if name.startswith(("page/", "packages/jinja2"))]
    assert PLAIN in scored(built, 2, "coarse.json").page


@pytest.mark.long
@pytest.mark.parametrize(
    "program", ["raise RuntimeError('broken')", "import time\ntime.sleep(600)"], ids=["raises", "hangs"]
)
def test_where_no_page_can_be_made_there_is_a_plain_one(
    built: BuiltCompetitions, outcome: ScoredSubmission, program: str
) -> None:
    score = (
        Path(scoring_program.__file__)
        .read_text()
        .replace('PAGE_SECONDS = "page/page_program.py", 60', 'PAGE_SECONDS = "page/page_program.py", 2')
    )
    assert ", 2\n" in score
    results = scored(built, 0, "lagging.zip", {"page/page_program.py": program, "score.py": score})
    assert (results.status, results.stderr) == (FINISHED, "")
    assert results.written == outcome.written
    assert PLAIN in results.page
    assert "Traceback" in results.log


def test_only_what_means_show_is_kept_where_not_all_is_public() -> None:
    left = left_by(detail="sequences", report=True)
    task = {"page": "means", "columns": [{"split": "dev", "hidden": False}]}
    shown = scoring_program._select_public(task, {"submission_result": left})
    assert "sequences" in left
    assert set(left) - set(shown) == {"losses", "sequences"}
    # What all shows, less its tables.
    assert not {"objects", "losses", "errors", "sequences"} & set(scoring_program.SHOWN)


@pytest.mark.long
def test_the_files_beside_the_program_are_all_that_it_needs(built: BuiltCompetitions, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.competitions[0].path) as competition:
        program = zipfile.ZipFile(io.BytesIO(competition.read("scoring_program.zip")))
    program.extractall(tmp_path, [name for name in program.namelist() if name.startswith("page/")])
    shutil.copytree(ROOT / "evaluation_script", tmp_path / "evaluation_script")
    packages = tmp_path / "packages"
    for module in (jinja2, markupsafe, np, PIL):
        folder = Path(module.__file__).parent
        os.makedirs(packages, exist_ok=True)
        for path in folder.parent.glob(f"{folder.name}*"):  # and the libraries beside it
            (packages / path.name).symlink_to(path)
    text = json.dumps({"title": "t", "result": left_by(detail="all", report=True)})
    arguments = [sys.executable, "-S", "-E", str(tmp_path / scoring_program.PAGE_PROGRAM)]
    made = subprocess.run(arguments, input=text.encode(), capture_output=True, check=False)
    assert (made.returncode, made.stderr) == (0, b"")
    assert b'class="player"' in made.stdout


@pytest.mark.long
def test_run_keeps_the_pages(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sample in bundle.glob("examples/*/*"):
        if sample.name != "lagging.zip":
            sample.unlink()
    assert main(["run", "--platform", "codabench", str(bundle), "--pages", str(tmp_path / "pages")]) == 0
    names = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert names == ["Sequences, development-lagging.zip.html", "Sequences, test-lagging.zip.html"]
    assert 'class="player"' in (tmp_path / "pages" / names[0]).read_text("utf-8")
