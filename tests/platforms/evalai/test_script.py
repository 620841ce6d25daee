"""Imports and requirements that fail on EvalAI's worker are reported before the upload."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from segjudge.platforms.evalai.bundle import trial
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from tests.builders import ROOT


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".*", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks", "docs")
    return Path(shutil.copytree(ROOT, tmp_path / "fork", symlinks=True, ignore=ignored))


def found(fork: Path) -> list[str]:
    return [str(problem) for problem in check(build(str(fork)).path)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("numpy>=2", "numpy 1.26.4: it would never start. Allow 1.26.4", id="pin"),
        pytest.param("PyCOCO_tools>=2.0.8", "", id="other-name"),
        pytest.param("pycocotools >= 2.0.8  # newer", "pins pycocotools 2.0.7", id="pin-with-comment"),
        pytest.param("PyYAML>=6", "pins PyYAML 5.4.1", id="pin-in-capitals"),
        pytest.param("git+https://example.org/x.git", "has neither git nor a compiler", id="git"),
        pytest.param("x @ git+https://example.org/x.git", "has neither git", id="git-name"),
        pytest.param("-e .", "has neither git", id="editable"),
        pytest.param("./wheels/x.whl", "has neither git", id="path"),
        pytest.param("--pre", "has the option --pre", id="option"),
        pytest.param("numpy=1.26", "is not a requirement", id="syntax"),
        pytest.param("# a comment", "", id="comment"),
        pytest.param("scipy<2", "", id="fits"),
        pytest.param('numpy>=2; python_version >= "3.10"', "", id="for-another-python"),
        pytest.param("scipy \\\n  >=1.0 --hash=sha256:00", "", id="continued"),
    ],
)
def test_a_requirement_that_the_worker_cannot_take_is_reported(line: str, message: str, fork: Path) -> None:
    (fork / "evaluation_script/requirements.txt").write_text(f"numpy\n{line}\n")
    problems = found(fork)
    if message:
        assert any(
            problem.startswith("evaluation_script/requirements.txt:2") and message in problem for problem in problems
        )
    else:
        assert problems == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("import masks\n", "extra.py:1: imports masks absolutely", id="absolute"),
        pytest.param("from masks import Stack\n", "extra.py:1: imports masks absolutely", id="absolute-from"),
        pytest.param("from .masks import Stack\nimport json\n", "", id="relative"),
        pytest.param(
            "from evaluation_script.files.problems import HostError\n",
            "imports evaluation_script.files.problems absolutely",
            id="by-its-folder",
        ),
        pytest.param("from .nowhere import x\n", "imports .nowhere, which is not in the zip", id="left-out"),
        pytest.param("from . import sub\n", "imports .sub, which is not in the zip", id="left-out-folder"),
        pytest.param("match 1:\n    case 1: pass\n", "is not Python 3.9 (", id="match"),
        pytest.param("\0", "is not Python 3.9", id="null-byte"),
    ],
)
def test_a_module_that_the_worker_cannot_import_is_reported(text: str, message: str, fork: Path) -> None:
    (fork / "evaluation_script/extra.py").write_text(text)
    problems = found(fork)
    assert any(message in problem for problem in problems) if message else problems == []


def test_a_script_without_evaluate_is_reported(fork: Path) -> None:
    (fork / "evaluation_script/__init__.py").write_text("")
    assert any("has no evaluate" in problem for problem in found(fork))


def test_files_that_the_yaml_names_and_nobody_has_are_told_all_at_once(fork: Path) -> None:
    (fork / "logo.png").unlink()
    (fork / "templates/description.html").unlink()
    problems = [str(problem) for problem in check(build(str(fork), lenient=True).path)]
    assert [problem.split(": ")[1] for problem in problems] == ["description", "image"]


@pytest.mark.long
def test_samples_score_and_one_that_does_not_is_reported(fork: Path) -> None:
    (fork / "examples/sequences-dev/broken.zip").write_bytes(b"PK\x03\x04")
    (problem,) = trial.try_samples(str(fork), build(str(fork)).path)
    assert str(problem).startswith("examples/sequences-dev/broken.zip: does not score:")
    assert "is a zip that was cut off" in str(problem)


def test_a_script_that_does_not_load_is_reported_once(fork: Path) -> None:
    (fork / "evaluation_script/__init__.py").write_text("import nowhere_to_be_found\nevaluate = 1\n")
    (problem,) = trial.try_samples(str(fork), build(str(fork)).path)
    assert "nowhere_to_be_found" in str(problem)


def test_samples_of_a_remote_challenge_are_not_for_evalais_worker(fork: Path) -> None:
    with pytest.raises(trial.UntriedError, match="does not score this variant"):
        list(trial.try_samples(str(fork), build(str(fork), variant="remote").path))


@pytest.mark.long
def test_pip_tells_what_cannot_be_installed(fork: Path) -> None:
    (fork / "evaluation_script/requirements.txt").write_text("numpy\nscipy==1.99.0\n")
    try:
        (problem,) = trial.try_requirements(str(fork), build(str(fork)).path)
    except trial.UntriedError as reason:
        pytest.skip(f"NOT TRIED: {reason}")
    assert "cannot be installed by EvalAI's worker (Python 3.9, no compiler)" in str(problem)


@pytest.mark.long
def test_without_a_package_index_nothing_is_claimed(fork: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    (fork / "evaluation_script/requirements.txt").write_text("numpy\n")
    with pytest.raises(trial.UntriedError, match="could not be reached"):
        list(trial.try_requirements(str(fork), build(str(fork)).path))
