"""The durable worker with a host's own `evaluate()`: both documented forms, and every behaviour of such a function."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.rows import SubmissionRow
from segjudge.remote_challenge_evaluation.scorer_process import ScoringRequest, read_form, run_scorer
from segjudge.remote_challenge_evaluation.settings import HostScript
from tests import guests
from tests.builders import ROOT
from tests.rehearsals import Rehearsal
from tests.remote_workers import OPTIONS, Operator, operator_of

HALF = json.dumps(dict(list(guests.TRUTH.items())[:2])).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return guests.remote(tmp_path_factory.mktemp("guest") / "bundle")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Rehearsal]:
    built = build(str(folder)).path
    running = Rehearsal(folder.parent / "data", OPTIONS, bundle=Path(built)).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


@pytest.fixture
def worker(server: Rehearsal, tmp_path: Path) -> Operator:
    operator = operator_of(server, tmp_path)
    operator.environment["ANNOTATIONS"] = str(tmp_path / "none")
    return operator


def sent(server: Rehearsal, phase: int = 1, data: bytes = HALF) -> int:
    name = "aurora" if phase == 1 else "borealis"
    return int(server.submit(name, data, phase=phase).json()["id"])


def submission(server: Rehearsal, number: int) -> dict[str, Any]:
    row: dict[str, Any] = server.get(f"/api/jobs/submission/{number}", "host").json()
    return row


def scored(function: str, path: Path, root: Path | None = None, hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the outcome of a function with this text."""
    if not path.exists():
        path.write_text(textwrap.dedent(function))
    submission = path.parent / "submission"
    submission.write_bytes(HALF)
    script: HostScript = {"python": sys.executable, "file": str(path), "root": str(root or path.parent)}
    row: SubmissionRow = {"id": 7, "challenge_phase": 3, "status": "running"}
    request = ScoringRequest(str(submission), "dev", "", row, 4 << 30, script=script, hidden=hidden)
    lock = os.open(path.parent / "lock", os.O_CREAT | os.O_RDWR)
    try:
        return run_scorer(request, str(path.parent), 60, lock, lambda: False).__dict__
    finally:
        os.close(lock)


@pytest.mark.long
def test_a_foreign_remote_challenge_is_scored_by_its_own_evaluate(
    server: Rehearsal, worker: Operator, folder: Path
) -> None:
    assert "dev, its own truth, val" in worker.run("--check", "--bundle", str(folder))
    dev, test = sent(server), sent(server, 2)
    worker.run("--once", "--bundle", str(folder))
    assert [submission(server, number)["status"] for number in (dev, test)] == ["finished", "finished"]
    assert server.text(submission(server, dev)["stdout_file"]) == f"Starting Evaluation..... {dev}\n"
    shown = server.text(submission(server, test)["submission_result_file"])
    assert shown == "[{'Accuracy': 0.5, 'Coverage': 1.0}]", "the hidden split is not among them"


@pytest.mark.long
def test_a_file_with_evaluate_is_enough_beside_its_bundle(server: Rehearsal, worker: Operator, folder: Path) -> None:
    number = sent(server)
    worker.run("--once", "--evaluate", str(folder / "remote_challenge_evaluation/evaluate.py"))
    assert submission(server, number)["status"] == "finished"


@pytest.mark.long
def test_the_hosted_form_gets_the_annotations_of_the_worker(
    server: Rehearsal, worker: Operator, folder: Path, tmp_path: Path
) -> None:
    guest, path = Path(shutil.copytree(folder, tmp_path / "own")), tmp_path / "elsewhere" / "challenge.zip"
    shutil.rmtree(guest / "remote_challenge_evaluation")
    build(str(guest), str(path))
    shutil.rmtree(guest / "evaluation_script")
    output = worker.run("--check", "--bundle", str(path), expected=3)
    assert "there is no annotation file for dev; set ANNOTATIONS" in output
    output = worker.run("--once", "--bundle", str(path), expected=3)
    assert "not ready" in output
    assert "server unavailable" not in output
    worker.environment["ANNOTATIONS"] = str(guest / "annotations")
    number = sent(server)
    worker.run("--once", "--bundle", str(path), "--python", os.path.relpath(sys.executable, ROOT))
    assert submission(server, number)["status"] == "finished"
    shown = server.text(submission(server, number)["submission_result_file"])
    assert shown == "[{'Accuracy': 0.5, 'Coverage': 0.5}]"


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_there\n", "No module named 'nothing_there'"),
        ("x = 1\n", "has no attribute 'evaluate'"),
        ("def evaluate(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "cannot be loaded"),
    ],
)
def test_an_evaluate_that_cannot_be_loaded_ends_the_start(
    text: str, message: str, worker: Operator, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "evaluate.py").write_text(text)
    output = worker.run("--check", "--bundle", str(folder), "--evaluate", str(tmp_path / "evaluate.py"), expected=3)
    assert message in output


@pytest.mark.parametrize(
    ("signature", "form"),
    [
        ("user_submission_file, phase_codename, test_annotation_file=None, **kwargs", "remote"),
        ("test_annotation_file, user_submission_file, phase_codename, **kwargs", "hosted"),
        ("test_annotation_file, user_annotation_file, phase_codename, **kwargs", "hosted"),
        ("user_annotation_file, phase_codename", "remote"),
        ("gt_path, pred_path, phase", "hosted"),
        ("a, b, c", "remote"),
        ("*args, **kwargs", "remote"),
    ],
)
def test_the_form_is_read_from_the_first_name(signature: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "evaluate.py"
    path.write_text(f"def evaluate({signature}): pass\n")
    assert read_form({"python": sys.executable, "file": str(path), "root": str(tmp_path)}) == form


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return {'result': [{'val': {'A': 1}}]}", {"accuracies": [{"split": "val", "show_to_participant": True, "accuracies": {"A": 1}}]}),
        ("return {'result': [{'split': 'val', 'accuracies': {'A': 1}}]}", {"accuracies": [{"split": "val", "show_to_participant": True, "accuracies": {"A": 1}}]}),
        ("return None", {"incident": "evaluate() returned None, not a dict: write return {'result': ...}"}),
        ("return {'result': 5}", {"incident": "evaluate() returned a result that is a value of the kind int, not a list of splits"}),
        ("return {'result': [{'val': 3}]}", {"accuracies": [{"split": "val", "show_to_participant": True, "accuracies": 3}]}),
        ("return {}", {"incident": "evaluate() returned no result"}),
        ("return {'stderr': 'no such phase'}", {"refused": "no such phase"}),
        ("return {'result': [{'val': {'A': object()}}]}", {"incident": "evaluate() returned a value that JSON cannot represent (Object of type object is not JSON serializable)"}),
        ("raise ValueError('row 3')", {"refused": "row 3"}),
        ("raise KeyError()", {"refused": "KeyError"}),
        ("import sys; sys.exit(4)", {"incident": "evaluate() ended its process (SystemExit: 4)"}),
        ("import os; os._exit(5)", {"incident": "the scorer gave no answer: its process ended with exit code 5"}),
        ("print('hello'); return {'result': []}", {"stdout": "hello\n", "accuracies": []}),
        ("import os; return {'result': [{'here': {'A': os.path.isfile('evaluate.py')}}]}", {"accuracies": [{"split": "here", "show_to_participant": True, "accuracies": {"A": True}}]}),
    ],
)  # fmt: skip
def test_every_answer_of_a_hosts_evaluate_has_a_sentence(body: str, expected: dict[str, Any], tmp_path: Path) -> None:
    text = f"def evaluate(user_submission_file, phase_codename, **kwargs):\n    {body}\n"
    answer = scored(text, tmp_path / "evaluate.py")
    assert {key: answer.get(key) for key in expected} == expected


def test_an_evaluate_that_can_no_longer_be_loaded_is_an_incident(tmp_path: Path) -> None:
    answer = scored("import nothing_there", tmp_path / "evaluate.py")
    assert answer["incident"].startswith(
        "the scorer cannot be loaded (ModuleNotFoundError: No module named 'nothing_there'"
    )


def test_numbers_of_numpy_are_plain_and_hidden_splits_are_not_shown(tmp_path: Path) -> None:
    text = """
        import numpy as np

        def evaluate(user_submission_file, phase_codename, phase_pk=None, submission_metadata=None):
            return {"result": [{"val": {"A": np.float32(0.5), "B": np.int64(phase_pk)}}]}
        """
    answer = scored(text, tmp_path / "evaluate.py", hidden=("val",))
    assert answer["accuracies"] == [{"split": "val", "show_to_participant": False, "accuracies": {"A": 0.5, "B": 3}}]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"rules/main.py": "def score():\n    return 0.5\n", "rules/__init__.py": ""}, "from rules.main import score"),
        ({"worker/near.py": "def score():\n    return 0.5\n"}, "from near import score"),
        ({"worker/near.py": "def score():\n    return 0.5\n", "worker/__init__.py": ""}, "from .near import score"),
    ],
)
def test_modules_beside_and_in_the_repository_are_found(files: dict[str, str], text: str, tmp_path: Path) -> None:
    guests.written(tmp_path, files)
    function = f"{text}\n\ndef evaluate(user_submission_file, phase_codename, **kwargs):\n"
    guests.written(
        tmp_path, {"worker/evaluate.py": f"{function}    return {{'result': [{{'val': {{'A': score()}}}}]}}\n"}
    )
    (tmp_path / "submission").write_bytes(HALF)
    answer = scored("", tmp_path / "worker/evaluate.py", root=tmp_path)
    assert answer["accuracies"][0]["accuracies"] == {"A": 0.5}
