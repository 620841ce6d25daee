"""`run`, `build` and `check` with `--platform codabench`, as a host types them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import yaml

from segjudge.cli import main
from tests.data import CODABENCH

ROOT = Path(__file__).resolve().parents[3]
PLATFORM = ["--platform", "codabench"]
SHARED = pytest.mark.skipif(not CODABENCH.exists(), reason="the recorded bundles are not here")


@SHARED
def test_check_of_a_foreign_bundle_says_line_remedy_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *PLATFORM, str(CODABENCH / "overlap.zip")]) == 3
    out = capsys.readouterr().out
    assert "competition.yaml:22:3: error: phases[1].start: starts at" in out
    assert "Codabench: Phases must be sequential. Phase: Qstarts before Phase: P has ended" in out
    assert "Codabench would reject this bundle." in out


@SHARED
def test_a_folder_is_checked_as_the_zip_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(CODABENCH / "baseline.zip") as archive:
        archive.extractall(tmp_path)
    assert main(["check", *PLATFORM, "--bundle", str(tmp_path)]) == 0
    folder = capsys.readouterr().out.replace(tmp_path.name, "baseline.zip")
    assert main(["check", *PLATFORM, str(CODABENCH / "baseline.zip")]) == 0
    assert folder == capsys.readouterr().out
    assert main(["check", *PLATFORM, str(tmp_path / "competition.yaml")]) == 0


@SHARED
def test_check_answers_programs_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *PLATFORM, "--json", str(CODABENCH / "no_tasks.zip")]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["accepted"], document["refused"]) == (False, True)
    row = next(row for row in document["findings"] if row["refused"])
    assert (row["bundle"], row["rule"], row["codabench"]) == ("no_tasks.zip", 20, "No tasks listed in this competition")
    assert "evalai" not in row


def competition(folder: Path, program: str) -> Path:
    """Return a foreign bundle with a solution, whose program is given."""
    (folder / "page.md").write_text("text")
    (folder / "logo.png").write_bytes((ROOT / "logo.png").read_bytes())
    for name, files in {
        "program.zip": {"metadata.yaml": "command: python3 s.py $output", "s.py": program},
        "ref.zip": {"truth.txt": "1"},
        "solution.zip": {"answer.txt": "1"},
    }.items():
        with zipfile.ZipFile(folder / name, "w") as archive:
            for member, text in files.items():
                archive.writestr(member, text)
    config = {
        "version": 2, "title": "T", "image": "logo.png", "terms": "page.md", "pages": [],
        "docker_image": "codalab/codalab-legacy:py312", "registration_auto_approve": True,
        "tasks": [{"index": 0, "name": "T", "scoring_program": "program.zip", "reference_data": "ref.zip"}],
        "solutions": [{"index": 0, "tasks": [0], "path": "solution.zip"}],
        "phases": [{"name": "P", "start": "2026-01-01", "tasks": [0], "max_submissions_per_day": 5, "max_submissions": 9}],
        "leaderboards": [{
            "title": "R", "key": "r", "submission_rule": "Force_Best",
            "columns": [{"title": "A", "key": "a", "index": 0}, {"title": "B", "key": "b", "index": 1}],
        }],
    }  # fmt: skip
    (folder / "competition.yaml").write_text(yaml.safe_dump(config))
    return folder


WRITE = "import sys, json\njson.dump({}, open(sys.argv[1] + '/scores.json', 'w'))\n"


def test_run_scores_a_foreign_bundles_solutions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = competition(tmp_path, WRITE.format("{'a': 0.5, 'b': 1}"))
    assert main(["run", *PLATFORM, "--bundle", str(folder)]) == 0
    assert "1. solution.zip" in capsys.readouterr().out


def test_a_bundle_whose_scorers_are_not_ours_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evaluation_script").mkdir()
    (tmp_path / "evaluation_script" / "main.py").write_text("def evaluate(): pass\n")
    (tmp_path / "challenge_config.yaml").write_text("title: x\n")
    assert main(["build", *PLATFORM, "--bundle", str(tmp_path)]) == 3
    assert "has its own scorers" in capsys.readouterr().err
