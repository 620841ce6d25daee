"""The worker's interpreter also runs the tests of the uploaded folder, and skips none of them."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from segjudge.server import server
from tests.builders import ROOT
from tests.shared import IN_CI

WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
#: How many ran there before the scorers were mounted in the package.
FEWEST = 1_678

assert server  # the toolkit is here: on the worker's interpreter this file is left out


@pytest.mark.long
@pytest.mark.skipif(not WORKER and not IN_CI, reason="PYTHON 3.9 ABSENT: use ./run.sh test")
def test_no_test_was_lost_on_the_workers_interpreter() -> None:
    command = [WORKER, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    match = re.search(r"(\d+) tests collected", done.stdout)
    assert match, done.stdout[-500:] + done.stderr[-500:]
    assert int(match.group(1)) >= FEWEST
