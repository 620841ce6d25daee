"""The links that lead to the environments of today, and removing those of before."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import time
from contextlib import suppress

from .environment import HERE, LINKS, PLACE, PythonEnvironment, say
from .locks import alone, remove

#: A program that found an environment through its link has this long to take its lock.
GRACE = 10


def switch(link: str, folder: str) -> None:
    """Let the link lead to the folder, in one step."""
    if os.path.islink(link) and os.path.realpath(link) == folder:
        return
    if os.path.isdir(link) and not os.path.islink(link) and not _retired(link):
        return
    with suppress(OSError):  # the time from which the old one is left
        os.utime(os.path.join(os.path.realpath(link), "in-use"))
    new = f"{link}.{os.getpid()}.new"
    os.symlink(os.path.relpath(folder, os.path.dirname(link)), new)
    os.replace(new, link)


def _retired(folder: str) -> bool:
    """Whether an environment of the older layout, a folder in the link's place, could be taken away."""
    name = os.path.basename(folder)
    if not {"stamp", "install.log"} & set(os.listdir(folder)):
        say(f"{name} was not made by ./run.sh and stays; remove it to have a link to {PLACE} there")
        return False
    users = processes_in(folder)
    if users:
        say(f"{name}, of an older layout, is in use by process {', '.join(users)}; it is replaced when nothing uses it")
        return False
    doomed = os.path.join(PLACE, f"removed-{name}-{os.getpid()}")
    os.rename(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)
    return True


def processes_in(folder: str) -> list[str]:
    """Processes that run in a folder whose environment holds no locks, as far as this user can see."""
    inside = os.fsencode(folder + os.sep)
    if not os.path.isdir("/proc/self"):
        listed = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, check=False).stdout
        return [line.split()[0].decode() for line in listed.splitlines() if inside in line]
    pids = (pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid())
    return [pid for pid in pids if _runs_in(inside, f"/proc/{pid}")]


def _runs_in(inside: bytes, process: str) -> bool:
    """Whether a process was started by a path inside, or has a library mapped from there."""
    with suppress(OSError):
        with open(f"{process}/cmdline", "rb") as file:
            program = file.read().split(b"\0")[0]
        if program.startswith(inside):
            return True
        if os.path.normpath(os.path.join(os.fsencode(os.readlink(f"{process}/cwd")), program)).startswith(inside):
            return True
        with open(f"{process}/maps", "rb") as file:
            return inside in file.read()
    return False


def sweep_later() -> None:
    """Remove what nothing needs or uses, where no other process is setting up."""
    with suppress(OSError):
        if _left():
            with alone(wait=False):
                sweep()


def sweep() -> None:
    """Remove what nothing needs or uses; for the holder of the lock."""
    for folder in _left():
        if os.path.basename(folder).startswith("removed-"):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            remove(folder)


def _left() -> list[str]:
    """Environments that no link leads to and that are not today's either."""
    needed = {os.path.realpath(os.path.join(HERE, link)) for link in LINKS.values()}
    for kind in LINKS:
        with suppress(OSError):
            needed.update(PythonEnvironment(kind).folders()[:1])
    left = []
    for folder in glob.glob(os.path.join(glob.escape(PLACE), "*-*")):
        with suppress(OSError):
            recent = os.stat(os.path.join(folder, "in-use")).st_mtime > time.time() - GRACE
            if recent and not os.path.basename(folder).startswith("removed-"):
                continue
        if os.path.isdir(folder) and folder not in needed:
            left.append(folder)
    return left
