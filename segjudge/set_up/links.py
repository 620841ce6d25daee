"""The links to the current environments, and the removal of older ones."""

import glob
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .environment import CHECKOUT, ENVIRONMENTS, LINKS, PythonEnvironment, say
from .locks import remove, set_up_lock

#: Seconds in which a program that found an environment through its link takes the lock on it.
GRACE = 10


def switch(link: str, folder: str) -> None:
    """Point the link at the folder, in one step."""
    if os.path.islink(link) and os.path.realpath(link) == folder:
        return
    if os.path.isdir(link) and not os.path.islink(link) and not _removed_old_layout(link):
        return
    with suppress(OSError):  # from now on the grace of the old one counts
        os.utime(os.path.join(os.path.realpath(link), "in-use"))
    new = f"{link}.{os.getpid()}.new"
    os.symlink(os.path.relpath(folder, os.path.dirname(link)), new)
    os.replace(new, link)


def _removed_old_layout(folder: str) -> bool:
    """Remove an environment of the older layout, a folder in the link's place; return whether it is gone."""
    name = os.path.basename(folder)
    if not {"stamp", "install.log"} & set(os.listdir(folder)):
        say(f"{name} was not made by ./run.sh and stays; remove it to have a link to {ENVIRONMENTS} there")
        return False
    users = _processes_in(folder)
    if users:
        say(f"{name}, of an older layout, is in use by process {', '.join(users)}; it is replaced when nothing uses it")
        return False
    removed = os.path.join(ENVIRONMENTS, f"removed-{name}-{os.getpid()}")
    os.rename(folder, removed)
    shutil.rmtree(removed, ignore_errors=True)
    return True


def _processes_in(folder: str) -> list[str]:
    """Return the processes that run in an environment without locks, as far as this user can see."""
    prefix = os.fsencode(folder + os.sep)
    if not os.path.isdir("/proc/self"):
        listed = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, check=False).stdout
        return [line.split()[0].decode() for line in listed.splitlines() if prefix in line]
    pids = (pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid())
    return [pid for pid in pids if _runs_in(prefix, f"/proc/{pid}")]


def _runs_in(prefix: bytes, process: str) -> bool:
    """Return whether a process was started by a path with this prefix, or has mapped a library from there."""
    with suppress(OSError):
        program = Path(process, "cmdline").read_bytes().split(b"\0")[0]
        if program.startswith(prefix):
            return True
        absolute = os.path.normpath(os.path.join(os.fsencode(os.readlink(f"{process}/cwd")), program))
        return absolute.startswith(prefix) or prefix in Path(process, "maps").read_bytes()
    return False


def sweep_unless_locked() -> None:
    """Sweep, unless another process is setting up."""
    with suppress(OSError):
        if _unneeded():
            with set_up_lock(wait=False):
                sweep()


def sweep() -> None:
    """Remove the environments that nothing needs or uses; the caller holds the lock."""
    for folder in _unneeded():
        if os.path.basename(folder).startswith("removed-"):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            remove(folder)


def _unneeded() -> list[str]:
    """Return the environments that no link points at and that the checkout does not need."""
    needed = {os.path.realpath(os.path.join(CHECKOUT, link)) for link in LINKS.values()}
    for kind in LINKS:
        with suppress(OSError):
            needed.update(PythonEnvironment(kind).folders()[:1])
    unneeded = []
    for folder in glob.glob(os.path.join(glob.escape(ENVIRONMENTS), "*-*")):
        with suppress(OSError):
            recent = os.stat(os.path.join(folder, "in-use")).st_mtime > time.time() - GRACE
            if recent and not os.path.basename(folder).startswith("removed-"):
                continue
        if os.path.isdir(folder) and folder not in needed:
            unneeded.append(folder)
    return unneeded
