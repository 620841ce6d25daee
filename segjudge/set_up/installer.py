"""uv, with what pip is configured to: uv itself reads nothing of pip's."""

import glob
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections import deque
from contextlib import suppress

#: pip's settings, and the variables that tell uv the same; uv's own settings come first.
_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
#: These would make pip or uv install elsewhere, or for another Python.
_EXCLUDED = (
    "PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_NO_EDITABLE",
    "UV_PROJECT_ENVIRONMENT",
)  # fmt: skip
_UNREACHED = re.compile(r"Failed to fetch|error sending request|dns error|Retrying|NewConnectionError|ConnectTimeout")
_PACKAGE = re.compile(r"\s+[-+~] |Using Python|Bytecode")


class SetUpError(Exception):
    """Raised, with a sentence for the user, when an environment cannot be made."""


class Installer:
    """uv: the user's, else one that pip fetches into a folder."""

    def __init__(self, folder: str, locks: tuple[int, ...]) -> None:
        self._locks = locks
        base = str(getattr(sys, "_base_executable", "") or sys.executable)
        self.python = base if os.access(base, os.X_OK) else sys.executable
        self._variables = {name: value for name, value in os.environ.items() if name not in _EXCLUDED}
        self._variables |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        while not os.path.exists(cache):
            cache = os.path.dirname(cache)
        if not os.path.isdir(cache) or not os.access(cache, os.W_OK):
            self._variables.setdefault("UV_CACHE_DIR", os.path.join(os.path.dirname(folder), "cache"))
        self._uv = ""
        pip = self._pip(folder)
        self._uv = next(
            (path for path in (shutil.which("uv"), f"{folder}/bin/uv") if path and _prints(path, "--version")), ""
        )
        if not self._uv:
            say("Fetching uv, which installs the packages…")
            if not pip:
                raise SetUpError(
                    f"{self.python} has no pip and no venv; on Debian and Ubuntu: apt install python3-venv"
                )
            self.run([*pip, "install", "--quiet", "--upgrade", "--target", folder, "uv"])
            self._uv = f"{folder}/bin/uv"
        self._locks = locks[:1]
        settings = _pip_settings(pip)
        self._variables |= _uv_settings(settings, self._variables)
        self._options = ["--no-index"] if settings.get("no-index", "").lower() in {"1", "true", "yes", "on"} else []

    def _pip(self, folder: str) -> list[str]:
        """That of the interpreter, else of an environment that it makes; [] where it cannot."""
        folder_of_pip = os.path.join(os.path.dirname(folder), "pip")
        for python in (self.python, f"{folder_of_pip}/bin/python"):
            if _prints(python, "-I", "-m", "pip", "--version"):
                return [python, "-I", "-m", "pip"]
        subprocess.run([self.python, "-I", "-m", "venv", "--clear", folder_of_pip], capture_output=True, check=False)
        python = f"{folder_of_pip}/bin/python"
        return [python, "-I", "-m", "pip"] if _prints(python, "-I", "-m", "pip", "--version") else []

    def make(self, folder: str, python: str) -> None:
        managed = [] if os.sep in python else ["--managed-python"]
        options = ["--quiet", *self._options, *managed]
        self.run([self._uv, "venv", *options, "--python", python, folder])

    def install(self, folder: str, arguments: list[str]) -> None:
        """Install packages into an environment, compiled where no later start may write what it compiles."""
        options = ["--compile-bytecode"] if os.environ.get("PYTHONDONTWRITEBYTECODE") else []
        options += self._options
        self.run([self._uv, "pip", "install", "--python", f"{folder}/bin/python", *options, *arguments])

    def run(self, command: list[str]) -> None:
        """Run a command that takes long, and show how far it is; raises `SetUpError` when it fails."""
        process = subprocess.Popen(
            command, env=self._variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            pass_fds=self._locks, start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
        lines: deque[str] = deque(maxlen=20)
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if command[0] == self._uv and not _PACKAGE.match(line):
                    say(f"  {line.rstrip()}")
            code = process.wait()
        except BaseException:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(2)
            raise
        if code:
            text = "\n".join(lines)
            why = text if command[0] != self._uv else "see above"  # what uv said was shown
            if "No space left on device" in text:
                why = "the disk is full. Make room and run it again"
            elif _UNREACHED.search(text):
                why = (
                    "the package index cannot be reached. Connect this machine, or set PIP_INDEX_URL, and run it again"
                )
            raise SetUpError(f"the packages could not be installed: {why}")


def worker_python() -> str:
    """The path of a Python 3.9, else "3.9", which uv then fetches."""
    roots = [glob.escape(root) for root in (os.path.expanduser("~/.pyenv"), os.environ.get("PYENV_ROOT")) if root]
    installed = [path for root in roots for path in glob.glob(os.path.join(root, "versions", "3.9.*", "bin", "python"))]
    code = "import sys; print(sys._base_executable if sys.version_info[:2] == (3, 9) else '')"
    for candidate in [shutil.which("python3.9") or "", *installed]:
        path = candidate and _prints(candidate, "-I", "-c", code)
        if path and _prints(path, "-I", "-c", code):
            return path
    return "3.9"


def _pip_settings(pip: list[str]) -> dict[str, str]:
    """How pip is configured: by its files, over that for its command `install`, over that by variables."""
    settings: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for line in _prints(*pip, "config", "list").splitlines() if pip else ():
        section, _, setting = line.partition(".")
        name, _, value = setting.partition("=")
        unquoted = re.sub(r"\\(.)", lambda match: {"n": " "}.get(match[1], match[1]), value[1:-1])  # from Python's form
        settings.setdefault(section, {})[name] = unquoted
    variables = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_")
    }
    return {**settings["global"], **settings["install"], **variables}


def _uv_settings(settings: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    """The variables that tell uv what pip is told."""
    result = {}
    for name, variable in _SETTINGS.items():
        value = settings.get(name, "").strip()
        if value and not variables.get(variable):
            result[variable] = (",".join if variable == "UV_FIND_LINKS" else " ".join)(value.split())
    if any(ssl.get_default_verify_paths()[:2]):  # the system's certificates, which pip trusts as well
        result |= {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}
    if "UV_INDEX" in result:  # pip looks for the best version on all of them
        result["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return result


def _prints(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def say(text: str) -> None:
    """Print a message to the user."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
