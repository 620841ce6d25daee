"""The interpreter that acts as EvalAI's worker, and other common mistakes on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from segjudge.system import sandbox
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


@pytest.mark.skipif(sandbox.find_sandbox() is None, reason="needs bubblewrap")
def test_packages_outside_an_interpreters_folders_are_seen_in_the_sandbox(tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=False)
    packages = next((tmp_path / "fresh").glob("lib/python*/site-packages"))
    elsewhere, project = tmp_path / "elsewhere/site-packages", tmp_path / "project"
    for folder, module in ((elsewhere, "beside"), (project, "hidden")):
        folder.mkdir(parents=True)
        (folder / f"{module}.py").touch()
    (packages / "more.pth").write_text(f"{elsewhere}\n{project}\n")
    python = Interpreter.open(str(tmp_path / "fresh/bin/python"))
    assert str(elsewhere) in python.folders
    assert str(project) not in python.folders
    box = python.find_sandbox(required=True)
    assert box is not None
    (tmp_path / "work").mkdir()
    mounts = [(str(tmp_path / "work"), "/tmp")]
    codes = [
        subprocess.run(
            sandbox.scorer_command(
                box, [python.path, "-I", "-c", f"import {module}"], python.folders, mounts, (), python=python.path
            ),
            check=False, capture_output=True,
        ).returncode
        for module in ("beside", "hidden")
    ]  # fmt: skip
    assert codes == [0, 1]
