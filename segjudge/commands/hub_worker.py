"""`segjudge worker --platform hugging-face`: the evaluator of a board on the Hub, and its organisers' decisions."""

from __future__ import annotations

import argparse
import re

from segjudge.system.errors import UsageError
from segjudge.system.options import whole_number

from .parser import CommandParser
from .shared import DONE, Command, say

_ACTIONS = "actions"


def _work(args: argparse.Namespace) -> int:
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.utils import disable_progress_bars

    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.ledger.evaluator import AGAIN, DISQUALIFY
    from segjudge.platforms.hugging_face.worker import decide, work

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", args.board, re.ASCII):
        raise UsageError(f"{args.board!r} is no name of a Space, such as my-lab/cats")
    if not get_token():
        raise HostError("HF_TOKEN is not set: the evaluator's token of the Hub; `push` says which rights it needs")
    disable_progress_bars()
    if args.disqualify:
        lines = decide(HfApi(), args.board, DISQUALIFY, args.disqualify, args.reason)
    elif args.score_again is not None:
        lines = decide(HfApi(), args.board, AGAIN, args.score_again, args.reason)
    else:
        lines = work(HfApi(), args.board, once=args.once)
    for line in lines:
        say(line)
    return DONE


def _add_options(sub: CommandParser) -> None:
    sub.add_argument("board", metavar="OWNER/NAME", help="the board's Space on the Hub")
    add, number = sub.options_of(_ACTIONS, exclusive=True), whole_number(1, 10**9)
    add("--once", action="store_true", help="score the waiting submissions, then stop")
    add("--disqualify", metavar="NUMBER", type=number, help="take a submission off the leaderboards")
    about = "let a submission wait again, or all; each keeps its result until there is a new one"
    add("--score-again", metavar="NUMBER", type=number, nargs="?", const=0, help=about)
    add = sub.options_of(_ACTIONS)
    add("--reason", metavar="TEXT", default="", help="the reason of a decision, which everybody reads")


COMMANDS = {"worker": Command(_add_options, _work, "segjudge worker --platform hugging-face my-lab/cats --once")}
