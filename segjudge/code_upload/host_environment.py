"""A duel with an environment of the host's own, which listens at a port and reports to the server, as on EvalAI."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system import sandbox
from segjudge.system.processes import Child, Tail
from segjudge.system.sandbox import ProcessLimits

from .addresses import ADDRESS, PORT
from .arena import GONE, LOG, START, Agent, agent_bounds, bounded, plain_environment, running, with_reason

#: Seconds between two looks at both sides.
_LOOK = 0.1


@dataclass(frozen=True)
class HostEnvironment:
    """The command of a host's environment, its folder and the port at which it listens."""

    command: list[str]
    folder: str
    port: int = PORT


@dataclass(frozen=True)
class DuelLogs:
    """The output of both sides of a duel, and how it ended."""

    agent: str
    environment: str
    sentence: str


def search_path(folder: str) -> str:
    """Return the search path of a starter's folder: its images copy `utils` beside the program."""
    folders = [folder, os.path.join(os.path.dirname(folder), "utils")]
    inherited = plain_environment().get("PYTHONPATH", "")
    return os.pathsep.join([*(path for path in folders if os.path.isdir(path)), inherited])


def host_duel(
    agent: Agent,
    environment: HostEnvironment,
    limits: ProcessLimits,
    variables: Mapping[str, str],
    hidden: Sequence[str],
    has_ended: Callable[[], bool],
) -> DuelLogs:
    """Run both until the submission has ended, one side has, or the time is up.

    In a sandbox the agent shares the machine's network, since it has to reach the port.
    """
    box = sandbox.find_sandbox(required=limits.sandbox)
    if _listens(environment.port):
        raise HostError(f"port {environment.port} is in use, and the environment needs it")
    own = {**plain_environment(), **variables, "PYTHONPATH": search_path(environment.folder)}
    own["SUBMISSION_TIME_LIMIT"] = f"{limits.seconds:.0f}"
    with contextlib.ExitStack() as ends:
        server = ends.enter_context(running(environment.command, own, environment.folder, subprocess.STDOUT))
        server_log = Tail(server.output, LOG // 2, beginning=True)
        if not _is_up(server, environment.port):
            server.end()
            return DuelLogs("", server_log.text(), f"The environment did not listen at port {environment.port}.")
        mine = {**plain_environment(), "PYTHONPATH": search_path(agent.folder), **agent.variables}
        mine[ADDRESS] = f"localhost:{environment.port}"
        utils = os.path.join(os.path.dirname(agent.folder), "utils")
        mounts = [(utils, False)] if os.path.isdir(utils) else []
        words = sandbox.agent_command(box, agent.command, agent.folder, mounts, [*hidden, environment.folder], limits)
        words = sandbox.with_network(words)
        player, tree = ends.enter_context(bounded(words, mine, agent.folder, agent_bounds(limits, box)))
        player_log = Tail(player.output, LOG // 2, beginning=True)
        sentence = _watched(server, player, limits.seconds, has_ended)
        player.end()
        server.end()
        return DuelLogs(with_reason(player_log.text(), tree), server_log.text(), sentence)


def _watched(server: Child, player: Child, seconds: float, has_ended: Callable[[], bool]) -> str:
    """Wait for the end; return which it was."""
    until, gone = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        if has_ended():
            return ""
        for side, name in ((server, "environment"), (player, "agent")):
            code = side.poll()
            if code is not None and not gone:
                gone, sentence = time.monotonic() + GONE, f"The {name} {code.sentence} before a result was reported."
        if gone and time.monotonic() > gone:
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
    until = time.monotonic() + START
    while time.monotonic() < until and server.poll() is None:
        if _listens(port):
            return True
        time.sleep(_LOOK)
    return False
