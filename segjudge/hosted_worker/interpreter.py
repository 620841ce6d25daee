"""The interpreter that plays EvalAI's worker: named, found, and tried before anything depends on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from segjudge.evaluation_script.errors import HostError
from segjudge.sandbox import HOME

#: Names the interpreter that `run.sh` prepares with the worker's packages and pins.
WORKER_PYTHON = "SEGJUDGE_WORKER_PYTHON"
#: Where `run.sh` prepares it.
_PREPARED = os.path.join(".venv-worker", "bin", "python")
_SECONDS = 60.0
_ASKED = (
    "import json, sys; print(json.dumps([sys.executable, '%d.%d' % sys.version_info[:2], "
    "sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python that runs."""

    path: str
    version: str
    #: Folders without which it does not run: its own, and those that its links lead through.
    folders: tuple[str, ...]


def interpreter(named: str) -> Interpreter:
    """The interpreter of a path or a name; raises HostError where it does not run."""
    path = _placed(named)
    told = _answer(path, named)
    try:
        executable, version, *prefixes = (str(one) for one in json.loads(told.strip().splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        raise HostError(f"--python {named}: does not answer as Python does ({told.strip()[-200:]!r})") from None
    # What a shim leads to, without the shim.
    executable = executable or path
    return Interpreter(executable, version, tuple(dict.fromkeys([*prefixes, *_through(executable)])))


def for_worker(named: str | None, root: str) -> Interpreter:
    """The one that was asked for, else the one that `run.sh` prepared, else the one that runs us."""
    wanted = named or os.environ.get(WORKER_PYTHON)
    if wanted:
        return interpreter(wanted)
    for folder in dict.fromkeys((root, HOME)):
        prepared = os.path.join(folder, _PREPARED)
        if os.path.exists(prepared):
            try:
                return interpreter(prepared)
            except HostError:
                continue  # half made, or of a Python that is gone
    return interpreter(sys.executable)


def _placed(named: str) -> str:
    """A path from where we are, or a name on the PATH; the worker runs in another folder."""
    if os.sep in named:
        return os.path.abspath(os.path.expanduser(named))
    found = shutil.which(named)
    if found is None and not os.path.exists(named):
        raise HostError(f"--python {named}: there is no such command and no such file")
    return os.path.abspath(found or named)


def _answer(path: str, named: str) -> str:
    try:
        done = subprocess.run(
            [path, "-I", "-c", _ASKED], capture_output=True, text=True, errors="replace", check=False,
            timeout=_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HostError(f"--python {named}: does not run (it did not answer in {_SECONDS:.0f} seconds)") from None
    except (OSError, ValueError) as error:
        raise HostError(f"--python {named}: does not run ({getattr(error, 'strerror', None) or error})") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        # The first line of a shim says what is missing, the last of Python what went wrong.
        why = said[-1] if said and said[0].startswith("Traceback") else (said or [f"exit code {done.returncode}"])[0]
        raise HostError(f"--python {named}: does not run ({why.strip()[:300]})")
    return done.stdout


def _through(path: str) -> list[str]:
    """The folders of the links that lead from a path to the program."""
    found = []
    for _ in range(40):
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        found.append(os.path.dirname(path))
    return found
