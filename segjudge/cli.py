"""The command line: the parser of commands, and the exit codes of errors.

Exit codes: 0 done, 1 a problem in the participant's files, 2 usage, 3 a broken truth or bundle, a full disk, or a
defect of Segjudge, 4 of `check` a bundle that is taken and does not work, 130 stopped with Ctrl-C.

Start-up counts: only the module of the command that runs is imported, and an error's words only where there is one.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import signal
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from segjudge.commands import COMMANDS, EVALAI, GROUPS, PLATFORMS
from segjudge.commands.shared import DONE, OURS, PROGRAM, THEIRS, USAGE, add_quiet_option, be_quiet, check_files, say
from segjudge.system.interrupts import STOPPED, end_by, interruptible, leave_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segjudge.commands.shared import Command


_ABOUT = "The toolkit of hosts and participants: score, pack, build, check and run a challenge."
#: What is printed for characters that a terminal's encoding lacks.
_PLAIN = {"–": "-", "−": "-", "×": "x", "…": "...", "·": "|", "←": "<-", "→": "->", "’": "'", "“": '"', "”": '"'}


def main(arguments: list[str] | None = None) -> int:
    if arguments is None:
        _open_streams()
        leave_at_once()
    words, writes_stdout = sys.argv[1:] if arguments is None else arguments, False
    try:
        try:
            args = _parser(words).parse_args(words)
        finally:
            sys.stdout.flush()  # the help is written while the parser exits
        be_quiet(args.quiet)
        values = list(vars(args).values())
        writes_stdout = "-" in values
        with interruptible() if arguments is None else nullcontext():
            check_files(values)
            code: int = args.run(args)
            sys.stdout.flush()  # what cannot be written is found here, not while Python ends
        if arguments is None:
            gc.freeze()  # Python ends without a search for cycles in all that was imported
    except KeyboardInterrupt as error:
        say(STOPPED)
        return end_by(getattr(error, "number", signal.SIGINT))
    except Exception as error:  # noqa: BLE001 - what is nobody else's mistake is reported as a defect
        return _explain(error, writes_stdout=writes_stdout)
    return code


def _open_streams() -> None:
    """Open those of stdin, stdout and stderr that are closed, so that no file of ours takes their descriptors.

    What an encoding lacks is printed in other characters.
    """
    import codecs
    import io

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
    codecs.register_error("plain", _replace_unprintable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _replace_unprintable(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is printed for the characters of an error, and where printing goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = [_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text]
    return "".join(plain), error.end


# ── errors ──────────────────────────────────────────────────────────────────


def _explain(error: Exception, *, writes_stdout: bool) -> int:
    """Say what went wrong, and return whose mistake it was as an exit code."""
    from segjudge.evaluation_script.files.problems import HostError, SubmissionError
    from segjudge.system.errors import OptionError, UsageError

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
    return _explain_mistake_in_phases(error) or _report_defect(error)


def _explain_system_error(error: OSError, *, writes_stdout: bool) -> int:
    """Explain a closed pipe, a full disk or a file that cannot be written; others are a defect.

    A pipe that is closed loses what a program was to read from it.
    """
    from segjudge.evaluation_script.files.packed import DISK_FULL, NotWritten

    if isinstance(error, BrokenPipeError) and _is_stdout_closed():
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _fail(f"{PROGRAM}: stdout was closed before all was written", OURS) if writes_stdout else DONE
    if isinstance(error, NotWritten) or error.errno in DISK_FULL:
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would write once more at exit
        text = f"{PROGRAM}: {error.filename or 'the output'}: cannot be written ({error.strerror})"
        return _fail(text, OURS if error.errno in DISK_FULL else USAGE)
    return _report_defect(error)


def _is_stdout_closed() -> bool:
    """Whether stdout is a pipe whose other end is closed."""
    import select

    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _explain_mistake_in_phases(error: Exception) -> int:
    """Explain a mistake in the file that hosts edit, which many commands import; 0 for other errors."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    file, line, fault = last.filename, last.lineno, str(error)
    if isinstance(error, SyntaxError):
        file, line, fault = str(error.filename), error.lineno, error.msg
    if os.path.basename(file) != "phases.py" and "phases.py" not in "".join(traceback.format_exception(error)):
        return 0
    return _fail(f"{os.path.relpath(file)}, line {line}: {fault}. Fix phases.py and try again.", THEIRS)


def _report_defect(error: Exception) -> int:
    import traceback

    say("".join(traceback.format_exception(error)).rstrip())
    return _fail("segjudge: this is a defect of segjudge, not of your files", OURS)


def _fail(text: str, code: int) -> int:
    say(text, "bad")
    return code


# ── the parser ──────────────────────────────────────────────────────────────


class _Version(argparse.Action):
    """Print the version, and whether the kernel or numpy scores, which is determined only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from segjudge.evaluation_script.masks.backend import backend
        from segjudge.evaluation_script.scoring import VERSION

        sys.stdout.write(f"segjudge {VERSION}, {backend().about}\n")
        parser.exit()


#: How argparse begins to say that there is no such option.
_UNKNOWN = "unrecognized arguments: "
#: How many names a sentence about another one lists: all commands, but not all protocols.
_MOST_CHOICES = 24


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are a sentence, which names what was probably meant."""

    #: The options of the command whose words these are.
    options: Sequence[str] = ()

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            from segjudge.evaluation_script.files.problems import name_list, nearest

            names = [*map(str, action.choices)]
            near, listing = nearest(value, names), name_list(names, _MOST_CHOICES)
            hint = f"; did you mean {near}? There are {listing}" if near else f", only {listing}"
            faults = "".join(f"\n{fault}" for fault in getattr(action.choices, "faults", ()))
            raise argparse.ArgumentError(action, f"there is no {value!r}{hint}{faults}")

    def error(self, message: str) -> NoReturn:
        from segjudge.evaluation_script.files.problems import nearest
        from segjudge.system.files import redact

        if message.startswith(_UNKNOWN):
            words = [word.partition("=")[0] for word in message.removeprefix(_UNKNOWN).split() if word.startswith("--")]
            near = next(filter(None, (nearest(word, self.options) for word in words)), "")
            message += f"; did you mean {near}?" if near else ""
        self.exit(USAGE, redact(f"{self.prog}: {message}\nSee {self.prog} --help.\n"))


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """Make a parser that knows the command among the words; where there is none, it lists them all."""
    name = words[0] if words and words[0] in COMMANDS else ""
    listing = "" if name else _list_commands()
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [-h] [--version] COMMAND ...",
        description=_wrap(_ABOUT) if listing else _ABOUT,
        epilog=listing,
        formatter_class=argparse.RawDescriptionHelpFormatter if listing else argparse.HelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and whether the kernel is used")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=PROGRAM, help=argparse.SUPPRESS)
    if not name:
        for each in COMMANDS:
            commands.add_parser(each)
        return parser
    platforms = {EVALAI: COMMANDS[name], **{key: table[name] for key, table in PLATFORMS.items() if name in table}}
    platform = _platform(words) if len(platforms) > 1 else EVALAI
    row = platforms.get(platform, COMMANDS[name])
    sub = commands.add_parser(name, help=row.about, description=row.about)
    command: Command = import_module(f"segjudge.commands.{row.module}").COMMANDS[name]
    sub.set_defaults(run=command.run)
    command.add_options(sub)
    if len(platforms) > 1:
        sub.add_argument("--platform", choices=list(platforms), default=EVALAI, help="whose bundle it is (evalai)")
    add_quiet_option(sub)
    parser.prog = sub.prog  # an option that is not known is told by this parser, and listed by that one
    parser.options = sub.options = _list_options(sub)
    return parser


def _list_options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a command and of the actions within it, as far as they are shown."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - there is no other list
    within = [each for action in shown if isinstance(action.choices, dict) for each in action.choices.values()]
    parsers = [each for each in within if isinstance(each, argparse.ArgumentParser)]
    options = [option for action in shown for option in action.option_strings]
    return [*options, *(option for each in parsers for option in _list_options(each))]


def _list_commands() -> str:
    """The commands by what they are for, as wide as the terminal."""
    column = 4 + max(map(len, COMMANDS)) + 2
    lines = []
    for title, names in GROUPS.items():
        lines.append(f"\n{title}:")
        lines += [_wrap(COMMANDS[name].about, f"    {name:{column - 4}}") for name in names]
    return "\n".join([*lines, f"\n{PROGRAM} COMMAND --help says more of each."])


def _wrap(text: str, start: str = "") -> str:
    """Wrap what begins with a start, below which its lines go on, to the terminal."""
    import textwrap

    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(text, width, initial_indent=start, subsequent_indent=" " * len(start))


def _platform(words: list[str]) -> str:
    """Find the platform among the words, which decides about the options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--platform", default=EVALAI)
    with suppress(argparse.ArgumentError):
        return str(parser.parse_known_args(words)[0].platform)
    return EVALAI
