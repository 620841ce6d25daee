"""The worker lives on, whatever happens to the child that scores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from evaluation_script import guard
from evaluation_script.errors import HostError, SubmissionError
from evaluation_script.guard import Crash, guarded

MEMORY = 200 << 20


def run(job: Any, *, seconds: float = 20, memory: int = MEMORY, said: Any = None) -> Any:
    return guarded(job, memory=memory, seconds=seconds, say=(said.append if said is not None else print))


def test_what_a_job_returns_and_says_arrives() -> None:
    said: list[str] = []

    def job(say: Any) -> Any:
        say("halfway")
        print("printed")
        sys.stderr.write("complained\n")
        return {"answer": [1.5, None, "ü"]}

    assert run(job, said=said) == {"answer": [1.5, None, "ü"]}
    assert said == ["halfway", "printed", "complained"]


def test_a_large_answer_arrives_whole() -> None:
    assert len(run(lambda say: "x" * 5_000_000)) == 5_000_000


def test_a_submission_error_keeps_its_text() -> None:
    def job(say: Any) -> Any:
        raise SubmissionError("dog/00017.png: is empty")

    with pytest.raises(SubmissionError, match=r"^dog/00017\.png: is empty$"):
        run(job)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(lambda say: os.kill(os.getpid(), signal.SIGKILL), "ended by SIGKILL", id="killed"),
        pytest.param(lambda say: os.kill(os.getpid(), signal.SIGSEGV), "ended by SIGSEGV", id="crashed"),
        pytest.param(lambda say: sys.exit(0), "ended itself with 0", id="exit"),
        pytest.param(lambda say: sys.exit("bye"), "ended itself with 'bye'", id="exit-text"),
        pytest.param(lambda say: os._exit(7), r"without an answer \(exit 7\)", id="hard-exit"),
        pytest.param(lambda say: np.ones(1 << 30, np.uint8).sum(), "more than 200 MB of memory", id="memory"),
        pytest.param(lambda say: bytearray(1 << 30), "more than 200 MB of memory", id="memory-of-python"),
    ],
)
def test_the_end_of_a_child_is_a_sentence(job: Any, words: str) -> None:
    with pytest.raises(SubmissionError, match=words):
        run(job)

    assert run(lambda say: "alive") == "alive"


def test_a_child_that_hangs_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(SubmissionError, match=r"longer than 0\.3 seconds"):
        run(lambda say: time.sleep(60), seconds=0.3)
    assert time.monotonic() - started < 5


def test_a_child_that_hangs_deaf_to_signals_is_ended() -> None:
    def job(say: Any) -> Any:
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)

    with pytest.raises(SubmissionError, match="longer than"):
        run(job, seconds=0.3)


def test_a_defect_of_ours_carries_its_traceback_to_the_operator() -> None:
    with pytest.raises(Crash, match="(?s)Traceback.*ZeroDivisionError"):
        run(lambda say: 1 / 0)


def test_a_broken_truth_is_no_fault_of_the_participant() -> None:
    def job(say: Any) -> Any:
        raise HostError("annotation file: is broken")

    with pytest.raises(Crash, match="annotation file: is broken"):
        run(job)


def test_no_child_is_left_behind() -> None:
    for job in (lambda say: 1, lambda say: os._exit(3)):
        try:
            run(job)
        except SubmissionError:
            pass
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_without_fork_it_says_so_once_and_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError("no more processes")

    monkeypatch.setattr(guard.os, "fork", refuse)
    monkeypatch.setattr(guard, "_told", [])
    said: list[str] = []

    assert [run(lambda say: "scored", said=said) for _ in range(2)] == ["scored", "scored"]
    assert said == ["Scoring runs without limits here: no process can be forked (no more processes)."]


def test_a_child_dies_with_a_worker_that_was_killed() -> None:
    code = (
        "import sys, time; sys.path.insert(0, %r)\n"
        "from evaluation_script.guard import guarded\n"
        "import os\n"
        "def job(say):\n"
        "    say(str(os.getpid())); \n"
        "    while True: time.sleep(0.1); say('still here')\n"
        "guarded(job, memory=1 << 28, seconds=60, say=lambda text: print(text, flush=True))\n"
    ) % os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    child = int(worker.stdout.readline())
    worker.kill()
    worker.wait()
    worker.stdout.close()
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{child}/stat", encoding="ascii") as file:
            if file.read().split(")")[1].split()[0] == "Z":
                return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child outlived its worker")
