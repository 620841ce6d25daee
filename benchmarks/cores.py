"""Measure the speed-up of two processes by family, and the overhead of Dask on one machine.

    python -m benchmarks.cores [PROTOCOL …] [--scale 1] [--repeat 3]

On a machine with other work wall time says little, so CPU is split: what the command's own process does while others
wait for it, and what its children share.  Its own and half of theirs is the time on two cores that do nothing else, or
the least wall time where that is less: it counts threads as if they ran one after the other.
Cores that share memory or an arithmetic unit never double the speed: the command runs twice at once, too, and what that
gains over one run after the other is the most that two processes can.
Dask's is that of its client, its scheduler and the busier one of two workers, which have scored before.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import phrases, scans
from benchmarks import scale as videos
from benchmarks.families import TrackSet
from benchmarks.instances import write_set
from benchmarks.measuring import Run, Table, cpu_of, least, options, run, segjudge, show
from benchmarks.speckle import write_labels
from benchmarks.tracks import SETS
from tests.clusters import cluster

#: How often the images of a set are repeated under other ids, because writing copies is faster than drawing, and how
#: often the files of one.
COPIES, REPEATS = 8, 20


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


def gold(folder: Path, amount: float) -> list[str]:
    phrases.write_phrases(folder, round(amount))
    truth = folder / "val.zip"
    run(segjudge("pack", "--layout", "sa-co", "--root", folder / "truth", "--out", truth))
    return [str(folder / "results.zip"), str(truth)]


def repeat_files(folder: Path, pattern: str, drawn: int) -> None:
    """Link each of the drawn files, whose names are numbers, under further numbers."""
    for path in [*folder.rglob(pattern)]:
        for k in range(1, REPEATS):
            os.link(path, path.with_stem(f"{int(path.stem) + k * drawn:0{len(path.stem)}d}"))


def kitti(folder: Path, amount: float) -> list[str]:
    drawn = max(1, round(amount / REPEATS))
    scans.write_set(folder, drawn, "points")
    repeat_files(folder, "*.label", drawn)
    return [str(folder / "answers"), str(folder / "dataset")]


def ade(folder: Path, amount: float) -> list[str]:
    drawn = max(1, round(amount / REPEATS))
    write_labels(folder, drawn, (512, 683), np.arange(1, 151), 12, ".png")
    repeat_files(folder, "*.png", drawn)
    return [str(folder / "speckled"), str(folder / "truth")]


Maker = tuple[Callable[[Path, float], list[str]], float]
#: Protocol → how its set is written, and the amount.
MAKERS: dict[str, Maker] = {
    "davis2017": (davis, 500),  # videos
    "places2017-official": (places, 4000),  # images
    **{next(iter(each.peers)): (partial(generate, each), each.shared) for each in SETS.values() if each.shared},
}
#: The same for sets of some 10 CPU seconds, which are not compared with Dask.
LARGE: dict[str, Maker] = {
    "sa-co-gold": (gold, 180000),  # pairs
    "semantic-kitti-official": (kitti, 48000),  # scans
    "ade20k": (ade, 10000),  # images
}
HEAD = ["protocol", "one process", "two: main process", "children", "sooner", "two runs at once", "Dask / `--jobs 2`"]


def measure_turn(command: list[str]) -> list[Run]:
    """Run the command with one process, with two, and twice at once."""
    alone, two = run(command), run([*command, "--jobs", "2"], cores=2)
    with ThreadPoolExecutor(2) as pool:
        return [alone, two, *pool.map(lambda core: run(command, start=core), range(2))]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument(
        "protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(MAKERS | LARGE)} (default: all)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the sets' sizes")
    parser.add_argument("--dask", action="store_true", help="compare with Dask, too")
    args = parser.parse_args(arguments)
    makers, rows = MAKERS | LARGE, []
    for protocol in args.protocols or (MAKERS if args.dask else makers):
        make, amount = makers[protocol]
        with tempfile.TemporaryDirectory() as name:
            results, truth = make(Path(name), amount * args.scale)
            command = segjudge("score", results, "--truth", truth, "--protocol", protocol)
            turns = [measure_turn(command) for _ in range(args.repeat)]
            alone, two = (least([turn[index] for turn in turns]) for index in range(2))
            both = min(sum(each.cpu for each in turn[2:]) for turn in turns)
            quiet = min(two.wall_on(2), *(turn[1].wall for turn in turns))
            row = [
                f"{alone.cpu:.2f} CPU-s",
                f"{two.own:.2f}",
                f"{two.cpu - two.own:.2f}",
                f"{alone.cpu / quiet:.2f} times",
                f"{4 * alone.cpu / both:.2f} times",
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
