"""`segjudge.score` from Python: results and truths of every kind, both sequences and instances, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import segjudge
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_CATEGORY
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families.truths import TruthSource, pack
from segjudge.masks.run_lengths import runs_of_mask
from tests.builders import ROOT, zipped
from tests.commands.test_cli import ONE, TWO, davis
from tests.commands.test_participants import SHARP, TRUTH, folder_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return davis(tmp_path / "DAVIS")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "results")


def as_zip(results: Path) -> Path:
    files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.png")}
    archive = results.parent / "results.zip"
    archive.write_bytes(zipped(files))
    return archive


def as_json(results: Path) -> Path:
    document = {
        name: {
            str(number): [{"size": list(labels.shape), "counts": runs_of_mask(labels == number)}] * 6
            for number in (1, 2)
        }
        for name, labels in (("dog", TWO), ("cat", ONE))
    }
    path = results.parent / "results.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("form", [lambda path: path, as_zip, as_json], ids=["folder", "zip", "json"])
@pytest.mark.parametrize("packed", [False, True])
def test_results_and_truths_of_every_kind_score_the_same(form: Any, packed: bool, root: Path, results: Path) -> None:
    truth: str | Path = root
    if packed:
        truth = str(root.parent / "truth.zip")
        pack(TruthSource(str(root), "davis2017", "val"), truth)
        assert is_packed(truth)

    scores = segjudge.score(form(results), truth, subset="val")

    expected = segjudge.score(results, root, "davis2017", subset="val")
    assert scores.metrics == expected.metrics
    assert scores.tables == expected.tables
    assert [row["sequence"] for row in scores.tables["sequences"]] == ["dog", "cat"]
    assert {(row["sequence"], row["object"]) for row in scores.tables["objects"]} >= {("dog", "1"), ("dog", "2")}


def test_a_coco_document_is_a_truth_too_and_a_protocol_may_be_changed(tmp_path: Path) -> None:
    document = tmp_path / "truth.json"
    document.write_bytes(instance_truth.documents(TRUTH)["dev"])
    changed = replace(INSTANCE_PROTOCOLS["places2017"], cap=PER_CATEGORY)

    scores = segjudge.score(SHARP, document, changed, jobs=2)

    assert scores.metrics["val"] == segjudge.score(SHARP, TRUTH, changed).metrics["dev"]


def test_strict_refuses_what_is_warned_of(root: Path, results: Path) -> None:
    (results / "stranger").mkdir()
    (results / "stranger/00000.png").write_bytes((results / "cat/00000.png").read_bytes())

    assert any("stranger" in line for line in segjudge.score(results, root).warnings)
    with pytest.raises(segjudge.SubmissionError, match="stranger"):
        segjudge.score(results, root, strict=True)


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    code = (
        "import sys, segjudge\n"
        "print(sorted(name for name in sys.modules if name.startswith(('segjudge.', 'numpy'))))\n"
        "print(dir(segjudge) == segjudge.__all__ == sorted(segjudge.__all__))\n"
        "print(*(getattr(segjudge, name).__name__ for name in segjudge.__all__))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert run.stdout.splitlines() == ["[]", "True", " ".join(segjudge.__all__)]
    with pytest.raises(AttributeError, match="module 'segjudge' has no attribute 'sore'"):
        segjudge.sore  # noqa: B018
