"""`segjudge rehearse`: EvalAI on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from segjudge.system.errors import UsageError

from .shared import (
    DONE,
    Command,
    add_bundle_options,
    choose_bundle,
    listen,
    read_options,
    say,
    seconds,
    whole_number,
)

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.server.background import Background
    from segjudge.server.code_uploads import AgentTable, CodeUploads
    from segjudge.server.first_run import Person
    from segjudge.server.server import Faults
    from segjudge.server.services import Services
    from segjudge.server.workers import JobScorer, Workers

_PORT = 8899


@dataclass(frozen=True)
class _Options:
    """What is served, where it is kept, and who scores."""

    bundle: str
    path: str
    port: int
    data: str | None
    database: str
    workers: int
    requests_per_minute: int
    visibility: float
    faults: str | None
    seed_demo: bool
    agents: str | None
    hosts: list[str]
    require_sandbox: bool
    date: str | None
    reset: bool
    python: str | None
    seconds: float


def _run(args: argparse.Namespace) -> int:
    import threading

    stopped = threading.Event()

    def leave(_number: int, _frame: object) -> None:
        stopped.set()
        raise SystemExit(DONE)

    _on_signals(leave)
    try:
        _rehearse(read_options(_Options, args))
    except Exception:
        if not stopped.is_set():  # or it failed because it was stopped, as a query of PostgreSQL does in the middle
            raise
    return DONE


def _rehearse(options: _Options) -> None:
    from segjudge.platforms.evalai.bundle.agreement import check_agreement
    from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
    from segjudge.server import first_run
    from segjudge.server.code_uploads import read_table
    from segjudge.server.server import LOOPBACK
    from segjudge.server.services import Services
    from segjudge.server.workers import Workers

    faults, clock = _read_faults(options.faults), _choose_clock(options.date)
    source = choose_bundle(options.bundle, options.path)
    root = source.root
    scorer = _start_scorer(options, root)
    table = read_table(options.agents, sandbox=options.require_sandbox) if options.agents else None
    folder = os.path.abspath(options.data or os.path.join(root, ".segjudge", "rehearsal"))
    port = listen(LOOPBACK, options.port)
    # What is kept here is nobody else's: tokens, truths, submissions.
    os.umask(0o077)
    if options.reset:
        first_run.reset(folder, options.database)
    with first_run.lock_folder(folder):
        hosts = {first_run.HOST_NAME, *(name for names in options.hosts for name in names.split(",") if name)}
        repeats = faults.strikes if faults else lambda: False
        services = Services(folder, options.visibility, repeats, hosts, options.database, clock)
        services.files.sweep()
        _introduce(first_run.create_people(services, hosts))
        with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
            bundle, about = (source.archive, "") if source.archive else _build_bundle(source, temporary)
            challenge, new = first_run.create_challenge(services, bundle, source.archive or root, temporary)
            with Bundle(bundle) as opened:
                for problem in check_agreement(opened):  # our scorers' files are shown as they are
                    say(str(problem))
        workers = Workers(services, scorer, options.workers)
        sample_count = first_run.send_samples(services, challenge, root) if options.seed_demo else 0
        address = f"http://{LOOPBACK}:{port.getsockname()[1]}"
        _print_challenge(services, address, challenge, new=new)
        print(
            _describe_workers(scorer, workers, options.workers)
            + (f"Sent {sample_count} sample submissions.\n" if sample_count else "")
        )
        ending = f"{os.path.relpath(folder)} keeps it.{about}"
        print(f"The rehearsal runs at {address} until you press Ctrl-C; {ending}", flush=True)
        agents = _open_agents(services, table, address)
        background = (workers, services.report_pages, *((agents,) if agents else ()))
        _serve(services, (options.requests_per_minute, faults), port, background)


def _serve(
    services: Services,
    limits: tuple[int, Faults | None],
    port: socket.socket,
    background: Sequence[Background],
) -> None:
    """Serve until a signal: then nothing more is begun, and what is under way is given back to its queue."""
    import uvicorn

    from segjudge.server.server import ServerOptions, create_app, make_server_config

    def give_up() -> None:
        for loops in background:
            loops.give_up()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # First: workers and agents blame the stop for what fails from now on.
            give_up()
            super().handle_exit(sig, frame)

    server = Server(make_server_config(create_app(services, ServerOptions(*limits, lambda: server.should_exit))))

    def end(_number: int, _frame: object) -> None:
        give_up()
        server.should_exit = True

    # Before and after uvicorn's own, and for what it does not know: a second Ctrl-C interrupts no giving back.
    _on_signals(end)
    services.note_background(background)
    for loops in background:
        loops.start()
    try:
        server.run(sockets=[port])
    finally:
        for loops in reversed(background):
            loops.stop()


def _on_signals(handler: Callable[[int, object], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, handler)


def _read_faults(text: str | None) -> Faults | None:
    """Read the faults that calls meet; None where none were asked for."""
    from segjudge.server.server import Faults

    try:
        return Faults.parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"--faults {text}: {error}. Write SEED:RATE, for instance 7:0.05") from None


def _choose_clock(date: str | None) -> Callable[[], float]:
    """Choose the clock by which challenges are open: this machine's, or one that began at a date."""
    from segjudge.server.wire import parse_moment

    if not date:
        return time.time
    try:
        beginning = parse_moment(f"{date}T00:00:00Z" if len(date) == len("2026-05-01") else date) - time.monotonic()
    except ValueError:
        raise UsageError(f"--now {date}: is not a date; write 2026-05-01 or 2026-05-01T12:00:00Z") from None
    return lambda: beginning + time.monotonic()


def _start_scorer(options: _Options, root: str) -> JobScorer:
    """Start the stand-in for the worker, after checking that it runs."""
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
    from segjudge.server.workers import JobScorer

    python = Interpreter.for_worker(options.python, root)
    return JobScorer(python, options.seconds, python.find_sandbox(required=options.require_sandbox))


def _build_bundle(source: BundleSource, folder: str) -> tuple[str, str]:
    """Build a bundle; return its path, and what the last line says of its kernel."""
    from segjudge.platforms.evalai.bundle.build import build

    built = build(source.root, os.path.join(folder, "challenge_config.zip"), lenient=True)
    return built.path, f" The bundle was built {built.about_kernel()}." if built.about_kernel() else ""


def _introduce(persons: list[Person]) -> None:
    """Print the passwords at once: they are shown once, and nothing that fails later may swallow them."""
    if persons:
        print("Who can log in; this is shown once:")
        for person in persons:
            team = f"{person.team} ({person.team_id})"
            print(f"  {person.username:<9} password {person.password}  team {team}  token {person.token}")
        print(flush=True)


def _print_challenge(services: Services, address: str, number: int, *, new: bool) -> None:
    from segjudge.server.first_run import open_date, why_closed
    from segjudge.server.models import Challenge

    challenge = services.store.require(Challenge, number)
    title = services.json.challenge(challenge, address)["title"]
    print(f"{'New challenge' if new else 'Challenge'} {number}: {title} (queue {challenge.queue})")
    for phase in services.store.phases(number):
        reason, date = why_closed(services, number, phase.id), open_date(services, number, phase.id)
        hint = f"  takes no submission: {reason}" if reason else ""
        if "not active" in reason:
            hint += " (start_date, end_date)" + (f"; with --now {date} it would" if date else "")
        print(f"  phase {phase.id}  {phase.codename}{hint}")
    print()


def _open_agents(services: Services, table: AgentTable | None, address: str) -> CodeUploads | None:
    """Make what runs code uploads, where the host has a table of agents."""
    from segjudge.server.code_uploads import CodeUploads
    from segjudge.server.first_run import HOST_NAME
    from segjudge.server.models import Challenge

    host = services.accounts.find_user(HOST_NAME)
    if table is None or host is None:
        return None
    print(f"Code uploads are run here: {', '.join(sorted(table.images)) or 'no image'}.", flush=True)
    if not any(challenge.flag("is_docker_based") for challenge in services.store.find(Challenge)):
        print("No challenge here takes code yet: build one with --variant code-upload, and name the zip.", flush=True)
    return CodeUploads(services, table, address, host)


def _describe_workers(scorer: JobScorer, workers: Workers, number: int) -> str:
    """Say how the stand-in differs from EvalAI's worker."""
    if not number:
        return "No worker runs here.\n"
    from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON
    from segjudge.system.bounds import missing_bounds

    text = f"{number} worker{'s' if number > 1 else ''} on Python {scorer.python.version}, 1 GiB each.\n"
    if scorer.python.version != PINNED_PYTHON:
        text += f"EvalAI has Python {PINNED_PYTHON}; none with numpy was found here (--python names one).\n"
    if scorer.box is None:
        say("No sandbox: a scoring script can read whatever you can. Install bubblewrap (bwrap) to keep it apart.")
    else:
        for sentence in missing_bounds(scorer.box):
            say(sentence)
    return text if workers.is_limited else text + "CPU is not limited here; EvalAI has half a core.\n"


def _add_options(sub: argparse.ArgumentParser) -> None:
    add_bundle_options(sub)
    add = sub.add_argument
    add("--port", type=whole_number(0, 65535), default=_PORT, help=f"default {_PORT}; 0 takes any")
    add("--data", help="where it is kept (default: .segjudge/rehearsal)")
    add("--database", metavar="URL", default="", help="PostgreSQL in the place of the SQLite file in --data")
    add("--workers", type=whole_number(0, 64), default=1, help="how many score at once (EvalAI has 1; 0: none)")
    add("--requests-per-minute", type=whole_number(1, 10**9), default=60, help="of one user, as on EvalAI (60)")
    add("--visibility", type=seconds, default=30.0, help="seconds until a message comes back (30)")
    add("--faults", metavar="SEED:RATE", help="let calls of the API fail, for testing workers")
    add("--seed-demo", action="store_true", help="send the samples of examples/ at the start")
    add("--agents", metavar="TABLE", help="agents.toml: what images of code uploads are; they are run here")
    hosts = "who may push challenges beside `host`; new names get a login"
    add("--hosts", metavar="NAME[,NAME]", action="append", default=[], help=hosts)
    without = "refuse to start where scoring scripts and agents have no sandbox"
    add("--require-sandbox", action="store_true", help=without)
    add(
        "--now",
        dest="date",
        metavar="DATE",
        help="open and close challenges and phases as if it were this date, in UTC",
    )
    add("--reset", action="store_true", help="delete everything that earlier rehearsals kept here, and start over")
    add("--python", help="the interpreter that plays EvalAI's worker")
    add("--seconds", type=seconds, default=900.0, help="after which a submission is ended (900)")


COMMANDS = {"rehearse": Command(_add_options, _run)}
