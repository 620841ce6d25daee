"""`segjudge worker`: the worker of challenges that their hosts evaluate, as a process in the place of this one."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from segjudge.system import IMPORT_ROOT

from .shared import DONE, Command, read_options, whole_number

_PROGRAM = "segjudge.remote_challenge_evaluation"
#: The files to operate a worker with, by what `--print` calls them.
_FILES = {"service": "segjudge-worker.service", "dockerfile": "Dockerfile", "compose": "compose.yaml"}
#: What is another in a challenge's folder, beside the wheel of Segjudge, than in a checkout.
_CHANGES = {
    "dockerfile": (
        ("build it from the root of the repository:", "the wheel of Segjudge lies beside this file:"),
        ("docker build -f remote_challenge_evaluation/Dockerfile -t", "docker build -t"),
        ("COPY --from=build /wheels /wheels", "COPY segjudge-*.whl /wheels/"),
    ),
    "compose": (
        ("docker compose -f remote_challenge_evaluation/compose.yaml", "docker compose"),
        (
            "keep it out of the repository.",
            "keep it out of the repository.\n# The challenge is the folder of this file.",
        ),
        ("context: ..", "context: ."),
        ("dockerfile: remote_challenge_evaluation/Dockerfile", "dockerfile: Dockerfile"),
        ("env_file: worker.env", "working_dir: /challenge\n    env_file: worker.env"),
        ("- ../annotations:/annotations:ro", "- .:/challenge:ro\n      - ./annotations:/annotations:ro"),
    ),
}


@dataclass(frozen=True)
class _Options:
    """How the worker is started."""

    bundle: str | None
    evaluate: str | None
    python: str | None
    check: bool
    once: bool
    jobs: int

    def become_worker(self) -> NoReturn:
        words = [sys.executable, "-P", "-m", _PROGRAM, "--jobs", str(self.jobs)]
        for name in ("bundle", "evaluate", "python"):
            words += [f"--{name}", getattr(self, name)] if getattr(self, name) else []
        words += [f"--{name}" for name in ("check", "once") if getattr(self, name)]
        sys.stdout.flush()
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), IMPORT_ROOT]))
        os.execve(sys.executable, words, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - no shell


def _run(args: argparse.Namespace) -> int:
    if not args.print:
        read_options(_Options, args).become_worker()
    sys.stdout.write(file_of(args.print))
    return DONE


def file_of(name: str) -> str:
    """Fill in a file to operate a worker with, for this installation and the current folder's challenge."""
    text = (Path(__file__).parents[1] / "remote_challenge_evaluation" / _FILES[name]).read_text(encoding="utf-8")
    if name == "dockerfile":  # the stage that builds the wheel needs a checkout
        head, _, stages = text.partition("# The wheel is built")
        text = head + stages[stages.rindex("FROM ") :]
    for before, after in _service_changes() if name == "service" else _CHANGES[name]:
        text = text.replace(before, after)
    return text


def _service_changes() -> list[tuple[str, str]]:
    """What is another in a unit for this installation and folder than in one of a checkout in /opt/segjudge."""
    folder, program, root = (text.replace("%", "%%") for text in (os.getcwd(), sys.executable, IMPORT_ROOT))
    program = f'"{program}"' if " " in program else program
    is_home = any(path.startswith(("/home/", "/root/")) for path in (folder, program.strip('"'), root))
    return [
        ("adjust the three paths, then", "then"),
        ("WorkingDirectory=/opt/segjudge", f"WorkingDirectory={folder}"),
        (
            "ExecStart=/opt/segjudge/.venv/bin/python -m",
            f'Environment="PYTHONPATH={root}"\nExecStart={program} -P -m',
        ),
        *([("ProtectHome=true", "ProtectHome=read-only")] if is_home else []),
    ]


def add_worker_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `worker`, here and to the program itself."""
    add = sub.add_argument
    bundle = "the bundle: its folder, its YAML or a built zip (default: the current folder's, else this one)"
    add("--bundle", metavar="PATH", help=bundle)
    add("--evaluate", metavar="FILE", help="a file with the host's own evaluate()")
    add("--python", help="the interpreter of the host's own evaluate() (default: this one)")
    add("--check", action="store_true", help="prove that everything is in place, and touch nothing")
    add("--once", action="store_true", help="score what waits, then end")
    add("--jobs", type=whole_number(1, 256), default=1, help="how many processes score at once (1)")
    files = "print a systemd unit, or a Dockerfile and a compose file for it, for the challenge in this folder"
    add("--print", choices=tuple(_FILES), help=files)


COMMANDS = {"worker": Command(add_worker_options, _run)}
