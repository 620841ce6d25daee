"""Run code-upload submissions without containers: agent and environment as two processes, started as the images do.

The limits guard against accidents, not attackers. `bwrap`, used where it is installed, leaves the agent no network but
one socket and does not mount the truth; untrusted agents otherwise belong in a container.
"""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.static import DATASET, FOLDER, NAMES, TAKEN
from segjudge.system import IMPORT_ROOT, sandbox
from segjudge.system.bounds import ResourceGroup, TreeBounds, TreeWatch
from segjudge.system.files import temporary_folder
from segjudge.system.processes import Child, Streams, Tail, clean_environment
from segjudge.system.sandbox import ProcessLimits

from .addresses import ADDRESS, LOCAL

ENVIRONMENT = "segjudge.code_upload_challenge_evaluation.environment"
#: Seconds that an environment may take to start, and that an agent is given to end after it.
START, FAREWELL = 120.0, 5.0
#: Seconds in which an environment may see by itself that the agent has ended.
GONE = 1.0
#: Bytes of a static submission.
FILE_BYTES = 1 << 30
#: Bytes of a log that are kept, half of them of its beginning: as many as the platform keeps of its end.
LOG = 10_000
#: The processes that run now, to be ended with this one.
_running: set[Child] = set()


class SubmissionFileError(Exception):
    """Raised when the file of a static submission cannot be taken."""


@dataclass(frozen=True)
class Agent:
    """A participant's command, and the folder that it runs in."""

    command: list[str]
    folder: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How a duel or a static submission ended."""

    #: The environment's result file, or the name of the static submission's; None where it reported to a server.
    result: dict[str, Any] | None
    code: int
    log: str


def agent_of(words: list[str]) -> Agent:
    """Return the agent of a command line: a Python file, run in its folder, or a command, run in this one."""
    words = with_python(words)
    first = words[0]
    if first.endswith(".py"):
        if not os.path.exists(first):
            raise HostError(f"{first}: this agent is not there")
        folder = os.path.dirname(os.path.abspath(first))
        return Agent([sys.executable, os.path.abspath(first), *words[1:]], folder)
    if shutil.which(first) is None:
        raise HostError(f"{first}: is neither a file of Python nor a command")
    return Agent(words, os.getcwd())


def with_python(words: list[str]) -> list[str]:
    """Return a command with `python` replaced by this interpreter, which has the packages that agents need."""
    return [sys.executable, *words[1:]] if words[0] in ("python", "python3") else words


def duel(
    agent: Agent,
    words: list[str],
    limits: ProcessLimits,
    variables: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
) -> Ended:
    """Run an environment with these arguments against an agent and return how it ended.

    With `variables` (AUTH_TOKEN, BODY…) the environment reports to a server, otherwise it saves its result.  Paths in
    `hidden` do not exist for an agent in a sandbox.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    secret = [*hidden, *_truths(words)]
    with temporary_folder("segjudge-arena-") as folder, contextlib.ExitStack() as ends:
        result = os.path.join(folder, "result.json")
        place = os.path.join(folder, "socket")
        own = {LOCAL: "1"} if variables is None else dict(variables)
        if box is not None:
            own["SEGJUDGE_BIND"] = f"unix:{place}"
        command = [sys.executable, "-P", "-m", ENVIRONMENT, *words, "--port", "0", "--result", result]
        own = {**plain_environment(), **own, "SUBMISSION_TIME_LIMIT": f"{limits.seconds:.0f}"}
        environment = ends.enter_context(running(command, own))
        address = _address(environment)
        mine = {**plain_environment(), **agent.variables, ADDRESS: address if box is None else f"unix:{place}"}
        words = sandbox.agent_command(box, agent.command, agent.folder, [(place, True)], secret, limits)
        bounds = agent_bounds(limits, box)
        player, tree = ends.enter_context(bounded(words, mine, agent.folder, bounds))
        log = Tail(player.output, LOG // 2, beginning=True)
        code = _both(environment, player, limits.seconds + START)
        player.wait(FAREWELL if code == 0 else FAREWELL / 10)
        player.end()
        saved = json.loads(Path(result).read_bytes()) if os.path.exists(result) else None
        return Ended(saved, code, with_reason(log.text(), tree))


def _truths(words: Sequence[str]) -> list[str]:
    """Return the paths among the environment's options that the agent must not see."""
    pairs = (one.partition("=") for one in words if "=" in one)
    return [value.strip('"') for name, _, value in pairs if name in ("truth", "frames")]


def static(
    agent: Agent,
    data: str,
    limits: ProcessLimits,
    look_every: float,
    taken: Callable[[str], None],
    hidden: Sequence[str] = (),
) -> Ended:
    """Run a command that writes a submission, and call `taken` with the file, as the platform's sidecar does.

    The folder is looked at once at the start and then every `look_every` seconds; a file is taken as it is then.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    with temporary_folder("segjudge-static-") as folder, contextlib.ExitStack() as ends:
        shared = os.path.join(folder, "submission")
        os.mkdir(shared)
        variables = {**plain_environment(), **agent.variables, FOLDER: shared, DATASET: os.path.abspath(data)}
        mounts = [(shared, True), (os.path.abspath(data), False)]
        words = sandbox.agent_command(box, agent.command, agent.folder, mounts, hidden, limits)
        bounds = replace(agent_bounds(limits, box), folders=[shared], disk=2 * FILE_BYTES)
        player, tree = ends.enter_context(bounded(words, variables, agent.folder, bounds))
        log = Tail(player.output, LOG // 2, beginning=True)
        until = time.monotonic() + limits.seconds
        found, look = None, 0.0
        while found is None and time.monotonic() < until:
            over = player.poll() is not None
            if time.monotonic() >= look or over:
                found = next((one for one in NAMES if os.path.lexists(os.path.join(shared, one))), None)
                look = time.monotonic() + look_every
            if over:
                break
            time.sleep(0.1)
        early = player.poll() is not None
        if found is not None:
            copy = os.path.join(folder, found)
            _copy(os.path.join(shared, found), copy)
            taken(copy)
            with contextlib.suppress(OSError):  # whatever an agent has put there
                os.close(os.open(os.path.join(shared, TAKEN), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW))
            player.wait(FAREWELL)
        code = player.poll() or 0
        player.end()
        return Ended({"taken": found, "early": early}, code, with_reason(log.text(), tree))


def _copy(source: str, target: str) -> None:
    """Copy a regular file of the agent's; links, pipes and devices are refused: they would be read with our rights."""
    try:
        opened = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise SubmissionFileError(f"{os.path.basename(source)} is not a plain file ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise SubmissionFileError(f"{os.path.basename(source)} is not a plain file")
    with os.fdopen(opened, "rb") as file, open(target, "wb") as copy:
        while part := file.read(1 << 20):
            copy.write(part)
            if copy.tell() > FILE_BYTES:
                raise SubmissionFileError(f"{os.path.basename(source)} has more than {FILE_BYTES >> 20} MB")


def agent_bounds(limits: ProcessLimits, box: str | None) -> TreeBounds:
    """Return what all processes of an agent may use together."""
    return TreeBounds(limits.memory, limits.processes, sandbox.AGENT_TMPFS if box else ())


@contextlib.contextmanager
def bounded(
    words: list[str], variables: Mapping[str, str], folder: str, bounds: TreeBounds
) -> Iterator[tuple[Child, TreeWatch]]:
    """Run an agent until the block ends, or it and what it started use more than they may."""
    with (
        contextlib.closing(ResourceGroup(processes=bounds.processes, memory=bounds.memory)) as group,
        running(group.enter(words), variables, folder, subprocess.STDOUT) as child,
    ):
        yield child, TreeWatch(child, bounds)


def with_reason(log: str, tree: TreeWatch) -> str:
    """Return an agent's log, and why it was ended, if it was."""
    return f"{log.rstrip()}\nThe agent was ended: {tree.sentence}.".lstrip() if tree.sentence else log


def plain_environment() -> dict[str, str]:
    """Return an environment without our tokens and other settings, in which our package can be imported."""
    search_path = os.pathsep.join(filter(None, [IMPORT_ROOT, os.environ.get("PYTHONPATH")]))
    names = ("HOME", "TMPDIR", "VIRTUAL_ENV")
    return clean_environment(*names, PYTHONPATH=search_path, PYTHONUNBUFFERED="1")


@contextlib.contextmanager
def running(
    command: list[str], variables: Mapping[str, str], folder: str | None = None, errors: int | None = None
) -> Iterator[Child]:
    """Run a process until the block ends, or `end_all` ends it; nothing of it is left then."""
    streams = Streams(output=subprocess.PIPE, errors=errors)
    process = Child(command, streams, environment=variables, folder=folder)
    _running.add(process)
    try:
        yield process
    finally:
        process.end()
        process.close_streams()
        _running.discard(process)


def end_all() -> None:
    """End every process of every duel."""
    for process in list(_running):
        process.end()


def _address(environment: Child) -> str:
    """Return the address, the environment's first line, and discard the rest, so that it never blocks."""
    late = threading.Timer(START, environment.end)
    late.start()
    try:
        line = environment.output.readline(LOG).decode("utf-8", "replace").strip()
    finally:
        late.cancel()
    Tail(environment.output, 0)
    if not line:
        raise HostError("the environment did not start; what it said is above")
    return line if line.startswith("unix:") else f"127.0.0.1:{line}"


def _both(environment: Child, player: Child, seconds: float) -> int:
    """Wait for the environment and return its exit code; it is signalled when the agent ends first."""
    until, gone = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        code = environment.wait(0.05)
        if code is not None:
            return code
        if player.poll() is not None:
            gone = gone or time.monotonic() + GONE
            if time.monotonic() > gone:
                environment.signal(signal.SIGUSR1)
                gone = time.monotonic() + FAREWELL
    return -1
