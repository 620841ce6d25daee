"""Measure the CPU seconds of `segjudge score` by stage: start, rooms and functions.

    python -m benchmarks.stages [--set NAME | --images N] [--functions 12]

Starting is measured in whole processes.  The rest is profiled in one process, so that Python's own part counts for more
than without a profile; what C does counts for the function that calls it.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks.instances import write_set
from benchmarks.measuring import Table, least, options, run, segjudge, show
from benchmarks.sequences import PROTOCOL, SETS, write_dataset
from segjudge import cli
from tests.data import ROOT

#: Whole processes; each does the work of the one before and more.
STARTS = {
    "Python": [sys.executable, "-c", "pass"],
    "and numpy": [sys.executable, "-c", "import numpy"],
    "import evaluation_script": [sys.executable, "-c", "import evaluation_script.main"],
    "import segjudge": [sys.executable, "-c", "import segjudge"],
    "segjudge --help": segjudge("--help"),
}


def room_of(path: str) -> str:
    """Return the folder of ours that holds a file, or the file's other origin."""
    if "site-packages" in path:
        return f"{path.partition('site-packages/')[2].split('/')[0]} (package)"
    if path.startswith(str(ROOT)):
        return str(Path(path).relative_to(ROOT).parent)
    return "Python"


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--set", choices=SETS, default="B", help="a zip of sequences, against a packed truth")
    parser.add_argument("--images", type=int, help="instances of so many images instead")
    parser.add_argument("--functions", type=int, default=12)
    args = parser.parse_args(arguments)
    rows = [
        [f"start: {name}", f"{least([run(command) for _ in range(args.repeat)]).cpu:.3f}"]
        for name, command in STARTS.items()
    ]
    profile = cProfile.Profile(time.process_time)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.images:
            write_set(folder, args.images)
            command = [
                "score",
                f"{name}/records.json",
                "--truth",
                f"{name}/truth.json",
                "--protocol",
                "places2017",
            ]
        else:
            write_dataset(folder, SETS[args.set]())
            command = [
                "score",
                f"{name}/predictions.zip",
                "--truth",
                f"{name}/truth.zip",
                "--protocol",
                PROTOCOL,
            ]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            status = profile.runcall(cli.main, command)
    if status:
        raise SystemExit(f"segjudge {' '.join(command)} ended with {status}")
    rooms: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for (path, _, function), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if path != "~":
            rooms[room_of(path)] += own
            functions[f"{room_of(path)}/{Path(path).name}: {function}"] += own
            continue
        for (caller, _, name), (_, _, share, _) in callers.items():  # built-in functions count for their caller
            rooms[room_of(caller)] += share
            functions[f"{room_of(caller)}/{Path(caller).name}: {name}"] += share
    rows += [[f"room: {room}", f"{seconds:.3f}"] for room, seconds in rooms.most_common() if seconds >= 0.005]
    rows += [[f"`{function}`", f"{seconds:.3f}"] for function, seconds in functions.most_common(args.functions)]
    return show(Table(["stage", "CPU seconds"], rows))


if __name__ == "__main__":
    main()
