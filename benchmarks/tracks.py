"""Measure CPU and memory of further benchmarks, compared with their official evaluators on generated data.

    python -m benchmarks.tracks [SET …] [--scale 0.05] [--repeat N] [--peers FOLDER] [--peer-python PYTHON]
    python -m benchmarks.tracks [SET …] --scale 0.01 --size 60x90 --seeds 20 --repeat 1 …     # are all numbers equal?

A set has the size of the benchmark's validation data times SCALE, unless its size in pixels is given.  Evaluators are
checkouts in one folder, or packages of the peers' interpreter; each of their numbers is compared with ours.  Everything
runs on one core.
"""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.families import TrackSet, merge_rows, select
from benchmarks.instances import CLOSE
from benchmarks.measuring import Run, Table, Task, add_peers, least, options, segjudge, show, take_turns

SETS: dict[str, TrackSet] = merge_rows("TRACK_SETS")

Values = dict[str, float | None]


def differences(mine: Values, theirs: Values) -> list[str]:
    """Return the differences between our numbers and an evaluator's."""
    odd = []
    for name, value in theirs.items():
        own = mine[name]
        same = own == value if None in (own, value) else abs(float(own or 0) - float(value or 0)) <= CLOSE
        if not same:
            odd.append(f"{name} {own}, there {value}")
    return odd


def read_values(evaluator: Run) -> Values:
    """Return the numbers that an evaluator's script printed."""
    text = next(text for text in reversed(evaluator.printed.splitlines()) if text.startswith('{"'))
    return dict(json.loads(text))


def read_scores(path: Path) -> Values:
    """Return our numbers from a JSON of `score`."""
    (values,) = json.loads(path.read_text())["result"][0].values()
    return dict(values)


def compare(args: Namespace, tracks: TrackSet, folder: Path) -> tuple[list[list[str]], list[str]]:
    """Return the costs of a set by each protocol, ours and the evaluator's, as rows, and the different numbers."""
    rows, odd = [], []
    out = folder / "ours.json"
    for protocol, (peer, script) in tracks.peers.items():
        words = segjudge("score", folder / tracks.results, "--truth", folder / tracks.truth, "--protocol", protocol)
        checkout = args.peers / peer
        tasks = {
            "segjudge": Task([*words, "--json", str(out)]),
            peer: Task([args.peer_python, "-c", script, str(checkout), str(folder)], is_peer=True),
        }
        runs = take_turns(tasks, args.repeat)
        ours = least(runs["segjudge"])
        row = [f"`{protocol}`", f"{args.scale:g}", *_cost(ours)]
        if peer in runs:
            theirs = least(runs[peer])
            values = read_values(theirs)
            different = differences(read_scores(out), values)
            odd += [f"{protocol}: {text}" for text in different]
            equal = f"{len(values) - len(different)} of {len(values)}"
            row += [peer, *_cost(theirs), f"{theirs.cpu / ours.cpu:.1f}", equal]
        rows.append(row + [""] * (len(HEAD) - len(row)))
    return rows, odd


def _cost(run: Run) -> tuple[str, str]:
    return f"{run.cpu:.2f}", f"{run.megabytes:.0f}"


HEAD = ["protocol", "scale", "CPU seconds", "MB", "official", "CPU seconds", "MB", "times ours", "numbers equal"]


def parsed(arguments: Sequence[str] | None = None) -> Namespace:
    parser = options(__doc__)
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}, or a table of the docs (default: all)"
    )
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--size", help="HEIGHTxWIDTH instead of the benchmark's")
    parser.add_argument("--seeds", type=int, default=1, help="so many sets of each")
    add_peers(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> Table:
    args = parsed(arguments)
    rows, odd = [], []
    for name in select(SETS, args.sets):
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as temporary:
                size = tuple(map(int, args.size.split("x"))) if args.size else SETS[name].size
                folder = Path(temporary)
                SETS[name].make(folder, np.random.default_rng(seed), args.scale, size)
                more, different = compare(args, SETS[name], folder)
                rows += more
                odd += [f"seed {seed}, {text}" for text in different]
    print("\n".join(odd) or "No number differs.")
    return show(Table(HEAD, rows))


if __name__ == "__main__":
    main()
