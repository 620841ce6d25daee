"""Imports and requirements that fail on EvalAI's worker are reported before the upload."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from segjudge.platforms.evalai.bundle import trial
from segjudge.platforms.evalai.bundle.build import build
from tests.builders import ROOT


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".*", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks", "docs")
    return Path(shutil.copytree(ROOT, tmp_path / "fork", symlinks=True, ignore=ignored))


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
