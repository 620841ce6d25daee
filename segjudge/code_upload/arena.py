"""Code upload without containers: agent and environment run as two processes, as the images start them.

The environment is one of Segjudge's, or a host's own that listens at a port and reports to the server as on EvalAI. The
limits stop accidents, not attackers. If `bwrap` is installed, the agent has no network except one socket, and no truth;
without it, run untrusted agents in a container.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.static import DATASET_VARIABLE, FOLDER_VARIABLE, SUBMISSION_NAMES, TAKEN_FILE
from segjudge.system import IMPORT_ROOT, sandbox
from segjudge.system.bounds import ResourceGroup, TreeBounds, TreeWatch
from segjudge.system.errors import UsageError
from segjudge.system.files import temporary_folder
from segjudge.system.processes import Child, Streams, Tail, clean_environment
from segjudge.system.sandbox import ProcessLimits

from . import ADDRESS_VARIABLE, LOCAL_VARIABLE, PORT

_ENVIRONMENT = "segjudge.code_upload_challenge_evaluation.environment"
#: Seconds for an environment to start, and for an agent to stop after it.
_START, _FAREWELL = 120.0, 5.0
#: Seconds in which an environment may notice by itself that the agent has stopped.
_GONE = 1.0
#: Seconds between checks of both sides of a duel with a host's environment.
_LOOK = 0.1
#: The maximum bytes of a static submission.
_FILE_BYTES = 1 << 30
#: The kept bytes of a log, half of them from its beginning; the platform keeps as many from its end.
_LOG = 10_000
#: The running processes, which stop with this one.
_running: list[Child] = []


class SubmissionFileError(Exception):
    """Raised if the file of a static submission cannot be accepted."""


@dataclass(frozen=True)
class Agent:
    """A participant's command, and the folder that it runs in."""

    command: list[str]
    folder: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _RunEnd:
    """The end of a duel or a static submission."""

    #: The result file of the environment, or of the static submission; None if the environment reported to a server.
    result: dict[str, Any] | None
    code: int
    log: str


def find_agent(command: list[str]) -> Agent:
    """Return the agent of a command line: a Python file, run in its folder, or a command."""
    command = replace_python(command)
    program = command[0]
    if program.endswith(".py"):
        if not os.path.exists(program):
            raise UsageError(f"{program}: there is no such agent; correct the path")
        folder = os.path.dirname(os.path.abspath(program))
        return Agent([sys.executable, os.path.abspath(program), *command[1:]], folder)
    if shutil.which(program) is None:
        raise UsageError(f"{program}: is neither a Python file nor a command; name one of them")
    return Agent(command, os.getcwd())


def replace_python(command: list[str]) -> list[str]:
    """Return a command with `python` replaced by this interpreter, which has the agents' packages."""
    return [sys.executable, *command[1:]] if command[0] in ("python", "python3") else command


def duel(
    agent: Agent,
    arguments: list[str],
    limits: ProcessLimits,
    variables: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
) -> _RunEnd:
    """Run an environment against an agent and return how it ended.

    With `variables` (AUTH_TOKEN, BODY…) the environment reports to a server; otherwise it saves its result. In a
    sandbox, the agent cannot see paths in `hidden`.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    secret = [*hidden, *_truths(arguments)]
    with temporary_folder("segjudge-arena-") as folder, contextlib.ExitStack() as cleanup:
        result = os.path.join(folder, "result.json")
        socket_path = os.path.join(folder, "socket")
        settings = {**_plain_environment(), **({LOCAL_VARIABLE: "1"} if variables is None else variables)}
        settings["SUBMISSION_TIME_LIMIT"] = f"{limits.seconds:.0f}"
        if box is not None:
            settings["SEGJUDGE_BIND"] = f"unix:{socket_path}"
        command = [sys.executable, "-P", "-m", _ENVIRONMENT, *arguments, "--port", "0", "--result", result]
        environment = cleanup.enter_context(_run(command, settings))
        address = _read_address(environment)
        mounts = [(socket_path, True)]
        player, log = cleanup.enter_context(_run_agent(agent, box, limits, {ADDRESS_VARIABLE: address}, mounts, secret))
        code = _wait_for_both(environment, player, limits.seconds + _START)
        player.wait(_FAREWELL if code == 0 else _FAREWELL / 10)
        player.end()
        saved = json.loads(Path(result).read_bytes()) if os.path.exists(result) else None
        return _RunEnd(saved, code, log())


def _truths(paths: Sequence[str]) -> list[str]:
    pairs = (word.partition("=") for word in paths if "=" in word)
    return [value.strip('"') for name, _, value in pairs if name in ("truth", "frames")]


def run_static(
    agent: Agent,
    data: str,
    limits: ProcessLimits,
    look_every: float,
    take: Callable[[str], None],
    hidden: Sequence[str] = (),
) -> _RunEnd:
    """Run a command that writes a submission, and pass the file to `take`, as the platform's sidecar does.

    The folder is checked at the start and then every `look_every` seconds; the file is taken as it is at that time.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    data = os.path.abspath(data)
    with temporary_folder("segjudge-static-") as folder, contextlib.ExitStack() as cleanup:
        shared = os.path.join(folder, "submission")
        os.mkdir(shared)
        variables, mounts = {FOLDER_VARIABLE: shared, DATASET_VARIABLE: data}, [(shared, True), (data, False)]
        player, log = cleanup.enter_context(_run_agent(agent, box, limits, variables, mounts, hidden, written=[shared]))
        until = time.monotonic() + limits.seconds
        name, look_at = None, 0.0
        while name is None and time.monotonic() < until:
            has_exited = player.poll() is not None
            if time.monotonic() >= look_at or has_exited:
                name = next((name for name in SUBMISSION_NAMES if os.path.lexists(os.path.join(shared, name))), None)
                look_at = time.monotonic() + look_every
            if has_exited:
                break
            time.sleep(0.1)
        ended_early = player.poll() is not None
        if name is not None:
            copy = os.path.join(folder, name)
            _copy(os.path.join(shared, name), copy)
            take(copy)
            with contextlib.suppress(OSError):  # an agent may have put anything there
                os.close(
                    os.open(os.path.join(shared, TAKEN_FILE), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW)
                )
            player.wait(_FAREWELL)
        code = player.poll() or 0
        player.end()
        return _RunEnd({"taken": name, "early": ended_early}, code, log())


def _copy(source: str, target: str) -> None:
    """Copy a regular file of the agent; raises SubmissionFileError for links, pipes and devices."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise SubmissionFileError(f"{os.path.basename(source)} is not a plain file ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SubmissionFileError(f"{os.path.basename(source)} is not a plain file")
    with os.fdopen(descriptor, "rb") as file, open(target, "wb") as copy:
        while data := file.read(1 << 20):
            copy.write(data)
            if copy.tell() > _FILE_BYTES:
                raise SubmissionFileError(f"{os.path.basename(source)} has more than {_FILE_BYTES >> 20} MB")


@contextlib.contextmanager
def _run_agent(  # noqa: PLR0913 - what an agent's run consists of
    agent: Agent,
    box: str | None,
    limits: ProcessLimits,
    variables: Mapping[str, str],
    mounts: Sequence[tuple[str, bool]],
    hidden: Sequence[str],
    *,
    written: Sequence[str] = (),
    has_network: bool = False,
) -> Iterator[tuple[Child, Callable[[], str]]]:
    """Run an agent within limits until the block ends; yield a function that returns its log.

    The agent may write its submission into the folders `written`.
    """
    boxed_command = sandbox.agent_command(box, agent.command, agent.folder, mounts, hidden, limits)
    if has_network:
        boxed_command = sandbox.with_network(boxed_command)
    tmpfs, disk = sandbox.AGENT_TMPFS if box else (), 2 * _FILE_BYTES if written else 0
    variables = {**_plain_environment(), **agent.variables, **variables}
    with (
        contextlib.closing(ResourceGroup(processes=limits.processes, memory=limits.memory)) as group,
        _run(group.wrap(boxed_command), variables, agent.folder, subprocess.STDOUT) as child,
    ):
        tree = TreeWatch(child, TreeBounds(limits.memory, limits.processes, tmpfs, written, disk))
        output = Tail(child.output, _LOG // 2, beginning=True)

        def log() -> str:
            text = output.text()
            return f"{text.rstrip()}\nThe agent was killed: {tree.sentence}.".lstrip() if tree.sentence else text

        yield child, log


def _plain_environment() -> dict[str, str]:
    """Return the environment without tokens and settings, with this package importable."""
    search_path = os.pathsep.join(filter(None, [IMPORT_ROOT, os.environ.get("PYTHONPATH")]))
    names = ("HOME", "TMPDIR", "VIRTUAL_ENV")
    return clean_environment(*names, PYTHONPATH=search_path, PYTHONUNBUFFERED="1")


@contextlib.contextmanager
def _run(
    command: list[str], variables: Mapping[str, str], folder: str | None = None, errors: int | None = None
) -> Iterator[Child]:
    """Run a process until the block or `end_all` ends it with all its children."""
    streams = Streams(output=subprocess.PIPE, errors=errors)
    process = Child(command, streams, environment=variables, folder=folder)
    _running.append(process)
    try:
        yield process
    finally:
        process.end()
        process.close_streams()
        _running.remove(process)


def end_all() -> None:
    """End every process of every duel."""
    for process in _running:
        process.end()


def _read_address(environment: Child) -> str:
    """Return the environment's first line and discard the rest, so that it never blocks."""
    alarm = threading.Timer(_START, environment.end)
    alarm.start()
    try:
        line = environment.output.readline(_LOG).decode("utf-8", "replace").strip()
    finally:
        alarm.cancel()
    Tail(environment.output, 0)
    if not line:
        raise HostError("the environment did not start; its output is above")
    return line if line.startswith("unix:") else f"127.0.0.1:{line}"


def _wait_for_both(environment: Child, player: Child, seconds: float) -> int:
    """Wait for the environment and return its exit code; signal it if the agent ends first."""
    until, gone_at = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        code = environment.wait(0.05)
        if code is not None:
            return code
        if player.poll() is not None:
            gone_at = gone_at or time.monotonic() + _GONE
            if time.monotonic() > gone_at:
                environment.signal(signal.SIGUSR1)
                gone_at = time.monotonic() + _FAREWELL
    return -1


# ── an environment of the host's own ────────────────────────────────────────


@dataclass(frozen=True)
class HostEnvironment:
    """The command of a host's environment, its folder and its port."""

    command: list[str]
    folder: str
    port: int = PORT


@dataclass(frozen=True)
class _DuelLogs:
    """The output of both sides of a duel, and how it ended."""

    agent: str
    environment: str
    sentence: str


def _search_path(folder: str) -> str:
    """Return the search path of a starter: its folder and `utils`, which its images copy."""
    folders = [folder, os.path.join(os.path.dirname(folder), "utils")]
    inherited = _plain_environment().get("PYTHONPATH", "")
    return os.pathsep.join([*(path for path in folders if os.path.isdir(path)), inherited])


def duel_with_host(
    agent: Agent,
    environment: HostEnvironment,
    limits: ProcessLimits,
    variables: Mapping[str, str],
    hidden: Sequence[str],
    has_ended: Callable[[], bool],
) -> _DuelLogs:
    """Run both sides until the submission ends, a side ends, or time is up.

    In a sandbox, the agent shares the machine's network, because it must reach the port.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    if _listens(environment.port):
        raise HostError(f"port {environment.port} is in use, and the environment needs it")
    settings = {**_plain_environment(), **variables, "PYTHONPATH": _search_path(environment.folder)}
    settings["SUBMISSION_TIME_LIMIT"] = f"{limits.seconds:.0f}"
    with contextlib.ExitStack() as cleanup:
        server = cleanup.enter_context(_run(environment.command, settings, environment.folder, subprocess.STDOUT))
        server_log = Tail(server.output, _LOG // 2, beginning=True)
        if not _is_up(server, environment.port):
            server.end()
            return _DuelLogs("", server_log.text(), f"The environment did not listen at port {environment.port}.")
        agents = {"PYTHONPATH": _search_path(agent.folder), ADDRESS_VARIABLE: f"localhost:{environment.port}"}
        utils = os.path.join(os.path.dirname(agent.folder), "utils")
        mounts = [(utils, False)] if os.path.isdir(utils) else []
        secret = [*hidden, environment.folder]
        player, log = cleanup.enter_context(_run_agent(agent, box, limits, agents, mounts, secret, has_network=True))
        sentence = _watch(server, player, limits.seconds, has_ended)
        player.end()
        server.end()
        return _DuelLogs(log(), server_log.text(), sentence)


def _watch(server: Child, player: Child, seconds: float, has_ended: Callable[[], bool]) -> str:
    """Wait for the end and return its kind."""
    until, gone_at = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        if has_ended():
            return ""
        for side, name in ((server, "environment"), (player, "agent")):
            code = side.poll()
            if code is not None and not gone_at:
                gone_at = time.monotonic() + _GONE
                sentence = f"The {name} {code.sentence} before a result was reported."
        if gone_at and time.monotonic() > gone_at:
            return sentence
        time.sleep(_LOOK)
    return f"There was no result within {seconds:.0f} seconds."


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=1).close()
    except OSError:
        return False
    return True


def _is_up(server: Child, port: int) -> bool:
    until = time.monotonic() + _START
    while time.monotonic() < until and server.poll() is None:
        if _listens(port):
            return True
        time.sleep(_LOOK)
    return False
