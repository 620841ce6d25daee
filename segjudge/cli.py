"""The command line: the parser of commands and the exit codes of errors (`commands.EXIT_CODES`).

Start-up time matters: only the module of the running command is imported, and error handling only on errors.
"""

from __future__ import annotations

# It makes other modules wait until they are used, such as argparse's translations.
from segjudge.commands import COMMANDS, EARLIER, EVALAI, EXIT_CODES, GROUPS, PLATFORMS, RARE, UNIX

# isort: split
import argparse
import gc
import os
import shutil
import signal
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from segjudge.commands.shared import (
    DONE,
    GENERAL,
    OURS,
    PROGRAM,
    THEIRS,
    USAGE,
    add_help_option,
    add_quiet_option,
    as_typed,
    be_quiet,
    check_files,
    mention,
    options_of,
    program,
    say,
)
from segjudge.system.interrupts import STOPPED, end_by_signal, end_process, interruptible, leave_at_once
from segjudge.system.options import read_number, read_whole
from segjudge.system.streams import discard_unread, open_closed_streams, outlive_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from _typeshed import SupportsWrite

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
            end_process(code)
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


class _Formatter(argparse.HelpFormatter):
    """A formatter that does not break names at hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


#: The beginning of argparse's message about an unknown option.
_UNKNOWN = "unrecognized arguments: "
#: The beginning of argparse's message about missing arguments.
_LACKING = "the following arguments are required: "
#: The width of texts that are not shown.
_ANY_WIDTH = 80
#: The maximum number of choices that a sentence about an unknown one lists, and how many it shows of more.
_MOST_CHOICES, _FIRST_CHOICES = 24, 4


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences that suggest the nearest name."""

    #: The options of the command that was typed.
    options: Sequence[str] = ()
    #: Whether its texts are shown.
    is_shown = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, **options})
        self.color = False  # Python 3.14 would colour the help, older ones not
        self.register("type", int, read_whole)
        self.register("type", float, read_number)

    def _get_formatter(self) -> argparse.HelpFormatter:
        """Return the formatter of texts; argparse also makes one for each option, which needs no terminal's width."""
        return super()._get_formatter() if self.is_shown else _Formatter(self.prog, width=_ANY_WIDTH)

    def format_usage(self) -> str:
        self.is_shown = True
        return super().format_usage()

    def format_help(self) -> str:
        """Return the help: an example, the usage without optional options, then the groups of options."""
        self.is_shown = True
        self.usage = self.usage or f"%(prog)s [options]{''.join(map(_describe_needed, self._actions))}"
        return f"example:\n  {self.get_default('example')}\n\n{super().format_help()}"

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Write the help; argparse ignores that it cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            from segjudge.evaluation_script.files.problems import name_list, near_hint

            names = [*map(str, action.choices)]
            if {"score", "report"} <= {*names}:
                self._refuse_command(str(value))
            hint, are_few = near_hint(value, names), len(names) <= _MOST_CHOICES
            if are_few or not hint:
                listing = name_list(names, _MOST_CHOICES if are_few else _FIRST_CHOICES)
                hint += f" Choose from {listing}" if hint else f"; choose from {listing}"
            faults = "".join(f"\n{fault}" for fault in getattr(action.choices, "faults", ()))
            raise argparse.ArgumentError(action, f"{value!r} does not exist{hint}{faults}")

    def _refuse_command(self, name: str) -> NoReturn:
        """Reject an unknown command, and name the most similar one."""
        from segjudge.commands.other_names import suggest_commands
        from segjudge.evaluation_script.files.problems import name_list, nearest

        fault, shown = f"there is no command {name!r}", [each for names in GROUPS.values() for each in names]
        if lines := suggest_commands(name, program()):
            self.error("\n".join([f"{fault}; you may mean", *lines]))
        near = nearest(name, [*shown, *(each for names in RARE.values() for each in names)])
        self.error(f"{fault}; did you mean {near}?" if near else f"{fault}; choose from {name_list(shown, len(shown))}")

    def error(self, message: str) -> NoReturn:
        from segjudge.commands.other_names import OPTIONS
        from segjudge.evaluation_script.files.problems import nearest
        from segjudge.system.files import redact

        if message.startswith(_UNKNOWN):
            unknown = message.removeprefix(_UNKNOWN).split()
            # Without the dashes, which make all options similar.
            names = [option[2:] for option in self.options if option.startswith("--")]
            options = [word[2:].partition("=")[0] for word in unknown if word.startswith("--")]
            near = next(filter(None, (nearest(option, names) for option in options)), "")
            ours = next(filter(None, map(OPTIONS.get, options)), "")
            message += f"; here it is {ours}" if ours else f"; did you mean --{near}?" if near else ""
        subject = f"{as_typed(self.prog)}:"
        if message.startswith(_LACKING) and (example := self.get_default("example")):
            subject = f"{as_typed(self.prog)} needs"
            message = f"{message.removeprefix(_LACKING)}, for example:\n  {as_typed(example)}"
        self.exit(USAGE, redact(f"{subject} {message}\nSee --help.\n"))


def _describe_needed(action: argparse.Action) -> str:
    """Return the words of an argument in the usage; empty for an optional one."""
    name = str(action.metavar or action.dest.upper())
    if action.option_strings:
        return f" {action.option_strings[-1]} {name}" if action.required else ""
    forms = {"?": f" [{name}]", "*": f" [{name} ...]", "+": f" {name} ...", argparse.PARSER: f" {name} ..."}
    return forms.get(str(action.nargs), f" {name}")


def make_parser(arguments: list[str]) -> _Parser:
    """Return the parser of the command among the words, or of the list of commands."""
    rows = {**COMMANDS, **EARLIER}
    name = arguments[0] if arguments and arguments[0] in rows else ""
    listing = "" if name else _list_commands(all_of_them=_ALL in arguments)
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND ...   (or --help, --version)",
        description=_wrap(_ABOUT) if listing else _ABOUT,
        epilog=listing,
        formatter_class=argparse.RawDescriptionHelpFormatter if listing else _Formatter,
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
    sub = commands.add_parser(name, help=row.about, description=row.about, epilog=_CODES, add_help=False)
    if name in UNIX and not hasattr(os, "fork"):
        from segjudge.system.errors import UsageError

        raise UsageError(f"{name} needs Linux or macOS; on Windows, run it in WSL")
    command: Command = import_module(f"segjudge.commands.{row.module}").COMMANDS[name]
    run = _with_extra(command.run, arguments, rows[name].extra) if rows[name].extra else command.run
    sub.set_defaults(run=run, example=command.example)
    command.add_options(sub)
    if len(platforms) > 1:
        about = "%(choices)s (default: evalai)"
        options_of(sub, GENERAL)("--platform", metavar="NAME", choices=list(platforms), default=EVALAI, help=about)
    add_quiet_option(sub)
    add_help_option(sub)
    parser.prog = sub.prog  # this parser reports an unknown option; that one lists the known ones
    parser.options = sub.options = _list_options(sub)
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


def _list_options(parser: argparse.ArgumentParser) -> list[str]:
    """Return the shown options of a command and of its actions."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - there is no other list
    within = [each for action in shown if isinstance(action.choices, dict) for each in action.choices.values()]
    parsers = [each for each in within if isinstance(each, argparse.ArgumentParser)]
    options = [option for action in shown for option in action.option_strings]
    return [*options, *(option for each in parsers for option in _list_options(each))]


def _list_commands(*, all_of_them: bool) -> str:
    """Return the list of commands by group; with all of them, also the exit codes."""
    column = 2 + max(map(len, COMMANDS)) + 2
    lines = []
    for title, names in {**GROUPS, **(RARE if all_of_them else {})}.items():
        lines.append(f"\n{title}:")
        lines += [_wrap(COMMANDS[name].about, f"  {name:{column - 2}}") for name in names]
    if all_of_them:
        lines += ["\nexit codes:", *(_wrap(meaning, f"  {code:<{column - 2}}") for code, meaning in EXIT_CODES.items())]
    hint = "" if all_of_them else f" {PROGRAM} help --all lists rare commands and exit codes."
    ending = f"{PROGRAM} COMMAND --help shows an example and the options.{hint}"
    return "\n".join([*lines, "", _wrap(ending)])


def _wrap(text: str, start: str = "") -> str:
    """Return text wrapped to the terminal, indented under its start."""
    import textwrap

    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(text, width, initial_indent=start, subsequent_indent=" " * len(start))


def _platform(arguments: list[str]) -> str:
    """Return the platform among the words, which decides the options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--platform", default=EVALAI)
    with suppress(argparse.ArgumentError):
        return str(parser.parse_known_args(arguments)[0].platform)
    return EVALAI
