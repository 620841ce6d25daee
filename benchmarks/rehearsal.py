"""The rehearsal under load: a rush of submissions while processes die, and the latency of a long leaderboard.

    python -m benchmarks.rehearsal [--submissions 200] [--teams 20] [--workers 4] [--kill-every 3]
                                   [--rows 1000] [--requests 500]

The rush sends through the REST API, kills an evaluation process every few seconds, and counts what is lost
or doubled. The latency is of the leaderboard's page with so many rows while nothing is evaluated, asked for
by one client after the other over one connection.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import requests

from segjudge.server.accounts import PARTICIPANT
from segjudge.server.models import Submission, Team
from segjudge.server.services import Services
from segjudge.server.submissions import SplitScores
from tests.data import ROOT
from tests.journeys.rush import rush
from tests.rehearsals import Rehearsal


def report_rush(folder: Path, args: argparse.Namespace) -> bool:
    """The rush; whether nothing was lost."""
    options = ("--workers", str(args.workers), "--visibility", "5", "--requests-per-minute", "1000000")
    files = sorted((ROOT / "examples/sequences-dev").iterdir())
    server = Rehearsal(folder / "rush", options).start()
    try:
        came = rush(server, args.submissions, args.teams, files, args.kill_every)
    finally:
        server.stop()
    single = set(came.rows_of_submissions.values()) == {1} and set(came.rows_of_teams.values()) == {1}
    print(f"{came.sent} submissions of {args.teams} teams, {args.workers} processes, {came.kills} kills")
    print(f"  {came.seconds:.1f} s, server's peak {came.megabytes:.0f} MB, statuses {dict(came.statuses)}")
    print(f"  rows: {len(came.rows_of_submissions)}, one for each submission and split: {single}")
    return single and came.statuses == {"finished": args.submissions}


def filled(data: Path, rows: int) -> None:
    """A leaderboard of so many teams, written as results are."""
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


def report_latency(folder: Path, args: argparse.Namespace) -> None:
    """Milliseconds of one page."""
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
    print(f"{args.rows} rows, {len(page.content) / 1e3:.0f} kB, {args.requests} requests")
    print(f"  median {cuts[49]:.1f} ms, 90th {cuts[89]:.1f} ms, 99th {cuts[98]:.1f} ms, most {max(taken):.1f} ms")


def main() -> None:
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--teams", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=500)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="segjudge-rehearsal-"))
    try:
        good = report_rush(folder, args)
        report_latency(folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not good:
        raise SystemExit("something was lost or doubled")


if __name__ == "__main__":
    main()
