"""`segjudge leave`: a whole challenge from a platform, as an archive."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.scoring import VERSION
from segjudge.system.errors import UsageError
from segjudge.system.files import BuiltFile
from segjudge.system.options import whole_number

from .parser import CommandParser
from .shared import DONE, OUTPUT, RARELY, Command, InputPath, mention, say

if TYPE_CHECKING:
    from segjudge.archive.event import EventInfo, EventWriter, Exported
    from segjudge.platforms.evalai.client import Client


def _add_options(parser: CommandParser) -> None:
    about = "evalai or codabench, with a host's token in EVALAI_TOKEN or CODABENCH_TOKEN; or codalab, from a dump"
    parser.add_argument("platform", choices=[*_EXPORTS], metavar="PLATFORM", help=about)
    about = "the challenge's number on the platform; for codalab the zip of its dump"
    parser.add_argument("challenge", metavar="CHALLENGE", help=about)
    add = parser.options_of(OUTPUT)
    about = "the archive: a zip if it ends in .zip, else a folder. It holds the truth: keep it private"
    add("--out", metavar="EVENT", type=BuiltFile, required=True, help=about)
    add("--people", action="store_true", help="include people's names and e-mail addresses")
    about = "evalai: your own bundle, which is archived instead of a rebuilt one; differences are reported"
    add("--bundle", metavar="FOLDER", type=InputPath, default="", help=about)
    add = parser.options_of(RARELY)
    about = "limit of calls (default: 40; EvalAI rejects more than 60)"
    add("--requests-per-minute", metavar="N", type=whole_number(1, 10**9), default=40, help=about)


def _leave(args: argparse.Namespace) -> int:
    from segjudge.archive.event import EventWriter, describe_missing

    target = str(args.out).rstrip("/")
    writer = EventWriter(f"{target}.partial")
    info, exported = _EXPORTS[args.platform](args, writer)
    writer.write_records(info, exported)
    writer.finish(target)
    for line in exported.differences:
        say(f"differs: {line}")
    for line in describe_missing(exported.missing):
        say(f"missing: {line}")
    files = sum(len(row.extra_files) + (row.file is not None) for row in exported.submissions)
    scored = sum(bool(row.scores) for row in exported.submissions)
    say(
        f"Wrote {args.out}: {quantity(len(exported.submissions), 'submission')} ({scored:,} with scores), "
        f"{quantity(files, 'file')}, {quantity(len(exported.boards), 'leaderboard')}. It is as private as the truth."
    )
    return DONE


def _leave_evalai(args: argparse.Namespace, writer: EventWriter) -> tuple[EventInfo, Exported]:
    from segjudge.archive.evalai import export_evalai
    from segjudge.platforms.evalai.client import Client, EvalAISettings

    account = EvalAISettings.read()
    export = partial(export_evalai, bundle=args.bundle, people=args.people)
    return _leave_server(args, writer, Client(account.host, account.token), export)


def _leave_codabench(args: argparse.Namespace, writer: EventWriter) -> tuple[EventInfo, Exported]:
    from segjudge.archive.codabench import export_codabench
    from segjudge.platforms.codabench.push import CodabenchAccount, CodabenchClient

    account = CodabenchAccount.read()
    export = partial(export_codabench, people=args.people)
    return _leave_server(args, writer, CodabenchClient(account.host, account.token), export)


def _leave_codalab(args: argparse.Namespace, writer: EventWriter) -> tuple[EventInfo, Exported]:
    from segjudge.archive.codalab import export_codalab
    from segjudge.archive.event import EventInfo

    if not os.path.exists(args.challenge):
        raise UsageError(f"{args.challenge}: there is no such file; name the zip of CodaLab's dump")
    exported = export_codalab(args.challenge, writer)
    made_by = f"segjudge {VERSION}"
    return EventInfo(made_by, "codalab", "", os.path.basename(args.challenge), exported.title), exported


def _leave_server(
    args: argparse.Namespace, writer: EventWriter, client: Client, export: Callable[..., Exported]
) -> tuple[EventInfo, Exported]:
    """Export a challenge of a server by its number."""
    from segjudge.archive.collecting import Collector
    from segjudge.archive.event import EventInfo

    if not args.challenge.isdecimal():
        fault = "is not the number of a challenge; it is in the address of the challenge's page"
        raise UsageError(f"{args.challenge}: {fault}")
    number, collector = int(args.challenge), Collector(client, writer.folder, args.requests_per_minute)
    if "begin" in collector.notes:
        mention(f"Resuming {writer.folder}.")
    else:
        collector.note("begin", value=_moment())
    exported = export(collector, writer, number, mention)
    made_by, times = f"segjudge {VERSION}", {"begin": collector.notes["begin"], "end": _moment()}
    return EventInfo(made_by, args.platform, client.host, number, exported.title, times, exported.is_complete), exported


def _moment() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


_EXPORTS = {"evalai": _leave_evalai, "codabench": _leave_codabench, "codalab": _leave_codalab}
COMMANDS = {"leave": Command(_add_options, _leave, "segjudge leave evalai 2078 --out event.zip")}
