"""Codabench's compute worker, simulated: its handling of programs and submissions."""

from __future__ import annotations

import json
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script.main import phase_named
from segjudge.platforms.codabench import scoring_program
from segjudge.platforms.codabench.build import BuiltCompetition, build
from segjudge.platforms.codabench.opened_competition import open_competition
from segjudge.platforms.codabench.trial import (
    FAILED,
    FINISHED,
    CompetitionTrial,
    ComputeWorker,
    ScoredSubmission,
)
from segjudge.platforms.evalai.bundle.build import list_samples
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

ROOT = Path(__file__).resolve().parents[3]
PYTHON = Interpreter.open(sys.executable)
OURS = scoring_program._NOT_YOURS + "\n"


@pytest.fixture(scope="module")
def worker() -> ComputeWorker:
    return ComputeWorker(PYTHON)


def zipped(path: Path, files: dict[str, str]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(path)


def score(worker: ComputeWorker, tmp_path: Path, program: str, seconds: int = 60) -> ScoredSubmission:
    """Return the outcome of a submission that a Python program scores."""
    files = {"metadata.yaml": "command: python3 s.py /app/input /app/output", "s.py": program}
    task = {
        "scoring_program": zipped(tmp_path / "program.zip", files),
        "reference_data": zipped(tmp_path / "ref.zip", {"truth.txt": "42"}),
    }
    submission = zipped(tmp_path / "submission.zip", {"answer.txt": "41"})
    return worker.score(task, submission, ["a", "b"], seconds)


def writing(text: str) -> str:
    return f"import sys\nopen(sys.argv[2] + '/scores.json', 'w').write({text!r})\n"


def test_a_program_finds_truth_submission_and_the_workers_own_file(worker: ComputeWorker, tmp_path: Path) -> None:
    program = """
import json, os, sys
ref, res = (os.path.join(sys.argv[1], name) for name in ("ref", "res"))
assert sorted(os.listdir(res)) == ["answer.txt", "metadata"], os.listdir(res)
assert os.environ["PYTHONUNBUFFERED"] == "1" and os.environ["http_proxy"] == ""
assert os.path.basename(os.getcwd()) == "program"
a = int(open(ref + "/truth.txt").read()) - int(open(res + "/answer.txt").read())
json.dump({"a": a, "b": 0.1}, open(sys.argv[2] + "/scores.json", "w"))
print("said")
"""
    scores = score(worker, tmp_path, program)
    assert (scores.status, scores.stdout, scores.stderr) == (FINISHED, "said\n", "")
    assert scores.scores == {"a": Decimal("1.0000000000"), "b": Decimal("0.1000000000")}


def test_there_is_no_network_in_the_sandbox(worker: ComputeWorker, tmp_path: Path) -> None:
    if not worker.is_boxed:
        pytest.skip("there is no sandbox here")
    program = "import os\nprint(os.listdir('/sys/class/net') if os.path.exists('/sys/class/net') else ['lo'])\n"
    program += "import socket\nprint([name for _, name in socket.if_nameindex()])\n" + writing('{"a": 1}')
    assert score(worker, tmp_path, program).stdout.splitlines()[-1] == "['lo']"


def test_a_program_that_runs_over_its_limit_is_ended(worker: ComputeWorker, tmp_path: Path) -> None:
    scores = score(worker, tmp_path, "import time\ntime.sleep(60)", seconds=1)
    assert scores.details == "Execution Time Limit exceeded. Limit was 1 seconds"
    assert scores.seconds < 30


@pytest.fixture(scope="module")
def competitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BuiltCompetition]:
    built = build(find_bundle(str(ROOT)), str(tmp_path_factory.mktemp("competitions")))
    return {competition.codenames[0]: competition for competition in built.competitions}


@pytest.mark.long
@pytest.mark.parametrize("codename", ["sequences-dev", "sequences-test", "instances-dev"])
def test_scores_are_evalais_to_the_last_digit_that_codabench_keeps(
    competitions: dict[str, BuiltCompetition], worker: ComputeWorker, codename: str
) -> None:
    phase = phase_named(codename)
    with open_competition(competitions[codename].path) as bundle:
        name = bundle.config["phases"][0]["name"]
        runs = list(CompetitionTrial(bundle, worker).run({name: list_samples(str(ROOT), codename)}))
    assert runs
    for run, path in zip(runs, list_samples(str(ROOT), codename)):
        answer = evaluate(str(ROOT / phase.annotations), path, codename)
        wanted = {}
        for number, entry in enumerate(answer["result"]):
            for split, values in entry.items():
                wanted.update({(f"{split}: {label}" if number else label): value for label, value in values.items()})
        assert (run.outcome.status, run.outcome.stderr, run.problems) == (FINISHED, "", [])
        assert run.outcome.written == wanted
        assert {key: float(value) for key, value in run.outcome.scores.items()} == {
            key: pytest.approx(value, abs=1e-10) for key, value in wanted.items()
        }
        assert "detailed_results.html" in run.outcome.output


def of_demo(
    competitions: dict[str, BuiltCompetition],
    worker: ComputeWorker,
    submission: str,
    script: str = "",
    reference: dict[str, str] | None = None,
) -> ScoredSubmission:
    """Return the outcome of a submission to the first phase, with a script or reference data instead of ours."""
    with open_competition(competitions["sequences-dev"].path) as bundle:
        program = bundle.path("scoring_program.zip")
        if script:
            with zipfile.ZipFile(program) as archive:
                files = {name: archive.read(name).decode() for name in ("metadata.yaml", "score.py")}
            program = zipped(Path(bundle.folder, "edited.zip"), {**files, "evaluation_script/__init__.py": script})
        data = bundle.path("reference_data/sequences-dev.zip")
        if reference is not None:
            data = zipped(Path(bundle.folder, "other.zip"), reference)
        task = {"scoring_program": program, "reference_data": data}
        columns = [column["key"] for column in bundle.config["leaderboards"][0]["columns"]]
        return worker.score(task, submission, columns)


@pytest.mark.long
def test_a_refused_submission_fails_with_the_sentence_alone(
    competitions: dict[str, BuiltCompetition], worker: ComputeWorker, tmp_path: Path
) -> None:
    results = of_demo(competitions, worker, zipped(tmp_path / "s.zip", {"wrong/00000.png": "no picture"}))
    assert (results.status, results.output) == (FAILED, ())
    assert results.stderr.startswith("your file: no folder has the name of a sequence of this phase")
    assert results.stderr.count("\n") == 1
    assert "Traceback" not in results.stderr + results.stdout


def test_a_defect_is_told_to_the_log_and_not_to_the_participant(
    competitions: dict[str, BuiltCompetition], worker: ComputeWorker, tmp_path: Path
) -> None:
    script = "def evaluate(*_, **__):\n    raise KeyError('the truth is a cat')\n"
    submission = zipped(tmp_path / "s.zip", {"a.png": ""})
    results = of_demo(competitions, worker, submission, script)
    assert results.stderr == OURS
    assert "the truth" not in results.stdout
    assert "the truth is a cat" in results.log


def test_a_truth_that_cannot_be_read_gives_no_number_that_leads_nowhere(
    competitions: dict[str, BuiltCompetition], worker: ComputeWorker, tmp_path: Path
) -> None:
    columns = [{"key": "J&F-Mean", "split": "dev", "label": "J&F-Mean", "hidden": False}]
    task = {"phase": "sequences-dev", "annotations": "lost.zip", "title": "t", "seconds": 5, "columns": columns}
    reference = {"task.json": json.dumps(task)}
    results = of_demo(competitions, worker, zipped(tmp_path / "s.zip", {"a.png": ""}), reference=reference)
    assert (results.stderr, results.stdout) == (OURS, "")
    assert "incident" in results.log


def test_a_submission_that_takes_too_long_ends_by_itself(
    competitions: dict[str, BuiltCompetition], worker: ComputeWorker, tmp_path: Path
) -> None:
    script = "import os, signal\ndef evaluate(*_, **__):\n    os.kill(os.getpid(), signal.SIGALRM)\n"
    results = of_demo(competitions, worker, zipped(tmp_path / "s.zip", {"a.png": ""}), script)
    assert results.stderr == "Your submission could not be scored: it takes longer than 480 s.\n"
    assert results.status == FAILED
