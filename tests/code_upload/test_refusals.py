"""The agent and the submission's stderr state why an answer was rejected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from segjudge.cli import main
from segjudge.code_upload.environments import INTERACTIVE
from segjudge.code_upload.messages import Action
from segjudge.code_upload_challenge_evaluation.environment.service import _LONGEST_REFUSAL as LONGEST_REFUSAL
from segjudge.code_upload_challenge_evaluation.environment.service import _clean_sentence
from tests.environments import SIZE, Caller, Served, dataset

HEIGHT, WIDTH = SIZE
FRAME = f"the frame {HEIGHT} x {WIDTH} (height x width)."

#: An agent's first message → the messages that the agent and the host read.
ANSWERS = {
    "too small": ("np.zeros((10, 20), np.uint8)", f"drift/00000: the mask is 10 x 20, but {FRAME}"),
    "turned": (
        f"np.zeros(({WIDTH}, {HEIGHT}), np.uint8)",
        f"drift/00000: the mask is {WIDTH} x {HEIGHT}, but {FRAME}",
    ),
    "floats": ("np.zeros((10, 20))", "drift/00000: a mask has two dimensions and whole ids from 0 to 255, not float64"),
    "three dimensions": ("np.zeros((10, 20, 3), np.uint8)", "from 0 to 255, not uint8 (10, 20, 3)"),
    "large ids": ("np.full((10, 20), 300)", "with 300 to 300"),
    "nothing": ("None", "drift/00000: a mask has two dimensions and whole ids from 0 to 255, not object ()"),
    "ragged": ("[[1], [1, 2]]", "drift/00000: the action cannot be sent (setting an array element"),
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
@pytest.mark.parametrize(("answer", "refusal"), ANSWERS.values(), ids=list(ANSWERS))
def test_an_agent_that_ends_for_it(answer: str, refusal: str, data: Path, tmp_path: Path) -> None:
    running = served(data)
    ran = subprocess.run(
        [sys.executable, program(tmp_path, answer), running.address], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert refusal in ran.stderr, "the agent is told"
    message = running.outcome()["message"]
    assert message.startswith("The agent ended before the evaluation did, at drift/00000. Its last call was rejected: ")
    assert refusal in message, "and so is the submission"


@pytest.mark.long
def test_an_agent_that_waits_after_it(data: Path, tmp_path: Path) -> None:
    running = served(data, "--step-seconds", "3")
    agent = subprocess.Popen(
        [sys.executable, program(tmp_path, ANSWERS["too small"][0], patient=True), running.address],
        stderr=subprocess.DEVNULL,
    )
    try:
        message = running.outcome()["message"]
    finally:
        agent.kill()
        agent.wait()
    assert message.startswith("The agent did not answer drift/00000 within 3 seconds. Its last call was rejected: ")
    assert ANSWERS["too small"][1] in message


@pytest.mark.long
def test_an_answer_that_is_larger_than_a_message(data: Path, tmp_path: Path) -> None:
    noise = "(np.random.default_rng(0).integers(0, 2, (1600, 1600))).astype(np.uint8)"
    running = served(data, "--max-message", "1")
    subprocess.run([sys.executable, program(tmp_path, noise), running.address], check=False, stderr=subprocess.DEVNULL)
    message = running.outcome()["message"]
    assert "Its last call was rejected: drift/00000: the message is too large (" in message


@pytest.mark.long
def test_a_refusal_that_was_answered_better_is_forgotten(data: Path) -> None:
    running = served(data)
    caller = Caller(running.address)
    caller.begin()
    bad = Action(caller.session, 0, np.zeros((2, 2), np.uint8)).pack()
    assert caller.refused("act_on_environment", bad)[0] == grpc.StatusCode.INVALID_ARGUMENT
    caller.act(np.zeros(SIZE, np.uint8))
    caller.channel.close()
    assert running.outcome()["message"] == "The agent ended before the evaluation did, at drift/00001."


REFUSED_CALLS = [
    ("act_on_environment", Action("S", 0, {"mask": 1}), "the mask is not a two-dimensional array of whole numbers"),
    ("act_on_environment", Action("S", 7), "Step 7 is not due; step 0 is."),
    ("act_on_environment", Action("other", 0), "This is not the running session: call reset again."),
    ("reset", Action("other"), "A session is running; a reset can take over after 60 seconds without a call."),
    ("act_on_environment", b"\x0a\x04\x80\x04N.", "The message is a Python pickle"),
    ("act_on_environment", Action("S", 0, problem="\x1b[31m no\nweights"), "drift/00000:  [31m no weights."),
]


def test_every_refusal_is_answered_and_the_last_is_kept(data: Path) -> None:
    running = served(data)
    caller = Caller(running.address)
    caller.begin()
    for name, action, message in REFUSED_CALLS:
        if isinstance(action, Action):
            session = caller.session if action.session_id == "S" else action.session_id
            action = Action(session, action.step, action.value, action.problem).pack()  # noqa: PLW2901
        _, output = caller.refused(name, action)
        assert message in output
    caller.channel.close()
    assert f"Its last call was rejected: {output}" in running.outcome()["message"]


@pytest.mark.long
def test_a_flood_names_the_last_of_it(data: Path) -> None:
    running = served(data)
    caller = Caller(running.address)
    caller.begin()
    bad = Action(caller.session, 0, np.zeros((2, 2), np.uint8)).pack()
    for _ in range(1100):
        if caller.refused("act_on_environment", bad)[0] == grpc.StatusCode.FAILED_PRECONDITION:
            break
    message = running.outcome()["message"]
    assert message.startswith("More than 1000 calls of the agent were rejected. Its last call was rejected: ")


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


INTERACTIVE_ANSWERS = {
    "[1, 2]": "the action is not a mapping",
    "{'masks': 7}": "the action cannot be sent ('int' object is not iterable)",
    "{'masks': [np.zeros((3, 3), np.uint8)]}": "the mask is 3 x 3, but the frame",
}


@pytest.mark.long
def test_interactive_answers(data: Path, tmp_path: Path) -> None:
    options = ["--env", INTERACTIVE, "--option", f"truth={json.dumps(str(data / 'root'))}", "--option", "draw=1"]
    running = Served(data, *options, "--option", "interactions=1", "--gone-seconds", "0.2")
    path = tmp_path / "wrong.py"
    path.write_text(
        "import sys\nimport numpy as np\nfrom segjudge.agent import ActionRefusedError, Environment\n"
        "with Environment(*sys.argv[1:], quiet=True) as environment:\n"
        "    environment.reset()\n"
        f"    for answer in ({', '.join(INTERACTIVE_ANSWERS)}):\n"
        "        try: environment.act(answer)\n"
        "        except ActionRefusedError as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, path, running.address], check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    *_, last = INTERACTIVE_ANSWERS.values()
    for line, interactive_answer in zip(ran.stdout.splitlines(), INTERACTIVE_ANSWERS.values(), strict=True):
        assert interactive_answer in line
    message = running.outcome()["message"]
    assert "Its last call was rejected: " in message
    assert last in message


@pytest.mark.long
def test_any_other_environment(data: Path, tmp_path: Path) -> None:
    running = Served(data, "--env", "CartPole-v1", "--gone-seconds", "0.2")
    subprocess.run([sys.executable, program(tmp_path, "7"), running.address], check=False, capture_output=True)
    assert "rejected: episode 1, step 0: the action 7 is not in Discrete(2)." in running.outcome()["message"]
