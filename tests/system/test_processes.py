"""Processes that a child process started end with it, wherever they went."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from segjudge.evaluation_script.runner import supervisor
from segjudge.system import processes
from segjudge.system.processes import Child, ExitCode, Streams, clean_environment
from tests.builders import ROOT
from tests.endings import is_gone

PIPED = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
PRELUDE = "import os, signal, sys, time\n"
SLEEP = "\nwhile True: time.sleep(1)"

#: Ways of getting away; each prints the number of whoever is to be gone at the end, and goes on living.
DETACHED = """
def detached():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            {more}
            os.write(writer, str(os.getpid()).encode())
            time.sleep(1000)
        os._exit(0)
    os.wait()
    print(int(os.read(reader, 99)), flush=True)
detached()
"""
AWAY = {
    "a child": "\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(1000)\ntime.sleep(0.3)\n",
    "a session of its own": DETACHED.format(more="pass"),
    "deaf": DETACHED.format(more="[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]"),
    "no descriptors": DETACHED.format(more="os.write(writer, str(os.getpid()).encode()); os.closerange(0, 1000)"),
    "stopped": DETACHED.format(
        more="os.write(writer, str(os.getpid()).encode()); os.kill(os.getpid(), signal.SIGSTOP)"
    ),
}


def python(code: str, streams: Streams = PIPED) -> Child:
    return Child([sys.executable, "-c", PRELUDE + code], streams)


def done(child: Child) -> int:
    code = child.wait(60)
    child.end()
    child.close_streams()
    assert code is not None
    return code


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(7)", 7),
        ("os._exit(255)", 255),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -11),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("os.kill(0, signal.SIGKILL)", -9),
    ],
)
def test_the_exit_code_is_the_commands(code: str, wanted: int) -> None:
    assert done(python(code)) == wanted


def test_streams_environment_and_folder_are_the_commands(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    code = "os.write(int(sys.argv[1]), b'x'); print(sys.stdin.read(), os.environ['A'], os.getcwd()); sys.exit('bye')"
    child = Child(
        [sys.executable, "-c", PRELUDE + code, str(writer)],
        Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE, (writer,)),
        environment={"A": "ä"},
        folder=str(tmp_path),
    )
    os.close(writer)
    child.input.write(b"hello")
    child.input.close()
    assert child.output.read().decode() == f"hello ä {tmp_path}\n"
    assert child.errors.read() == b"bye\n"
    assert os.read(reader, 9) == b"x"
    assert os.read(reader, 9) == b"", "nobody else holds it"
    os.close(reader)
    assert done(child) == 1


def test_a_stream_that_the_command_closes_is_closed() -> None:
    child = python("os.close(1); os.close(2)" + SLEEP)
    assert child.output.read() == b"", "the supervisor does not hold it open"
    assert child.poll() is None
    assert child.end() == -9
    child.close_streams()


@pytest.mark.parametrize("way", AWAY)
@pytest.mark.parametrize("ended", ["by itself", "killed", "by us", "by a signal to the supervisor"])
def test_nothing_of_it_is_left(way: str, ended: str) -> None:
    child = python(AWAY[way] + {"by itself": "", "killed": "os.kill(os.getpid(), 9)"}.get(ended, SLEEP))
    left = int(child.output.readline())
    assert left != child.pid
    if ended == "by us":
        assert child.end() == -9
    elif ended == "by a signal to the supervisor":
        os.kill(child._process.pid, signal.SIGTERM)
    assert done(child) == (0 if ended == "by itself" else -9)
    assert is_gone(left, 0), "when the end is reported, nothing is left"


@pytest.mark.parametrize("way", AWAY)
def test_all_of_it_ends_with_a_parent_that_is_killed(way: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from segjudge.system.processes import Child\n"
        f"child = Child([sys.executable, '-c', {PRELUDE + AWAY[way] + SLEEP!r}])\n"
        "import time; time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        left = int(parent.stdout.readline())
        parent.kill()
    assert is_gone(left)


@pytest.mark.long
def test_what_forks_without_end_is_ended() -> None:
    # Bounded by its own look at /proc, since root is bounded by no limit.
    code = """
most = len(os.listdir('/proc')) + 150
print('go', flush=True)
while True:
    if len(os.listdir('/proc')) > most:
        time.sleep(0.01)
    elif os.fork() == 0:
        os.setsid()
"""
    child = python(code)
    child.output.readline()
    keeping = child._process.pid
    until = time.monotonic() + 30
    while len(supervisor.descendants(keeping)) < 50 and time.monotonic() < until:
        time.sleep(0.05)
    born = supervisor.descendants(keeping)
    assert len(born) >= 50
    assert child.end() == -9
    assert all(is_gone(item, 0) for item in born)
    child.close_streams()


def test_a_chain_of_forks_in_one_group_is_ended() -> None:
    """Each fork lives for less time than a reading of /proc takes."""
    child = python("print('go', flush=True)\nwhile True:\n    if os.fork(): os._exit(0)")
    child.output.readline()
    assert done(child) == 0, "the first of them ended by itself"


def test_a_stopped_command_is_ended() -> None:
    child = python("print('x', flush=True); os.kill(os.getpid(), signal.SIGSTOP)")
    child.output.readline()
    assert child.wait(0.3) is None
    assert child.end() == -9
    child.close_streams()


def test_a_supervisor_that_is_stopped_or_killed_keeps_nothing_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_END_SECONDS", 0.3)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        child = python("print(os.getpid(), flush=True)" + SLEEP)
        child.output.readline()
        os.kill(child._process.pid, number)
        assert child.end() == -9
        assert is_gone(child.pid)
        child.close_streams()


def test_a_command_that_stops_its_supervisor_at_once_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_START_SECONDS", 1.0)
    monkeypatch.setattr(processes, "_END_SECONDS", 1.0)
    code = "import os, signal, time; os.kill(os.getppid(), signal.SIGSTOP); time.sleep(100)"
    for _ in range(5):
        with contextlib.suppress(OSError):  # where it was quicker than its supervisor
            Child([sys.executable, "-I", "-S", "-c", code]).end()


def test_a_signal_reaches_the_command() -> None:
    child = python("signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5)); print('x', flush=True)" + SLEEP)
    child.output.readline()
    child.signal(signal.SIGUSR1)
    assert done(child) == 5
    child.signal(signal.SIGUSR1)  # it is gone, and nothing happens


@pytest.mark.parametrize(
    ("command", "kind"),
    [("/nowhere/x", FileNotFoundError), ("/etc/passwd", PermissionError), ("/tmp", PermissionError)],
)
def test_what_cannot_be_started_is_an_error_that_names_it(command: str, kind: type[OSError]) -> None:
    with pytest.raises(kind, match=command):
        Child([command])


def test_the_environment_holds_what_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTH_TOKEN", "TZ", "HOME"):
        monkeypatch.setenv(name, f"our {name}")
    monkeypatch.delenv("LC_ALL", raising=False)
    built = clean_environment("TZ", "LC_ALL", "NOT_SET", HOME="/tmp")
    assert (built["TZ"], built["HOME"], built["PATH"]) == ("our TZ", "/tmp", os.environ["PATH"])
    assert built.keys() <= {"PATH", "LANG", "LD_LIBRARY_PATH", "TZ", "HOME"}


def test_a_watch_ends_the_wait_and_a_deadline_does() -> None:
    child = python(SLEEP)
    with pytest.raises(TimeoutError):
        child.watch(lambda: None, 0.2)
    with pytest.raises(KeyError):
        child.watch(_stopped)
    child.signal(signal.SIGTERM)
    assert child.watch(lambda: None) == -15
    assert done(child) == -15
    brief = python("time.sleep(0.2)")
    assert brief.watch(lambda: None, 60) == 0
    assert done(brief) == 0


def _stopped() -> None:
    raise KeyError


def test_how_it_died_is_said() -> None:
    assert [ExitCode(code).sentence for code in (0, 7, -9, -64)] == [
        "ended with exit code 0", "ended with exit code 7", "was killed by SIGKILL", "was killed by SIGRTMAX"
    ]  # fmt: skip
    assert ExitCode(-50).sentence == "was killed by signal 50"
    assert [ExitCode(code).is_signal for code in (1, 0, -9)] == [False, False, True]


def test_elsewhere_than_on_linux_the_group_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without /proc and prctl, only the process group is ended."""
    program = tmp_path / "supervisor.py"
    text = Path(processes._SUPERVISOR).read_text()
    text = text.replace('_HAS_PROC = os.path.exists("/proc/self/stat")', "_HAS_PROC = False")
    program.write_text(text.replace("ctypes.CDLL(None).prctl", "ctypes.nothing"))
    monkeypatch.setattr(processes, "_SUPERVISOR", str(program))
    for end in (Child.end, done):
        child = python(AWAY["a child"] + (SLEEP if end is Child.end else ""))
        left = int(child.output.readline())
        assert end(child) == (-9 if end is Child.end else 0)
        assert is_gone(left)
        child.close_streams()
