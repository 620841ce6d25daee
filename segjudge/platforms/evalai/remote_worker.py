"""The options of the remote worker, and its service files: a systemd unit, an image, a compose file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from segjudge.system import IMPORT_ROOT
from segjudge.system.options import whole_number

PROGRAM = "segjudge.remote_challenge_evaluation"
#: The folder in which `segjudge new` puts the wheels of Segjudge and of plug-ins.
WHEELS = "wheels"
#: The templates in the worker's folder, by the file names of `--print`.
_TEMPLATES = {
    "service": "segjudge-worker.service.jinja",
    "dockerfile": "Dockerfile.jinja",
    "compose": "compose.yaml.jinja",
}


def add_worker_options(options_of: Callable[[str], Callable[..., object]]) -> None:
    """Add the options of `segjudge worker` and of the program itself, by the function that adds to a group."""
    add = options_of("daily")
    add("--check", action="store_true", help="verify settings, token and truth; change nothing")
    add("--once", action="store_true", help="score the waiting submissions, then stop")
    add("--jobs", metavar="N", type=whole_number(1, 256), default=1, help="number of scoring processes (default: 1)")
    add = options_of("challenge")
    bundle = "the challenge: its folder, YAML or built zip (default: the current folder, else the checkout)"
    add("--bundle", metavar="PATH", help=bundle)
    add("--evaluate", metavar="FILE", help="the file with your own evaluate()")
    add("--python", metavar="PROGRAM", help="the interpreter for your own evaluate() (default: this one)")
    files = "print a systemd unit, a Dockerfile or a compose file for the challenge in this folder"
    add = options_of("deployment")
    add("--print", choices=tuple(_TEMPLATES), help=files)


def in_checkout() -> bool:
    """Return whether the current folder is the checkout that this package is imported from."""
    return os.path.realpath(os.curdir) == os.path.realpath(IMPORT_ROOT) and os.path.exists("pyproject.toml")


def render_file(name: str) -> str:
    """Return a file that operates a worker, made for this installation and the challenge in the current folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - no HTML
        loader=FileSystemLoader(Path(IMPORT_ROOT, *PROGRAM.split("."))),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    folder, python, root = (text.replace("%", "%%") for text in (os.getcwd(), sys.executable, IMPORT_ROOT))
    return environment.get_template(_TEMPLATES[name]).render(
        folder=folder,
        python=f'"{python}"' if " " in python else python,
        root=root,
        in_home=any(path.startswith(("/home/", "/root/")) for path in (folder, python, root)),
        in_checkout=in_checkout(),
    )
