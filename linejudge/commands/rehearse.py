"""`linejudge rehearse`: EvalAI on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from evaluation_script.errors import HostError
from linejudge.bundle.script import PYTHON
from linejudge.scoring import UsageError

from .shared import DONE, bundle_root, listening, seconds, whole_number

PORT = 8899
#: The interpreter that `run.sh` prepares with the worker's packages and pins.
WORKER_PYTHON = "LINEJUDGE_WORKER_PYTHON"


def rehearse(args: argparse.Namespace) -> int:
    """Play EvalAI: its API, its worker and a web page, with this bundle in it."""
    import uvicorn

    from linejudge.files import locked
    from linejudge.rehearsal import opening
    from linejudge.rehearsal.code_uploads import read_table
    from linejudge.rehearsal.desk import Desk
    from linejudge.rehearsal.faults import Faults
    from linejudge.rehearsal.server import LOOPBACK, Manner, app
    from linejudge.rehearsal.workers import Workers

    try:
        faults = Faults.told(args.faults) if args.faults else None
    except ValueError as error:
        raise UsageError(f"--faults is SEED:RATE, as 7:0.05 ({error})") from None
    python = os.path.abspath(args.python or os.environ.get(WORKER_PYTHON) or sys.executable)
    version = _version(python)
    table = read_table(args.agents) if args.agents else None
    root = bundle_root()
    folder = os.path.abspath(args.data or os.path.join(root, ".linejudge", "rehearsal"))
    port = listening(LOOPBACK, args.port)
    if args.reset:
        opening.reset(folder)
    lock = locked(folder, "rehearsal")
    desk = Desk(folder, args.visibility, faults.strikes if faults else lambda: False)
    _introduce(opening.people(desk))
    with tempfile.TemporaryDirectory() as made:
        challenge, new = opening.take(desk, args.bundle or _built(root, made), made)
    workers = Workers(desk, python, args.workers, args.seconds)
    sent = opening.seed(desk, challenge, root) if args.seed_demo else 0
    address = f"http://{LOOPBACK}:{port.getsockname()[1]}"
    _tell(desk, address, challenge, new=new)
    print(_worker_told(version, workers, args.workers) + (f"Sent {sent} sample submissions.\n" if sent else ""))
    print(f"The rehearsal runs at {address} until you press Ctrl-C; {os.path.relpath(folder)} keeps it.", flush=True)
    workers.start()
    agents = _agents(desk, table, address)
    # uvicorn raises the signal again once it has ended; so that we, too, end in order.
    signal.signal(signal.SIGTERM, _end)
    try:
        config = uvicorn.Config(
            app(desk, Manner(args.requests_per_minute, faults)),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[port])
    finally:
        if agents is not None:
            agents.stop()
        workers.stop()
        lock.close()
    return DONE


def _end(_number: int, _frame: object) -> None:
    raise SystemExit(DONE)


def _built(root: str, folder: str) -> str:
    from linejudge.bundle.build import build

    return build(root, os.path.join(folder, "challenge_config.zip"), lenient=True).path


def _introduce(persons: list[Any]) -> None:
    """At once: nothing that fails later may swallow what is told only now."""
    if persons:
        print("Who can log in; this is shown once:")
        for one in persons:
            print(f"  {one.username:<9} password {one.password}  team {one.team} ({one.team_id})  token {one.token}")
        print(flush=True)


def _tell(desk: Any, address: str, challenge: int, *, new: bool) -> None:
    row = desk.challenges.row(challenge)
    shown = desk.challenges.shown(row, address)
    print(f"{'New challenge' if new else 'Challenge'} {challenge}: {shown['title']} (queue {row['queue']})")
    for phase in desk.challenges.phase_rows(challenge, desk.accounts.named("host")):
        print(f"  phase {phase['id']}  {phase['codename']}")
    print()


def _agents(desk: Any, table: Any, address: str) -> Any:
    """What runs code uploads, where the host has a table of agents."""
    from linejudge.rehearsal.code_uploads import CodeUploads
    from linejudge.rehearsal.opening import HOST_NAME

    if table is None:
        return None
    print(f"Code uploads are run here: {', '.join(sorted(table.images)) or 'no image'}.", flush=True)
    if not any(desk.challenges.shown(row, address)["is_docker_based"] for row in desk.challenges.all()):
        print("No challenge here takes code yet: build one with --variant code-upload, and name the zip.", flush=True)
    made = CodeUploads(desk, table, address, desk.accounts.named(HOST_NAME))
    made.start()
    return made


def _version(python: str) -> str:
    """Of the interpreter that plays the worker, before anything is begun."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HostError(f"--python {python}: does not run ({error})") from None
    return done.stdout.strip()


def _worker_told(version: str, workers: Any, number: int) -> str:
    """How like EvalAI's worker ours is."""
    if not number:
        return "No worker runs here.\n"
    wanted = ".".join(map(str, PYTHON))
    told = f"{number} worker{'s' if number > 1 else ''} on Python {version}, 1 GiB each.\n"
    if version != wanted:
        told += f"EvalAI has Python {wanted}, which was not found here.\n"
    return told if workers.limited else told + "CPU is not limited here; EvalAI has half a core.\n"


def rehearse_options(sub: argparse.ArgumentParser) -> None:
    """What `rehearse` takes."""
    sub.add_argument("bundle", nargs="?", help="a built zip (default: build one)")
    sub.add_argument("--port", type=whole_number(0, 65535), default=PORT, help=f"default {PORT}; 0 takes any")
    sub.add_argument("--data", help="where it is kept (default: .linejudge/rehearsal)")
    sub.add_argument(
        "--workers", type=whole_number(0, 64), default=1, help="how many score at once (EvalAI has 1; 0: none)"
    )
    sub.add_argument(
        "--requests-per-minute", type=whole_number(1, 10**9), default=60, help="of one user, as on EvalAI (60)"
    )
    sub.add_argument("--visibility", type=seconds, default=30.0, help="seconds until a message comes back (30)")
    sub.add_argument("--faults", metavar="SEED:RATE", help="let calls of the API fail, for testing workers")
    sub.add_argument("--seed-demo", action="store_true", help="send the samples of examples/ at the start")
    sub.add_argument(
        "--agents", metavar="TABLE", help="agents.toml: what images of code uploads are; they are run here"
    )
    sub.add_argument("--reset", action="store_true", help="forget what was")
    sub.add_argument("--python", help="the interpreter that plays EvalAI's worker")
    sub.add_argument("--seconds", type=seconds, default=900.0, help="after which a submission is ended (900)")
