"""The command line: which environments to make, and which program to run in them.

usage: set_up ENVIRONMENT… -- ARGUMENT…

ENVIRONMENT is `toolkit`, `toolkit[all]`, `toolkit[test]`, `client` or `worker`.  With `try:worker` the program runs
without it where it cannot be made; `found:worker` uses it only where it exists.  `help` needs no environment where
the program answers without.
"""

import compileall
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from .environment import CHECKOUT, ENVIRONMENTS, LINKS, PythonEnvironment, SetUpError, mark_in_use, say

__all__ = ["SetUpError", "compile_bytecode", "main", "prepare"]

#: The environment variables with the interpreters of the other environments.
_EXPORTED = {"client": "SEGJUDGE_EVALAI_CLIENT", "worker": "SEGJUDGE_WORKER_PYTHON"}


def main(arguments: list[str]) -> int:
    """Run the program in place of this process; return the exit code where that fails."""
    middle = arguments.index("--")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if arguments[0] == "help" and _answers(arguments[middle + 1 :]):
            return 0
        python, variables = prepare(["toolkit" if word == "help" else word for word in arguments[:middle]])
        if "segjudge" in arguments:  # it lets them through when it can answer; Python's start would print a traceback
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        os.execve(python, [python, *arguments[middle + 1 :]], {**os.environ, **variables})
    except SetUpError as error:
        say(f"run.sh: {error}")
    except OSError as error:
        say(f"run.sh: {error.filename or ENVIRONMENTS}: {error.strerror}, so the environment cannot be set up")
    except KeyboardInterrupt:
        say("run.sh: stopped; what was half installed is removed")
        return 130
    return 3


def _answers(arguments: list[str]) -> bool:
    """Run the command line in what is there, and show what it says unless it fails."""
    python = next(
        (f"{folder}/bin/python" for folder in PythonEnvironment("toolkit").complete_folders()), sys.executable
    )
    code = "import sys; sys.path.append(sys.argv[1]); from segjudge.cli import main; sys.exit(main(sys.argv[2:]))"
    options = ["-I", "-B", "-c", code, CHECKOUT, *arguments[arguments.index("segjudge") + 1 :]]
    done = subprocess.run([python, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.flush()
    return done.returncode == 0


def prepare(words: list[str]) -> tuple[str, dict[str, str]]:
    """Make what is needed, and compile the kernel meanwhile.

    Returns the toolkit's interpreter, and the environment variables with the others.
    """
    compiling = threading.Thread(target=_compile_kernel)
    compiling.start()
    try:
        programs = _prepare_environments(words)
    finally:
        compiling.join()
    compile_bytecode(Path(CHECKOUT, "segjudge"), programs[1].get(_EXPORTED["worker"], ""))
    return programs


def _prepare_environments(words: list[str]) -> tuple[str, dict[str, str]]:
    python, variables = "", {}
    for word in words:
        mode, _, name = word.rpartition(":")
        kind, extra = re.fullmatch(r"(\w+)(?:\[(\w+)\])?", name).groups("")  # type: ignore[union-attr]
        environment = PythonEnvironment(kind, extra)
        try:
            folder = environment.ready_folder() if mode == "found" else environment.ensure_folder()
        except (SetUpError, OSError) as error:
            reason = f"{error.filename or ENVIRONMENTS}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if mode != "try":
                raise SetUpError(reason) from None
            say(f"Going on without {LINKS[kind]}: {reason}")
            continue
        if folder:
            mark_in_use(folder)
            if kind == "toolkit":
                python = f"{folder}/bin/python"
            else:
                variables[_EXPORTED[kind]] = f"{folder}/bin/python"
    return python, variables


def _compile_kernel() -> None:
    """Compile the kernel where that can be done; what needs it says which path is used."""
    try:
        from segjudge.kernel.compiling import CompileError, compile_local
    except ImportError:
        return  # a checkout without the kernel's sources
    with suppress(CompileError):
        if compile_local(Path(CHECKOUT, "evaluation_script")):
            say("Compiled the kernel, so that scoring takes a fraction of the time")


def compile_bytecode(package: Path, worker: str = "") -> None:
    """Write the bytecode of a package where Python is told not to: compiling it at each start takes 0.1 seconds.

    That of the folders mounted in it is written for the worker's interpreter too, if there is one.
    """
    if not sys.dont_write_bytecode:
        return
    mounted = [path for path in package.iterdir() if path.is_symlink()]
    for folder in (package, *mounted):
        compileall.compile_dir(folder, quiet=2)
    if worker:
        subprocess.run([worker, "-m", "compileall", "-qq", *mounted], check=False)
