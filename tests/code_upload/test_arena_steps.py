"""How an arena finds agents and the address of an environment, and copies files; the starters."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.code_upload import arena
from tests.outcomes import outcome_of


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (b"4711\nmore\n", "127.0.0.1:4711"),
        (b"unix:/x\n", "unix:/x"),
        (b"\n", "HostError: the environment did not start; its output is above"),
        (b"", "HostError: the environment did not start; its output is above"),
    ],
)
def test_the_address_of_an_environment_is_its_first_line(line: bytes, address: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, line)
    os.close(writer)
    with os.fdopen(reader, "rb") as output, mock.patch.object(arena, "Tail"):
        child: Any = SimpleNamespace(output=output, end=mock.Mock())
        assert outcome_of(lambda: arena._read_address(child)) == address
    child.end.assert_not_called()


def test_agents_and_what_they_may_import_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").touch()
    agent = arena.find_agent([str(tmp_path / "a.py"), "--fast"])
    assert (agent.command, agent.folder) == ([sys.executable, str(tmp_path / "a.py"), "--fast"], str(tmp_path))
    assert arena.find_agent(["cat", "x"]).command == ["cat", "x"]
    assert arena.find_agent(["python3", "-c", "1"]).command[1:] == ["-c", "1"]
    assert arena.replace_python(["x", "python"]) == ["x", "python"]
    for name, sentence in (
        ("nowhere.py", "nowhere.py: there is no such agent; correct the path"),
        ("no-such-command", "no-such-command: is neither a Python file nor a command; name one of them"),
    ):
        assert outcome_of(lambda name=name: arena.find_agent([name])) == f"UsageError: {sentence}"  # type: ignore[misc]
    assert arena._truths(["--option", 'truth="/a b"', "frames=/c", "x=1", "truth"]) == ["/a b", "/c"]
    for name in ("utils", "starter"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(arena, "IMPORT_ROOT", "ROOT")
    monkeypatch.setenv("PYTHONPATH", "MORE")
    assert arena._search_path(str(tmp_path / "starter")) == f"{tmp_path}/starter:{tmp_path}/utils:ROOT:MORE"
    assert arena._search_path("/nowhere/x") == arena._plain_environment()["PYTHONPATH"] == "ROOT:MORE"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("submission.json", ""),
        ("link", "link is not a plain file (Too many levels of symbolic links)"),
        ("pipe", "pipe is not a plain file"),
        ("folder", "folder is not a plain file"),
        ("none", "none is not a plain file (No such file or directory)"),
        ("large", "large has more than 0 MB"),
    ],
)
def test_only_a_plain_and_small_file_is_copied(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "_FILE_BYTES", 3000)
    (tmp_path / "submission.json").write_bytes(b"x" * 3000)
    (tmp_path / "large").write_bytes(b"x" * 3001)
    (tmp_path / "link").symlink_to(tmp_path / "submission.json")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    outcome = outcome_of(lambda: arena._copy(str(tmp_path / name), str(tmp_path / "copy")))
    assert outcome == (f"SubmissionFileError: {sentence}" if sentence else None)
    if not sentence:
        copied = (tmp_path / "copy").stat()
        assert (stat.S_ISREG(copied.st_mode), copied.st_size) == (True, 3000)
