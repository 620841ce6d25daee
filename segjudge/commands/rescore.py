"""`segjudge rescore`: the submissions of an event scored again, their new numbers beside the published ones."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import OutputFolder, open_output

from .parser import CommandParser, fill
from .shared import (
    DONE,
    OUTPUT,
    RARELY,
    SPEED,
    TRUTH,
    WIDTH,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    look,
    mention,
    say,
)
from .truths import TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.archive.event_source import EventSource
    from segjudge.archive.published import FolderSource
    from segjudge.archive.rescored import RescoredEvent
    from segjudge.scoring.request import ScoreRequest

_EXAMPLE = "segjudge rescore event.zip --truth DAVIS --out again"
#: The folder in the output with a file for each submission, and the number of printed differences.
_SCORES, _MOST_SHOWN = "scores", 10


def _rescore(args: argparse.Namespace) -> int:
    from segjudge.archive.event import is_event, open_event

    reuse_memory()
    choice = TruthChoice.read(vars(args))
    renames = dict(args.rename or ())
    if not is_event(args.source):
        if not os.path.isdir(args.source):
            fault = "is neither a folder of submissions nor an archive that `segjudge leave` wrote"
            raise UsageError(f"{args.source}: {fault}; name one of the two")
        if renames and not args.published:
            raise OptionError("rename needs --published FILE")
        choice = choice.complete("rescore")
        rescored = _run(_describe_folder(args, choice, renames), choice.request("", is_identified=False), args)
    else:
        if args.published:
            raise OptionError("published is for a folder of submissions; the archive has its own numbers")
        from segjudge.archive.event_source import EventSource
        from segjudge.system.files import temporary_folder

        with open_event(args.source) as event, temporary_folder("segjudge-") as folder:
            options = {"is_percent": args.percent, "as_host": args.as_host}
            source = EventSource(event, choice.phase or "", folder, renames, **options)
            rescored = _run(source, _choose_rules(choice, source), args)
    _write(rescored, args.out)
    if args.as_host:
        say(f"warning: {args.out} may hold numbers that visitors never saw. Publish it only if you release them.")
    return DONE


def _describe_folder(args: argparse.Namespace, choice: TruthChoice, renames: dict[str, str]) -> FolderSource:
    from segjudge.archive.published import FolderSource
    from segjudge.archive.rescored import Scale

    is_percent, empty = args.percent, None
    if choice.phase:
        is_percent, empty = is_percent or choice.find_phase()[0].percent, 0.0
    hidden = frozenset[str]() if args.as_host else choice.find_hidden()
    scale = Scale(100.0 if is_percent else 1.0, empty)
    return FolderSource(args.source, args.published, args.out, hidden, renames, scale)


def _choose_rules(choice: TruthChoice, source: EventSource) -> ScoreRequest:
    """Return the request by the archive's rules, or by those of another protocol, on its truth or another one."""
    from segjudge.families.truths import TruthSource
    from segjudge.scoring.request import ScoreRequest, find_protocol

    truth, rules = choice.truth or source.annotations, source.rules
    if choice.annotations:
        raise OptionError("annotations does not apply to an archive; name another truth with --truth")
    if not truth:
        raise UsageError(f"the archive has no truth of {source.codename}; name it with --truth PATH")
    if not choice.protocol and rules is None:
        raise UsageError("the challenge's own script scored this event; name a protocol with --protocol NAME")
    protocols = {split.protocol for split in rules.splits} if rules else set()
    if choice.protocol or rules is None or (len(protocols) == 1 and os.path.isdir(truth)):
        name = choice.protocol or next(iter(protocols))
        return choice._replace(phase=None, truth=truth, protocol=name).request("", is_identified=False)
    rules = replace(rules, jobs={None: rules.jobs, "auto": 0}.get(choice.jobs, choice.jobs))
    protocol = find_protocol(rules.splits[0].protocol)
    return ScoreRequest("", TruthSource(truth), protocol, choice.split or "", phase=rules, is_identified=False)


def _run(source: EventSource | FolderSource, request: ScoreRequest, args: argparse.Namespace) -> RescoredEvent:
    """Score on this machine, or by the workers of a cluster."""
    from segjudge.archive.rescore import rescore

    with ProgressBar() as bar, ProgressBar("submission") as whole_bar, ExitStack() as stack:
        client = None
        if args.scheduler:
            from segjudge.scoring.sharing import connect

            client = stack.enter_context(connect(args.scheduler))
        return rescore(source, request, os.path.join(args.out, _SCORES), client, (bar, whole_bar))


def _write(rescored: RescoredEvent, out: str) -> None:
    """Write the leaderboards into the folder; print the summary and the first differences."""
    from segjudge.report.page import render_page
    from segjudge.report.tables import format_table

    texts = {
        "board.html": render_page(rescored.make_page()),
        "board.csv": rescored.make_csv(),
        "board.json": f"{json.dumps(rescored.document(), indent=1, ensure_ascii=False, allow_nan=False)}\n",
    }
    for name, text in texts.items():
        with open_output(os.path.join(out, name)) as file:
            file.write(text)
    for line in rescored.summarize():
        print(fill(line))
    differences = rescored.list_differences()
    if shown := [[str(cell) for cell in row.values()] for row in differences[:_MOST_SHOWN]]:
        print(f"\n{format_table([*differences[0]], shown, look(otherwise=WIDTH))}")
    if len(differences) > _MOST_SHOWN:
        print(f"... and {len(differences) - _MOST_SHOWN:,} more differences, in board.csv")
    for note in rescored.notes:
        say(fill(note))
    mention(f"Wrote {', '.join(texts)} to {out}; {os.path.join(out, _SCORES)} keeps each score for a repetition.")


def _read_rename(text: str) -> tuple[str, str]:
    """Read a value such as mIoU=IoU."""
    column, sign, metric = text.rpartition("=")
    if not (sign and column and metric):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=METRIC, such as J&F=J&F-Mean")
    return column, metric


def _add_options(sub: CommandParser) -> None:
    about = "an archive of `leave` (folder or zip); or a folder whose files are submissions"
    sub.add_argument("source", metavar="EVENT|FOLDER", type=InputPath, help=about)
    sub.arrange_groups(TRUTH, OUTPUT, SPEED, RARELY)
    add_truth_choice(sub, "the released truth (default for an archive: its own)", "an archive's own, else davis2017")
    sub.options_of(TRUTH)("--split", metavar="NAME", help="score only this split")
    about = "CSV of published numbers: a column `submission` with names of files, and columns of metrics"
    sub.options_of(TRUTH)("--published", metavar="FILE", type=InputPath, default="", help=about)
    add = sub.options_of(OUTPUT)
    about = "the folder for board.html, board.csv and board.json; a repetition continues a stopped run"
    add("--out", metavar="FOLDER", type=OutputFolder, required=True, help=about)
    about = "include hidden splits and private submissions; publish these files only if you release them"
    add("--as-host", action="store_true", help=about)
    add_jobs_option(sub)
    sub.options_of(SPEED)("--scheduler", metavar="ADDRESS", help="score on a Dask cluster, e.g. tcp://HOST:8786")
    add = sub.options_of(RARELY)
    about = "the metric of a published column with another name; may be repeated"
    add("--rename", metavar="COLUMN=METRIC", type=_read_rename, action="append", help=about)
    add("--percent", action="store_true", help="the published numbers are percents")


COMMANDS = {"rescore": Command(_add_options, _rescore, _EXAMPLE)}
