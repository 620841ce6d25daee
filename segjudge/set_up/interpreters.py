"""The interpreters that environments are made with."""

import glob
import os
import shutil
import subprocess
import sys

from .environment import ENVIRONMENTS, PythonEnvironment, SetUpError, say
from .pip import install, log_end, run


def own_python() -> str:
    """Return the interpreter that runs this, outside of any environment."""
    base = str(getattr(sys, "_base_executable", "") or sys.executable)
    return base if os.access(base, os.X_OK) else sys.executable


def worker_python(log: str, lock: int) -> str:
    """Return a Python 3.9, which is downloaded where none is installed; raises `SetUpError` when that fails."""
    roots = [os.path.expanduser("~/.pyenv"), os.environ.get("PYENV_ROOT", "")]
    pyenv = [os.path.join(glob.escape(root), "versions", "3.9.*", "bin", "python") for root in roots if root]
    for candidate in [shutil.which("python3.9") or "", *(path for pattern in pyenv for path in glob.glob(pattern))]:
        path = candidate and _base_python(candidate)
        if path:
            return path
    say("Fetching Python 3.9, which EvalAI's worker runs…")
    folder = os.path.join(ENVIRONMENTS, "uv")
    uv = os.path.join(folder, "bin", "uv")
    if not os.access(uv, os.X_OK):
        install(PythonEnvironment("toolkit").ready_folder(), ["--target", folder, "--upgrade", "uv"], log, lock)
    if run([uv, "python", "install", "3.9"], log, lock):
        raise SetUpError(f"Python 3.9 is not installed and could not be fetched:\n{log_end(log, 3)}")
    return subprocess.run([uv, "python", "find", "3.9"], capture_output=True, text=True, check=True).stdout.strip()


def _base_python(candidate: str) -> str:
    """Return the real path of a Python 3.9; "" for a shim that does not run, or another version."""
    code = "import sys, venv, ensurepip; print(sys._base_executable if sys.version_info[:2] == (3, 9) else '')"
    try:
        python = subprocess.run([candidate, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return python.stdout.strip() if python.returncode == 0 else ""
