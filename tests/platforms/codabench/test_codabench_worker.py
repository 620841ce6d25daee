"""Codabench's compute worker, simulated: its handling of programs and submissions."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script.main import phase_named
from segjudge.platforms.codabench.build import BuiltCompetition, build
from segjudge.platforms.codabench.opened_competition import open_competition
from segjudge.platforms.codabench.trial import FINISHED, CompetitionTrial, ComputeWorker, ScoredSubmission
from segjudge.platforms.evalai.bundle.build import list_samples
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

ROOT = Path(__file__).resolve().parents[3]
PYTHON = Interpreter.open(sys.executable)


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
@pytest.mark.parametrize("codename", ["sequences-test", "instances-dev"])
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
