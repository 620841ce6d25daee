"""The environments of a checkout: their contents, their folders, and their use."""

import errno
import fcntl
import glob
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ENVIRONMENTS = os.path.join(CHECKOUT, ".environments")
#: Its locks have the packages of each environment, and uv, by version and hash; `renew.sh` writes them.
_LOCKS = "packaging/locks"
#: The files that determine the content of an environment.
_FILES = {
    "toolkit": (f"{_LOCKS}/toolkit.txt", "pyproject.toml", "evaluation_script/scoring/__init__.py"),
    "client": (f"{_LOCKS}/client.txt",),
    "worker": (f"{_LOCKS}/worker.txt",),
}
#: The tag of EvalAI's worker's Python.
_WORKER_TAG = "cpython-39"
LINKS = {"toolkit": ".venv", "client": ".venv-client", "worker": ".venv-worker"}
#: The toolkit's extras; each contains those after it.
_EXTRAS = ("test", "all", "")
#: The extra of pyproject.toml in the toolkit's environment without any of these.
_SMALLEST = "serve"
_SUBJECTS = {"toolkit": "the toolkit", "client": "the official client", "worker": "EvalAI's worker"}
#: The seconds within which a program that entered an environment through its link locks it.
_GRACE = 10
#: The code at the start of every process in an environment. A process that was started through the link keeps the
#: folder that the link named, even if the link changes.
_IN_USE = '''\
"""Keep the environment of this process: see segjudge/set_up/environment.py."""

import fcntl
import os
import sys

_real = os.path.realpath(sys.prefix)
if _real != sys.prefix:
    _moved = [_real + path[len(sys.prefix) :] if path.startswith(sys.prefix + os.sep) else path for path in sys.path]
    sys.path[:] = _moved
    if sys.executable.startswith(sys.prefix + os.sep):
        sys.executable = _real + sys.executable[len(sys.prefix) :]
    sys.prefix = sys.exec_prefix = _real
try:
    _near = os.open(os.path.join(_real, "in-use"), os.O_RDONLY)
    _held = fcntl.fcntl(_near, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(_near)
    fcntl.flock(_held, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass
'''
#: The code that lets the toolkit's environment import the checkout. The one of setuptools imports pathlib, and with it
#: so much that Python takes twice as long to start.
_FINDER = """
from importlib.machinery import PathFinder as _PathFinder


class _CheckoutFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return _PathFinder.find_spec(name, [{checkout!r}]) if name == "segjudge" else None


sys.meta_path.append(_CheckoutFinder)
"""

#: Variables that would make pip or uv install elsewhere, or for another Python.
_EXCLUDED = (
    "PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_NO_EDITABLE",
    "UV_PROJECT_ENVIRONMENT",
)  # fmt: skip
_UNREACHED = r"Failed to fetch|error sending request|dns error|Retrying|NewConnectionError|ConnectTimeout"
_REMEDY = "clone the repository into a folder of your own, and run it there"
_PACKAGE = r"\s+[-+~] |Using Python|Bytecode"


class SetUpError(Exception):
    """Raised, with a sentence for the user, when an environment cannot be made."""


class PythonEnvironment:
    """One of the three environments, with the extra that it needs."""

    def __init__(self, kind: str, extra: str = "") -> None:
        self.kind, self.extra = kind, extra

    @property
    def link(self) -> str:
        return os.path.join(CHECKOUT, LINKS[self.kind])

    @property
    def folder(self) -> str:
        """Return the folder, named by a digest of everything that decides its content."""
        tag = _WORKER_TAG if self.kind == "worker" else sys.implementation.cache_tag
        made_by = CHECKOUT, tag, sys.platform, os.uname().machine, self._start_code()
        digest = hashlib.sha256(repr(made_by).encode())
        for file in _FILES[self.kind]:
            with open(os.path.join(CHECKOUT, file), "rb") as content:
                digest.update(b"\0" + content.read())
        name = "-".join(word for word in (self.kind, self.extra, digest.hexdigest()[:12]) if word)
        return os.path.join(ENVIRONMENTS, name)

    @property
    def lock(self) -> str:
        """Return the name of the set-up lock."""
        return os.path.basename(self.folder).rpartition("-")[0]

    def complete_folders(self) -> list[str]:
        """Return the complete folders with the extra's packages, the one with the most packages first."""
        extras = _EXTRAS[: _EXTRAS.index(self.extra) + 1] if self.kind == "toolkit" else ("",)
        folders = [PythonEnvironment(self.kind, extra).folder for extra in extras]
        return [folder for folder in folders if os.path.exists(f"{folder}/stamp")]

    def ready_folder(self) -> str:
        """Return the first complete folder whose interpreter runs; "" if there is none."""
        return next((folder for folder in self.complete_folders() if _runs(folder)), "")

    def ensure_folder(self) -> str:
        """Return a complete folder to which the link points; create both if necessary."""
        folder = self.ready_folder()
        if not folder and (extra := self._extra_of_link()) != self.extra:
            return PythonEnvironment(self.kind, extra).ensure_folder()
        if not folder or os.path.realpath(self.link) != folder:
            try:
                with _hold_lock(self.lock) as lock:
                    if not self.ready_folder():
                        self._make(lock)
                    folder = self.ready_folder()
                    self._switch(folder)
            except OSError:
                if not folder:  # otherwise the checkout is read-only, and keeps its links
                    raise
        _sweep()
        return folder

    def _extra_of_link(self) -> str:
        """Return the larger extra of the current and the new environment, so that no package is removed."""
        name = os.path.basename(os.path.realpath(self.link))
        extra = next((extra for extra in _EXTRAS if extra and name.startswith(f"{self.kind}-{extra}-")), "")
        return min(extra, self.extra, key=_EXTRAS.index)

    def _make(self, lock: int) -> None:
        started = time.monotonic()
        if os.path.exists(self.folder) and not _remove(self.folder):
            raise SetUpError(f"{self.folder} is broken and in use; end the programs that use it")
        say(f"Setting up {_SUBJECTS[self.kind]} in {LINKS[self.kind]}: downloading and installing packages…")
        with _hold_lock("uv") as fetching:
            uv = _Installer(os.path.join(ENVIRONMENTS, "uv"), (lock, fetching))
        try:
            uv.make(self.folder, _worker_python() if self.kind == "worker" else uv.python)
            for arguments in self._installations():
                uv.install(self.folder, arguments)
            for packages in glob.glob(os.path.join(glob.escape(self.folder), "lib", "python3*", "site-packages")):
                for hook in pathlib.Path(packages).glob("__editable__*segjudge*"):
                    hook.unlink()
                pathlib.Path(packages, "_environment_in_use.py").write_text(self._start_code(), encoding="utf-8")
                pathlib.Path(packages, "_in_use.pth").write_text("import _environment_in_use\n", encoding="utf-8")
            pathlib.Path(self.folder, "in-use").touch()
            pathlib.Path(self.folder, "stamp").touch()
        except BaseException:
            _remove(self.folder)
            raise
        say(f"Set up in {time.monotonic() - started:.0f} s.")

    def _start_code(self) -> str:
        """Return the code that every process of the environment runs first."""
        return _IN_USE + (_FINDER.format(checkout=CHECKOUT) if self.kind == "toolkit" else "")

    def _installations(self) -> list[list[str]]:
        lock, *files = (os.path.join(CHECKOUT, file) for file in _FILES[self.kind])
        if self.kind != "toolkit":  # not the dependencies that the client names: see tests/client-pinned.txt
            return [["--require-hashes", "--no-deps", "-r", lock]]
        packages = ["-r", files[0], "--extra", self.extra or _SMALLEST]
        # With pip, which requirements of a challenge are tried with; uv wants the version of what is named here.
        pip = re.findall(r"^pip==\S+", pathlib.Path(lock).read_text(encoding="utf-8"), re.MULTILINE)
        return [
            ["--require-hashes", "-c", lock, *packages, *pip],
            ["--build-constraints", lock, "--no-deps", "--editable", CHECKOUT],
        ]

    def _switch(self, folder: str) -> None:
        """Point the link at the folder, in one step."""
        if os.path.isdir(self.link) and not os.path.islink(self.link):
            return say(f"{LINKS[self.kind]} is not a link made by ./run.sh and is kept; remove it to get the link")
        with suppress(OSError):  # from now on, the old one's grace counts
            os.utime(os.path.join(os.path.realpath(self.link), "in-use"))
        new_link = f"{self.link}.{os.getpid()}.new"
        os.symlink(os.path.relpath(folder, CHECKOUT), new_link)
        os.replace(new_link, self.link)
        return None


def _runs(folder: str) -> bool:
    if os.path.realpath(os.path.dirname(os.path.dirname(sys.executable))) == folder:
        return True  # it runs this process
    with suppress(OSError):
        return subprocess.run([f"{folder}/bin/python", "-I", "-S", "-c", ""], check=False).returncode == 0
    return False


def mark_in_use(folder: str) -> None:
    """Lock an environment for the program that replaces this process."""
    lock = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.set_inheritable(lock, True)  # noqa: FBT003 - it takes no keyword


@contextmanager
def _hold_lock(name: str, *, wait: bool = True) -> Iterator[int]:
    """Hold the set-up lock, which the system releases when this process and its uv have ended."""
    os.makedirs(ENVIRONMENTS, exist_ok=True)
    lock = os.open(os.path.join(ENVIRONMENTS, f"{name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            holder = os.pread(lock, 20, 0).decode(errors="replace") or "another"
            say(f"Waiting for process {holder}, which is setting up the same…")
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _sweep() -> None:
    """Remove environments without a link that are not needed, in use or being set up."""
    needed = {os.path.realpath(os.path.join(CHECKOUT, link)) for link in LINKS.values()}
    for kind in LINKS:
        with suppress(OSError):
            needed.update(PythonEnvironment(kind).complete_folders()[:1])
    names = os.listdir(ENVIRONMENTS) if os.path.isdir(ENVIRONMENTS) else []
    folders = [os.path.join(ENVIRONMENTS, name) for name in sorted(names) if "-" in name and name[0] != "."]
    for folder in filter(os.path.isdir, folders):
        with suppress(OSError):
            marker = os.path.join(folder, "in-use")
            # A program may have entered it a moment ago.
            is_recent = os.path.exists(marker) and os.path.getmtime(marker) > time.time() - _GRACE
            if folder not in needed and not is_recent:
                with _hold_lock(os.path.basename(folder).rpartition("-")[0], wait=False):
                    _remove(folder)


def _remove(folder: str) -> bool:
    """Remove an environment unless a process uses it; return whether it is gone."""
    lock = -1
    try:
        with suppress(FileNotFoundError):
            lock = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        removed = os.path.join(ENVIRONMENTS, f"removed-{os.path.basename(folder)}-{os.getpid()}")
        with suppress(FileNotFoundError):
            os.rename(folder, removed)
        shutil.rmtree(removed, ignore_errors=True)
    except OSError:
        return False
    finally:
        if lock >= 0:
            os.close(lock)
    return True


# ── uv ───────────────────────────────────────────────────────────────────────


class _Installer:
    """uv: the user's, else one that pip fetches into a folder."""

    def __init__(self, folder: str, locks: tuple[int, ...]) -> None:
        import ssl  # only installations need it; it would add a tenth to every start

        self._locks = locks
        self.python = os.path.realpath(sys.executable)
        self._variables = {name: value for name, value in os.environ.items() if name not in _EXCLUDED}
        self._variables |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        while not os.path.exists(cache):
            cache = os.path.dirname(cache)
        if not os.path.isdir(cache) or not os.access(cache, os.W_OK):
            self._variables.setdefault("UV_CACHE_DIR", os.path.join(os.path.dirname(folder), "cache"))
        self._uv = ""
        if any(ssl.get_default_verify_paths()[:2]):  # the system's certificates, which pip trusts as well
            self._variables |= {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}
        own_uv, lock = f"{folder}/bin/uv", os.path.join(CHECKOUT, _LOCKS, "uv.txt")
        with open(lock, encoding="utf-8") as lines:
            version = lines.readline().split()[0].replace("==", " ")
        if (path := shutil.which("uv")) and _prints(path, "--version"):
            self._uv = path
        elif f"{_prints(own_uv, '--version')} ".startswith(f"{version} "):
            self._uv = own_uv
        else:
            pip = [self.python, "-I", "-m", "pip"]
            if not _prints(*pip, "--version"):
                raise SetUpError(f"{self.python} has no pip. Install uv or pip (on Debian, apt install python3-pip)")
            say("Downloading uv, which installs the packages…")
            self.run([*pip, "install", "--quiet", "--upgrade", "--target", folder, "--require-hashes", "-r", lock])
            self._uv = own_uv
        self._locks = locks[:1]

    def make(self, folder: str, python: str) -> None:
        managed = [] if os.sep in python else ["--managed-python"]
        self.run([self._uv, "venv", "--quiet", *managed, "--python", python, folder])

    def install(self, folder: str, arguments: list[str]) -> None:
        """Install packages into an environment, with bytecode if later starts may not write it."""
        options = ["--compile-bytecode"] if os.environ.get("PYTHONDONTWRITEBYTECODE") else []
        self.run([self._uv, "pip", "install", "--python", f"{folder}/bin/python", *options, *arguments])

    def run(self, command: list[str]) -> None:
        """Run a long command with its progress; raises `SetUpError` if it fails."""
        process = subprocess.Popen(
            command, env=self._variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            pass_fds=self._locks, start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
        lines: deque[str] = deque(maxlen=20)
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if command[0] == self._uv and not re.match(_PACKAGE, line):
                    say(f"  {line.rstrip()}")
            code = process.wait()
        except BaseException:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(2)
            raise
        finally:
            if process.stdout:
                process.stdout.close()
        if code:
            text = "\n".join(lines)
            why = text if command[0] != self._uv else "see above"  # uv's message was shown
            if "No space left on device" in text:
                why = "the disk is full. Free some space and run it again"
            elif re.search(_UNREACHED, text):
                why = "the package index cannot be reached. Connect this machine, or set UV_DEFAULT_INDEX to a mirror"
            raise SetUpError(f"the packages could not be installed: {why}")


def _worker_python() -> str:
    """Return the path of a Python 3.9, else "3.9", which uv then downloads."""
    roots = [glob.escape(root) for root in (os.path.expanduser("~/.pyenv"), os.environ.get("PYENV_ROOT")) if root]
    installed = [path for root in roots for path in glob.glob(os.path.join(root, "versions", "3.9.*", "bin", "python"))]
    code = "import os, sys; print(os.path.realpath(sys.executable) if sys.version_info[:2] == (3, 9) else '')"
    for candidate in [shutil.which("python3.9") or "", *installed]:
        path = candidate and _prints(candidate, "-I", "-c", code)
        if path and _prints(path, "-I", "-c", code):
            return path
    return "3.9"


def _prints(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def explain(error: OSError) -> str:
    """Return a sentence about a refusal of the system, with the remedy."""
    text = f"{error.filename or ENVIRONMENTS}: {error.strerror}, so the environment cannot be set up"
    if isinstance(error, PermissionError) and os.stat(CHECKOUT).st_uid != os.getuid():
        return f"{text}. This checkout belongs to {_name_owner(CHECKOUT)}; {_REMEDY}"
    if error.errno in (errno.EACCES, errno.EROFS):
        return f"{text}. Make {CHECKOUT} readable and writable, or {_REMEDY}"
    return text


def _name_owner(path: str) -> str:
    number = os.stat(path).st_uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def say(text: str) -> None:
    """Print a message to the user, unless stderr is closed or cannot be written."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
