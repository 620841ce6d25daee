"""The command line: its parser, and the exit codes of errors.

Exit codes: 0 done, 1 a problem in the participant's files, 2 usage, 3 a broken truth or bundle, a full disk, or a
defect of Segjudge, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress

from segjudge.commands import arena, bundle, data, interactive, push, rehearse, score
from segjudge.commands.shared import DONE, OURS, THEIRS, USAGE, say
from segjudge.errors import UsageError
from segjudge.evaluation_script.errors import HostError, SubmissionError
from segjudge.evaluation_script.packed_file import DISK_FULL, NotWritten
from segjudge.evaluation_script.version import VERSION
from segjudge.interrupts import STOPPED, end_by, interruptible, leave_at_once

DESCRIPTION = "The toolkit of hosts and participants: score, pack, build, check and run a challenge."


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code."""
    if arguments is None:
        leave_at_once()
    parser = _parser()
    try:
        args = parser.parse_args(arguments)
        with interruptible() if arguments is None else nullcontext():
            code: int = args.command(args)
            sys.stdout.flush()  # what cannot be written is found here, not while Python ends
    except SubmissionError as error:
        return _fail(str(error), THEIRS)
    except UsageError as error:
        return _fail(f"{parser.prog}: {error}", USAGE)
    except HostError as error:
        return _fail(str(error), OURS)
    except KeyboardInterrupt as error:
        say(STOPPED)
        return end_by(getattr(error, "number", signal.SIGINT))
    except OSError as error:
        return _system_error(parser.prog, error)
    except Exception:  # noqa: BLE001 - reported as a defect
        return _defect()
    return code


def _system_error(program: str, error: OSError) -> int:
    """Return the exit code for a closed pipe or a full disk; any other error of the system is a defect."""
    if isinstance(error, BrokenPipeError) and _stdout_is_closed():
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    if isinstance(error, NotWritten) or error.errno in DISK_FULL:
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would write once more at exit
        return _fail(f"{program}: {error.filename or 'the output'}: cannot be written ({error.strerror})", OURS)
    return _defect()


def _stdout_is_closed() -> bool:
    """Return whether stdout is a pipe whose other end is closed."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _defect() -> int:
    traceback.print_exc()
    return _fail("segjudge: this is a defect of segjudge, not of your files", OURS)


def _fail(text: str, code: int) -> int:
    say(text)
    return code


class _Version(argparse.Action):
    """Print the version and what does the work, which is found out only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from segjudge.evaluation_script import kernel

        sys.stdout.write(f"segjudge {VERSION}, {kernel.state()}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    from segjudge.datasets.opening import LAYOUTS

    parser = argparse.ArgumentParser(prog="segjudge", description=DESCRIPTION)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and whether the kernel is used")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        description = function.__doc__ or ""
        sub = commands.add_parser(function.__name__, help=description, description=description)
        sub.set_defaults(command=function)
        return sub

    layouts = list(LAYOUTS)
    bundle.run_options(command(bundle.run))
    score.score_options(command(score.score), layouts)
    score.merge_options(command(score.merge))
    data.pack_options(command(data.pack), layouts)
    data.show_options(command(data.show))
    data.convert_options(command(data.convert))
    data.compress_options(command(data.compress))
    data.demo_options(command(data.demo))
    bundle.build_options(command(bundle.build))
    bundle.check_options(command(bundle.check))
    push.push_options(command(push.push))
    rehearse.rehearse_options(command(rehearse.rehearse))
    interactive.interactive_options(command(interactive.interactive))
    arena.arena_options(command(arena.arena))
    sub = command(bundle.schema)
    sub.add_argument("--out", help="the file to write (default: docs/challenge_config.schema.json)")
    return parser
