"""Hides from this process what Windows lacks, then runs a module: `python -m tests.system.windows MODULE WORDS…`.

The parts of the standard library and of other packages that decide by the system how they work are loaded before.
"""

from __future__ import annotations

import builtins
import importlib
import os
import runpy
import select
import signal
import socket
import sys
from typing import Any

#: What decides when it is loaded.
LOADED = (
    *("asyncio", "ctypes", "multiprocessing.connection", "pathlib", "platform", "shutil", "subprocess", "tempfile"),
    *("uuid", "zipfile", "numpy", "PIL.Image", "pycocotools.mask", "scipy.optimize"),
)
#: Modules that Windows lacks.
MODULES = {
    "resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "readline", "_posixsubprocess",
}  # fmt: skip
#: What its modules lack.
NAMES: dict[Any, str] = {
    os: """fork forkpty register_at_fork statvfs fstatvfs getuid geteuid getgid getegid getpgid getpgrp getsid setsid
        setpgid killpg sched_getaffinity sched_setaffinity sched_yield O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK
        O_SYNC pread pwrite preadv pwritev mkfifo mknod uname chown lchown fchown fchmod wait waitid wait3 wait4 WNOHANG
        WIFSIGNALED WIFEXITED WEXITSTATUS WTERMSIG getloadavg nice sysconf pipe2 posix_spawn memfd_create openpty
        set_blocking getpriority major minor makedev getgroups""",
    signal: """SIGKILL SIGHUP SIGALRM SIGCHLD SIGPIPE SIGSTOP SIGUSR1 SIGUSR2 SIGXFSZ setitimer getitimer alarm
        pthread_sigmask sigwait pause siginterrupt ITIMER_REAL""",
    select: "poll epoll PIPE_BUF",
    socket: "AF_UNIX",
}


class _NoSuchModules:
    """Refuses the modules that Windows lacks."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide() -> None:
    for name in LOADED:
        importlib.import_module(name)
    for module, names in NAMES.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    os.O_BINARY = 0
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _NoSuchModules)
    open_file = builtins.open

    def open_unless_made_by_linux(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(2, "No such file or directory", file)
        return open_file(file, *arguments, **options)

    builtins.open = open_unless_made_by_linux
    sys.platform = "win32"


if __name__ == "__main__":
    hide()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=False)
