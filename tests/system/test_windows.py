"""On systems without fork and limits, such as Windows, the daily commands give the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from segjudge.commands import UNIX
from tests.builders import ROOT
from tests.system.daily_commands import COMMANDS

_WINDOWS = ("-m", "tests.system.windows")
#: The commands that score, and say that nothing limits them.
_SCORING = ("zip", "folder", "tar", "coco", "second", "packed", "page", "images", "compare", "part")
_ALONE = "This system cannot fork processes: one process scores with numpy, without limits on memory and time.\n"


def _run(folder: Path, *arguments: str, only: tuple[str, ...] = ()) -> Path:
    """Run the commands in a folder, by numpy; return the folder."""
    folder.mkdir()
    command = [sys.executable, *arguments, "tests.system.daily_commands", str(folder), *only]
    environment = {**os.environ, "SEGJUDGE_KERNEL": "off", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files that commands wrote here, and those written without the calls that Windows lacks."""
    folder = tmp_path_factory.mktemp("systems")
    return _run(folder / "here", "-m"), _run(folder / "windows", *_WINDOWS)


@pytest.fixture(scope="module")
def forking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return as `folders` does, but only what needs fork."""
    folder = tmp_path_factory.mktemp("forking")
    return _run(folder / "here", "-m", only=("forking",)), _run(folder / "windows", *_WINDOWS, only=("forking",))


def _files(folder: Path) -> dict[str, bytes]:
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".err" and path.stem not in {*UNIX, "kit"}
    ]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.long
def test_all_commands_of_every_day_write_the_same_bytes_without_fork(folders: tuple[Path, Path]) -> None:
    linux, windows = map(_files, folders)
    assert {f"{name}.out" for name in COMMANDS} | {"python.json", "packed.json", "page.html"} <= linux.keys()
    assert all(linux[f"{name}.out"].endswith(b"exit code 0\n") for name in COMMANDS)
    assert linux.keys() == windows.keys()
    assert [name for name in linux if linux[name] != windows[name]] == []


@pytest.mark.long
def test_what_scores_without_fork_says_that_nothing_is_limited(folders: tuple[Path, Path]) -> None:
    linux, windows = folders
    for name in COMMANDS:
        sentence = _ALONE if name in _SCORING else ""
        assert (windows / f"{name}.err").read_text() == sentence + (linux / f"{name}.err").read_text(), name
    sentence = "Memory and time are not limited: this system cannot fork a process (this system has no fork).\n"
    assert (windows / "python.err").read_text() == sentence + (linux / "python.err").read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(UNIX))
def test_a_command_that_needs_fork_says_so_in_one_sentence(name: str, forking: tuple[Path, Path]) -> None:
    assert (forking[1] / f"{name}.out").read_text() == "exit code 2\n"
    assert (
        forking[1] / f"{name}.err"
    ).read_text() == f"segjudge: {name} needs Linux or macOS; on Windows, run it in WSL\n"


def test_the_conformance_kit_says_that_it_needs_fork(forking: tuple[Path, Path]) -> None:
    linux, windows = (json.loads((folder / "kit.json").read_text()) for folder in forking)
    assert linux == ["kit", "returned", "3"]
    assert windows == "the conformance kit needs Linux or macOS; on Windows, run it in WSL"


def test_importing_segjudge_opens_nothing_and_loads_no_module_of_the_system() -> None:
    watch = (
        "import importlib, os, sys, warnings\n"
        "before, environment, writes = set(sys.modules), dict(os.environ), sys.dont_write_bytecode\n"
        "sys.addaudithook(lambda event, _: event.partition('.')[0] in ('socket', 'ctypes', 'subprocess') and print(event))\n"
        "import segjudge\n"
        "print(*sorted(set(sys.modules) - before), os.environ == environment, sys.dont_write_bytecode == writes)"
    )
    done = subprocess.run([sys.executable, "-c", watch], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "__future__ segjudge True True\n"
