"""The evaluation method of grand-challenge.org: built, and run as its container runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import segjudge
from segjudge.cli import main
from tests.builders import ANNOTATIONS, ROOT, STRONG

from . import evaluations
from .evaluations import encode, ranked_value


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("methods")
    assert main(["build", "--platform", "grand-challenge", "--out", str(out), "--bundle", str(ROOT)]) == 0
    return out


@pytest.fixture
def folders(methods: Path, tmp_path: Path) -> Path:
    """Return the container's view of a phase: the truth unpacked, an empty input and output."""
    for name in ("input", "truth", "output"):
        (tmp_path / name).mkdir()
    with tarfile.open(methods / "sequences-dev/ground_truth.tar.gz") as archive:
        archive.extractall(tmp_path / "truth", filter="data")
    return tmp_path


def run(method: Path, folders: Path) -> subprocess.CompletedProcess[str]:
    arguments = [str(folders / name) for name in ("input", "truth", "output")]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-B", str(method / "evaluate.py"), *arguments], cwd=folders, env=environment,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def metrics_of(method: Path, folders: Path) -> Any:
    done = run(method, folders)
    assert done.returncode == 0, done.stderr
    return json.loads((folders / "output/metrics.json").read_text())


@pytest.mark.long
def test_unpacked_predictions_score_as_everywhere_and_every_path_leads_to_a_number(
    methods: Path, folders: Path
) -> None:
    evaluations.upload(folders / "input", STRONG.read_bytes())

    metrics = metrics_of(methods / "sequences-dev", folders)

    scores = segjudge.score(STRONG, ANNOTATIONS, "davis2017")
    settings = json.loads((methods / "sequences-dev/phase-settings.json").read_text())
    assert settings["score_title"] == "J&F-Mean"
    assert ranked_value(metrics, settings["score_jsonpath"]) == scores.metrics["dev"]["J&F-Mean"]
    assert ranked_value(metrics, settings["score_error_jsonpath"]) == scores.standard_errors["dev"]["J&F-Mean"]
    orders = {}
    for column in settings["extra_results_columns"]:
        assert ranked_value(metrics, column["path"]) == scores.metrics["dev"][column["title"]]
        assert ranked_value(metrics, column["error_path"]) == scores.standard_errors["dev"][column["title"]]
        orders[column["title"]] = column["order"]
    assert orders["J-Decay"] == "asc"
    assert orders["J-Mean"] == "desc"


def test_what_the_jobs_of_an_algorithm_wrote_is_one_submission(methods: Path, folders: Path) -> None:
    sample = ROOT / "examples/sequences-dev/first-mask.json"
    document = json.loads(sample.read_text())
    parts = evaluations.split_document(document, 3)
    evaluations.run_jobs(folders / "input", {f"job-{k}": {"masks.json": encode(part)} for k, part in enumerate(parts)})

    metrics = metrics_of(methods / "sequences-dev", folders)

    assert metrics["dev"]["J&F-Mean"] == segjudge.score(sample, ANNOTATIONS, "davis2017").metrics["dev"]["J&F-Mean"]


@pytest.mark.long
def test_labels_with_dots_lead_to_their_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The platform splits paths at dots, and ranks no evaluation in which one of the paths leads to no number."""
    challenge = tmp_path / "mine"
    assert main(["new", str(challenge), "--protocol", "refcoco", "--demo"]) == 0
    config = challenge / "challenge_config.yaml"
    config.write_text(config.read_text().replace('default_order_by: "oIoU"', 'default_order_by: "P@0.5"'))
    assert main(["build", "--bundle", str(challenge), "--platform", "grand-challenge", "--out", str(tmp_path)]) == 0
    assert "the score's JSON path is val.P@0_5\n" in capsys.readouterr().out

    for name in ("input", "truth", "output"):
        (tmp_path / name).mkdir()
    with tarfile.open(tmp_path / "val/ground_truth.tar.gz") as archive:
        archive.extractall(tmp_path / "truth", filter="data")
    sample = challenge / "examples/val/good.zip"
    evaluations.upload(tmp_path / "input", sample.read_bytes())
    metrics = metrics_of(tmp_path / "val", tmp_path)
    (values,) = segjudge.score(sample, challenge / "annotations/val.zip", "refcoco").metrics.values()
    settings = json.loads((tmp_path / "val/phase-settings.json").read_text())
    paths = {settings["score_title"]: settings["score_jsonpath"]}
    paths |= {column["title"]: column["path"] for column in settings["extra_results_columns"]}
    assert {label: ranked_value(metrics, path) for label, path in paths.items()} == {
        label: values[label] for label in paths
    }
    assert "P@0.5" in paths
