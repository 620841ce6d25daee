"""The remote worker's guarantee on a bad day, and what the worker costs when nothing happens.

    python -m benchmarks.fleet [--submissions 500] [--kill-every 2] [--hostile 600] [--throttled 20] [--idle 60]

1. Submissions through the rehearsal's API while 4 workers of one machine and 2 with a journal of their own are
   killed at random, 5 % of the calls meet an error, a spoilt answer or a delay, and messages come twice.
2. Two workers for so many seconds behind a network that resets, stalls, drips and lies (`--seed` chooses how).
3. A few submissions at EvalAI's 60 requests a minute, one worker, no faults.
4. One worker with an empty queue: its CPU and memory; and how soon it has a submission running.

--hostile 0, --throttled 0 and --idle 0 leave out the later parts, which take minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from tests.data import ROOT
from tests.journeys.fleet import QUICK, Day, Fleet, bad_day, remote_bundle
from tests.journeys.hostile import Weather, storm
from tests.rehearsals import Rehearsal, waited

BEGUN = ("running", "finished")
STRONG = ROOT / "examples/sequences-dev/strong.zip"


def told(day: Day) -> bool:
    """Print what came of a day; whether the guarantee held."""
    good = day.statuses == {"finished": day.sent} and not day.wrong and set(day.rows.values()) == {1}
    print(f"  {day.sent} submissions in {day.seconds:.0f} s, {day.kills} kills, statuses {dict(day.statuses)}")
    print(
        f"  rows {len(day.rows)}, each once: {set(day.rows.values()) == {1}}, other than undisturbed: {len(day.wrong)}"
    )
    print(f"  beyond one: evaluations {day.evaluations}, attempts to report {day.attempts}, reports {day.reports}")
    for line in day.failures[:5]:
        print(f"  failed: {line}")
    return good


def faults(folder: Path, args: argparse.Namespace) -> bool:
    """Part 1."""
    print("faults:")
    options = ("--workers", "0", "--visibility", "5", "--requests-per-minute", "6000", "--faults", "11:0.05")
    server = Rehearsal(folder / "data", (*options, str(remote_bundle(folder)))).start()
    fleet = Fleet(server, folder, {"shared": 4, "alone": 1, "apart": 1}, **QUICK)
    try:
        return told(bad_day(server, fleet, args.submissions, args.kill_every, limit=1800))
    finally:
        fleet.stop()
        server.stop()


def hostile(folder: Path, args: argparse.Namespace) -> bool:
    """Part 2."""
    print("a hostile network:")
    options = ("--workers", "0", "--visibility", "5", "--requests-per-minute", "100000", str(remote_bundle(folder)))
    server = Rehearsal(folder / "data", options).start()
    weather = Weather(args.hostile, max(4, int(args.hostile / 10)), args.seed, 0.5, 15.0, 100 << 20, 600.0)
    try:
        came = storm(server, folder, weather, {"shared": 2})
    finally:
        server.stop()
    print(f"  {len(came.sent)} submissions in {came.seconds:.0f} s, {came.requests} connections")
    print(f"  {sum(came.struck.values())} faults of {len(came.struck)} kinds: {came.struck}")
    print(f"  workers that ended: {came.ended}, submissions not where they should be: {len(came.wrong)}")
    for line in came.wrong[:5]:
        print(f"  wrong: {line}")
    if came.wrong or came.ended:
        print(came.log[-5000:])
    return not came.wrong and not came.ended


def throttled(folder: Path, args: argparse.Namespace) -> bool:
    """Part 3."""
    print("60 requests a minute:")
    server = Rehearsal(folder / "data", ("--workers", "0", str(remote_bundle(folder)))).start()
    fleet = Fleet(server, folder, {"one": 1}, REQUESTS_PER_MINUTE="58")
    try:
        good = told(bad_day(server, fleet, args.throttled, 10**6, limit=1200))
    finally:
        fleet.stop()
        server.stop()
    return good


def idle(folder: Path, args: argparse.Namespace) -> None:
    """Part 4."""
    options = ("--workers", "0", "--requests-per-minute", "6000", str(remote_bundle(folder)))
    server = Rehearsal(folder / "data", options).start()
    fleet = Fleet(server, folder, {"one": 1})
    try:
        time.sleep(5)
        (process,) = fleet.processes()
        before = _cpu(process)
        time.sleep(args.idle)
        share = (_cpu(process) - before) / args.idle
        print(f"idle: {100 * share:.2f} % of a core, {_megabytes(process):.0f} MB")
        taken = []
        for _ in range(8):
            number = server.submit("aurora", STRONG).json()["id"]
            sent = time.monotonic()
            waited(lambda n=number: server.get(f"/api/jobs/submission/{n}", "host").json()["status"] in BEGUN, 60)
            taken.append(time.monotonic() - sent)
            time.sleep(3 + 0.7 * len(taken))
        print(f"from message to running: median {statistics.median(taken):.1f} s, most {max(taken):.1f} s")
    finally:
        fleet.stop()
        server.stop()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    """All parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--submissions", type=int, default=500)
    parser.add_argument("--kill-every", type=float, default=2.0)
    parser.add_argument("--hostile", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--throttled", type=int, default=20)
    parser.add_argument("--idle", type=float, default=60.0)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="segjudge-fleet-"))
    for name in ("faults", "hostile", "throttled", "idle"):
        (folder / name).mkdir()
    try:
        good = not args.submissions or faults(folder / "faults", args)
        good = (not args.hostile or hostile(folder / "hostile", args)) and good
        good = (not args.throttled or throttled(folder / "throttled", args)) and good
        if args.idle:
            idle(folder / "idle", args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not good:
        raise SystemExit("the guarantee did not hold")


if __name__ == "__main__":
    main()
