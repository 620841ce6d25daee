"""What commands share: exit codes, messages, types of options, the bundle's folder, the progress bar.

It is imported whenever the program starts, so that it imports what it needs where it is needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO, TypeVar

if TYPE_CHECKING:
    import socket

    from segjudge.families.truths import TruthSource
    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.report.page import ReportPage
    from segjudge.report.tables import Look
    from segjudge.scoring.scores import ScoreRequest, Scores

PROGRAM = "segjudge"
#: Exit codes: 0 done, 1 a problem in the participant's files, 2 usage, 3 a broken truth or bundle, or a defect.
DONE, THEIRS, USAGE, OURS = 0, 1, 2, 3
#: What `check` adds to them: EvalAI would take the bundle, and it would not work, or with --strict has warnings.
TAKEN = 4

_Options = TypeVar("_Options")


class Command(NamedTuple):
    """What a module has for each of its commands in its table `COMMANDS`."""

    add_options: Callable[[argparse.ArgumentParser], object]
    #: Returns the exit code.  No function but this is given the namespace.
    run: Callable[[argparse.Namespace], int]


def read_options(options: type[_Options], args: argparse.Namespace, **values: object) -> _Options:
    """Take values whose names are those of arguments, beside those that are given here."""
    names = options.__annotations__
    return options(**{name: values[name] if name in values else getattr(args, name) for name in names})


class _Talk:
    """How much is said."""

    quiet = False


def be_quiet(quiet: bool) -> None:  # noqa: FBT001 - the option's value
    _Talk.quiet = quiet


def add_quiet_option(sub: argparse.ArgumentParser, *, within: bool = False) -> None:
    """Add `--quiet`; within a command whose own option it is, an action leaves as it is what was said before it."""
    default, about = argparse.SUPPRESS if within else False, "say nothing but results, warnings and errors"
    sub.add_argument("--quiet", action="store_true", default=default, help=about)


def say(text: str, style: str = "") -> None:
    """Print a message to stderr; stdout is for results."""
    if "://" in text:
        from segjudge.system.files import redact

        text = redact(text)
    style = style or ("warning" if text.startswith("warning: ") else "")
    if style and _has_colour(sys.stderr):
        text = look(sys.stderr).paint(text, style)
    print(text, file=sys.stderr, flush=True)


def mention(text: str) -> None:
    """Say what is good to know and may be left out, such as which files were written."""
    if not _Talk.quiet:
        say(text)


def _has_colour(stream: TextIO | None) -> bool:
    """Whether a stream shows colours: NO_COLOR forbids them, FORCE_COLOR asks for them, else a terminal has them."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def choose_stream(*paths: str | None) -> TextIO:
    """Where people read: stderr, where stdout is for what a program reads."""
    return sys.stderr if "-" in paths else sys.stdout


def look(stream: TextIO | None = None) -> Look:
    """How text is shown on a stream (default: stdout): as wide as a terminal, and as coloured."""
    import shutil

    from segjudge.report.tables import Look

    stream = stream or sys.stdout
    width = shutil.get_terminal_size().columns if stream is not None and stream.isatty() else 0
    return Look(width, _has_colour(stream))


def program() -> str:
    """The command with which the user started this program."""
    from segjudge.platforms.evalai.bundle.bundle_source import BUNDLE

    return "./run.sh" if os.environ.get(BUNDLE) else PROGRAM


# ── what is read and written ────────────────────────────────────────────────


class InputPath(str):
    """The path of a file or folder that a command reads, or NAME=PATH."""

    __slots__ = ()


class BundlePath(str):
    """The path of a bundle; "" is the current folder's."""

    __slots__ = ()


class PhaseName(str):
    """The codename of a phase of the current bundle."""

    __slots__ = ()


def check_files(values: Sequence[object]) -> None:
    """Refuse outputs that cannot be written, or not without a loss, before anything is done: that may take an hour.

    The values are those of all arguments, whose types say what is read and what is written.
    """
    from segjudge.system.errors import UsageError
    from segjudge.system.files import OutputFile, check_outputs

    outputs = [value for value in values if isinstance(value, OutputFile)]
    if "-" in outputs and sys.__stdout__ is None:
        raise UsageError("- is stdout, which is closed; name a file")
    outputs = [path for path in outputs if path and path != "-"]
    if outputs:
        check_outputs(outputs, [*_existing_inputs(values), *_files_of_bundle(values)])


def _existing_inputs(values: Sequence[object]) -> list[str]:
    """List the files and folders on this machine that are read."""
    paths = [path for value in values for path in (value if isinstance(value, list) else [value])]
    inputs = [path for path in paths if isinstance(path, InputPath)]
    named = [path if os.path.exists(path) else path.rpartition("=")[2] for path in inputs]
    return [path for path in named if os.path.exists(path)]


def _files_of_bundle(values: Sequence[object]) -> list[str]:
    """List the files of the bundle that a command reads, if it reads one."""
    if not any(isinstance(value, BundlePath | PhaseName) for value in values):
        return []
    from segjudge.platforms.evalai.bundle.bundle_source import SCRIPT_FOLDER, find_bundle
    from segjudge.system.errors import UsageError

    path = next((value for value in values if isinstance(value, BundlePath) and value), "")
    try:
        source = find_bundle(path)
    except UsageError:  # the command says so, or it is about a built competition
        return [path] if os.path.isfile(path) else []
    folders = [os.path.join(source.root, name) for name in (SCRIPT_FOLDER, "annotations", "templates", "examples")]
    below = [os.path.join(top, name) for folder in folders for top, _, names in os.walk(folder) for name in names]
    return [source.archive or os.path.join(source.root, source.config_name), *below]


def write_page(page: ReportPage, path: str) -> None:
    """Write a page, and say how large it is."""
    from segjudge.report.page import render_page

    write_html(render_page(page), path)


def write_html(text: str, path: str) -> None:
    """Write the text of a page, and say how large it is."""
    from segjudge.system.files import open_output

    with open_output(path) as file:
        file.write(text)
    mention(f"wrote {path} ({os.path.getsize(path) / 1e6:.1f} MB)")


# ── the bundle ──────────────────────────────────────────────────────────────


def add_bundle_options(sub: argparse.ArgumentParser, *, positional: bool = True) -> None:
    """Add `--bundle`, and the positional argument that means the same."""
    about = "the bundle: its folder, its YAML or a built zip (default: the current folder's, else this one)"
    sub.add_argument("--bundle", metavar="PATH", type=BundlePath, default="", help=about)
    if positional:
        sub.add_argument("path", metavar="BUNDLE", type=BundlePath, nargs="?", default="", help="the same as --bundle")


def choose_bundle(option: str, positional: str = "") -> BundleSource:
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
    from segjudge.system.errors import UsageError

    if positional and option and os.path.realpath(positional) != os.path.realpath(option):
        raise UsageError(f"{positional} and --bundle {option} are two bundles; name one")
    return find_bundle(option or positional)


def say_version(source: BundleSource) -> None:
    """Say where a challenge's requirements name another Segjudge than the one that runs, whose scorers are taken."""
    from segjudge.evaluation_script.scoring import VERSION
    from segjudge.platforms.evalai.bundle.bundle_source import BundleKind
    from segjudge.starting.lock import FILE, read_locked_version

    named = read_locked_version(source.root) if source.kind is BundleKind.SMALL and not source.archive else ""
    if named and named != VERSION:
        fault = f"{FILE} names Segjudge {named}, and the scorers of {VERSION} are taken, which runs here"
        say(f"warning: {fault}. Install what it names: pip install -r {FILE}")


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port; raises `UsageError` when the port is in use."""
    import socket

    from segjudge.system.errors import UsageError

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


# ── types of options ────────────────────────────────────────────────────────


def whole_number(least: int, largest: int) -> Callable[[str], int]:
    """The type of an option that is a number within bounds."""

    def number(text: str) -> int:
        if not text.strip().lstrip("+-").isdecimal() or not least <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {largest}")
        return int(text)

    return number


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 10**7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return number


def add_truth_options(sub: argparse.ArgumentParser, usual_layout: str = "recognised") -> None:
    """Add what a truth as it was published leaves open, for `read_source`."""
    from segjudge.families import OPTIONAL_LAYOUTS

    add = sub.add_argument
    add("--subset", default="", help="the list of sequences, e.g. val")
    layout = f"how TRUTH is laid out (default: {usual_layout})"
    add("--layout", default="", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help=layout)
    unseen = "file with the names of unseen sequences (lvos) or categories (youtube-vos)"
    add("--unseen", default="", type=InputPath, help=unseen)
    categories = "with a folder of Places-style PNGs as TRUTH: their categories"
    add("--categories", default="", metavar="FILE", type=InputPath, help=categories)


def read_source(args: argparse.Namespace, truth: str) -> TruthSource:
    """Locate a truth by the options of `add_truth_options`."""
    from segjudge.families.truths import TruthSource

    return TruthSource(truth, args.layout, args.subset, args.unseen, args.categories)


def add_jobs_option(sub: argparse.ArgumentParser) -> None:

    def jobs(text: str) -> int | str:
        return text if text == "auto" else whole_number(1, 256)(text)

    words = "score with so many processes (auto: as many as there are cores)"
    sub.add_argument("--jobs", type=jobs, help=words)


def add_page_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of whatever writes a page, for `make_page_options`."""
    about = "the dataset's pictures, over which the page draws masks"
    sub.add_argument("--images", metavar="DIR", type=InputPath, help=about)
    size = "megabytes that the page may have: masks become smaller, and pictures fewer (default: 6)"
    sub.add_argument("--budget", type=whole_number(1, 500), default=6, metavar="MB", help=size)


def score_openly(request: ScoreRequest) -> Scores:
    """Score with a progress bar, and keep open what was scored."""
    from segjudge.scoring.scores import prepare

    with ProgressBar() as bar:
        return prepare(request, bar).score_openly(bar)


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
        if self._bar is None and sys.stderr.isatty() and not _Talk.quiet:
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit=self._unit, leave=False)
        if self._bar is not None:
            self._bar.total, self._bar.n = total, done
            self._bar.set_description(name)
