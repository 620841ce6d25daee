"""`segjudge verify`: check a record of `score --record` by scoring again."""

from __future__ import annotations

import argparse
from dataclasses import replace

from segjudge.evaluation_script.files.problems import quantity
from segjudge.system.errors import UsageError

from .parser import CommandParser
from .shared import DONE, TAKEN, THEIRS, TRUTH, Command, InputPath, ProgressBar, add_jobs_option, say
from .truths import TruthChoice, add_truth_choice

_EXAMPLE = "segjudge verify record.json --submission masks.zip --truth DAVIS --subset val"
#: The maximum number of differences that are shown.
_SHOWN = 10


def _add_options(sub: CommandParser) -> None:
    sub.add_argument("record", metavar="RECORD", type=InputPath, help="the file of `score --record`")
    sub.arrange_groups(TRUTH)
    about = "the submission that the record is about"
    sub.options_of(TRUTH)("--submission", metavar="RESULTS", type=InputPath, required=True, help=about)
    add_truth_choice(sub, "the ground truth that the record names", "the record's")
    add_jobs_option(sub)


def _verify(args: argparse.Namespace) -> int:
    from segjudge.scoring.records import Record, Subject
    from segjudge.scoring.request import prepare

    record = Record.read(args.record)
    protocol = record.find_protocol()
    if args.protocol not in (None, protocol.name):
        raise UsageError(f"{args.record} is about {protocol.name}; omit --protocol {args.protocol}")
    choice = TruthChoice.read({**vars(args), "split": record.splits[0] if len(record.splits) == 1 else None})
    if choice.truth:
        choice = choice._replace(protocol=protocol.name)
    choice = choice.complete("verify")._replace(sequences=record.sequences)
    request = choice.request(args.submission)
    request = request if request.phase else replace(request, protocol=protocol)
    with ProgressBar() as bar:
        scores = prepare(request, bar).score(bar)
    verdict = record.compare(scores, Subject.of_request(request), choice.find_hidden())
    for line in verdict.differences[:_SHOWN]:
        say(f"differs: {line}", "bad")
    if len(verdict.differences) > _SHOWN:
        say(f"differs: {len(verdict.differences) - _SHOWN} more")
    numbers = quantity(verdict.compared, "number")
    if verdict.unknown:
        are_equal = verdict.compared and not verdict.differences
        print(f"cannot be known: {verdict.unknown[0]}" + (f"; its {numbers} are equal" if are_equal else ""))
        return TAKEN
    print("differs" if verdict.differences else f"equal: {numbers}, scored again")
    return THEIRS if verdict.differences else DONE


COMMANDS = {"verify": Command(_add_options, _verify, _EXAMPLE)}
