"""A share of the processor's cores for a group of processes, by a cgroup where one can be made."""

from __future__ import annotations

import os
import time
from contextlib import suppress

_ROOT = "/sys/fs/cgroup"
_ROOTS = (_ROOT, os.path.join(_ROOT, "cpu"))
#: Microseconds for which a share is counted.
_PERIOD = 100_000
_NAME = "segjudge-"


class CpuShare:
    """A cgroup that may use so many cores."""

    def __init__(self, cores: float) -> None:
        self._folder = ""
        _remove_abandoned()
        quota, period = str(int(cores * _PERIOD)), str(_PERIOD)
        settings = ({"cpu.max": f"{quota} {period}"}, {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota})
        for root, values in zip(_ROOTS, settings, strict=True):
            folder = os.path.join(root, f"{_NAME}{os.getpid()}")
            if _is_made(folder, values):
                self._folder = folder
                return

    @property
    def file(self) -> str:
        """The file that takes the numbers of processes into the group; empty if there is none."""
        return os.path.join(self._folder, "cgroup.procs") if self._folder else ""

    def close(self) -> None:
        """Remove the group, as soon as its processes are gone."""
        for _ in range(20 if self._folder else 0):
            try:
                os.rmdir(self._folder)
            except OSError:
                time.sleep(0.05)  # what was killed is still on its way out
            else:
                return


def _remove_abandoned() -> None:
    """Remove the groups of rehearsals that were killed."""
    for root in _ROOTS:
        for name in os.listdir(root) if os.path.isdir(root) else []:
            owner = name.removeprefix(_NAME)
            if name.startswith(_NAME) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with suppress(OSError):
                    os.rmdir(os.path.join(root, name))


def _is_made(folder: str, values: dict[str, str]) -> bool:
    """Make a group with these settings; return False, and leave nothing, where that is not possible."""
    try:
        os.mkdir(folder)
        if os.path.exists(os.path.join(folder, next(iter(values)))):
            for name, value in values.items():
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(value)
            return True
    except OSError:
        pass
    with suppress(OSError):
        os.rmdir(folder)
    return False
