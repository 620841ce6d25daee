"""The command line: the parser of commands and the exit codes of errors (`commands.EXIT_CODES`).

Start-up time matters: only the module of the running command is imported, and error handling only on errors.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from segjudge.commands import COMMANDS, EARLIER, EVALAI, EXIT_CODES, GROUPS, PLATFORMS, RARE, UNIX
from segjudge.commands.parser import PROGRAM, CommandParser, fill
from segjudge.commands.shared import (
    DONE,
    GENERAL,
    OURS,
    THEIRS,
    USAGE,
    add_help_option,
    add_quiet_option,
    be_quiet,
    check_files,
    mention,
    say,
)
from segjudge.system.interrupts import STOPPED, end_by_signal, interruptible, leave_at_once
from segjudge.system.streams import discard_unread, open_closed_streams, outlive_readers

if TYPE_CHECKING:
    from collections.abc import Callable

    from segjudge.commands.shared import Command


_ABOUT = "Score segmentation masks, and host challenges that score them."
#: The option that shows all commands, including rare ones.
_ALL = "--all"
#: The exit codes in the help of each command; `help --all` lists all.
_CODES = (
    "Exit codes: 0 success, 1 faulty results, 2 wrong usage or missing file, 3 faulty truth or challenge. "
    f"All codes: {PROGRAM} help --all"
)
#: The beginning of the program's help.
_EXAMPLE = f"{PROGRAM} score masks.zip --truth DAVIS --subset val"
#: The note of a scoring command on a system without fork, such as Windows.
_ALONE = "This system cannot fork processes: one process scores with numpy, without limits on memory and time."
#: Replacements for characters that a terminal's encoding lacks.
_PLAIN = {"–": "-", "−": "-", "×": "x", "…": "...", "·": "|", "←": "<-", "→": "->", "’": "'", "“": '"', "”": '"'}


def main(arguments: list[str] | None = None) -> int:
    if arguments is None:
        open_closed_streams()
        _replace_unencodable_characters()
        leave_at_once()
    command_line, writes_stdout = _read_help(sys.argv[1:] if arguments is None else arguments), False
    try:
        try:
            parser = make_parser(command_line)
            args = parser.parse_args(command_line)
        finally:
            sys.stdout.flush()  # the help is written while the parser exits
        be_quiet(args.quiet)
        if "jobs" in args and not hasattr(os, "fork"):
            mention(_ALONE)
        values = list(vars(args).values())
        writes_stdout = "-" in values
        if arguments is None and not writes_stdout:
            outlive_readers()
        with interruptible() if arguments is None else nullcontext():
            check_files(vars(args), parser.options, args.example)
            code: int = args.run(args)
            sys.stdout.flush()  # report unwritable output here, not while Python ends
        if arguments is None:
            gc.freeze()  # end Python without searching all imported objects for cycles
    except KeyboardInterrupt as error:
        say(STOPPED)
        return end_by_signal(getattr(error, "number", signal.SIGINT))
    except Exception as error:  # noqa: BLE001 - what is nobody else's mistake is reported as a defect
        return _print_error(error, writes_stdout=writes_stdout)
    return code


def _read_help(arguments: list[str]) -> list[str]:
    """Return the words for argparse: `help COMMAND` becomes `COMMAND --help`; no words mean help."""
    if arguments[:1] in (["help"], [_ALL]):
        names = [word for word in arguments[1:] if word not in (_ALL, "-h", "--help")]
        return [*names, "--help"] if names else [_ALL, "--help"][_ALL not in arguments :]
    return arguments or ["--help"]


def _replace_unencodable_characters() -> None:
    """Make stdout and stderr replace characters that their encoding lacks."""
    import codecs
    import io

    codecs.register_error("plain", _replace_unprintable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _replace_unprintable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement of unprintable characters, and the position to continue at."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = [_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text]
    return "".join(plain), error.end


# ── errors ──────────────────────────────────────────────────────────────────


def _print_error(error: Exception, *, writes_stdout: bool) -> int:
    """Print an error and return its exit code."""
    from segjudge.evaluation_script.files.problems import HostError, SubmissionError
    from segjudge.system.errors import OptionError, UsageError

    if isinstance(error, SubmissionError | HostError) and isinstance(error.__cause__, FileNotFoundError):
        return _fail(f"{PROGRAM}: {error}", USAGE)  # an address is reported like a missing path
    if isinstance(error, SubmissionError):
        return _fail(str(error), THEIRS)
    if isinstance(error, UsageError):
        return _fail(f"{PROGRAM}: {'--' if isinstance(error, OptionError) else ''}{error}", USAGE)
    if isinstance(error, HostError):
        return _fail(str(error), OURS)
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return _fail(f"{PROGRAM}: memory ran out, or the system ended a process{reason}; try fewer --jobs", OURS)
    if isinstance(error, OSError):
        return _explain_system_error(error, writes_stdout=writes_stdout)
    return _explain_plugin_fault(error) or _report_defect(error)


def _explain_system_error(error: OSError, *, writes_stdout: bool) -> int:
    """Explain a closed pipe, a full disk or a file that cannot be written; others are a defect.

    A closed pipe means that a program lost part of its input.
    """
    from segjudge.evaluation_script.files.packed import DISK_FULL, NotWritten

    if isinstance(error, BrokenPipeError) and discard_unread(1):
        return _fail(f"{PROGRAM}: stdout was closed before the output was complete", OURS) if writes_stdout else DONE
    if isinstance(error, NotWritten) or error.errno in DISK_FULL:
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout again at exit
        text = f"{PROGRAM}: {error.filename or 'the output'}: cannot be written ({error.strerror})"
        return _fail(text, OURS if error.errno in DISK_FULL else USAGE)
    return _report_defect(error)


def _explain_plugin_fault(error: Exception) -> int:
    """Print an error raised in a plug-in and return its exit code; 0 for other errors."""
    if "segjudge.system.plugins" not in sys.modules:  # no hint was searched for
        return 0
    import re
    import traceback

    from segjudge.evaluation_script.files.problems import printable, printable_lines
    from segjudge.system.plugins import find_owner

    trace = "".join(traceback.format_exception(error))  # with that of a child process
    for path, line in reversed(re.findall(r'File "([^"\n]+)", line (\d+)', trace)):
        if owner := find_owner(path):
            plugin, file = owner
            say(printable_lines(trace.rstrip()))
            reason = trace.rstrip().splitlines()[-1]
            fault = f"raised {printable(reason)} ({printable(file)}, line {line})"
            remedy = (
                f"Tell the maintainers of {printable(plugin.distribution)}; neither Segjudge nor your files caused it"
            )
            return _fail(f"{PROGRAM}: the plug-in {printable(plugin.origin)} {fault}. {remedy}.", OURS)
    return 0


def _report_defect(error: Exception) -> int:
    import traceback

    from segjudge.evaluation_script.files.problems import printable_lines

    say(printable_lines("".join(traceback.format_exception(error)).rstrip()))
    return _fail("segjudge: this is a defect in Segjudge, not in your files", OURS)


def _fail(text: str, code: int) -> int:
    say(text, "bad")
    return code


# ── the parser ──────────────────────────────────────────────────────────────


class _Version(argparse.Action):
    """The action of `--version`: print the version and the backend."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from segjudge.evaluation_script.masks.backend import backend
        from segjudge.evaluation_script.scoring import VERSION

        sys.stdout.write(f"segjudge {VERSION}, {backend().about}\n")
        parser.exit()


def make_parser(arguments: list[str]) -> CommandParser:
    """Return the parser of the command among the words, or of the list of commands."""
    rows = {**COMMANDS, **EARLIER}
    name = arguments[0] if arguments and arguments[0] in rows else ""
    listing = "" if name else _list_commands(all_of_them=_ALL in arguments)
    parser = CommandParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND ...   (or --help, --version)",
        description=fill(_ABOUT),
        epilog=listing,
        add_help=False,
    )
    parser.set_defaults(example=_EXAMPLE)
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    parser.add_argument("--version", action=_Version, nargs=0, help=argparse.SUPPRESS)
    parser.add_argument(_ALL, action="store_true", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=PROGRAM, help=argparse.SUPPRESS)
    if not name:
        for each in COMMANDS:
            commands.add_parser(each)
        return parser
    platforms = {EVALAI: rows[name], **{key: table[name] for key, table in PLATFORMS.items() if name in table}}
    platform = _platform(arguments) if len(platforms) > 1 else EVALAI
    row = platforms.get(platform, rows[name])
    sub = commands.add_parser(name, help=row.about, description=fill(row.about), epilog=fill(_CODES), add_help=False)
    if name in UNIX and not hasattr(os, "fork"):
        from segjudge.system.errors import UsageError

        raise UsageError(f"{name} needs Linux or macOS; on Windows, run it in WSL")
    command: Command = import_module(f"segjudge.commands.{row.module}").COMMANDS[name]
    extra = row.extra or rows[name].extra
    run = _with_extra(command.run, arguments, extra) if extra else command.run
    sub.set_defaults(run=run, example=command.example)
    command.add_options(sub)
    if len(platforms) > 1:
        about = "%(choices)s (default: evalai)"
        sub.options_of(GENERAL)("--platform", metavar="NAME", choices=list(platforms), default=EVALAI, help=about)
    add_quiet_option(sub)
    add_help_option(sub)
    parser.prog = sub.prog  # this parser reports an unknown option; that one lists the known ones
    parser.options = sub.options = sub.list_options()
    return parser


def _with_extra(
    run: Callable[[argparse.Namespace], int], arguments: list[str], extra: str
) -> Callable[[argparse.Namespace], int]:
    """Return a command's run function that raises UsageError if the extra is not installed."""

    def run_with_extra(args: argparse.Namespace) -> int:
        import shlex

        from segjudge.system.extras import require_extra

        require_extra(extra, arguments[0], shlex.join(arguments))
        return run(args)

    return run_with_extra


def _list_commands(*, all_of_them: bool) -> str:
    """Return the list of commands by group; with all of them, also the exit codes."""
    column = 2 + max(map(len, COMMANDS)) + 2
    lines = []
    for title, names in {**GROUPS, **(RARE if all_of_them else {})}.items():
        lines.append(f"\n{title}:")
        lines += [_list_row(name, COMMANDS[name].about, column) for name in names]
    if all_of_them:
        lines += ["\nexit codes:", *(_list_row(str(code), meaning, column) for code, meaning in EXIT_CODES.items())]
    hint = "" if all_of_them else f" {PROGRAM} help --all lists rare commands and exit codes."
    ending = f"{PROGRAM} COMMAND --help shows an example and the options.{hint}"
    return "\n".join([*lines, "", fill(ending)])


def _list_row(name: str, about: str, column: int) -> str:
    """Return a row of a list, whose second column begins here."""
    return f"  {name}".ljust(column) + fill(about, column).replace("\n", "\n" + " " * column)


def _platform(arguments: list[str]) -> str:
    """Return the platform among the words, which decides the options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--platform", default=EVALAI)
    with suppress(argparse.ArgumentError):
        return str(parser.parse_known_args(arguments)[0].platform)
    return EVALAI
