"""The evaluation method of grand-challenge.org: built, and run as its container runs it."""

from __future__ import annotations

import io
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
from tests.builders import ANNOTATIONS, ROOT, STRONG, files_of


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("methods")
    assert main(["build", "--platform", "grand-challenge", "--out", str(out), "--bundle", str(ROOT)]) == 0
    return out


@pytest.fixture
def folders(methods: Path, tmp_path: Path) -> Path:
    """What the container sees of a phase: the truth unpacked, an empty input and output."""
    for name in ("input", "truth", "output"):
        (tmp_path / name).mkdir()
    with tarfile.open(methods / "sequences-dev/ground_truth.tar.gz") as archive:
        archive.extractall(tmp_path / "truth", filter="data")
    return tmp_path


def run(method: Path, folders: Path) -> subprocess.CompletedProcess[str]:
    words = [str(folders / name) for name in ("input", "truth", "output")]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-B", str(method / "evaluate.py"), *words], cwd=folders, env=environment,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def metrics_of(method: Path, folders: Path) -> Any:
    done = run(method, folders)
    assert done.returncode == 0, done.stderr
    return json.loads((folders / "output/metrics.json").read_text())


def at(document: Any, path: str) -> Any:
    for key in path.split("."):  # as the platform reads a path
        document = document[key]
    return document


def test_unpacked_predictions_score_as_everywhere_and_every_path_leads_to_a_number(
    methods: Path, folders: Path
) -> None:
    for name, data in files_of(STRONG).items():
        (folders / "input" / name).parent.mkdir(parents=True, exist_ok=True)
        (folders / "input" / name).write_bytes(data)

    metrics = metrics_of(methods / "sequences-dev", folders)

    scores = segjudge.score(STRONG, ANNOTATIONS, "davis2017")
    settings = json.loads((methods / "sequences-dev/phase-settings.json").read_text())
    assert settings["score_title"] == "J&F-Mean"
    assert at(metrics, settings["score_jsonpath"]) == scores.metrics["dev"]["J&F-Mean"]
    assert at(metrics, settings["score_error_jsonpath"]) == scores.standard_errors["dev"]["J&F-Mean"]
    orders = {}
    for column in settings["extra_results_columns"]:
        assert at(metrics, column["path"]) == scores.metrics["dev"][column["title"]]
        assert at(metrics, column["error_path"]) == scores.standard_errors["dev"][column["title"]]
        orders[column["title"]] = column["order"]
    assert orders["J-Decay"] == "asc"
    assert orders["J-Mean"] == "desc"


def jobs(folders: Path, documents: list[Any], pks: list[str], place: str = "masks.json") -> None:
    listed = []
    for pk, document in zip(pks, documents, strict=True):
        (folders / "input" / pk / "output").mkdir(parents=True, exist_ok=True)
        (folders / "input" / pk / "output/masks.json").write_text(json.dumps(document))
        listed.append({"pk": pk, "inputs": [], "outputs": [{"socket": {"slug": "masks", "relative_path": place}}]})
    (folders / "input/predictions.json").write_text(json.dumps(listed))


def test_what_the_jobs_of_an_algorithm_wrote_is_one_submission(methods: Path, folders: Path) -> None:
    sample = ROOT / "examples/sequences-dev/first-mask.json"
    document = json.loads(sample.read_text())
    jobs(folders, [{name: masks} for name, masks in document.items()], [f"job-{k}" for k in range(len(document))])

    metrics = metrics_of(methods / "sequences-dev", folders)

    assert metrics["dev"]["J&F-Mean"] == segjudge.score(sample, ANNOTATIONS, "davis2017").metrics["dev"]["J&F-Mean"]


def test_the_last_line_is_for_the_participant(methods: Path, folders: Path) -> None:
    (folders / "input/mine.zip").write_bytes(b"no zip")
    done = run(methods / "sequences-dev", folders)
    assert done.returncode == 1
    assert "neither a zip" in done.stderr.splitlines()[-1]
    assert not (folders / "output/metrics.json").exists()

    (folders / "truth/sequences-dev.zip").write_bytes(b"broken")
    done = run(methods / "sequences-dev", folders)
    assert "incident number" in done.stderr.splitlines()[-1]

    (folders / "output").rmdir()
    (folders / "input/mine.zip").unlink()
    (folders / "input/strong.zip").write_bytes(STRONG.read_bytes())
    (folders / "truth/sequences-dev.zip").write_bytes(ANNOTATIONS.read_bytes())
    done = run(methods / "sequences-dev", folders)
    assert done.stderr.splitlines()[-1] == "Scoring failed, and it is not your fault. Tell the organisers."


def test_the_image_holds_the_scorers_and_not_the_truth(methods: Path) -> None:
    for phase in ("sequences-dev", "sequences-test", "instances-dev"):
        folder = methods / phase
        ignored = (folder / ".dockerignore").read_text().split()
        names = {path.name for path in folder.iterdir()} - set(ignored)
        assert names == {"Dockerfile", ".dockerignore", "evaluate.py", "task.json", "evaluation_script"}
        with tarfile.open(fileobj=io.BytesIO((folder / "ground_truth.tar.gz").read_bytes())) as archive:
            assert archive.getnames() == [f"{phase}.zip"]
