"""The command line: its parser, and the exit codes of errors.

Exit codes: 0 done, 1 a problem in the participant's files, 2 usage, 3 a broken truth or bundle, a full disk, or a
defect of Segjudge, 4 of `check` a bundle that is taken and does not work, 130 stopped with Ctrl-C.
"""

import argparse
import codecs
import io
import os
import select
import signal
import sys
import traceback
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import NoReturn

from segjudge.commands.shared import DONE, OURS, THEIRS, USAGE, check_files, say
from segjudge.evaluation_script.files.packed import DISK_FULL, NotWritten
from segjudge.evaluation_script.files.problems import HostError, SubmissionError, nearest
from segjudge.evaluation_script.scoring import VERSION
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import without_secrets
from segjudge.system.interrupts import STOPPED, end_by, interruptible, leave_at_once

#: Each command, and the module of `segjudge.commands` that has it and its options.
COMMANDS = {
    "new": "new", "host": "new", "benchmarks": "new", "run": "bundle", "score": "score", "merge": "score_output",
    "compare": "compare", "rank": "ranking", "pack": "data", "show": "data", "report": "report", "convert": "data",
    "compress": "data", "demo": "data", "build": "bundle", "check": "check", "push": "push", "worker": "worker",
    "rehearse": "rehearse", "interactive": "interactive", "arena": "arena", "schema": "bundle",
}  # fmt: skip
#: Platforms beside EvalAI: their commands, and the module of `segjudge.commands` that has them and their options.
PLATFORMS = {
    "codabench": {"run": "codabench", "build": "codabench", "check": "codabench", "push": "codabench"},
    "grand-challenge": {"build": "grand_challenge"},
}
EVALAI = "evalai"
PROGRAM = "segjudge"
DESCRIPTION = "The toolkit of hosts and participants: score, pack, build, check and run a challenge."
#: What is printed for characters that a terminal's encoding lacks.
_PLAIN = {"–": "-", "−": "-", "×": "x", "…": "...", "·": "|", "←": "<-", "→": "->", "’": "'", "“": '"', "”": '"'}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code."""
    if arguments is None:
        _open_streams()
        leave_at_once()
    given, args = sys.argv[1:] if arguments is None else arguments, argparse.Namespace()
    try:
        try:
            args = _parser(given).parse_args(given)
        finally:
            sys.stdout.flush()  # the help is written while the parser exits
        with interruptible() if arguments is None else nullcontext():
            check_files(args)
            code: int = args.command(args)
            sys.stdout.flush()  # what cannot be written is found here, not while Python ends
    except SubmissionError as error:
        return _fail(str(error), THEIRS)
    except UsageError as error:
        option = "--" if isinstance(error, OptionError) else ""
        return _fail(f"{PROGRAM}: {option}{error}", USAGE)
    except HostError as error:
        return _fail(str(error), OURS)
    except KeyboardInterrupt as error:
        say(STOPPED)
        return end_by(getattr(error, "number", signal.SIGINT))
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        return _fail(f"{PROGRAM}: memory ran out, or the system ended a process{reason}; try fewer --jobs", OURS)
    except OSError as error:
        return _system_error(error, loses="-" in vars(args).values())
    except Exception as error:  # noqa: BLE001 - reported as a defect
        return _mistake_in_phases(error) or _defect()
    return code


def _open_streams() -> None:
    """Open those of stdin, stdout and stderr that are closed, so that no file of ours takes their descriptors.

    What an encoding lacks is printed in other characters.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what is printed for the characters of an error, and where printing goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = [_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text]
    return "".join(plain), error.end


def _system_error(error: OSError, *, loses: bool) -> int:
    """Return the exit code for a closed pipe, a full disk or a file that cannot be written; others are a defect.

    A pipe that is closed loses what a program was to read from it.
    """
    if isinstance(error, BrokenPipeError) and _stdout_is_closed():
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _fail(f"{PROGRAM}: stdout was closed before all was written", OURS) if loses else DONE
    if isinstance(error, NotWritten) or error.errno in DISK_FULL:
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would write once more at exit
        text = f"{PROGRAM}: {error.filename or 'the output'}: cannot be written ({error.strerror})"
        return _fail(text, OURS if error.errno in DISK_FULL else USAGE)
    return _defect()


def _stdout_is_closed() -> bool:
    """Return whether stdout is a pipe whose other end is closed."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _mistake_in_phases(error: Exception) -> int:
    """Return the exit code of a mistake in the file that hosts edit, which many commands import; 0 for other errors."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    if os.path.basename(str(place[0])) != "phases.py" and "phases.py" not in traceback.format_exc():
        return 0
    return _fail(f"{os.path.relpath(str(place[0]))}, line {place[1]}: {error}. Fix phases.py and try again.", THEIRS)


def _defect() -> int:
    say(traceback.format_exc().rstrip())
    return _fail("segjudge: this is a defect of segjudge, not of your files", OURS)


def _fail(text: str, code: int) -> int:
    say(text)
    return code


class _Version(argparse.Action):
    """Print the version, and whether the kernel or numpy scores, which is determined only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from segjudge.evaluation_script.masks.backend import backend

        sys.stdout.write(f"segjudge {VERSION}, {backend().about}\n")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are a sentence, which names what was probably meant."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [*map(str, action.choices)]
            near, names = nearest(value, known), ", ".join(known)
            hint = f"; did you mean {near}? There are {names}" if near else f", only {names}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{hint}")

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, without_secrets(f"{self.prog}: {message}\nSee {self.prog} --help.\n"))


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    """Return a parser that knows the command among the arguments, or else all: what is not imported costs no time."""
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and whether the kernel is used")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS:
        modules = {EVALAI: COMMANDS[name], **{key: table[name] for key, table in PLATFORMS.items() if name in table}}
        module = import_module(f"segjudge.commands.{modules.get(_platform(arguments), COMMANDS[name])}")
        function = getattr(module, name)
        sub = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        sub.set_defaults(command=function)
        getattr(module, f"{name}_options", lambda _: None)(sub)
        if len(modules) > 1:
            sub.add_argument("--platform", choices=list(modules), default=EVALAI, help="whose bundle it is (evalai)")
    return parser


def _platform(arguments: list[str]) -> str:
    """Return the platform among the arguments, which decides about the options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--platform", default=EVALAI)
    with suppress(argparse.ArgumentError):
        return str(parser.parse_known_args(arguments)[0].platform)
    return EVALAI
