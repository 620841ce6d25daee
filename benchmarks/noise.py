"""Compare the scoring of smooth predictions with predictions that have speckle and ragged edges.

    python -m benchmarks.noise [PROTOCOL …] [--scale 1] [--repeat N]

Every set is made by a seeded generator and is no benchmark's data.  Truths are regions of many sizes with straight and
curved edges.  The clean prediction is the truth, moved by some pixels.  The other one has labels drawn again at five
in a hundred pixels, as networks leave them that look at each pixel by itself, and edges that are off by up to three pixels;
of LiDAR scans every seventh point is wrong.  Everything runs on one core.  A plain loop over the same files runs beside
some, and its metric is compared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.families import SpeckledSet, merge_rows
from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, least, options, segjudge, show, take_turns
from benchmarks.speckle import KINDS

SETS: dict[str, SpeckledSet] = merge_rows("SPECKLED_SETS")


def measure(protocol: str, speckled_set: SpeckledSet, folder: Path, count: int, repeat: int) -> list[list[str]]:
    """Write a set; return the rows of its costs, also those of a plain program where there is one."""
    speckled_set.write(folder, count)
    tasks = {}
    for kind in KINDS:
        sides = (folder / kind, "--truth", folder / "truth")
        tasks[kind] = Task(segjudge("score", *sides, "--protocol", protocol, "--json", folder / f"{kind}.json"))
    plain = {kind: f"loop {kind}" for kind in KINDS} if speckled_set.loop else {}
    for kind, name in plain.items():
        paths = (folder / "truth", folder / kind, folder / f"{name}.json")
        tasks[name] = Task([sys.executable, "-c", speckled_set.loop, *map(str, paths)])
    costs = {name: least(known).cpu for name, known in take_turns(tasks, repeat).items()}
    rows = [[f"`{protocol}`", *_compare([costs[kind] for kind in KINDS])]]
    for kind, name in plain.items():
        scores, loop = (json.loads((folder / f"{stem}.json").read_text()) for stem in (kind, name))
        mine, theirs = scores["result"][0]["val"][speckled_set.metric], loop[speckled_set.metric]
        if abs(mine - theirs) > CLOSE:
            print(f"{protocol}, {kind}: the loop has {speckled_set.metric} {theirs}, here {mine}")
    if plain:
        rows.append([speckled_set.about, *_compare([costs[name] for name in plain.values()])])
    return rows


def _compare(costs: list[float]) -> list[str]:
    clean, speckled = costs
    return [f"{clean:.2f}", f"{speckled:.2f}", f"{speckled / clean:.2g}"]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(SETS)} (default: all)")
    parser.add_argument("--scale", type=float, default=1, help="how many times as many images")
    args = parser.parse_args(arguments)
    rows: list[list[str]] = []
    for protocol in args.protocols or SETS:
        with tempfile.TemporaryDirectory() as temporary:
            count = max(2, round(args.scale * SETS[protocol].units))
            rows += measure(protocol, SETS[protocol], Path(temporary).resolve(), count, args.repeat)
    return show(Table(["scored by", "clean", "with noise", "ratio"], rows))


if __name__ == "__main__":
    main()
