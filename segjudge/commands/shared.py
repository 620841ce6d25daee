"""The base of the commands: exit codes, messages, option types, bundles, progress bar.

It is imported at every start, so its functions import what they need.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TextIO

from segjudge.system.options import whole_number
from segjudge.system.python310 import Self

from .parser import CommandParser, as_typed

if TYPE_CHECKING:
    import socket

    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.report.tables import Look

#: Exit codes, which `EXIT_CODES` describes.
DONE, THEIRS, USAGE, OURS = 0, 1, 2, 3
#: The exit code that only `check` has: EvalAI would accept the bundle, but it would not work, or has warnings with
#: --strict.
TAKEN = 4


class Command(NamedTuple):
    """A command: its options, its function, its example."""

    add_options: Callable[[CommandParser], object]
    #: Returns the exit code. Only its module gets the namespace.
    run: Callable[[argparse.Namespace], int]
    #: The line that begins the command's help, as a user types it.
    example: str = ""


# ── the groups of a command's help ──────────────────────────────────────────

#: Titles of groups that several commands have.
TRUTH, OUTPUT, SPEED, RARELY, GENERAL = "truth", "output", "speed", "rarely needed", "general"
OTHER_TOOLS = "options of other tools"
#: The help of `--json`.
FULL_PRECISION = "write all numbers in full precision (- for stdout)"
#: The width of tables and lists in files and pipes.
WIDTH = 80
#: The default size of a page in megabytes.
BUDGET = 6


class _Verbosity:
    """The verbosity of this process."""

    quiet = False


def be_quiet(quiet: bool) -> None:  # noqa: FBT001 - the option's value
    _Verbosity.quiet = quiet


def add_quiet_option(sub: CommandParser, *, within: bool = False) -> None:
    """Add `--quiet`; an action `within` a command keeps the value that was given before the action."""
    default, about = argparse.SUPPRESS if within else False, "print only results, warnings and errors"
    sub.options_of(GENERAL)("--quiet", action="store_true", default=default, help=about)


def add_help_option(sub: CommandParser) -> None:
    """Add `-h` to a parser created without it, as its last option."""
    sub.options_of(GENERAL)("-h", "--help", action="help", help="show this help and exit")


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
    """Print an optional message, such as the names of written files, unless --quiet is set."""
    if not _Verbosity.quiet:
        say(text)


def _has_colour(stream: TextIO | None) -> bool:
    """Return whether a stream shows colours, by NO_COLOR, FORCE_COLOR or the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def choose_stream(*paths: str | None) -> TextIO:
    """Return the stream for people: stderr if stdout is for a program."""
    return sys.stderr if "-" in paths else sys.stdout


def look(stream: TextIO | None = None, otherwise: int = 0) -> Look:
    """Return the width and colours of text on a stream (default: stdout); `otherwise` is the width of files."""
    import shutil

    from segjudge.report.tables import Look

    stream = stream or sys.stdout
    width = shutil.get_terminal_size().columns if stream is not None and stream.isatty() else otherwise
    return Look(width, _has_colour(stream))


# ── inputs and outputs ──────────────────────────────────────────────────────


class InputPath(str):
    """The path of a file or folder that a command reads, or NAME=PATH."""

    __slots__ = ()


class BundlePath(str):
    """The path of a bundle; "" is the current folder's."""

    __slots__ = ()


class PhaseName(str):
    """The codename of a phase of the current bundle."""

    __slots__ = ()


def check_files(arguments: Mapping[str, object], options: Sequence[str], example: str) -> None:
    """Raise UsageError for missing inputs and unwritable or harmful outputs, before any work.

    All arguments are given by name; their types mark inputs and outputs.  `options` are the command's, as typed.  The
    example helps users who typed a word in capitals that stands for a path.
    """
    from segjudge.system.errors import UsageError
    from segjudge.system.files import OutputFile, check_outputs

    values = [*arguments.values()]
    outputs = {name: value for name, value in arguments.items() if isinstance(value, OutputFile) and value}
    if "-" in outputs.values() and sys.__stdout__ is None:
        raise UsageError("- is stdout, which is closed; name a file")
    outputs = {name: path for name, path in outputs.items() if path != "-"}
    if outputs:
        spelled = {option.lstrip("-").replace("-", "_"): option for option in options}
        check_outputs(
            [*outputs.values()],
            [*_existing_inputs(values), *_files_of_bundle(values)],
            [spelled.get(name, "") for name in outputs],
        )
    for path in [*_list_inputs(values), *(value for value in values if isinstance(value, BundlePath) and value)]:
        if "://" not in path and not os.path.lexists(os.path.expanduser(_path_of(path))):
            if path.isalpha() and path.isupper():
                hint = f"write the path of yours, for example: {as_typed(example)}"
                raise UsageError(f"{path}: there is no such file or folder; {hint}")
            raise UsageError(_describe_missing(path))


def _existing_inputs(values: Sequence[object]) -> list[str]:
    """Return the local files and folders that the command reads."""
    return [path for path in map(_path_of, _list_inputs(values)) if os.path.exists(path)]


def _list_inputs(values: Sequence[object]) -> list[str]:
    """Return the inputs as the user named them."""
    paths = [path for value in values for path in (value if isinstance(value, list) else [value])]
    return [path for path in paths if isinstance(path, InputPath) and path]


def _path_of(name: str) -> str:
    """Return the path in PATH or NAME=PATH."""
    return name if os.path.lexists(name) else name.rpartition("=")[2]


def _describe_missing(name: str) -> str:
    """Return the sentence about a missing path, with a similar name."""
    from segjudge.evaluation_script.files.problems import nearest, printable

    folder, last = os.path.split(os.path.normpath(_path_of(name)))
    while folder and not os.path.isdir(folder):
        folder, last = os.path.split(folder)
    near = ""
    with suppress(OSError):  # another user's folder
        stems = {os.path.splitext(sibling)[0]: sibling for sibling in sorted(os.listdir(folder or os.curdir))}
        near = stems.get(nearest(os.path.splitext(last)[0], stems), "")
    hint = f"; did you mean {printable(os.path.join(folder, near))}?" if near else "; correct the path"
    return f"{printable(name)}: there is no such file or folder{hint}"


def _files_of_bundle(values: Sequence[object]) -> list[str]:
    """Return the files of the bundle that a command reads, if any."""
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


def write_html(text: str, path: str, verdicts: Sequence[str] = ()) -> None:
    """Write a page's text; print its size and its verdicts."""
    from segjudge.system.files import open_output

    with open_output(path) as file:
        file.write(text)
    size = os.path.getsize(path)
    mention(f"Wrote {path} ({f'{size / 1e6:.1f} MB' if size >= 100_000 else f'{size / 1000:.0f} kB'})")
    for verdict in verdicts:
        mention(verdict)


# ── the bundle ──────────────────────────────────────────────────────────────


def add_bundle_options(sub: CommandParser, *, positional: bool = True) -> None:
    """Add `--bundle`, and the positional argument that means the same."""
    about = "the challenge: its folder, YAML or built zip (default: the current folder, else the checkout)"
    if positional:
        sub.add_argument("path", metavar="BUNDLE", type=BundlePath, nargs="?", default="", help=about)
        about = "the same as BUNDLE"
    sub.options_of(RARELY if positional else GENERAL)(
        "--bundle", metavar="PATH", type=BundlePath, default="", help=about
    )


def choose_bundle(option: str, positional: str = "") -> BundleSource:
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
    from segjudge.system.errors import UsageError

    if positional and option and os.path.realpath(positional) != os.path.realpath(option):
        raise UsageError(f"{positional} and --bundle {option} name two bundles; name only one")
    return find_bundle(option or positional)


def say_version(source: BundleSource) -> None:
    """Warn if a challenge's requirements pin another Segjudge or plug-in than the running one."""
    from segjudge.evaluation_script.scoring import VERSION
    from segjudge.families.pins import list_version_faults
    from segjudge.platforms.evalai.bundle.bundle_source import BundleKind
    from segjudge.starting.lock import FILE, read_locked_version

    if source.kind is not BundleKind.SMALL or source.archive:
        return
    for version_fault in list_version_faults(source.root, source.list_protocols()):
        say(f"warning: {version_fault}")
    locked_version = read_locked_version(source.root)
    if locked_version and locked_version != VERSION:
        fault = f"{FILE} names Segjudge {locked_version}, but the scorers of the running version {VERSION} are used"
        say(f"warning: {fault}. Install the named version: pip install -r {FILE}")


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
        message = f"port {port} of {host} is not available ({error.strerror}); choose another with --port"
        raise UsageError(message) from None
    return listener


# ── types of options ────────────────────────────────────────────────────────


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


def add_truth_options(sub: CommandParser, usual_layout: str = "recognised") -> None:
    """Add the options that describe a published truth: the fields of `TruthSource`."""
    from segjudge.families import OPTIONAL_LAYOUTS

    sub.options_of(TRUTH)("--subset", metavar="LIST", default="", help="the dataset's list of sequences, e.g. val")
    add = sub.options_of(RARELY)
    layout = f"the file layout of the dataset (default: {usual_layout})"
    add("--layout", default="", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help=layout)
    unseen = "file that lists the unseen sequences or categories"
    add("--unseen", metavar="FILE", default="", type=InputPath, help=unseen)
    categories = "JSON with the categories of Places-style PNGs"
    add("--categories", default="", metavar="FILE", type=InputPath, help=categories)


def add_jobs_option(sub: CommandParser) -> None:
    """Add `--jobs`, the number of processes that score."""

    def jobs(text: str) -> int | str:
        return text if text == "auto" else whole_number(1, 256)(text)

    about = "number of scoring processes, or auto: one per core if that is faster"
    sub.options_of(SPEED)("--jobs", metavar="N", type=jobs, help=about)


def add_page_options(sub: CommandParser) -> None:
    """Add the options of commands that write a page, for `make_page_options`."""
    about = "the dataset's pictures, drawn under the masks (default with --phase: pictures/PHASE of the challenge)"
    sub.options_of(OUTPUT)("--images", metavar="DIR", type=InputPath, help=about)
    size = "size limit of the page in megabytes; a smaller page has fewer pictures and coarser masks (default: 6)"
    sub.options_of(RARELY)("--budget", type=whole_number(1, 500), default=BUDGET, metavar="MB", help=size)


class ProgressBar:
    """A line of progress on a terminal; shows nothing elsewhere."""

    def __init__(self, unit: str = "sequence") -> None:
        self._unit = unit
        self._begin = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._begin:
            sys.stderr.write("\r\x1b[K")  # clears the line
            sys.stderr.flush()

    def __call__(self, name: str, done: int, total: int) -> None:
        if not sys.stderr.isatty() or _Verbosity.quiet:
            return
        import shutil
        import time

        self._begin = self._begin or time.monotonic()
        seconds = int(time.monotonic() - self._begin)
        text = f"{name}: {done} of {total} {self._unit}s, {seconds // 60}:{seconds % 60:02d} min"
        sys.stderr.write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        sys.stderr.flush()
