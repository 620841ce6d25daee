"""What a group of processes may use together, held by cgroups where they can be made."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from contextlib import closing, suppress

from segjudge.system import sandbox

_ROOT = "/sys/fs/cgroup"
#: Where groups are made: of the second version one for everything, of the first one for each kind.
#: Not the first version's `memory`: it would take processes out of the limits that hold for us.
_ROOTS = (_ROOT, os.path.join(_ROOT, "cpu"), os.path.join(_ROOT, "pids"))
#: Microseconds for which a share of the processor is counted.
_PERIOD = 100_000
_NAME = "segjudge-"
_numbers = itertools.count()
#: Enters the groups before anything else runs, so that every process of the command's is in them.
_ENTER = 'for file in $0; do echo $$ > "$file" 2>/dev/null; done; exec "$@"'


class ResourceGroup:
    """Cgroups that may use so many cores, processes (threads among them) and bytes; 0 is no bound."""

    def __init__(self, *, cores: float = 0, processes: int = 0, memory: int = 0) -> None:
        _remove_abandoned()
        quota = int(cores * _PERIOD)
        second = {
            "cpu.max": f"{quota} {_PERIOD}" if cores else "",
            "pids.max": f"{processes or ''}",
            "memory.max": f"{memory or ''}",
        }
        cpu = {"cpu.cfs_period_us": f"{_PERIOD}", "cpu.cfs_quota_us": f"{quota}"} if cores else {}
        self._folders: list[str] = []
        self._bounds: set[str] = set()
        name = f"{_NAME}{os.getpid()}-{next(_numbers)}"
        for root, values in zip(_ROOTS, (second, cpu, {"pids.max": f"{processes or ''}"}), strict=True):
            folder = os.path.join(root, name)
            if made := _settings_made(folder, {key: value for key, value in values.items() if value}):
                self._folders.append(folder)
                self._bounds |= {key.partition(".")[0] for key in made}

    def bounds(self, kind: str) -> bool:
        """Return whether the kernel holds a bound of this kind: `cpu`, `pids` or `memory`."""
        return kind in self._bounds

    def entered(self, words: Sequence[str]) -> list[str]:
        """Return a command that is in the group from its start."""
        files = " ".join(os.path.join(folder, "cgroup.procs") for folder in self._folders)
        return ["/bin/sh", "-c", _ENTER, files, *words] if files else list(words)

    def close(self) -> None:
        """Remove the group, as soon as its processes are gone."""
        for folder in self._folders:
            for _ in range(20):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.05)  # what was killed is still on its way out
                else:
                    break


def missing_bounds(program: str | None) -> list[str]:
    """Return what does not hold here, a sentence each, for whoever starts agents or scripts in this sandbox, if any."""
    if program is None:
        return ["No sandbox: this limits accidents, not attackers (bwrap would be used where it works)."]
    sentences = sandbox.unbounded(program)
    with closing(ResourceGroup(processes=sandbox.SCORER_PROCESSES)) as group:
        if not sandbox.are_processes_refused() and not group.bounds("pids"):
            text = "The kernel refuses no process here: too many are noticed up to a second later, and ended."
            sentences.append(text)
    return sentences


def _remove_abandoned() -> None:
    """Remove the groups of programs that were killed."""
    for root in _ROOTS:
        for name in os.listdir(root) if os.path.isdir(root) else []:
            owner = name.removeprefix(_NAME).partition("-")[0]
            if name.startswith(_NAME) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with suppress(OSError):
                    os.rmdir(os.path.join(root, name))


def _settings_made(folder: str, values: dict[str, str]) -> list[str]:
    """Make a group; return which of the settings it has, and leave nothing where it has none."""
    made = []
    if values:
        with suppress(OSError):
            os.mkdir(folder)
        for name, value in values.items():
            path = os.path.join(folder, name)
            # Where a kind of group is not to be had there is no such file, and none is to be made.
            with suppress(OSError), open(os.open(path, os.O_WRONLY), "w", encoding="ascii") as file:
                file.write(value)
                made.append(name)
        if not made:
            with suppress(OSError):
                os.rmdir(folder)
    return made
