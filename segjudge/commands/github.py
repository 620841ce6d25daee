"""`segjudge check` and `worker` with `--platform github`."""

from __future__ import annotations

import argparse
import os

from segjudge.system.errors import UsageError

from .evalai import CHECKS, check_source, has_errors, passes
from .parser import CommandParser
from .shared import DONE, OURS, TAKEN, Command, InputPath, choose_bundle, say


def _check(args: argparse.Namespace) -> int:
    from segjudge.platforms.github.build import PRIVATE_FOLDER, PUBLIC_FOLDER
    from segjudge.platforms.github.check import check_board

    folder = args.folder or os.curdir
    for name in (PRIVATE_FOLDER, PUBLIC_FOLDER):
        if not os.path.isdir(os.path.join(folder, name)):
            raise UsageError(f"{folder}: has no folder {name}; `segjudge new FOLDER --board github` writes both")
    source = choose_bundle("", os.path.join(folder, PRIVATE_FOLDER))
    problems = list(check_board(folder))
    if not has_errors(problems):
        problems += check_source(source)
    if not passes(problems):
        return OURS if any(problem.leaks for problem in problems) else TAKEN
    print("The board would work on GitHub, as far as its folders show.")
    return TAKEN if problems and args.strict else DONE


def _work(args: argparse.Namespace) -> int:  # noqa: ARG001 - the workflow's variables say all
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.platforms.evalai.client import ApiError
    from segjudge.platforms.github.worker import BoardSettings, sweep

    try:
        for line in sweep(BoardSettings.read()):
            say(line)
    except ApiError as error:
        raise HostError(f"GitHub's API: {error}") from None
    return DONE


def _add_check_options(sub: CommandParser) -> None:
    about = "the folder of `new --board github` with the two repositories (default: the current one)"
    sub.add_argument("folder", metavar="FOLDER", type=InputPath, nargs="?", default="", help=about)
    sub.options_of(CHECKS)("--strict", action="store_true", help="fail on warnings, for CI")


COMMANDS = {
    "check": Command(_add_check_options, _check, "segjudge check my-challenge --platform github"),
    "worker": Command(lambda _sub: None, _work, "segjudge worker --platform github"),
}
