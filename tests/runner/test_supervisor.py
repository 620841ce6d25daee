"""How the supervisor ends: without /proc, it waits until the job that it killed has ended, and reports how."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.builders import ROOT


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
