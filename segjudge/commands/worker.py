"""`segjudge worker`: the worker of challenges that their hosts evaluate, as a process in the place of this one."""

import argparse
import os
import sys

from segjudge.processes import IMPORT_ROOT

PROGRAM = "segjudge.remote_challenge_evaluation"
_PATHS, _FLAGS = ("bundle", "evaluate", "python"), ("check", "once")


def worker(args: argparse.Namespace) -> int:
    """Score the submissions of a remote challenge until asked to stop; its settings are environment variables."""
    words = [sys.executable, "-P", "-m", PROGRAM, "--jobs", str(args.jobs)]
    for name in _PATHS:
        words += [f"--{name}", getattr(args, name)] if getattr(args, name) else []
    words += [f"--{name}" for name in _FLAGS if getattr(args, name)]
    sys.stdout.flush()
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), IMPORT_ROOT]))
    os.execve(sys.executable, words, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - no shell


def worker_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `worker`, here and to the program itself."""
    add = sub.add_argument
    bundle = "the bundle: its folder, its YAML or a built zip (default: the current folder's, else this one)"
    add("--bundle", metavar="PATH", help=bundle)
    add("--evaluate", metavar="FILE", help="a file with the host's own evaluate()")
    add("--python", help="the interpreter of the host's own evaluate() (default: this one)")
    add("--check", action="store_true", help="prove that everything is in place, and touch nothing")
    add("--once", action="store_true", help="score what waits, then end")
    add("--jobs", type=int, default=1, help="how many processes score at once (1)")
