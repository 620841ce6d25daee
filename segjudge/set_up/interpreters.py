"""The interpreters that environments are made with."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys

from .environment import PLACE, PythonEnvironment, SetUpError, found, say
from .pip import end_of, pip, run


def own_python() -> str:
    """The interpreter that runs this, not the environment that it may be in."""
    base = str(getattr(sys, "_base_executable", "") or sys.executable)
    return base if os.access(base, os.X_OK) else sys.executable


def worker_python(log: str, lock: int) -> str:
    """Python 3.9, fetched when it is nowhere; raises Failure when it cannot be had."""
    roots = [os.path.expanduser("~/.pyenv"), os.environ.get("PYENV_ROOT", "")]
    candidates = [shutil.which("python3.9") or "", *(path for root in roots if root for path in _in_pyenv(root))]
    for candidate in candidates:
        path = candidate and _base_of(candidate)
        if path:
            return path
    toolkit = found(PythonEnvironment("toolkit"))
    tool = os.path.join(PLACE, "uv")
    say("Fetching Python 3.9, which EvalAI's worker runs…")
    if not os.access(os.path.join(tool, "bin", "uv"), os.X_OK):
        pip(toolkit, ["--target", tool, "--upgrade", "uv"], log, lock)
    if run([os.path.join(tool, "bin", "uv"), "python", "install", "3.9"], log, lock):
        raise SetUpError(f"Python 3.9 is not installed and could not be fetched:\n{end_of(log, 3)}")
    command = [os.path.join(tool, "bin", "uv"), "python", "find", "3.9"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _in_pyenv(root: str) -> list[str]:
    return glob.glob(os.path.join(glob.escape(root), "versions", "3.9.*", "bin", "python"))


def _base_of(candidate: str) -> str:
    """Where an interpreter of 3.9 really is; "" for a shim that does not run, or another version."""
    ask = "import sys, venv, ensurepip; print(sys._base_executable if sys.version_info[:2] == (3, 9) else '')"
    try:
        done = subprocess.run([candidate, "-I", "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
