"""The interpreter that acts as EvalAI's worker, and other common mistakes on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import guests
from tests.builders import ROOT

# ── the command line ────────────────────────────────────────────────────────


def segjudge(*arguments: str, folder: Path = ROOT, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "segjudge", *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def shim(folder: Path, text: str) -> Path:
    path = folder / "python3.9"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("command", ["run", "rehearse"])
def test_an_interpreter_that_does_not_run_is_said(tmp_path: Path, command: str) -> None:
    text = "#!/bin/sh\necho 'pyenv: python3.9: command not found' >&2\necho 'more' >&2\nexit 127\n"
    done = segjudge(command, "--python", str(shim(tmp_path, text)))
    assert done.returncode == 3
    assert "does not run (pyenv: python3.9: command not found)" in done.stderr
    assert "Traceback" not in done.stderr
    assert "EvalAI" not in done.stderr


@pytest.mark.long
def test_run_takes_an_interpreter_by_relative_path_by_name_and_by_shim(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(sys.prefix)
    good = shim(tmp_path, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    bundle = str(guests.with_samples(guests.starter(tmp_path / "bundle")))
    for named in ("here/bin/python", "./here/bin/python", "python3.9", str(good)):
        done = segjudge("run", "--bundle", bundle, "--python", named, folder=tmp_path, PATH=path)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "finished" in done.stdout
