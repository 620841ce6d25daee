"""`segjudge worker`: replace this process with the worker of challenges that hosts evaluate."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from segjudge.platforms.evalai.remote_worker import PROGRAM, WHEELS, add_worker_options, in_checkout, render_file
from segjudge.system import IMPORT_ROOT

from .shared import DONE, Command, say


def _run(args: argparse.Namespace) -> int:
    if not args.print:
        _start_worker(args)
    sys.stdout.write(render_file(args.print))
    if args.print == "dockerfile" and not in_checkout() and not any(Path(WHEELS).glob("segjudge-*.whl")):
        say(f"{WHEELS}/: holds no wheel of Segjudge; put one there before you build the image.")
    return DONE


def _start_worker(args: argparse.Namespace) -> NoReturn:
    command = [sys.executable, "-P", "-m", PROGRAM, "--jobs", str(args.jobs)]
    for name in ("bundle", "evaluate", "python"):
        command += [f"--{name}", getattr(args, name)] if getattr(args, name) else []
    command += [f"--{name}" for name in ("check", "once") if getattr(args, name)]
    sys.stdout.flush()
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), IMPORT_ROOT]))
    os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - no shell


COMMANDS = {"worker": Command(lambda sub: add_worker_options(sub.options_of), _run, "segjudge worker --check")}
