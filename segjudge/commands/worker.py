"""`segjudge worker`: replace this process with the worker of challenges that hosts evaluate."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from segjudge.platforms.evalai.remote_worker import PROGRAM, WHEELS, add_worker_options, in_checkout, render_file
from segjudge.system import IMPORT_ROOT

from .shared import DONE, Command, read_options, say


@dataclass(frozen=True)
class _Options:
    """The options of a worker's start."""

    bundle: str | None
    evaluate: str | None
    python: str | None
    check: bool
    once: bool
    jobs: int

    def start_worker(self) -> NoReturn:
        command = [sys.executable, "-P", "-m", PROGRAM, "--jobs", str(self.jobs)]
        for name in ("bundle", "evaluate", "python"):
            command += [f"--{name}", getattr(self, name)] if getattr(self, name) else []
        command += [f"--{name}" for name in ("check", "once") if getattr(self, name)]
        sys.stdout.flush()
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), IMPORT_ROOT]))
        os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - no shell


def _run(args: argparse.Namespace) -> int:
    if not args.print:
        read_options(_Options, args).start_worker()
    sys.stdout.write(render_file(args.print))
    if args.print == "dockerfile" and not in_checkout() and not any(Path(WHEELS).glob("segjudge-*.whl")):
        say(f"{WHEELS}/: holds no wheel of Segjudge; put one there before you build the image.")
    return DONE


COMMANDS = {"worker": Command(lambda sub: add_worker_options(sub.options_of), _run, "segjudge worker --check")}
