"""Making an environment, and adding packages to one that is there."""

from __future__ import annotations

import glob
import os
import subprocess
import time

from .environment import (
    FILES,
    HERE,
    LINKS,
    PLACE,
    PythonEnvironment,
    SetUpError,
    python_in,
    record_of,
    requirements,
    say,
    works,
    write_record,
)
from .interpreters import own_python, worker_python
from .locks import IN_USE, remove
from .pip import clean_environment, end_of, pip, run


def made(wanted: PythonEnvironment, lock: int) -> str:
    """A new environment."""
    folder = _free(wanted)
    python = worker_python(wanted.log, lock) if wanted.kind == "worker" else own_python()
    started = time.monotonic()
    what = {"toolkit": "the toolkit", "client": "the official client", "worker": "EvalAI's worker"}[wanted.kind]
    say(f"Setting up {what} in {LINKS[wanted.kind]}: downloading and installing packages, about a minute…")
    try:
        _venv(python, folder, wanted.log, lock)
        for packages in installations(wanted):
            pip(folder, packages, wanted.log, lock)
        write_record(folder, {"extra": wanted.extra, "python": wanted.tag})
    except BaseException:
        for _ in range(50):  # what was killed may take a moment to go
            if remove(folder):
                break
            time.sleep(0.1)
        raise
    say(f"Set up in {time.monotonic() - started:.0f} s.")
    return folder


def _free(wanted: PythonEnvironment) -> str:
    """A folder of this name that is not there, or is broken and used by nothing and so is removed."""
    first = os.path.join(PLACE, wanted.name())
    for folder in (first, *(f"{first}-{number}" for number in range(2, 10))):
        if not os.path.exists(folder) or (not _whole(folder, wanted.tag) and remove(folder)):
            return folder
    raise SetUpError(f"{first}: nine of these are in use; end the programs that use them")


def _whole(folder: str, tag: str) -> bool:
    return bool(record_of(folder)) and works(folder, tag)


def added(wanted: PythonEnvironment, lock: int) -> str:
    """A whole environment, after the packages that are missing were installed beside those that its users run with."""
    for folder in wanted.folders():
        record = record_of(folder)
        if wanted.kind == "toolkit" and record and "adding" not in record and works(folder, wanted.tag):
            started = time.monotonic()
            say(f"Setting up: adding the packages of [{wanted.extra}] to {LINKS[wanted.kind]}…")
            if not _add(wanted, folder, record, lock):
                return ""
            say(f"Set up in {time.monotonic() - started:.0f} s.")
            return folder
    return ""


def _add(wanted: PythonEnvironment, folder: str, record: dict[str, str], lock: int) -> bool:
    """Whether the packages of an extra go together with what is there, and so were installed."""
    _empty(wanted.log)
    fixed = os.path.join(PLACE, "constraints.txt")
    listed = [python_in(folder), "-I", "-m", "pip", "--disable-pip-version-check", "freeze", "--exclude-editable"]
    with open(fixed, "wb") as file:
        subprocess.run(listed, stdout=file, stderr=subprocess.DEVNULL, env=clean_environment(), check=True)
    write_record(folder, {**record, "adding": wanted.extra})  # whoever finds this makes another
    try:
        pip(folder, ["-c", fixed, *sorted(requirements(wanted.extra))], wanted.log, lock)
    except SetUpError:
        told = end_of(wanted.log, 10_000)
        if "Installing collected packages" not in told:
            write_record(folder, record)  # nothing was touched
        if "conflicting dependencies" not in told:
            raise
        return False
    write_record(folder, {**record, "extra": wanted.extra})
    return True


def installations(wanted: PythonEnvironment) -> list[list[str]]:
    """What pip is given, call by call."""
    if wanted.kind == "toolkit":
        return [["-e", HERE, *sorted(requirements(wanted.extra))]]
    files = [os.path.join(HERE, file) for file in FILES[wanted.kind]]
    if wanted.kind == "client":  # see the comments in these files
        return [["--no-deps", "-r", files[0]], ["-r", files[1]]]
    return [["-c", files[0], "-r", files[1], "-r", files[2]]]


def _venv(python: str, folder: str, log: str, lock: int) -> None:
    _empty(log)
    if run([python, "-I", "-m", "venv", folder], log, lock):
        if subprocess.run([python, "-I", "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode:
            raise SetUpError(f"{python} has no module venv; on Debian and Ubuntu: apt install python3-venv")
        raise SetUpError(f"{python} could not make a virtual environment:\n{end_of(log)}")
    for packages in glob.glob(os.path.join(glob.escape(folder), "lib", "python3*", "site-packages")):
        for name, text in (("_in_use.pth", "import _environment_in_use\n"), ("_environment_in_use.py", IN_USE)):
            with open(os.path.join(packages, name), "w", encoding="utf-8") as file:
                file.write(text)
    _empty(os.path.join(folder, "in-use"))


def _empty(path: str) -> None:
    with open(path, "wb"):
        pass
