"""The command line: which environments, and which program to become.

usage: set_up ENVIRONMENT… -- ARGUMENT…

ENVIRONMENT is `toolkit`, `toolkit[all]`, `toolkit[test]`, `client` or `worker`; `try:worker` goes on without it where
it cannot be made, `found:worker` takes it only where it is already there.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys

from .environment import LINKS, PLACE, PythonEnvironment, SetUpError, found, python_in, say
from .links import sweep, sweep_later, switch
from .locks import alone, lease
from .making import added, made

#: How a program finds the interpreters beside its own.
EXPORTED = {"client": "SEGJUDGE_EVALAI_CLIENT", "worker": "SEGJUDGE_WORKER_PYTHON"}


def main(arguments: list[str]) -> int:
    """Become the program; the exit code where that was not possible."""
    middle = arguments.index("--")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        python, names = prepared(arguments[:middle])
        if "segjudge" in arguments:  # it lets them through when it can answer; Python's start would print a traceback
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        os.execve(python, [python, *arguments[middle + 1 :]], {**os.environ, **names})
    except SetUpError as failure:
        say(f"run.sh: {failure}")
    except subprocess.CalledProcessError as error:
        say(f"run.sh: failed: {' '.join(error.cmd)}")
    except OSError as error:
        say(f"run.sh: {error.filename or PLACE}: {error.strerror}, so the environment cannot be set up")
    except KeyboardInterrupt:
        say("run.sh: stopped; what was half installed is removed")
        return 130
    return 3


def prepared(wants: list[str]) -> tuple[str, dict[str, str]]:
    """The toolkit's interpreter, and the environment variables that name the others."""
    python, names = "", {}
    for want in wants:
        how, _, what = want.rpartition(":")
        kind, extra = re.fullmatch(r"(\w+)(?:\[(\w+)\])?", what).groups("")  # type: ignore[union-attr]
        environment = PythonEnvironment(kind, extra)
        try:
            folder = found(environment) if how == "found" else enter(environment)
        except SetUpError as failure:
            if how != "try":
                raise
            say(f"Going on without {LINKS[kind]}: {failure}")
            folder = ""
        if folder:
            lease(folder)
            if kind == "toolkit":
                python = python_in(folder)
            else:
                names[EXPORTED[kind]] = python_in(folder)
    return python, names


def enter(wanted: PythonEnvironment) -> str:
    """The folder of an environment that holds what is wanted; it is made, or added to, where it must be."""
    folder = found(wanted)
    if folder and os.path.realpath(wanted.link) == folder:
        sweep_later()
        return folder
    try:
        with alone() as lock:
            folder = found(wanted) or added(wanted, lock) or made(wanted, lock)
            switch(wanted.link, folder)
            sweep()
    except OSError as error:
        if folder and error.errno in (errno.EROFS, errno.EACCES):
            return folder  # a checkout that cannot be written keeps its links as they are
        raise
    return folder
