"""The command line: which environments to make, and which program to run in them.

usage: set_up ENVIRONMENT… -- ARGUMENT…

ENVIRONMENT is `toolkit`, `toolkit[all]`, `toolkit[test]`, `client` or `worker`.  With `try:worker` the program runs
without it where it cannot be made; `found:worker` uses it only where it exists.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading

from .environment import CHECKOUT, LINKS, WORKER_TAG, PythonEnvironment, SetUpError, explain, mark_in_use, say

__all__ = ["SetUpError", "compile_bytecode", "main", "prepare_environments"]

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
        programs = _prepare_environments(arguments)
    finally:
        compiling.join()
    compile_bytecode(os.path.join(CHECKOUT, "segjudge"), programs[1].get(_EXPORTED["worker"], ""))
    return programs


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


def compile_bytecode(package: str, worker: str = "") -> None:
    """Write the bytecode of a package even if Python is told not to: compiling at each start takes 0.1 seconds.

    If the worker's interpreter exists, the mounted folders get bytecode for it too.
    """
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return  # programs write it on import
    mounted = [entry.path for entry in os.scandir(package) if entry.is_symlink()]
    stale = [folder for folder in (package, *mounted) if not _is_compiled(folder, sys.implementation.cache_tag)]
    if stale:
        import compileall  # its imports take as long as the rest of a start

        for folder in stale:
            compileall.compile_dir(folder, quiet=2)
    if worker and (stale := [folder for folder in mounted if not _is_compiled(folder, WORKER_TAG)]):
        subprocess.run([worker, "-m", "compileall", "-qq", *stale], check=False)


def _is_compiled(package: str, tag: str) -> bool:
    """Return whether each module of a folder has bytecode of this kind that is not older."""
    for folder, folders, names in os.walk(package):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        for name in names:
            stem, ending = os.path.splitext(name)
            if ending == ".py":
                try:
                    bytecode = os.stat(os.path.join(folder, "__pycache__", f"{stem}.{tag}.pyc"))
                except OSError:
                    return False
                if bytecode.st_mtime < os.stat(os.path.join(folder, name)).st_mtime:
                    return False
    return True
