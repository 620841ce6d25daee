"""Half a core for a process, by a cgroup where one can be made."""

from __future__ import annotations

import os
import time
from contextlib import suppress

_ROOT = "/sys/fs/cgroup"
_PERIOD = 100_000
_NAME = "segjudge-"


class CpuShare:
    """A group with a share of a core; `said` tells whether there is one."""

    def __init__(self, share: float) -> None:
        self._folder = ""
        _sweep()
        name = f"{_NAME}{os.getpid()}"
        for folder, limits in (
            (os.path.join(_ROOT, name), {"cpu.max": f"{int(share * _PERIOD)} {_PERIOD}"}),
            (
                os.path.join(_ROOT, "cpu", name),
                {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(int(share * _PERIOD))},
            ),
        ):
            if _made(folder, limits):
                self._folder = folder
                return

    @property
    def limited(self) -> bool:
        """Whether processes are held to their share."""
        return bool(self._folder)

    @property
    def file(self) -> str:
        """What takes the numbers of processes into the group; nothing where there is none."""
        return os.path.join(self._folder, "cgroup.procs") if self._folder else ""

    def close(self) -> None:
        """Remove the group, once its processes are gone."""
        for _ in range(20 if self._folder else 0):
            try:
                os.rmdir(self._folder)
            except OSError:
                time.sleep(0.05)  # what was killed is still on its way out
            else:
                return


def _sweep() -> None:
    """Remove groups of rehearsals that were killed."""
    for folder in (_ROOT, os.path.join(_ROOT, "cpu")):
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            owner = name.removeprefix(_NAME)
            if name.startswith(_NAME) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with suppress(OSError):
                    os.rmdir(os.path.join(folder, name))


def _made(folder: str, limits: dict[str, str]) -> bool:
    first = next(iter(limits))
    try:
        os.mkdir(folder)
        if not os.path.exists(os.path.join(folder, first)):
            os.rmdir(folder)
            return False
        for name, value in limits.items():
            _write(os.path.join(folder, name), value)
    except OSError:
        with suppress(OSError):
            os.rmdir(folder)
        return False
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
