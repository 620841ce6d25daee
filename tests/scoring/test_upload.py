"""The built zip works when it is extracted and called as EvalAI does, on this Python and on the worker's."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.platforms.evalai.bundle.trial import open_hosted_worker
from tests.builders import ROOT
from tests.demo_challenge import SAMPLES
from tests.shared import IN_CI

WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
PYTHONS = [
    pytest.param(sys.executable, id="this-python"),
    pytest.param(
        WORKER,
        id="worker-python",
        marks=pytest.mark.skipif(not WORKER and not IN_CI, reason="PYTHON 3.9 ABSENT: use ./run.sh test"),
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("python", PYTHONS)
def test_samples_score_in_the_extracted_bundle_as_here(python: str, tmp_path: Path) -> None:
    bundle = build(str(ROOT), str(tmp_path / "challenge_config.zip")).path
    number = 0
    with open_hosted_worker(bundle, python) as stage:
        for phase in stage.config["challenge_phases"]:
            samples = SAMPLES[phase["codename"]]
            assert samples
            for sample in samples[:1]:
                number += 1
                outcome = stage.evaluate(phase, str(sample), number)

                assert outcome.status == "finished", outcome.stderr
                annotation = str(ROOT / phase["test_annotation_file"])
                local_scores = evaluate(annotation, str(sample), phase["codename"])
                assert outcome.result == {split: v for entry in local_scores["result"] for split, v in entry.items()}
                assert list(outcome.result) == [split.codename for split in splits_of(stage.config, phase)]
                assert "scored" in outcome.stdout


@pytest.mark.long
@pytest.mark.parametrize("python", PYTHONS)
def test_a_bad_submission_fails_with_its_sentence_last_and_the_next_scores(python: str, tmp_path: Path) -> None:
    bundle = build(str(ROOT), str(tmp_path / "challenge_config.zip")).path
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"PK\x03\x04 no zip at all")
    with open_hosted_worker(bundle, python) as stage:
        phase = stage.config["challenge_phases"][0]
        outcome = stage.evaluate(phase, str(bad), 1)
        assert outcome.status == "failed"
        lines = outcome.stderr.strip().splitlines()
        assert "your file: is a zip that was cut off" in lines[-1]
        assert len(lines) < 12, "raised from a shallow place, without a cause"
        assert stage.evaluate(phase, str(ROOT / "examples/sequences-dev/strong.zip"), 2).status == "finished"


def test_a_bundle_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    root = tmp_path / "fork"
    shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(".*", "dist", "*.egg-info", "__pycache__"))
    (root / "evaluation_script/__init__.py").write_text("import nowhere_to_be_found\n")
    bundle = build(str(root)).path
    with open_hosted_worker(bundle) as stage, pytest.raises(HostError, match="nowhere_to_be_found"):
        stage.evaluate(stage.config["challenge_phases"][0], str(ROOT / "examples/sequences-dev/strong.zip"), 1)
