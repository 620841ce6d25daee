"""Measure the speed-up of two processes by family, and the overhead of Dask on one machine.

    python -m benchmarks.cores [PROTOCOL …] [--scale 1] [--repeat 3]

On a machine with other work wall time says little, so CPU is split: what the command's own process does while others
wait for it, and what its children share.  Its own and half of theirs is the time on two cores that do nothing else, or
the least wall time where that is less: it counts threads as if they ran one after the other.
Dask's is that of its client, its scheduler and the busier one of two workers, which have scored before.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import scale as videos
from benchmarks.families import TrackSet
from benchmarks.instances import write_set
from benchmarks.measuring import Table, cpu_of, least, options, run, segjudge, show
from benchmarks.tracks import SETS
from tests.clusters import cluster

#: How often the images of a set are repeated under other ids, because writing copies is faster than drawing.
COPIES = 8


def davis(folder: Path, amount: float) -> list[str]:
    videos.write_videos(folder)
    return list(videos.write_set(folder, max(4, round(amount))))


def places(folder: Path, amount: float) -> list[str]:
    images = max(1, round(amount / COPIES))
    write_set(folder, images)
    paths = folder / "records.json", folder / "truth.json"
    records, truth = (json.loads(path.read_text()) for path in paths)
    annotations = truth["annotations"]
    more = range(1, COPIES)
    truth["images"] += [{**row, "id": row["id"] + k * images} for k in more for row in truth["images"]]
    truth["annotations"] = annotations + [
        {**row, "id": row["id"] + k * len(annotations), "image_id": row["image_id"] + k * images}
        for k in more
        for row in annotations
    ]
    records += [{**row, "image_id": row["image_id"] + k * images} for k in more for row in records]
    for path, document in zip(paths, (records, truth), strict=True):
        path.write_text(json.dumps(document))
    return [str(path) for path in paths]


def generate(track_set: TrackSet, folder: Path, share: float) -> list[str]:
    track_set.make(folder, np.random.default_rng(0), share, track_set.size)
    return [str(folder / track_set.results), str(folder / track_set.truth)]


#: Protocol → how its set is written, and the amount.
MAKERS: dict[str, tuple[Callable[[Path, float], list[str]], float]] = {
    "davis2017": (davis, 500),  # videos
    "places2017-official": (places, 4000),  # images
    **{next(iter(each.peers)): (partial(generate, each), each.shared) for each in SETS.values() if each.shared},
}
HEAD = ["protocol", "one process", "two: main process", "two: children", "two quiet cores", "Dask / `--jobs 2`"]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(MAKERS)} (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sets' sizes")
    parser.add_argument("--dask", action="store_true", help="compare with Dask, too")
    args = parser.parse_args(arguments)
    rows = []
    for protocol in args.protocols or MAKERS:
        make, amount = MAKERS[protocol]
        with tempfile.TemporaryDirectory() as name:
            results, truth = make(Path(name), amount * args.scale)
            command = segjudge("score", results, "--truth", truth, "--protocol", protocol)
            pairs = [(run(command), run([*command, "--jobs", "2"], cores=2)) for _ in range(args.repeat)]
            alone, two = (least(runs) for runs in zip(*pairs, strict=True))
            quiet = min(two.wall_on(2), *(pair[1].wall for pair in pairs))
            sooner = alone.cpu / quiet
            row = [
                f"{alone.cpu:.2f} CPU-s",
                f"{two.own:.2f}",
                f"{two.cpu - two.own:.2f}",
                f"{sooner:.2f} times sooner",
                "",
            ]
            if args.dask:
                with cluster(Path(name)) as started:
                    remote = [*command, "--scheduler", started.address]
                    run(remote)
                    before = [cpu_of(process.pid) for process in started.processes]
                    client = run(remote)
                    scheduler, *workers = (
                        cpu_of(process.pid) - cpu for process, cpu in zip(started.processes, before, strict=True)
                    )
                row[-1] = f"{(client.cpu + scheduler + max(workers)) / quiet:.2f} times"
        rows.append([f"`{protocol}`", *row])
    return show(Table(HEAD, rows))


if __name__ == "__main__":
    main()
