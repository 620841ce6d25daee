"""The command line: which environments to make, and which program to run in them.

usage: set_up ENVIRONMENT… -- ARGUMENT…

ENVIRONMENT is `toolkit`, `toolkit[all]`, `toolkit[test]`, `client` or `worker`.  With `try:worker` the program runs
without it where it cannot be made; `found:worker` uses it only where it exists.
"""

import fcntl
import os
import signal
import sys
import threading

from .environment import CHECKOUT, LINKS, PythonEnvironment, SetUpError, explain, mark_in_use, say

__all__ = ["SetUpError", "main", "prepare_environments"]

#: The environment variables with the interpreters of the other environments.
_EXPORTED = {"client": "SEGJUDGE_EVALAI_CLIENT", "worker": "SEGJUDGE_WORKER_PYTHON"}


def main(arguments: list[str]) -> int:
    """Run the program in place of this process; return the exit code if that fails."""
    middle = arguments.index("--")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        python, variables = prepare_environments(arguments[:middle])
        if "segjudge" in arguments:  # until it handles signals, Python would print a traceback
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        os.execve(python, [python, *arguments[middle + 1 :]], {**os.environ, **variables})
    except SetUpError as error:
        say(f"run.sh: {error}")
    except OSError as error:
        say(f"run.sh: {explain(error)}")
    except KeyboardInterrupt:
        say("run.sh: stopped; the unfinished installation was removed")
        return 130
    return 3


def prepare_environments(arguments: list[str]) -> tuple[str, dict[str, str]]:
    """Make the needed environments, and meanwhile compile the kernel.

    Returns the toolkit's interpreter, and the environment variables with the others.
    """
    _reserve_streams()
    compiling = threading.Thread(target=_compile_kernel)
    compiling.start()
    try:
        return _prepare_environments(arguments)
    finally:
        compiling.join()


def _reserve_streams() -> None:
    """Reserve the descriptors of closed streams, which stay closed for programs that replace this process.

    If stdout or stderr is closed, the shell may have opened its script with that descriptor.
    """
    for number, unusable in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            is_closed = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == unusable
        except OSError:
            is_closed = True
        if is_closed:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number, inheritable=False)
                os.close(null)


def _prepare_environments(arguments: list[str]) -> tuple[str, dict[str, str]]:
    python, variables = "", {}
    for word in arguments:
        mode, _, name = word.rpartition(":")
        kind, _, extra = name.removesuffix("]").partition("[")
        environment = PythonEnvironment(kind, extra)
        try:
            folder = environment.ready_folder() if mode == "found" else environment.ensure_folder()
            if folder:
                mark_in_use(folder)
        except (SetUpError, OSError) as error:
            reason = explain(error) if isinstance(error, OSError) else str(error)
            if mode != "try":
                raise SetUpError(reason) from None
            say(f"Continuing without {LINKS[kind]}: {reason}")
            continue
        if folder and kind == "toolkit":
            python = f"{folder}/bin/python"
        elif folder:
            variables[_EXPORTED[kind]] = f"{folder}/bin/python"
    return python, variables


def _compile_kernel() -> None:
    """Compile the kernel if there is a compiler; its users report if they run without it."""
    try:
        from segjudge.kernel.compiling import CompileError, NoCompilerError, compile_local
    except ImportError:
        return  # a checkout without the kernel's sources
    try:
        if compile_local(os.path.join(CHECKOUT, "evaluation_script")):
            say("Compiled the kernel, so scoring takes a fraction of the time")
    except NoCompilerError:
        pass
    except CompileError as error:
        say(f"Continuing without the kernel, which could not be compiled: {error}")
