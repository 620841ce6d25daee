"""The agent and the submission's stderr state why an answer was rejected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.code_upload_challenge_evaluation.environment.service import _LONGEST_REFUSAL as LONGEST_REFUSAL
from segjudge.code_upload_challenge_evaluation.environment.service import _clean_sentence
from tests.environments import SIZE, Served, dataset

HEIGHT, WIDTH = SIZE
FRAME = f"the frame {HEIGHT} x {WIDTH} (height x width)."

#: An agent's first message → the messages that the agent and the host read.
ANSWERS = {
    "too small": ("np.zeros((10, 20), np.uint8)", f"drift/00000: the mask is 10 x 20, but {FRAME}"),
    "floats": ("np.zeros((10, 20))", "drift/00000: a mask has two dimensions and whole ids from 0 to 255, not float64"),
}


def program(folder: Path, answer: str, patient: bool = False) -> Path:
    """Return an agent that sends this at its first step, and exits as Python does or waits."""
    path = folder / "wrong.py"
    path.write_text(
        "import sys, time\nimport numpy as np\nfrom segjudge.agent import ActionRefusedError, Environment\n"
        "with Environment(*sys.argv[1:], quiet=True) as environment:\n"
        "    environment.reset()\n"
        f"    try: environment.act({answer})\n"
        f"    except ActionRefusedError: \n        if {patient}: time.sleep(60)\n        raise\n"
    )
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    dataset(folder)
    return folder


def served(data: Path, *arguments: str, **variables: str) -> Served:
    return Served(data, *dataset(data), "--gone-seconds", "0.2", *arguments, **variables)


@pytest.mark.long
def test_an_answer_that_is_larger_than_a_message(data: Path, tmp_path: Path) -> None:
    noise = "(np.random.default_rng(0).integers(0, 2, (1600, 1600))).astype(np.uint8)"
    running = served(data, "--max-message", "1")
    subprocess.run([sys.executable, program(tmp_path, noise), running.address], check=False, stderr=subprocess.DEVNULL)
    message = running.outcome()["message"]
    assert "Its last call was rejected: drift/00000: the message is too large (" in message


def test_a_refusal_is_short_and_fit_for_a_log() -> None:
    assert _clean_sentence("x" * 10_000) == "x" * LONGEST_REFUSAL + "."
    assert _clean_sentence("a\x1b[2J\nb. ") == "a [2J b."


@pytest.mark.long
@pytest.mark.parametrize("answer", ["too small", "floats"])
def test_in_the_arena(answer: str, data: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--truth", str(data / "truth.zip"), "--frames", str(data / "root")]
    assert main(["arena", *arguments, "--", str(program(tmp_path, ANSWERS[answer][0]))]) == 1
    output = capsys.readouterr().err
    assert "ActionRefusedError: drift/00000: " in output, "the agent's log"
    assert output.splitlines()[-1].endswith("Fix the agent.")
    assert ANSWERS[answer][1].rstrip(".") in output.splitlines()[-1]
