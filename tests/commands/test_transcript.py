"""What commands print and write stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import transcript
from tests.builders import ROOT


def test_commands_print_and_write_what_was_noted(tmp_path: Path) -> None:
    now = tmp_path / "transcript.txt"
    words = [sys.executable, "-m", "tests.transcript", str(now)]  # apart from what other tests have changed
    subprocess.run(words, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    assert now.read_text() == transcript.FILE.read_text(), "`python -m tests.transcript` notes what is meant to be seen"
