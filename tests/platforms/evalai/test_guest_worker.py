"""EvalAI's worker with other hosts' scripts: their packages, their actions during import, and their failures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.trial import open_hosted_worker, try_samples
from tests import guests
from tests.builders import zipped

PIP = """
import os, subprocess, sys
from pathlib import Path


def install(package):
    subprocess.check_call([sys.executable, "-m", "pip", "install", package])


install("colourtool==1.0")
import colourtool
from .main import evaluate
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one package, in place of the package index, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "colourtool-1.0.dist-info"
    wheel = {
        "colourtool.py": b"NAME = 'colourtool'\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: colourtool\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    (folder / "colourtool-1.0-py3-none-any.whl").write_bytes(zipped(wheel))
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def scored(folder: Path, sample: str = "dev/half.json", seconds: float = 60.0) -> Any:
    """Return the outcome of a sample; its phase comes first in the config."""
    bundle = build(str(folder), str(folder / "b.zip"), lenient=True).path
    with open_hosted_worker(bundle, sys.executable) as worker:
        worker.seconds = seconds
        return worker.evaluate(worker.config["challenge_phases"][0], str(folder / "examples" / sample), 1)


def broken(tmp_path: Path, main_text: str) -> Path:
    return guests.with_samples(guests.starter(tmp_path / "bundle", {"main.py": main_text}))


def test_a_script_with_packages_data_and_relative_imports_scores(tmp_path: Path) -> None:
    outcome = scored(guests.with_samples(guests.starter(tmp_path)))
    assert (outcome.status, outcome.result) == ("finished", {"val": {"Accuracy": 0.5, "Coverage": 0.5}})
    assert outcome.stdout == "Starting Evaluation.....\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [
        pytest.param({"requirements.txt": "colourtool\n", "data/x.py": "", "__init__.py": "import colourtool\nfrom .main import evaluate\n"}, id="requirements"),
        pytest.param({"__init__.py": PIP}, id="while-imported"),
    ],
)  # fmt: skip
def test_packages_are_installed_once_for_each_content(
    script: dict[str, str], tmp_path: Path, index: Path, capsys: Any
) -> None:
    folder = guests.with_samples(guests.starter(tmp_path / "bundle", script))
    command = ["run", "--bundle", str(folder), "--python", sys.executable]
    assert main(command) == 0
    assert "requirements once, over the network from this machine's package index …" in capsys.readouterr().err
    (index / "colourtool-1.0-py3-none-any.whl").unlink()
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "Installing" not in err
    assert out.count("finished in") == 3
    with pytest.raises(ModuleNotFoundError):  # the interpreter itself gets none
        __import__("colourtool")


@pytest.mark.parametrize(
    ("body", "message"),
    [("import os; os.kill(os.getpid(), 11)", "SIGSEGV"), ("while True: pass", "it did not answer for 2 seconds")],
)
def test_an_evaluate_that_never_answers_is_ended(body: str, message: str, tmp_path: Path) -> None:
    text = f"def evaluate(annotation, submission, phase, **kwargs):\n    {body}\n"
    with pytest.raises(HostError) as caught:
        scored(broken(tmp_path, text), seconds=2.0 if "while" in body else 60.0)
    assert message in str(caught.value)


RETURNS = "def evaluate(annotations, submission, phase, **_):\n    return {}\n"
FULL = {"Accuracy": 1.0, "Coverage": 1.0}


@pytest.mark.parametrize(
    ("returned", "message", "severity"),
    [
        ({"result": [{"val": {"Accuracy": "0.5", "Coverage": "high"}}]}, "", ""),
        ({"result": [{"val": {"Accuracy": 1.0}}]}, "val: its result lacks Coverage", "warning"),
        ({"result": [{"val": {"Accuracy": "high", "Coverage": 1}}]}, "Accuracy is 'high', which", "error"),
        ({"result": [{"val": FULL}], "error": [{"val": {"error_Accuracy": 1}}]}, "lacks an error_LABEL", "error"),
        ({"result": [["val"]]}, "does not score: AttributeError", "error"),
    ],
)
def test_a_result_that_a_leaderboard_cannot_show_is_found_and_run_goes_on(
    returned: dict[str, Any], message: str, severity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken(tmp_path, RETURNS.format(returned))
    (folder / "examples/test/half.json").unlink()
    bundle = build(str(folder)).path
    problems = {(problem.severity, problem.fault) for problem in try_samples(str(folder), bundle)}
    assert all(kind == severity and message in results for kind, results in problems)
    assert bool(problems) == bool(message)
    assert main(["run", str(folder)]) == int("does not score" in message)
    assert "defect" not in capsys.readouterr().err


def test_run_ranks_upwards_where_the_config_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = guests.CONFIG.replace("descending: True", "descending: False")
    assert main(["run", str(guests.with_samples(guests.starter(tmp_path / "b", config=config)))]) == 0
    shown = capsys.readouterr().out
    assert shown.index("1. half.json") < shown.index("2. all.json")
