"""`segjudge rehearse`: EvalAI on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from segjudge.system.errors import UsageError
from segjudge.system.options import whole_number

from .parser import CommandParser
from .shared import DONE, RARELY, Command, InputPath, add_bundle_options, choose_bundle, listen, say, seconds

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from segjudge.archive.event import Event
    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.server.background import Background
    from segjudge.server.code_uploads import AgentTable, CodeUploads
    from segjudge.server.first_run import Person
    from segjudge.server.services import Services
    from segjudge.server.workers import JobScorer, Workers

_PORT = 8899
_PORT_HELP = f"the port to listen on (default: {_PORT}; 0: any free port)"
#: The groups of options in the help.
_DAILY, _SCORING, _SERVER = "daily", "scoring", "server"


def _run(args: argparse.Namespace) -> int:
    import threading

    stopped = threading.Event()

    def leave(_number: int, _frame: object) -> None:
        stopped.set()
        raise SystemExit(DONE)

    _on_signals(leave)
    try:
        _rehearse(args)
    except Exception:
        if not stopped.is_set():  # or it failed because it was stopped
            raise
    return DONE


def _rehearse(args: argparse.Namespace) -> None:
    if not args.event:
        _rehearse_bundle(args, choose_bundle(args.bundle, args.path))
        return
    from segjudge.archive.event import BUNDLE, open_event
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

    if args.bundle or args.path:
        raise UsageError("--import: the archive has a bundle of its own; name no other one")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, open_event(args.event) as event:
        if event.info.platform != "evalai":
            raise UsageError(f"{args.event}: is of {event.info.platform}; a rehearsal imports challenges of EvalAI")
        event.copy_folder(BUNDLE, folder)
        _rehearse_bundle(args, find_bundle(folder), event)


def _rehearse_bundle(args: argparse.Namespace, source: BundleSource, event: Event | None = None) -> None:
    from segjudge.platforms.evalai.bundle.agreed_splits import check_splits_of
    from segjudge.platforms.evalai.bundle.agreement import check_agreement
    from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
    from segjudge.server import first_run
    from segjudge.server.code_uploads import read_table
    from segjudge.server.event_import import import_event
    from segjudge.server.server import LOOPBACK
    from segjudge.server.services import Services
    from segjudge.server.workers import Workers

    clock = _choose_clock(args.date)
    check_splits_of(source)  # our scorers' files are shown unchanged
    root = source.root
    scorer = _start_scorer(args, root)
    table = read_table(args.agents, sandbox=args.require_sandbox) if args.agents else None
    folder = os.path.abspath(args.data or os.path.join("" if event else root, ".segjudge", "rehearsal"))
    port = listen(LOOPBACK, args.port)
    # Private data: tokens, truths, submissions.
    os.umask(0o077)
    if args.reset:
        first_run.reset(folder)
    with first_run.lock_folder(folder):
        hosts = {first_run.HOST_NAME, *(name for names in args.hosts for name in names.split(",") if name)}
        services = Services(folder, args.visibility, hosts, clock)
        services.files.sweep()
        _introduce(first_run.create_people(services, hosts))
        with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
            bundle, about = (source.archive, "") if source.archive else _build_bundle(source, temporary)
            origin = event.path if event else source.archive or root
            challenge, new = first_run.create_challenge(services, bundle, origin, temporary)
            with Bundle(bundle) as opened:
                for problem in check_agreement(opened):
                    say(str(problem))
        workers = Workers(services, scorer, args.workers)
        sample_count = first_run.send_samples(services, challenge, root) if args.seed_demo else 0
        imported_count = import_event(services, event, challenge) if event else 0
        address = f"http://{LOOPBACK}:{port.getsockname()[1]}"
        _print_challenge(services, address, challenge, new=new)
        print(
            _describe_workers(scorer, workers, args.workers)
            + (f"Sent {sample_count} sample submissions.\n" if sample_count else "")
            + (f"Imported {imported_count} submissions.\n" if imported_count else "")
        )
        ending = f"its data are in {os.path.relpath(folder)}.{about}"
        print(f"The rehearsal runs at {address} until you press Ctrl-C; {ending}", flush=True)
        agents = _open_agents(services, table, address)
        background = (workers, services.report_pages, *((agents,) if agents else ()))
        _serve(services, args.requests_per_minute, port, background)


def _serve(services: Services, requests_per_minute: int, port: socket.socket, background: Sequence[Background]) -> None:
    """Serve until a signal; then begin nothing more and return running jobs to the queue."""
    import uvicorn

    from segjudge.server.server import create_app, make_server_config

    def give_up() -> None:
        for loops in background:
            loops.give_up()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # First: from now on, workers and agents attribute failures to the stop.
            give_up()
            super().handle_exit(sig, frame)

    app = create_app(services, requests_per_minute, lambda: server.should_exit)
    server = Server(make_server_config(app))

    def end(_number: int, _frame: object) -> None:
        give_up()
        server.should_exit = True

    # Before and after uvicorn's own handlers, and for signals that it lacks: a second Ctrl-C must not interrupt the
    # return of jobs.
    _on_signals(end)
    services.background = background
    for loops in background:
        loops.start()
    try:
        server.run(sockets=[port])
    finally:
        for loops in reversed(background):
            loops.stop()


def _on_signals(handler: Callable[[int, object], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, handler)


def _choose_clock(date: str | None) -> Callable[[], float]:
    """Return the clock that opens challenges: this machine's, or one started at a date."""
    from segjudge.server.wire import parse_moment

    if not date:
        return time.time
    try:
        beginning = parse_moment(f"{date}T00:00:00Z" if len(date) == len("2026-05-01") else date) - time.monotonic()
    except ValueError:
        raise UsageError(f"--now {date}: is not a date; write 2026-05-01 or 2026-05-01T12:00:00Z") from None
    return lambda: beginning + time.monotonic()


def _start_scorer(args: argparse.Namespace, root: str) -> JobScorer:
    """Return the scorer that plays the worker, after checking its interpreter."""
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
    from segjudge.server.workers import JobScorer

    python = Interpreter.for_worker(args.python, root)
    return JobScorer(python, args.seconds, python.find_sandbox(required=args.require_sandbox))


def _build_bundle(source: BundleSource, folder: str) -> tuple[str, str]:
    """Build a bundle; return its path and the sentence about its kernel."""
    from segjudge.platforms.evalai.bundle.build import build

    built = build(source.root, os.path.join(folder, "challenge_config.zip"), lenient=True)
    return built.path, built.describe_kernel()


def _introduce(persons: list[Person]) -> None:
    """Print new logins; the store keeps only their hashes."""
    if not persons:
        print("Logins and tokens were shown at the first start; --reset deletes all data and makes new ones.\n")
    else:
        print("Logins, shown only this once:")
        for person in persons:
            team = f"{person.team} ({person.team_id})"
            print(f"  {person.username:<9} password {person.password}  team {team}  token {person.token}")
        print(flush=True)


def _print_challenge(services: Services, address: str, number: int, *, new: bool) -> None:
    from segjudge.server.first_run import find_open_date, why_closed
    from segjudge.server.models import Challenge

    challenge = services.store.require(Challenge, number)
    title = services.json.challenge(challenge, address)["title"]
    print(f"{'New challenge' if new else 'Challenge'} {number}: {title} (queue {challenge.queue})")
    for phase in services.store.phases(number):
        reason, date = why_closed(services, number, phase.id), find_open_date(services, number, phase.id)
        hint = f"  accepts no submissions: {reason}" if reason else ""
        if "not active" in reason:
            hint += " (start_date, end_date)" + (f"; with --now {date} it would" if date else "")
        print(f"  phase {phase.id}  {phase.codename}{hint}")
    print()


def _open_agents(services: Services, table: AgentTable | None, address: str) -> CodeUploads | None:
    """Return the runner of code uploads, if the host has a table of agents."""
    from segjudge.server.code_uploads import CodeUploads
    from segjudge.server.first_run import HOST_NAME
    from segjudge.server.models import Challenge

    host = services.accounts.find_user(HOST_NAME)
    if table is None or host is None:
        return None
    print(f"Code uploads run here: {', '.join(sorted(table.images)) or 'no image'}.", flush=True)
    if not any(challenge.flag("is_docker_based") for challenge in services.store.find(Challenge)):
        print("No challenge here accepts code yet: build one with --variant code-upload, and pass its zip.", flush=True)
    return CodeUploads(services, table, address, host)


def _describe_workers(scorer: JobScorer, workers: Workers, number: int) -> str:
    """Return the differences between this machine's worker and EvalAI's."""
    if not number:
        return "No worker runs here.\n"
    from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON
    from segjudge.system.bounds import missing_bounds

    text = f"{number} worker{'s' if number > 1 else ''} on Python {scorer.python.version}, 1 GiB each.\n"
    if scorer.python.version != PINNED_PYTHON:
        text += f"EvalAI uses Python {PINNED_PYTHON}, but this machine has none with numpy; name one with --python.\n"
    if scorer.box is None:
        say("No sandbox: a scoring script can read everything that you can. Install bubblewrap (bwrap) to isolate it.")
    else:
        for sentence in missing_bounds(scorer.box):
            say(sentence)
    return text if workers.is_limited else text + "CPU is not limited here; EvalAI has half a core.\n"


def _add_options(sub: CommandParser) -> None:
    sub.arrange_groups(_DAILY, _SCORING, _SERVER, RARELY)
    add_bundle_options(sub)
    add = sub.options_of(_DAILY)
    add("--seed-demo", action="store_true", help="submit the samples of examples/ at the start")
    about = "instead of a bundle: an archive by `segjudge leave`, with its submissions and scores"
    add("--import", dest="event", type=InputPath, metavar="EVENT", default="", help=about)
    add("--port", metavar="N", type=whole_number(0, 65535), default=_PORT, help=_PORT_HELP)
    about = "open and close challenges and phases as if today were DATE, in UTC"
    add("--now", dest="date", metavar="DATE", help=about)
    add("--reset", action="store_true", help="delete the data of earlier rehearsals and start over")
    add = sub.options_of(_SCORING)
    about = "number of workers (default: 1, as on EvalAI; 0: none)"
    add("--workers", metavar="N", type=whole_number(0, 64), default=1, help=about)
    about = "time limit of a submission (default: 900)"
    add("--seconds", metavar="SECONDS", type=seconds, default=900.0, help=about)
    about = "the Python to use as EvalAI's worker (default: .venv-worker, else this one)"
    add("--python", metavar="PROGRAM", help=about)
    about = "agents.toml, which lists the images of code uploads to run on this machine"
    add("--agents", type=InputPath, metavar="TABLE", help=about)
    add("--require-sandbox", action="store_true", help="refuse to start without a sandbox for scripts and agents")
    add = sub.options_of(_SERVER)
    add("--data", metavar="DIR", help="the folder of the rehearsal's data (default: .segjudge/rehearsal)")
    hosts = "users who may push challenges, besides `host`; new names get a login"
    add("--hosts", metavar="NAME[,NAME]", action="append", default=[], help=hosts)
    about = "limit per user (default: 60, as on EvalAI)"
    add("--requests-per-minute", metavar="N", type=whole_number(1, 10**9), default=60, help=about)
    about = "seconds until an unanswered queue message returns (default: 30)"
    add("--visibility", metavar="SECONDS", type=seconds, default=30.0, help=about)


COMMANDS = {"rehearse": Command(_add_options, _run, "segjudge rehearse my-challenge --seed-demo")}
