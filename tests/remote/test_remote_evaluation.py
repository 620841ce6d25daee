"""One evaluation of the remote worker: limits, leftovers, and its knowledge."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

from segjudge import cli
from segjudge.evaluation_script import evaluate as hosted
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.platforms.evalai.rows import ShapeError, check_accuracies, for_rest
from segjudge.remote_challenge_evaluation.evaluate import evaluate
from segjudge.remote_challenge_evaluation.monitoring import Log
from segjudge.remote_challenge_evaluation.scorer_process import ScoringRequest, run_scorer
from tests.builders import ROOT
from tests.endings import is_gone
from tests.rehearsals import waited

STRONG = str(ROOT / "examples/sequences-dev/strong.zip")
TRUTH = str(ROOT / "annotations/sequences-dev.zip")

#: Runs `run_scorer` in a process of its own, as a worker does, with a host's scorer in the place of ours.
RUN = """
import json, os, sys, time
from segjudge.evaluation_script.runner.supervisor import descendants
from segjudge.remote_challenge_evaluation import scorer_process
folder, submission, truth, seconds, has_script = sys.argv[1:]
scorer_process.forbid_inspection()
lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR)
script = {"python": sys.executable, "file": os.path.join(folder, "evaluate.py"), "root": folder}
request = scorer_process.ScoringRequest(
    submission, "sequences-dev", truth, {"id": 7, "challenge_phase": 3}, 4 << 30, script=script if has_script else None
)
is_over = lambda: os.path.exists(os.path.join(folder, "stop"))
outcome = scorer_process.run_scorer(request, folder, float(seconds), lock, is_over)
children = list(descendants(os.getpid()))
print(json.dumps({**outcome.__dict__, "children": children}))
"""
EVALUATE = "import json, os, sys, time\n\ndef evaluate(user_submission_file, phase_codename):\n"


def command(folder: Path, body: str, submission: str, truth: str, seconds: float) -> list[str]:
    """Return the program that runs `evaluate()` with this body; by default, ours."""
    (folder / "evaluate.py").write_text(EVALUATE + textwrap.indent(body, "    "))
    return [sys.executable, "-c", RUN, str(folder), submission, truth, str(seconds), "yes" if body else ""]


def run(
    folder: Path, body: str = "", submission: str = STRONG, truth: str = TRUTH, seconds: float = 30
) -> dict[str, Any]:
    message = command(folder, body, submission, truth, seconds)
    done = subprocess.run(message, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def test_a_warning_of_a_library_is_for_the_operator_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scored(*_arguments: Any) -> dict[str, Any]:
        warnings.simplefilter("always")
        warnings.warn("invalid value encountered in divide", RuntimeWarning, stacklevel=1)
        return {"result": []}

    monkeypatch.setattr(sys, "__stderr__", operator := io.StringIO())
    monkeypatch.setattr("segjudge.remote_challenge_evaluation.evaluate.evaluate_phase", scored)
    evaluate(STRONG, "sequences-dev", TRUTH)
    assert "invalid value encountered in divide" in operator.getvalue()
    assert capsys.readouterr().err == ""


def test_the_documented_form_returns_the_rest_list(monkeypatch: pytest.MonkeyPatch) -> None:
    result = evaluate(STRONG, "sequences-dev", TRUTH, submission_metadata={"id": 1})
    local_scores = hosted(TRUTH, STRONG, "sequences-dev")["result"]
    assert result["result"] == [{"split": "dev", "show_to_participant": True, "accuracies": local_scores[0]["dev"]}]
    monkeypatch.setenv("ANNOTATIONS", str(ROOT / "annotations"))
    assert evaluate(STRONG, "sequences-dev")["result"] == result["result"], "it finds the truth itself"


def test_the_documented_form_raises_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(SubmissionError, match="is a zip that was cut off"):
        evaluate(str(tmp_path / "bad.zip"), "sequences-dev", TRUTH)
    monkeypatch.setenv("ANNOTATIONS", str(tmp_path))
    with pytest.raises(HostError, match="There is no annotation file for sequences-dev"):
        evaluate(STRONG, "sequences-dev")
    with pytest.raises(SubmissionError, match="There is no phase 'other'"):
        evaluate(STRONG, "other", TRUTH)


def test_it_scores(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert outcome["accuracies"][0]["accuracies"] == hosted(TRUTH, STRONG, "sequences-dev")["result"][0]["dev"]
    assert "3 of 3 scored" in outcome["stdout"]
    assert outcome["children"] == []


def test_what_an_incident_says_goes_to_the_operator_alone(tmp_path: Path) -> None:
    shutil.copy(STRONG, tmp_path / "truth.zip")
    broken = tmp_path / "secret-truth.zip"
    broken.write_bytes(b"PK no truth")
    outcome = run(tmp_path, truth=str(broken))
    assert "incident number" in outcome["incident"]
    assert "secret-truth" in outcome["log"]
    assert "secret-truth" not in outcome["stdout"] + outcome["stderr"] + outcome["incident"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("os.kill(os.getpid(), 9)", "its process was killed by SIGKILL", id="killed"),
        pytest.param("os.kill(os.getpid(), 11)", "its process was killed by SIGSEGV", id="segfault"),
        pytest.param("os._exit(7)", "its process ended with exit code 7", id="exit"),
        pytest.param("os.write(int(sys.argv[2]), b'no json')", "did not send an answer", id="garbage"),
        pytest.param("os.write(int(sys.argv[2]), b'[1]\\n')", "did not send an answer", id="list"),
        pytest.param("os.write(int(sys.argv[2]), b'{\"accuracies\": []}\\n')", "did not send an answer", id="forged"),
        pytest.param("os.close(int(sys.argv[2])); time.sleep(1000)", "its process", id="closed"),
    ],
)
def test_a_scorer_that_dies_is_an_incident(tmp_path: Path, body: str, message: str) -> None:
    outcome = run(tmp_path, body)
    assert message in outcome["incident"]
    assert outcome["children"] == []


def test_a_recursion_without_end_and_too_much_memory_are_said(tmp_path: Path) -> None:
    assert (
        "maximum recursion depth" in run(tmp_path, "return evaluate(user_submission_file, phase_codename)")["refused"]
    )
    assert run(tmp_path, "return bytearray(8 << 30)")["refused"] == "MemoryError"


def test_one_that_never_ends_is_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "print('begun', flush=True)\ntime.sleep(1000)", seconds=6)
    assert outcome["is_late"]
    assert outcome["stdout"] == "begun\n"
    assert outcome["children"] == []


def test_one_that_is_in_the_way_of_a_stop_is_handed_back(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    assert run(tmp_path, "time.sleep(1000)")["is_handed_back"] is True


DAEMON = """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        time.sleep(1000)
raise ValueError("done")
"""


def test_what_a_scorer_leaves_behind_is_ended_too(tmp_path: Path) -> None:
    outcome = run(tmp_path, DAEMON)
    assert outcome["refused"] == "done"
    assert outcome["children"] == []


LOUD = """
for k in range(3000):
    os.write(1, b'line %07d\\n' % k * 100)
os.write(2, b'\\xff\\x00bytes')
raise ValueError("done")
"""


def test_what_it_prints_is_bounded_with_its_beginning_and_its_end(tmp_path: Path) -> None:
    outcome = run(tmp_path, LOUD)
    assert len(outcome["stdout"]) < 140_000
    assert outcome["stdout"].startswith("line 0000000")
    assert outcome["stdout"].rstrip().endswith("line 0002999")
    assert "bytes are omitted here" in outcome["stdout"]
    assert "\0" not in outcome["stderr"]


def test_what_it_closes_does_not_keep_its_answer(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sys.stdout.close(); os.close(2)\nreturn {'result': [{'dev': {'J': 1}}]}")
    assert outcome["accuracies"] == [{"split": "dev", "show_to_participant": True, "accuracies": {"J": 1}}]


def test_its_environment_is_built_and_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "WEBHOOK", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "secret")
    outcome = run(tmp_path, "raise ValueError(json.dumps(dict(os.environ)))")["refused"]
    assert "secret" not in outcome
    assert "PATH" in outcome


def test_nobody_reads_the_workers_memory() -> None:
    code = "from segjudge.remote_challenge_evaluation.scorer_process import forbid_inspection; forbid_inspection(); import ctypes; print(ctypes.CDLL(None).prctl(3))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_it_dies_with_its_worker(tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    with subprocess.Popen(command(tmp_path, body, STRONG, TRUTH, 60), cwd=ROOT) as worker:
        pid = int(waited(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        worker.kill()
    assert is_gone(pid)


LABELS = {"dev": ["J", "F"]}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        pytest.param({"dev": {"J": 1}}, "not a list of splits", id="dict"),
        pytest.param([{"split": "x", "accuracies": {}}], "names the split 'x'", id="split"),
        pytest.param([{"split": "dev", "accuracies": {"X": 1.0}}], "'X' is not a label", id="label"),
        pytest.param([{"split": "dev", "accuracies": {"J": float("nan")}}], "not a finite number", id="nan"),
        pytest.param([{"split": "dev", "accuracies": {"J": True}}], "not a finite number", id="bool"),
        pytest.param([{"split": "dev", "accuracies": {"J": 10**400}}], "not a finite number", id="beyond-floats"),
        pytest.param([{"split": [], "accuracies": {}}], "names the split", id="split-list"),
        pytest.param([{"split": "dev", "accuracies": {"J": "1"}}], "not a finite number", id="text"),
        pytest.param([1], "names the split None", id="number"),
    ],
)
def test_a_result_that_the_server_would_refuse_is_not_sent(result: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        check_accuracies(result, LABELS)


def test_participants_are_not_shown_hidden_splits() -> None:
    """EvalAI writes the accuracies of visible splits into a submission's result file."""
    result = for_rest([{"dev": {"J": 0.5}}, {"test": {"J": 0.25}}], {"test"})
    assert [(entry["split"], entry["show_to_participant"]) for entry in result] == [("dev", True), ("test", False)]
    assert result[1]["accuracies"] == {"J": 0.25}, "the leaderboard has them"


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_line_of_an_operators_log_shows_a_password_or_a_signature(form: str, capsys: Any) -> None:
    address = "https://user:password@host/a.zip?X-Amz-Signature=signature"
    Log(form)("copy not kept", where=address, why=f"it is not there ({address!r})", submission=7)
    line = capsys.readouterr().err
    assert "https://host/a.zip" in line
    assert "password" not in line
    assert "signature" not in line


@pytest.mark.long
def test_what_a_remote_challenge_cannot_show_is_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert cli.main(["new", str(folder), "--protocol", "davis2017", "--truth", TRUTH]) == 0
    phases = folder / "evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace('codename="dev",', 'codename="dev", report=True, detail="all",'))
    request = ScoringRequest(
        STRONG, "dev", TRUTH, {"id": 1, "challenge_phase": 1, "status": "running"}, 4 << 30, str(folder)
    )
    outcome: Any = run_scorer(request, str(tmp_path), 60, os.open(tmp_path / "lock", os.O_CREAT), lambda: False)
    assert outcome.accuracies, outcome
    assert not {"intervals", "losses"} & set(outcome.metadata["submission_result"])
