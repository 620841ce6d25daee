"""The interpreter used as EvalAI's worker: found, and tried before use."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system import IMPORT_ROOT, sandbox
from segjudge.system.errors import UsageError

#: The variable with the interpreter that `run.sh` prepares, with the worker's packages and pins.
_WORKER_PYTHON = "SEGJUDGE_WORKER_PYTHON"
#: The version of Python that EvalAI's worker runs.
PINNED_PYTHON = "3.9"
#: The environment that `run.sh` prepares.
_PREPARED = os.path.join(".venv-worker", "bin", "python")
_ANSWER_SECONDS = 60.0
#: The maximum number of followed links.
_MOST_LINKS = 40
#: Other folders of packages, which a `.pth` file names, count; a project's root there may hold what the sandbox hides.
_REPORT = (
    "import json, os, sys; print(json.dumps([sys.executable, '%d.%d' % sys.version_info[:2], "
    "sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *[path for path in sys.path "
    "if os.path.isdir(path) and os.path.basename(path) in ('site-packages', 'dist-packages')]]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A tested Python interpreter."""

    path: str
    version: str
    #: The folders that it needs to run: its own, those of its packages, and those on the path of its links.
    folders: tuple[str, ...]

    @property
    def search_path(self) -> str:
        """Return the PATH on which `python` and `pip` are this interpreter's, as on EvalAI's worker."""
        return os.pathsep.join([os.path.dirname(self.path), os.environ.get("PATH", os.defpath)])

    @classmethod
    def open(cls, name: str) -> Interpreter:
        """Return the interpreter of this path or name; raises HostError if it does not run."""
        path = _path_of(name)
        answer = _run(path, name, _REPORT).strip()
        try:
            executable, version, *folders = (str(value) for value in json.loads(answer.splitlines()[-1]))
        except (ValueError, IndexError, TypeError):
            raise HostError(f"--python {name}: does not answer as Python does ({answer[-200:]!r})") from None
        # The shim's target.
        executable = executable or path
        return cls(executable, version, tuple(dict.fromkeys([*folders, *_folders_of_links(executable)])))

    @classmethod
    def for_worker(cls, name: str | None, root: str) -> Interpreter:
        """Return the interpreter of this name, else `run.sh`'s, the PATH's, or this one.

        From the PATH it takes EvalAI's version, if it has numpy like EvalAI's worker.
        """
        name = name or os.environ.get(_WORKER_PYTHON)
        if name:
            return Interpreter.open(name)
        for folder in dict.fromkeys((root, IMPORT_ROOT)):
            prepared = os.path.join(folder, _PREPARED)
            if os.path.exists(prepared):
                with suppress(HostError):  # incomplete, or of a removed Python
                    return Interpreter.open(prepared)
        pinned = shutil.which(f"python{PINNED_PYTHON}")
        if pinned is not None:
            with suppress(HostError):  # no Python, or one without numpy
                _run(pinned, pinned, "import numpy")
                return Interpreter.open(pinned)
        return Interpreter.open(sys.executable)

    def find_sandbox(self, *, required: bool = False) -> str | None:
        """Return the sandbox's program if this interpreter runs in it; raises HostError if a required one fails."""
        box = sandbox.find_sandbox(required=required)
        if box is None:
            return None
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            start = [self.path, "-I", "-c", ""]
            command = sandbox.scorer_command(box, start, self.folders, [(folder, "/tmp")], (), python=self.path)  # noqa: S108
            trial = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if trial.returncode == 0:
            return box
        if required:
            reason = trial.stderr.strip()[-300:]
            raise HostError(
                f"--require-sandbox: {self.path} does not run in the sandbox ({reason}); name another Python"
            )
        return None


def _path_of(name: str) -> str:
    """Return the absolute path of a file or command."""
    path = os.path.expanduser(name)
    command = None if os.sep in name else shutil.which(name)
    if command is None and not os.path.exists(path):
        raise UsageError(f"--python {name}: there is no such command or file; name an interpreter")
    return os.path.abspath(command or path)


def _run(path: str, name: str, code: str) -> str:
    try:
        process = subprocess.run(
            [path, "-I", "-c", code], capture_output=True, text=True, errors="replace", check=False,
            timeout=_ANSWER_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        reason = f"it did not answer in {_ANSWER_SECONDS:.0f} seconds"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
    else:
        if process.returncode == 0:
            return process.stdout
        lines = (process.stderr.strip() or process.stdout.strip()).splitlines() or [f"exit code {process.returncode}"]
        # A shim's first line says what is missing; Python's last line says what went wrong.
        reason = lines[-1 if lines[0].startswith("Traceback") else 0].strip()[:300]
    raise HostError(f"--python {name}: does not run ({reason})")


def _folders_of_links(path: str) -> list[str]:
    """Return the folders of the links from a path to the program."""
    folders = []
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        folders.append(os.path.dirname(path))
    return folders
