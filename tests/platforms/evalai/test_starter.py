"""EvalAI's starter zips a whole checkout: the result works, and contains no secret."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from segjudge.cli import main
from segjudge.platforms.evalai.bundle.build import build_starter_zip, find_unwanted_files
from segjudge.platforms.evalai.bundle.check import check
from segjudge.platforms.evalai.bundle.trial import open_hosted_worker
from tests.builders import ROOT
from tests.shared import IN_CI

READY = shutil.which("git") and (ROOT / ".git").exists()
pytestmark = pytest.mark.skipif(not READY and not IN_CI, reason="NO GIT CHECKOUT")


@pytest.fixture(scope="module")
def upload(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_starter_zip(str(ROOT), str(tmp_path_factory.mktemp("starter") / "challenge_config.zip"))


@pytest.mark.long
def test_a_checkout_zipped_by_the_starter_is_accepted(upload: str) -> None:
    assert [str(problem) for problem in [*check(upload), *find_unwanted_files(upload)]] == []


@pytest.mark.long
def test_it_scores_as_a_prediction_bundle(upload: str) -> None:
    with open_hosted_worker(upload) as stage:
        phase = stage.config["challenge_phases"][0]
        outcome = stage.evaluate(phase, str(ROOT / "examples/sequences-dev/strong.zip"), 1)
    assert outcome.status == "finished", outcome.stderr
    assert round(outcome.result["dev"]["J&F-Mean"], 3) == 0.933


def names_in(path: str) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.mark.long
def test_the_starters_names_stay_behind(upload: str) -> None:
    names = names_in(upload)
    assert {"challenge_config.yaml", "evaluation_script/main.py", "logo.png"} <= set(names)
    assert not {"README.md", "run.sh", ".gitignore"} & set(names)
    assert not [name for name in names if name.startswith((".git/", ".github/", "remote_challenge_evaluation/"))]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "fork"
    folder.mkdir()
    (folder / "challenge_config.yaml").write_text("title: x\nimage: logo.png\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_what_git_ignores_is_not_uploaded(checkout: Path) -> None:
    (checkout / ".gitignore").write_text(".segjudge/\n")
    (checkout / ".segjudge").mkdir()
    (checkout / ".segjudge/last_push.json").write_text("{}")
    upload = build_starter_zip(str(checkout), str(checkout.parent / "x.zip"))
    assert names_in(upload) == ["evaluation_script.zip", "challenge_config.yaml"]


@pytest.mark.long
def test_without_git_a_sentence_says_how(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["rm", "-r", str(checkout / ".git")], check=True)
    assert main(["check", str(checkout), "--starter", "--quick"]) != 0
    assert "git cannot list them (fatal: not a git repository" in (output := capsys.readouterr().err)
    assert "Run `git init` there, or `segjudge check` without --starter" in output
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["check", str(checkout), "--starter", "--quick"]) != 0
    assert "git is not installed. Install git, or run `segjudge check` without --starter" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_lists_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--starter", "--quick"]) == 0
    assert "  evaluation_script/main.py\n" in capsys.readouterr().out
    assert main(["check", "--starter", "--quick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"] is True
