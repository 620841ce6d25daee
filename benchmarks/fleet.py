"""Measure the remote worker's guarantee under faults, and its cost when idle.

    python -m benchmarks.fleet [--submissions 500] [--kill-every 2] [--hostile 600] [--throttled 20] [--idle 60]

1. Submissions through the rehearsal's API while 4 workers of one machine and 2 with a journal of their own are
   killed at random, 5 % of the calls meet an error, a spoilt answer or a delay, and messages come twice.
2. Two workers for so many seconds behind a network that resets, stalls, drips and lies (`--seed` chooses how).
3. A few submissions at EvalAI's 60 requests a minute, one worker, no faults.
4. One worker with an empty queue: its CPU and memory; and how soon it has a submission running.

--hostile 0, --throttled 0 and --idle 0 leave out the later parts, which take minutes.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import Table, options, show
from tests.data import ROOT
from tests.journeys.fleet import QUICK, Day, Fleet, bad_day, remote_bundle
from tests.journeys.hostile import Weather, storm
from tests.rehearsals import Rehearsal, waited

BEGUN = ("running", "finished")
STRONG = ROOT / "examples/sequences-dev/strong.zip"


@contextmanager
def started(folder: Path, *options: str, faults: str = "") -> Iterator[Rehearsal]:
    """Yield a rehearsal without workers, which remote workers score."""
    words = ("--workers", "0", *options, str(remote_bundle(folder)))
    server = Rehearsal(folder / "data", words, faults=faults).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def fleet_of(server: Rehearsal, folder: Path, machines: dict[str, int], **environment: str) -> Iterator[Fleet]:
    """Yield workers on several machines."""
    fleet = Fleet(server, folder, machines, **environment)
    try:
        yield fleet
    finally:
        fleet.stop()


def is_held(day: Day) -> bool:
    """Print the outcome of a run; return whether the guarantee held."""
    print(f"  {day.sent} submissions in {day.seconds:.0f} s, {day.kills} kills, statuses {dict(day.statuses)}")
    print(
        f"  rows {len(day.rows)}, each once: {set(day.rows.values()) == {1}}, other than undisturbed: {len(day.wrong)}"
    )
    print(f"  beyond one: evaluations {day.evaluations}, attempts to report {day.attempts}, reports {day.reports}")
    for line in day.failures[:5]:
        print(f"  failed: {line}")
    return day.statuses == {"finished": day.sent} and not day.wrong and set(day.rows.values()) == {1}


def survives_faults(folder: Path, args: Namespace) -> bool:
    """Return whether the guarantee holds while workers are killed and calls fail."""
    print("faults:")
    options = ("--visibility", "5", "--requests-per-minute", "6000")
    machines = {"shared": 4, "alone": 1, "apart": 1}
    with started(folder, *options, faults="11:0.05") as server, fleet_of(server, folder, machines, **QUICK) as fleet:
        return is_held(bad_day(server, fleet, args.submissions, args.kill_every, limit=1800))


def survives_network(folder: Path, args: Namespace) -> bool:
    """Return whether the guarantee holds on a hostile network."""
    print("a hostile network:")
    weather = Weather(args.hostile, max(4, int(args.hostile / 10)), args.seed, 0.5, 15.0, 100 << 20, 600.0)
    with started(folder, "--visibility", "5", "--requests-per-minute", "100000") as server:
        outcome = storm(server, folder, weather, {"shared": 2})
    print(f"  {len(outcome.sent)} submissions in {outcome.seconds:.0f} s, {outcome.requests} connections")
    print(f"  {sum(outcome.struck.values())} faults of {len(outcome.struck)} kinds: {outcome.struck}")
    print(f"  workers that ended: {outcome.ended}, submissions not where they should be: {len(outcome.wrong)}")
    for line in outcome.wrong[:5]:
        print(f"  wrong: {line}")
    if outcome.wrong or outcome.ended:
        print(outcome.log[-5000:])
    return not outcome.wrong and not outcome.ended


def survives_throttling(folder: Path, args: Namespace) -> bool:
    """Return whether the guarantee holds at 60 requests a minute."""
    print("60 requests a minute:")
    with started(folder) as server, fleet_of(server, folder, {"one": 1}, REQUESTS_PER_MINUTE="58") as fleet:
        return is_held(bad_day(server, fleet, args.throttled, 10**6, limit=1200))


def rows_of_idle(folder: Path, args: Namespace) -> list[list[str]]:
    """Return the cost and the delays of an idle worker as rows."""
    with (
        started(folder, "--requests-per-minute", "6000") as server,
        fleet_of(server, folder, {"one": 1}) as fleet,
    ):
        time.sleep(5)
        (process,) = fleet.processes()
        before = _cpu(process)
        time.sleep(args.idle)
        share = (_cpu(process) - before) / args.idle
        idle = f"{100 * share:.2f} % of a core, {_megabytes(process):.0f} MB"
        delays = []
        for _ in range(8):
            number = server.submit("aurora", STRONG).json()["id"]
            sent = time.monotonic()
            waited(lambda n=number: server.get(f"/api/jobs/submission/{n}", "host").json()["status"] in BEGUN, 60)
            delays.append(time.monotonic() - sent)
            time.sleep(3 + 0.7 * len(delays))
    delay = f"{statistics.median(delays):.1f} s, at most {max(delays):.1f} s"
    return [["an idle worker", idle], ["from message to running, median", delay]]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--submissions", type=int, default=500)
    parser.add_argument("--kill-every", type=float, default=2.0)
    parser.add_argument("--hostile", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--throttled", type=int, default=20)
    parser.add_argument("--idle", type=float, default=60.0)
    args = parser.parse_args(arguments)
    parts = {"submissions": survives_faults, "hostile": survives_network, "throttled": survives_throttling}
    with tempfile.TemporaryDirectory(prefix="segjudge-fleet-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in (*parts, "idle"):
            (folder / part).mkdir()
        for part in [name for name in parts if getattr(args, name)]:
            if not parts[part](folder / part, args):
                raise SystemExit("the guarantee did not hold")
        rows = rows_of_idle(folder / "idle", args) if args.idle else []
    rows += [[f"the guarantee, with --{part} {getattr(args, part):g}", "held"] for part in parts if getattr(args, part)]
    return show(Table(["remote workers", ""], rows))


if __name__ == "__main__":
    main()
