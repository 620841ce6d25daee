"""The command line: its words, and what becomes of errors.

Exit codes: 0 done, 1 something in the participant's files, 2 usage, 3 a broken
truth or bundle, or a fault of ours.
"""

from __future__ import annotations

import argparse
import os
import traceback
from collections.abc import Callable
from contextlib import suppress

from evaluation_script.errors import HostError, SubmissionError
from evaluation_script.version import VERSION
from linejudge.commands import arena, bundle, data, interactive, push, rehearse, score
from linejudge.commands.shared import DONE, OURS, THEIRS, USAGE, say
from linejudge.scoring import UsageError

DESCRIPTION = "The toolkit of hosts and participants: score, pack, build, check and run a challenge."


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        code: int = args.command(args)
    except SubmissionError as error:
        return _fail(str(error), THEIRS)
    except UsageError as error:
        return _fail(f"{parser.prog}: {error}", USAGE)
    except HostError as error:
        return _fail(str(error), OURS)
    except BrokenPipeError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - a defect of ours, said so
        traceback.print_exc()
        return _fail("linejudge: this is a defect of linejudge, not of your files", OURS)
    return code


def _fail(text: str, code: int) -> int:
    say(text)
    return code


def _parser() -> argparse.ArgumentParser:
    from evaluation_script.published import LAYOUTS
    from linejudge.datasets.pack import ALIASES

    parser = argparse.ArgumentParser(prog="linejudge", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"linejudge {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = function.__doc__ or ""
        sub = commands.add_parser(function.__name__, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    layouts = sorted({*LAYOUTS, *ALIASES})
    sub = command(bundle.run)
    sub.add_argument("--python", help="the interpreter that plays EvalAI's worker (default: this one)")
    score.score_options(command(score.score), layouts)
    data.pack_options(command(data.pack), layouts)
    data.show_options(command(data.show))
    data.convert_options(command(data.convert))
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
