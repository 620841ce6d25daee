"""Shared parts of the commands: exit codes, the bundle's folder, messages and types of options."""

import argparse
import os
import shlex
import socket
import sys
from collections.abc import Callable
from typing import Any, Self

from segjudge.evaluation_script.scoring import VERSION
from segjudge.platforms.evalai.bundle.bundle_source import BUNDLE, SCRIPT_FOLDER, BundleKind, BundleSource, find_bundle
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, check_outputs, without_secrets

#: Exit codes: 0 done, 1 a problem in the participant's files, 2 usage, 3 a broken truth or bundle, or a defect.
DONE, THEIRS, USAGE, OURS = 0, 1, 2, 3
#: What `check` adds to them: EvalAI would take the bundle, and it would not work, or with --strict has warnings.
TAKEN = 4

#: The arguments of all commands that name files and folders which are read.
INPUTS = (
    "results", "truth", "annotations", "categories", "unseen", "davis_path", "results_path", "dataset_json",
    "preds_json", "imgCatIdsFile", "parts", "scores", "images", "root", "png_dir", "ann_dir", "reports", "frames",
    "data",
)  # fmt: skip
#: The folders of a bundle whose files are read.
_BUNDLE_FOLDERS = (SCRIPT_FOLDER, "annotations", "templates", "examples")


def say(text: str) -> None:
    """Print a message to stderr; stdout is for results."""
    print(without_secrets(text), file=sys.stderr, flush=True)


def check_files(args: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or not without a loss, before anything is done: that may take an hour."""
    outputs = [value for value in vars(args).values() if isinstance(value, OutputFile)]
    if "-" in outputs and sys.__stdout__ is None:
        raise UsageError("- is stdout, which is closed; name a file")
    outputs = [path for path in outputs if path and path != "-"]
    if outputs:
        check_outputs(outputs, [*_inputs(args), *_files_of_bundle(args)])


def _inputs(args: argparse.Namespace) -> list[str]:
    """Return the files and folders on this machine that the arguments name to be read."""
    values: list[str] = []
    for name in INPUTS:
        value = getattr(args, name, None)
        values += value if isinstance(value, list) else [value] if isinstance(value, str) else []
    named = [value if os.path.exists(value) else value.rpartition("=")[2] for value in values]
    return [path for path in named if not isinstance(path, OutputFile) and os.path.exists(path)]


def _files_of_bundle(args: argparse.Namespace) -> list[str]:
    """Return the files of the bundle that a command reads, if it reads one."""
    path = getattr(args, "bundle", "") or getattr(args, "path", "")
    if not (path or getattr(args, "phase", None)):
        return []
    try:
        source = find_bundle(path)
    except UsageError:  # the command says so, or it is about a built competition
        return [path] if os.path.isfile(path) else []
    folders = [os.path.join(source.root, name) for name in _BUNDLE_FOLDERS]
    below = [os.path.join(top, name) for folder in folders for top, _, names in os.walk(folder) for name in names]
    return [source.archive or os.path.join(source.root, source.config_name), *below]


def program() -> str:
    """Return the command with which the user started this program."""
    return "./run.sh" if os.environ.get(BUNDLE) else "segjudge"


def shell_path(path: str) -> str:
    """Return a path as an argument of a command in a shell, which no program takes for an option."""
    return shlex.quote(os.path.join(os.curdir, path) if path.startswith("-") else path)


def bundle_options(sub: argparse.ArgumentParser, *, positional: bool = True) -> None:
    """Add `--bundle`, and the positional argument that means the same."""
    about = "the bundle: its folder, its YAML or a built zip (default: the current folder's, else this one)"
    sub.add_argument("--bundle", metavar="PATH", default="", help=about)
    if positional:
        sub.add_argument("path", metavar="BUNDLE", nargs="?", default="", help="the same as --bundle")


def named_bundle(args: argparse.Namespace) -> BundleSource:
    """Return the bundle that a command is about."""
    path = getattr(args, "path", "")
    if path and args.bundle and os.path.realpath(path) != os.path.realpath(args.bundle):
        raise UsageError(f"{path} and --bundle {args.bundle} are two bundles; name one")
    return find_bundle(args.bundle or path)


def say_version(source: BundleSource) -> None:
    """Say where a challenge's requirements name another Segjudge than the one that runs, whose scorers are taken."""
    from segjudge.starting.lock import FILE, locked_version

    named = locked_version(source.root) if source.kind is BundleKind.SMALL and not source.archive else ""
    if named and named != VERSION:
        found = f"{FILE} names Segjudge {named}, and the scorers of {VERSION} are taken, which runs here"
        say(f"warning: {found}. Install what it names: pip install -r {FILE}")


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port; raises `UsageError` when the port is in use."""
    # The protocol is named, since asyncio sets TCP_NODELAY only then: 40 ms of each answer.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        message = f"port {port} of {host} cannot be taken ({error.strerror}); name another with --port"
        raise UsageError(message) from None
    return listener


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an option that is a number within bounds."""

    def number(text: str) -> int:
        if not text.strip().lstrip("+-").isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return number


def names(text: str) -> list[str]:
    """Return the value of an option that is a list of names, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def part(text: str) -> tuple[int, int]:
    """Return the value of an option such as 3/64."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 3/64")
    return int(number), int(count)


def seconds(text: str) -> float:
    """Return the value of an option that is a time in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 10**7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return number


class ProgressBar:
    """A progress bar on a terminal; shows nothing elsewhere."""

    def __init__(self, unit: str = "sequence") -> None:
        self._bar: Any = None
        self._unit = unit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show how far the scoring is."""
        if self._bar is None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit=self._unit, leave=False)
        if self._bar is not None:
            self._bar.total, self._bar.n = total, done
            self._bar.set_description(name)


def jobs_option(sub: argparse.ArgumentParser) -> None:
    """Add the option on processes that score."""
    words = "score with so many processes (auto: as many as there are cores)"
    sub.add_argument("--jobs", type=_jobs, help=words)


def _jobs(text: str) -> int | str:
    return text if text == "auto" else whole_number(1, 256)(text)
