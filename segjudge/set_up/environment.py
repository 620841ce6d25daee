"""The environments of a checkout: what they are made from, which exist, which are in use."""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from .installer import Installer, SetUpError, say, worker_python

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ENVIRONMENTS = os.path.join(CHECKOUT, ".environments")
#: The files that decide what is in an environment.
_FILES = {
    "toolkit": ("pyproject.toml",),
    "client": ("tests/client-pinned.txt", "tests/client-requirements.txt"),
    "worker": (
        "segjudge/platforms/evalai/bundle/worker-3.9.txt",
        "evaluation_script/requirements.txt",
        "tests/worker-requirements.txt",
    ),
}
LINKS = {"toolkit": ".venv", "client": ".venv-client", "worker": ".venv-worker"}
#: The toolkit's extras; each holds those behind it.
_EXTRAS = ("test", "all", "")
_SUBJECTS = {"toolkit": "the toolkit", "client": "the official client", "worker": "EvalAI's worker"}
#: Seconds in which a program that found an environment through its link takes the lock on it.
_GRACE = 10
#: Seconds between two messages while another process sets up.
_REPORT_EVERY = 15
#: The code that runs at the start of every process in an environment. A process that was started through the link keeps
#: the folder that the link pointed at, also when the link is switched.
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


@dataclass(frozen=True)
class PythonEnvironment:
    """One of the three environments, with the extra that it needs."""

    kind: str
    extra: str = ""

    @property
    def link(self) -> str:
        return os.path.join(CHECKOUT, LINKS[self.kind])

    @property
    def folder(self) -> str:
        """The folder, named by a digest of everything that decides what is in it."""
        tag = "cpython-39" if self.kind == "worker" else sys.implementation.cache_tag
        digest = hashlib.sha256(repr((CHECKOUT, tag, sys.platform, os.uname().machine, "uv")).encode())
        for file in _FILES[self.kind]:
            digest.update(b"\0" + Path(CHECKOUT, file).read_bytes())
        name = "-".join(word for word in (self.kind, self.extra, digest.hexdigest()[:12]) if word)
        return os.path.join(ENVIRONMENTS, name)

    @property
    def lock(self) -> str:
        """The name of the lock of those who set it up."""
        return os.path.basename(self.folder).rpartition("-")[0]

    def complete_folders(self) -> list[str]:
        """Those that have the packages of the extra, the one with most packages first."""
        extras = _EXTRAS[: _EXTRAS.index(self.extra) + 1] if self.kind == "toolkit" else ("",)
        folders = [PythonEnvironment(self.kind, extra).folder for extra in extras]
        return [folder for folder in folders if os.path.exists(f"{folder}/stamp")]

    def ready_folder(self) -> str:
        """The first of the complete folders whose interpreter runs; "" when there is none."""
        return next((folder for folder in self.complete_folders() if _runs(folder)), "")

    def ensure_folder(self) -> str:
        """A complete folder that the link points at; both are made where necessary."""
        folder = self.ready_folder()
        if not folder and (larger := self._with_linked_extra()) != self:
            return larger.ensure_folder()
        if not folder or os.path.realpath(self.link) != folder:
            try:
                with _hold_lock(self.lock) as lock:
                    self.ready_folder() or self._make(lock)
                    folder = self.ready_folder()
                    self._switch(folder)
            except OSError:
                if not folder:
                    raise  # else the checkout cannot be written, and keeps its links as they are
        _sweep()
        return folder

    def _with_linked_extra(self) -> "PythonEnvironment":
        """With the extra that the current one has: what replaces it lacks no package of it."""
        name = os.path.basename(os.path.realpath(self.link))
        extra = next((extra for extra in _EXTRAS if extra and name.startswith(f"{self.kind}-{extra}-")), "")
        return replace(self, extra=min(extra, self.extra, key=_EXTRAS.index))

    def _make(self, lock: int) -> str:
        started = time.monotonic()
        if os.path.exists(self.folder) and not _remove(self.folder):
            raise SetUpError(f"{self.folder} is broken and in use; end the programs that use it")
        say(f"Setting up {_SUBJECTS[self.kind]} in {LINKS[self.kind]}: downloading and installing packages…")
        with _hold_lock("uv") as fetching:
            uv = Installer(os.path.join(ENVIRONMENTS, "uv"), (lock, fetching))
        try:
            uv.make(self.folder, worker_python() if self.kind == "worker" else uv.python)
            for arguments in self._installations():
                uv.install(self.folder, arguments)
            for packages in glob.glob(os.path.join(glob.escape(self.folder), "lib", "python3*", "site-packages")):
                Path(packages, "_environment_in_use.py").write_text(_IN_USE, encoding="utf-8")
                Path(packages, "_in_use.pth").write_text("import _environment_in_use\n", encoding="utf-8")
            Path(self.folder, "in-use").touch()
            Path(self.folder, "stamp").touch()
        except BaseException:
            _remove(self.folder)
            raise
        say(f"Set up in {time.monotonic() - started:.0f} s.")
        return self.folder

    def _installations(self) -> list[list[str]]:
        if self.kind == "toolkit":  # with pip, which requirements of a challenge are tried with
            return [["pip", "--editable", f"{CHECKOUT}[{self.extra}]" if self.extra else CHECKOUT]]
        files = [os.path.join(CHECKOUT, file) for file in _FILES[self.kind]]
        if self.kind == "client":  # see the comments in these files
            return [["--no-deps", "-r", files[0]], ["-r", files[1]]]
        return [["pip", "-c", files[0], "-r", files[1], "-r", files[2]]]

    def _switch(self, folder: str) -> None:
        """Point the link at the folder, in one step."""
        if os.path.isdir(self.link) and not os.path.islink(self.link):
            return say(f"{LINKS[self.kind]} is no link made by ./run.sh and stays; remove it to have one there")
        with suppress(OSError):  # from now on the grace of the old one counts
            os.utime(os.path.join(os.path.realpath(self.link), "in-use"))
        new_link = f"{self.link}.{os.getpid()}.new"
        os.symlink(os.path.relpath(folder, CHECKOUT), new_link)
        os.replace(new_link, self.link)
        return None


def _runs(folder: str) -> bool:
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
    """Hold the lock on what is set up, which the kernel releases when this process and the uv that it started ended."""
    os.makedirs(ENVIRONMENTS, exist_ok=True)
    lock = os.open(os.path.join(ENVIRONMENTS, f"{name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    started, reported = time.monotonic(), -_REPORT_EVERY
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise
            except OSError:
                break  # a file system without locks
            passed = int(time.monotonic() - started)
            if passed >= reported + _REPORT_EVERY:
                reported = passed
                holder = os.pread(lock, 20, 0).decode(errors="replace") or "another"
                say(f"Waiting for process {holder}, which is setting up the same ({passed} s so far)…")
            time.sleep(0.1)
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _sweep() -> None:
    """Remove the environments that no link points at, and that nothing needs, uses or sets up."""
    needed = {os.path.realpath(os.path.join(CHECKOUT, link)) for link in LINKS.values()}
    for kind in LINKS:
        with suppress(OSError):
            needed.update(PythonEnvironment(kind).complete_folders()[:1])
    for path in glob.glob(os.path.join(glob.escape(ENVIRONMENTS), "*-*", "")):
        folder = path.rstrip(os.sep)
        with suppress(OSError):
            marker = os.path.join(folder, "in-use")
            # A program may have found it a moment ago.
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
