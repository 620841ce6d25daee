"""The worker survives, whatever happens to the child that scores."""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner import guard
from segjudge.evaluation_script.runner.guard import _LOG_CHARACTERS, CrashError, run_guarded
from tests.endings import is_gone

MEMORY = 200 << 20


def run(job: Any, *, seconds: float = 20, memory: int = MEMORY, messages: Any = None) -> Any:
    return run_guarded(job, memory=memory, seconds=seconds, say=(messages.append if messages is not None else print))


def test_what_a_job_returns_and_says_arrives_and_what_it_complains_of_is_logged(capfd: Any) -> None:
    output: list[str] = []

    def job(say: Any) -> Any:
        say("halfway")
        print("printed")
        written = sys.stderr.write("complained\n")
        sys.stderr.write("of \x1b, and no more")
        print("last", end="")
        return {"answer": [1.5, None, "ü"], "written": written}

    assert run(job, messages=output) == {"answer": [1.5, None, "ü"], "written": 11}
    assert output == ["halfway", "printed", "last"]
    assert capfd.readouterr().err == "complained\nof \\x1b, and no more\n"


@pytest.mark.parametrize(
    ("prints", "lines"),
    [
        (lambda: print("a", 1), ["a 1"]),
        (lambda: print("a", end=""), ["a"]),
        (lambda: [print(x, end=",") for x in "abc"], ["a,b,c,"]),
        (lambda: print("a\nb", "c", sep=" | "), ["a", "b | c"]),
        (lambda: sys.stdout.write("ü" * 5000 + "\n"), ["ü" * 5000]),
        (lambda: [print("half", end="", flush=True), print(" a line")], ["half a line"]),
        (lambda: print("to stdout", file=sys.stdout), ["to stdout"]),
        (lambda: print("\n\n"), []),
        (lambda: print("10 %\r20 %"), ["10 %\n20 %"]),
        (
            lambda: print("\x1b[2Jx\0y\u202ez\ud800\N{GRINNING FACE}\tü"),
            ["\\x1b[2Jx\\x00y\\u202ez\\ud800\N{GRINNING FACE}\tü"],
        ),
    ],
)
def test_what_is_printed_arrives_line_by_line(prints: Any, lines: list[str]) -> None:
    output: list[str] = []
    run(lambda say: prints() and None, messages=output)
    assert output == lines


def test_a_fork_that_comes_back_does_not_answer() -> None:
    def job(say: Any) -> Any:
        parent = os.getpid()
        if os.fork():
            time.sleep(0.2)
        return os.getpid() == parent

    assert [run(job) for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("excess", [0, 1])
@pytest.mark.parametrize("way", ["printed", "said"])
def test_as_much_is_kept_as_a_log_holds(way: str, excess: int) -> None:
    """The end of a line counts as a character."""
    output: list[str] = []

    def job(say: Any) -> Any:
        for line in ("ab", "", long_line):
            say(line) if way == "said" else print(line)

    long_line = "x" * (_LOG_CHARACTERS - len("ab\n\n") + excess)
    run(job, messages=output)
    assert output == ["ab", "... output beyond 1,048,576 characters is omitted ..." if excess else long_line]


def test_a_job_that_never_stops_talking_is_ended() -> None:
    def job(say: Any) -> Any:
        while True:
            say("still here")

    with pytest.raises(SubmissionError, match="longer than"):
        run(job, seconds=0.5, messages=[])


def test_a_submission_error_keeps_its_text() -> None:
    def job(say: Any) -> Any:
        raise SubmissionError("dog/00017.png: is empty")

    with pytest.raises(SubmissionError, match=r"^dog/00017\.png: is empty$"):
        run(job)


def disabled() -> bool:
    """Disable the pages about an intended death."""
    faulthandler.disable()
    return True


def crash() -> None:
    disabled()
    os.kill(os.getpid(), signal.SIGSEGV)


def raw(say: Any, data: bytes, then: Callable[[], Any] = lambda: os._exit(0)) -> None:
    """Write an invalid message to the parent."""
    while data:
        data = data[os.write(say.__self__._writer, data) :]
    then()


@pytest.mark.parametrize(
    ("job", "cause"),
    [
        pytest.param(lambda say: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL, as happens if memory runs out", id="killed"),
        pytest.param(lambda say: crash(), "was killed by SIGSEGV", id="crashed"),
        pytest.param(lambda say: os.kill(os.getpid(), signal.SIGTERM), "was killed by SIGTERM", id="terminated"),
        pytest.param(lambda say: os.kill(0, signal.SIGKILL), "was killed by SIGKILL, as happens if memory runs out", id="its-group-killed"),
        pytest.param(lambda say: os.abort() if disabled() else None, "was killed by SIGABRT", id="aborted"),
        pytest.param(lambda say: os.kill(os.getpid(), 50), "was killed by signal 50", id="a-signal-without-a-name"),
        pytest.param(lambda say: raw(say, b"A"), "ended without an answer (exit 0)", id="half-a-message"),
        pytest.param(lambda say: sys.exit(0), "ended itself with 0", id="exit"),
        pytest.param(lambda say: sys.exit("b\x1bye"), r"ended itself with 'b\x1bye'", id="exit-text"),
        pytest.param(lambda say: os._exit(7), "ended without an answer (exit 7)", id="hard-exit"),
        pytest.param(lambda say: np.ones(1 << 30, np.uint8).sum(), "more than 200 MB of memory", id="memory"),
        pytest.param(lambda say: bytearray(1 << 30), "more than 200 MB of memory", id="memory-of-python"),
    ],
)  # fmt: skip
def test_the_end_of_a_child_is_a_sentence(job: Any, cause: str) -> None:
    with pytest.raises(SubmissionError) as caught:
        run(job)

    subject = "it needs " if "memory" in cause and "SIGKILL" not in cause else "the scoring process "
    remedy = "Check it with a local run, then tell the organisers."
    assert str(caught.value) == f"Your submission could not be scored: {subject}{cause}. {remedy}"
    assert run(lambda say: "alive") == "alive"


def test_a_child_that_hangs_deaf_to_signals_is_ended() -> None:
    def job(say: Any) -> Any:
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)

    with pytest.raises(SubmissionError, match="longer than"):
        run(job, seconds=0.3)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(lambda say: os.kill(os.getpid(), signal.SIGSTOP), id="stops"),
        pytest.param(lambda say: (os.closerange(0, 4096), time.sleep(100)), id="closes-everything"),
        pytest.param(lambda say: raw(say, b"A\xff\xff{", lambda: time.sleep(100)), id="half-a-message"),
        pytest.param(lambda say: (os.kill(os.getppid(), signal.SIGSTOP), time.sleep(100)), id="stops-its-supervisor"),
    ],
)
def test_a_child_that_does_nothing_any_more_is_ended(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard.supervisor, "GIVE_UP_SECONDS", 1.0)
    with pytest.raises(SubmissionError, match=r"longer than 0\.3 seconds"):
        run(job, seconds=0.3)


NO_MESSAGES, NO_TEXT = "sent something other than messages", "sent something other than text"
NO_JSON = "did not answer in JSON"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        pytest.param(b"\xff\xff\xff\xff" + b"x" * 100_000, NO_MESSAGES, id="garbage"),
        pytest.param(b"Z\0\0", NO_MESSAGES, id="no-kind"),
        pytest.param(b"S\0\x02\xff\xff", NO_TEXT, id="no-text"),
        pytest.param(b"A\0\x02{]", NO_JSON, id="no-json"),
        pytest.param(b"A\0\x0412.5", NO_JSON, id="no-answer"),
        pytest.param(b'A\0\x0b["what", 1]', "", id="no-answer-that-is-known"),
        pytest.param(b"A\0\x03[1]", NO_JSON, id="one-thing"),
        pytest.param(b"a\xff\xff" + b"[" * 65535 + b"A\0\0", NO_JSON, id="deep"),
        pytest.param((b"a\xff\xff" + b"x" * 65535) * 3000, NO_MESSAGES, id="200-MB"),
    ],
)
def test_what_is_no_answer_is_no_fault_of_the_participant(data: bytes, fault: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CrashError) as caught:
        run(lambda say: raw(say, data), messages=[])
    assert str(caught.value) == (f"the scoring process {fault}" if fault else "1")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert run(lambda say: "alive") == "alive"


def test_an_answer_that_is_too_large_is_a_defect_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_ANSWER_BYTES", 2 << 20)
    with pytest.raises(CrashError, match="the answer has 3 MB; the limit is 2"):
        run(lambda say: "x" * (3 << 20))


def test_the_supervisor_keeps_what_threads_of_libraries_wait_for() -> None:
    def job(say: Any) -> Any:
        time.sleep(0.1)  # it begins before the supervisor has closed all others
        folder = f"/proc/{os.getppid()}/fd"
        return [os.readlink(f"{folder}/{number}") for number in os.listdir(folder)]

    with select.epoll():
        assert "anon_inode:[eventpoll]" in run(job)


# ── nothing is left ─────────────────────────────────────────────────────────


def left(say: Any, way: str) -> None:
    """Leave a process behind, and print its number."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        if way != "child":
            os.setsid()
            if os.fork():
                os._exit(0)
        os.write(writer, str(os.getpid()).encode())
        if way == "deaf":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
        elif way == "silent":
            os.closerange(0, 4096)
        elif way == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            time.sleep(1)
    say(os.read(reader, 99).decode())


@pytest.mark.parametrize("way", ["child", "session", "deaf", "silent", "stopped"])
@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: None, ""),
        (lambda: os._exit(7), r"without an answer \(exit 7\)"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
        (lambda: sys.exit(3), "ended itself with 3"),
        (lambda: time.sleep(100), "longer than"),
    ],
    ids=["answers", "exits", "is killed", "leaves", "hangs"],
)
def test_nothing_that_a_child_started_outlives_it(way: str, end: Any, message: str) -> None:
    """A surviving process does not make an ended child look alive."""
    output: list[str] = []
    ended: list[str] = []

    def job(say: Any) -> Any:
        left(say, way)
        end()
        return "done"

    try:
        ended.append(run(job, messages=output, seconds=2 if message == "longer than" else 60))
    except SubmissionError as error:
        ended.append(str(error))
    assert re.search(message or "^done$", ended[0])
    assert is_gone(int(output[0]), 0)


def test_a_worker_that_ignores_its_children_hears_how_they_end() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run(lambda say: "scored") == "scored"
        with pytest.raises(SubmissionError, match="killed by SIGKILL"):
            run(lambda say: os.kill(os.getpid(), signal.SIGKILL))
        assert run(lambda say: subprocess.run(["false"], check=False).returncode) == 1, "and they of theirs"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_workers_own_handlers_and_wakeup_are_its_own() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    woken = signal.set_wakeup_fd(writer)
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with pytest.raises(SubmissionError, match="killed by SIGTERM"):
            run(lambda say: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(CrashError, match="^the supervisor of the scoring process was killed$"):
            run(lambda say: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(100)))
        assert not heard
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            while signal.SIGTERM not in os.read(reader, 100):
                pass
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.set_wakeup_fd(woken)
        os.close(reader)
        os.close(writer)


def test_a_job_ends_with_its_keeper() -> None:
    output: list[str] = []

    def job(say: Any) -> Any:
        say(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(100)

    with pytest.raises(CrashError, match="the supervisor of the scoring process was killed"):
        run(job, messages=output)
    assert is_gone(int(output[0]))


def test_a_defect_of_ours_carries_its_traceback_to_the_operator() -> None:
    with pytest.raises(CrashError, match="(?s)Traceback.*ZeroDivisionError"):
        run(lambda say: 1 / 0)


def test_a_broken_truth_is_no_fault_of_the_participant() -> None:
    def job(say: Any) -> Any:
        raise HostError("annotation file: is broken")

    with pytest.raises(CrashError, match="annotation file: is broken"):
        run(job)


@pytest.mark.long
@pytest.mark.parametrize("way", ["child", "session", "deaf", "silent", "stopped"])
def test_all_end_with_a_worker_that_was_killed(way: str) -> None:
    code = (
        f"import os, sys, time; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from segjudge.evaluation_script.runner.guard import run_guarded\n"
        "from tests.runner.test_guard import left\n"
        "def job(say):\n"
        "    say(str(os.getpid())); left(say, sys.argv[1]); time.sleep(1000)\n"
        "run_guarded(job, memory=1 << 28, seconds=1000, say=lambda text: print(text, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, way], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        child, grandchild = (int(worker.stdout.readline()) for _ in range(2))
        worker.kill()
    assert is_gone(child)
    assert is_gone(grandchild)
