"""How the supervisor ends: without /proc, it waits until the job that it killed has ended, and reports how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, List, Optional

import pytest

from segjudge.evaluation_script.runner import supervisor
from tests.builders import ROOT

#: What is reaped each time: statuses of children, and whether others are left.
_NOTHING, _OTHER, _JOB = ({}, True), ({8: 0}, True), ({7: 3 << 8}, False)


@pytest.mark.parametrize(
    ("status", "reaped", "seconds", "ended", "pauses"),
    [
        (None, [_JOB], 60.0, 3 << 8, 0),
        (None, [_NOTHING, _JOB], 60.0, 3 << 8, 1),
        (None, [_OTHER, _NOTHING, _OTHER, _JOB], 60.0, 3 << 8, 3),
        (None, [_NOTHING] * 5, 0.035, signal.SIGKILL, 4),
        (5, [_NOTHING], 60.0, 5, 0),
    ],
    ids=["gone", "a pause", "others first", "given up", "ended by itself"],
)
def test_a_group_that_is_killed_is_awaited(
    status: Optional[int], reaped: List[Any], seconds: float, ended: int, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, killed, slept = iter([(dict(statuses), some) for statuses, some in reaped]), list[Any](), list[float]()
    clock = SimpleNamespace(monotonic=lambda: 100 + sum(slept), sleep=slept.append)
    monkeypatch.setattr(supervisor, "_HAS_PROC", False)
    monkeypatch.setattr(supervisor, "GIVE_UP_SECONDS", seconds)
    monkeypatch.setattr(supervisor, "_reap", lambda: next(answers))
    monkeypatch.setattr(supervisor, "time", clock)
    monkeypatch.setattr(os, "killpg", lambda *whom: killed.append(whom))
    assert supervisor._end(7, status) == ended
    assert (killed, len(slept), next(answers, None)) == ([(7, signal.SIGKILL)], pauses, None)
    assert supervisor.descendants(1) == {}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(0, 0, id="success"),
        pytest.param(3 << 8, 3, id="an exit code"),
        pytest.param(signal.SIGTERM, -signal.SIGTERM, id="SIGTERM"),
        pytest.param(signal.SIGPIPE, -signal.SIGPIPE, id="a signal that Python ignores"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="a signal without a handler"),
    ],
)
def test_a_process_ends_as_the_command_did(status: int, code: int) -> None:
    program = (
        "import sys; from segjudge.evaluation_script.runner import supervisor; supervisor._end_as(int(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(int(status))], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, b"")
