"""Making an environment, and adding packages to an existing one."""

import glob
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import environment as env
from .environment import CHECKOUT, ENVIRONMENTS, LINKS, PythonEnvironment, SetUpError, printed_by, python_in, say
from .locks import IN_USE, remove
from .pip import INSTALLING, clean_variables, install, log_end, run, searches_for_long

_SUBJECTS = {"toolkit": "the toolkit", "client": "the official client", "worker": "EvalAI's worker"}


def make(environment: PythonEnvironment, lock: int) -> str:
    """Make a new environment; return its folder."""
    folder, log = _free_folder(environment), environment.log
    python = _worker_python(log, lock) if environment.kind == "worker" else _own_python()
    started = time.monotonic()
    subject, link = _SUBJECTS[environment.kind], LINKS[environment.kind]
    say(f"Setting up {subject} in {link}: downloading and installing packages, about a minute…")
    try:
        _make_venv(python, folder, log, lock)
        for packages in _installations(environment):
            install(folder, packages, log, lock)
        env.write_record(folder, {"extra": environment.extra, "python": environment.tag})
    except BaseException:
        for _ in range(50):  # a killed pip may take a moment to end
            if remove(folder):
                break
            time.sleep(0.1)
        raise
    say(f"Set up in {time.monotonic() - started:.0f} s.")
    return folder


def _own_python() -> str:
    """Return the interpreter that runs this, outside of any environment."""
    base = str(getattr(sys, "_base_executable", "") or sys.executable)
    return base if os.access(base, os.X_OK) else sys.executable


def _worker_python(log: str, lock: int) -> str:
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
    return printed_by(candidate, code)


def _free_folder(environment: PythonEnvironment) -> str:
    """Return a folder that does not exist, after removing an incomplete one that nothing uses."""
    for folder in environment.paths():
        complete = env.read_record(folder) and env.works(folder, environment.tag)
        if not os.path.exists(folder) or (not complete and remove(folder)):
            return folder
    raise SetUpError(f"{environment.paths()[0]}: nine of these are in use; end the programs that use them")


def extend(environment: PythonEnvironment, lock: int) -> str:
    """Add the missing packages to a complete environment, whose other packages stay; return its folder, or ""."""
    for folder in environment.folders():
        record = env.read_record(folder)
        extensible = environment.kind == "toolkit" and record and "adding" not in record
        if extensible and env.works(folder, environment.tag):
            started = time.monotonic()
            say(f"Setting up: adding the packages of [{environment.extra}] to {LINKS[environment.kind]}…")
            if not _add_packages(environment, folder, record, lock):
                return ""
            say(f"Set up in {time.monotonic() - started:.0f} s.")
            return folder
    return ""


def _add_packages(environment: PythonEnvironment, folder: str, record: dict[str, str], lock: int) -> bool:
    """Install the packages of an extra; return False where they conflict with those installed."""
    log, constraints = environment.log, os.path.join(ENVIRONMENTS, "constraints.txt")
    Path(log).write_bytes(b"")
    freeze = [python_in(folder), "-I", "-m", "pip", "--disable-pip-version-check", "freeze", "--exclude-editable"]
    with open(constraints, "wb") as file:
        subprocess.run(freeze, stdout=file, stderr=subprocess.DEVNULL, env=clean_variables(), check=True)
    env.write_record(folder, {**record, "adding": environment.extra})  # until it is done, others make a new one
    try:
        packages = sorted(env.requirements(environment.extra))
        install(folder, ["-c", constraints, *packages], log, lock, patient=False)
    except SetUpError:
        output = log_end(log, 10_000)
        if INSTALLING not in output:
            env.write_record(folder, record)  # nothing was touched
        if "conflicting dependencies" not in output and not searches_for_long(log):
            raise
        say("They do not go with the versions installed, so a new environment is made beside this one.")
        return False
    env.write_record(folder, {**record, "extra": environment.extra})
    return True


def _installations(environment: PythonEnvironment) -> list[list[str]]:
    """Return the arguments of pip, one list for each call."""
    if environment.kind == "toolkit":
        return [["-e", CHECKOUT, *sorted(env.requirements(environment.extra))]]
    files = [os.path.join(CHECKOUT, file) for file in env.FILES[environment.kind]]
    if environment.kind == "client":  # see the comments in these files
        return [["--no-deps", "-r", files[0]], ["-r", files[1]]]
    return [["-c", files[0], "-r", files[1], "-r", files[2]]]


def _make_venv(python: str, folder: str, log: str, lock: int) -> None:
    Path(log).write_bytes(b"")
    if run([python, "-I", "-m", "venv", folder], log, lock):
        if subprocess.run([python, "-I", "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode:
            raise SetUpError(f"{python} has no module venv; on Debian and Ubuntu: apt install python3-venv")
        raise SetUpError(f"{python} could not make a virtual environment:\n{log_end(log)}")
    for packages in glob.glob(os.path.join(glob.escape(folder), "lib", "python3*", "site-packages")):
        for name, text in (("_in_use.pth", "import _environment_in_use\n"), ("_environment_in_use.py", IN_USE)):
            Path(packages, name).write_text(text, encoding="utf-8")
    Path(folder, "in-use").write_bytes(b"")
