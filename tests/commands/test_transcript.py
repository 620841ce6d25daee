"""Commands print and write the noted texts, case by case, which only an intended change renews."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import transcript
from tests.answers import read_answers
from tests.builders import ROOT

from . import hosts, streams

#: The commands of hosts take half a minute.
_SLOW = pytest.param("tests.commands.hosts", marks=pytest.mark.long)
_FOLDERS = {"tests.transcript": transcript.FOLDER, "tests.commands.hosts": hosts.FOLDER}
_NOTED = {module: read_answers(folder) for module, folder in _FOLDERS.items()}


def _run_module(module: str, path: Path) -> None:
    """Run a module in a new process, since other tests have changed this one."""
    arguments = [sys.executable, "-m", module, str(path)]
    subprocess.run(arguments, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@cache
def _play(module: str) -> dict[str, str]:
    with TemporaryDirectory(prefix="segjudge-") as folder:
        _run_module(module, Path(folder))
        return read_answers(Path(folder))


def _list_cases(*modules: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(
        ("module", "title"),
        [
            pytest.param(module, title, marks=_SLOW.marks if module in _SLOW.values else ())
            for module in modules
            for title in _NOTED[module]
        ],
    )


@_list_cases("tests.transcript", "tests.commands.hosts")
def test_commands_print_and_write_what_was_noted(module: str, title: str) -> None:
    assert _play(module).get(title) == _NOTED[module][title], f"`python -m {module}` notes what is meant to be seen"


@pytest.mark.parametrize("module", ["tests.transcript", _SLOW])
def test_each_case_that_is_played_was_noted(module: str) -> None:
    assert [*_play(module)] == [*_NOTED[module]]


@pytest.mark.long
def test_commands_end_and_say_what_was_noted_whatever_their_streams_are(tmp_path: Path) -> None:
    now = tmp_path / "streams.txt"
    _run_module("tests.commands.streams", now)
    assert now.read_text(encoding="utf-8") == streams.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.commands.streams` notes what is meant to be seen"
    )
