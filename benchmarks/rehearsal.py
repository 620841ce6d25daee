"""Measure the rehearsal under load: many submissions while processes die, and a long leaderboard's latency.

    python -m benchmarks.rehearsal [--submissions 200] [--teams 20] [--workers 4] [--kill-every 3]
                                   [--rows 1000] [--requests 500]

The rush sends through the REST API, kills an evaluation process every few seconds, and counts what is lost
or doubled. The latency is of the leaderboard's page with so many rows while nothing is evaluated, asked for
by one client after the other over one connection.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import requests

from benchmarks.measuring import Table, options, show
from segjudge.server.accounts import PARTICIPANT
from segjudge.server.models import Submission, Team
from segjudge.server.services import Services
from segjudge.server.submissions import SplitScores
from tests.data import ROOT
from tests.journeys.rush import rush
from tests.rehearsals import Rehearsal


def rows_of_rush(folder: Path, args: Namespace) -> list[list[str]]:
    """Return the rows of the rush; raises SystemExit if a submission was lost."""
    options = ("--workers", str(args.workers), "--visibility", "5", "--requests-per-minute", "1000000")
    files = sorted((ROOT / "examples/sequences-dev").iterdir())
    server = Rehearsal(folder / "rush", options).start()
    try:
        came = rush(server, args.submissions, args.teams, files, args.kill_every)
    finally:
        server.stop()
    single = set(came.rows_of_submissions.values()) == {1} and set(came.rows_of_teams.values()) == {1}
    if not single or came.statuses != {"finished": args.submissions}:
        raise SystemExit(f"something was lost or doubled: {dict(came.statuses)}, {len(came.rows_of_submissions)} rows")
    what = f"{came.sent} submissions of {args.teams} teams, {args.workers} processes, {came.kills} kills, none lost"
    return [[what, f"{came.seconds:.1f} s"], ["the server's peak memory", f"{came.megabytes:.0f} MB"]]


def filled(data: Path, rows: int) -> None:
    """Fill a leaderboard with the results of several teams."""
    services = Services(str(data))
    split = services.store.splits_of(1)[0]
    chosen = random.Random(1)
    user = services.accounts.find_user("aurora")
    assert user is not None
    with services.store.write() as session:
        for number in range(rows):
            team = Team(kind=PARTICIPANT, team_name=f"Team {number:04d}", created_by=user.id)
            session.add(team)
            session.flush()
            submission = Submission(
                phase_id=1, team_id=team.id, created_by=user.id, status="finished", submitted_at=time.time(),
                is_public=True, method_name=f"Method {number}",
            )  # fmt: skip
            session.add(submission)
            session.flush()
            values = {label: chosen.random() for label in split.labels}
            errors = {f"error_{label}": chosen.random() / 50 for label in split.labels}
            services.submissions.keep_scores(submission.id, [SplitScores(split.id, values, errors)])


def rows_of_latency(folder: Path, args: Namespace) -> list[list[str]]:
    server = Rehearsal(folder / "latency", ("--workers", "1")).start()
    try:
        filled(server.data, args.rows)
        session, url = requests.Session(), f"{server.address}/challenges/1/leaderboard/1"
        page = session.get(url, timeout=60)
        taken = []
        for _ in range(args.requests):
            started = time.perf_counter()
            page = session.get(url, timeout=60)
            taken.append(1e3 * (time.perf_counter() - started))
    finally:
        server.stop()
    cuts = statistics.quantiles(taken, n=100)
    what = f"leaderboard of {args.rows} rows, {len(page.content) / 1e3:.0f} kB: median of {args.requests} requests"
    return [[what, f"{cuts[49]:.0f} ms"], ["99th percentile", f"{cuts[98]:.0f} ms"]]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--teams", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=500)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="segjudge-rehearsal-", ignore_cleanup_errors=True) as name:
        rows = rows_of_rush(Path(name), args) + rows_of_latency(Path(name), args)
    return show(Table(["the rehearsal", "takes"], rows))


if __name__ == "__main__":
    main()
