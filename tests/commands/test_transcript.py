"""What commands print and write stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import transcript
from tests.builders import ROOT

from . import hosts_transcript, streams

FILES = {
    "tests.transcript": transcript.FILE,
    "tests.commands.streams": streams.FILE,
    "tests.commands.hosts_transcript": hosts_transcript.FILE,
}


@pytest.mark.parametrize(
    "module",
    [
        "tests.transcript",
        "tests.commands.streams",
        pytest.param("tests.commands.hosts_transcript", marks=pytest.mark.long),
    ],
)
def test_commands_print_and_write_what_was_noted(module: str, tmp_path: Path) -> None:
    now = tmp_path / "transcript.txt"
    words = [sys.executable, "-m", module, str(now)]  # apart from what other tests have changed
    subprocess.run(words, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    noted = FILES[module].read_text(encoding="utf-8")
    assert now.read_text(encoding="utf-8") == noted, f"`python -m {module}` notes what is meant to be seen"
