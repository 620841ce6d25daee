"""The interpreter that acts as EvalAI's worker, and other common mistakes on the command line."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import pytest

from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from segjudge.system import sandbox

# ── the command line ────────────────────────────────────────────────────────


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
