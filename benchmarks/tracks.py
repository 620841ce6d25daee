"""How much CPU and memory the further benchmarks take, beside their official evaluators on the same generated data.

    python -m benchmarks.tracks [SET …] [--scale 0.05] [--repeat N] [--panopticapi FOLDER] … [--peer-python PYTHON]
    python -m benchmarks.tracks [SET …] --scale 0.01 --size 60x90 --seeds 20 --repeat 1 …     # are all numbers equal?

A set has the size of the benchmark's validation data times SCALE, unless its size in pixels is given.  An evaluator's
folder is a checkout of it (`installed` where the peers' interpreter has it as a package); it runs in that interpreter,
and each of its numbers is compared with ours.  Everything runs on one core, from bytecode as installed packages have
it; CPU is user and system time of a process and its children, start-up included.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import track_peers, track_sets
from benchmarks.instances import Size
from benchmarks.sequences import measured

#: Numbers that differ by more are reported.
CLOSE = 1e-9


@dataclass(frozen=True)
class TrackSet:
    """Generated data of one benchmark."""

    make: Callable[[Path, np.random.Generator, float, Size], None]
    #: In pixels; of instances in images the generator's own.
    size: Size
    #: Protocol → the option with an evaluator's folder, and the script that runs it.
    peers: dict[str, tuple[str, str]]
    truth: str = "truth.json"
    results: str = "results.json"


HD = (720, 1280)
TEXTS = "trackers/results/data"
SETS = {
    "coco-panoptic": TrackSet(
        track_sets.coco_panoptic, (480, 640),
        {"coco-panoptic": ("panopticapi", track_peers.PANOPTICAPI),
         "coco-panoptic-boundary": ("boundary-iou-api", track_peers.BOUNDARY_PANOPTIC)},
        results="results",
    ),
    "vipseg": TrackSet(
        track_sets.vipseg, HD, {"vipseg-official": ("vipseg", track_peers.VIPSEG)}, results="results"
    ),
    "vspw": TrackSet(
        track_sets.vspw, (480, 853), {"vspw-official": ("vspw", track_peers.VSPW)}, "truth", "results"
    ),
    "mots": TrackSet(track_sets.mots, (1080, 1920), {"mots": ("trackeval", track_peers.MOTS)}, "truth", TEXTS),
    "kitti-mots": TrackSet(
        track_sets.kitti_mots, (375, 1242), {"kitti-mots": ("trackeval", track_peers.KITTI_MOTS)}, "truth", TEXTS
    ),
    "burst": TrackSet(
        track_sets.burst, HD, {"burst-official": ("trackeval", track_peers.BURST)},
        "truth/all_classes.json", f"{TEXTS}/results.json",
    ),
    "youtube-vis": TrackSet(
        track_sets.video_instances(421, 30, labels=False), HD,
        {"youtube-vis-2021": ("youtube-vis", track_peers.YOUTUBE_VIS)},
    ),
    "ovis": TrackSet(
        track_sets.video_instances(140, 60, labels=True), (1080, 1920), {"ovis": ("ovis", track_peers.OVIS)}
    ),
    "lvis": TrackSet(
        track_sets.image_instances(19_809, federated=True), (480, 640),
        {"lvis": ("lvis-api", track_peers.LVIS), "lvis-boundary": ("boundary-iou-api", track_peers.BOUNDARY_LVIS)},
    ),
    "coco-boundary": TrackSet(
        track_sets.image_instances(5000, federated=False), (480, 640),
        {"coco-boundary": ("boundary-iou-api", track_peers.BOUNDARY)},
    ),
    "mevis": TrackSet(track_sets.mevis, HD, {"mevis-official": ("mevis", track_peers.MEVIS)}, "truth", "results"),
}  # fmt: skip
PEERS = sorted({option for one in SETS.values() for option, _ in one.peers.values()})

#: CPU seconds and megabytes.
Cost = tuple[float, float]


def least(command: list[str], repeat: int) -> tuple[Cost, str]:
    """The least of several runs, and what the last one printed."""
    runs = [measured(command) for _ in range(repeat)]
    return (min(run[0] for run in runs), max(run[2] for run in runs)), runs[-1][3]


def ours(args: argparse.Namespace, one: TrackSet, folder: Path, protocol: str) -> tuple[Cost, dict[str, float | None]]:
    out = folder / "ours.json"
    command = [args.python, "-m", "segjudge", "score", str(folder / one.results), "--truth", str(folder / one.truth)]
    cost, _ = least([*command, "--protocol", protocol, "--json", str(out)], args.repeat)
    (values,) = json.loads(out.read_text())["result"][0].values()
    return cost, values


def differences(mine: dict[str, float | None], theirs: dict[str, float | None]) -> list[str]:
    """What differs between our numbers and an evaluator's."""
    found = []
    for name, value in theirs.items():
        own = mine[name]
        same = own == value if None in (own, value) else abs(float(own or 0) - float(value or 0)) <= CLOSE
        if not same:
            found.append(f"{name} {own}, there {value}")
    return found


def compare(args: argparse.Namespace, one: TrackSet, folder: Path) -> list[str]:
    """Print what a set costs by each protocol, ours and theirs; return what differs."""
    found = []
    for protocol, (option, script) in one.peers.items():
        cost, values = ours(args, one, folder, protocol)
        line = f"{protocol}: {cost[0]:.2f} CPU-s, {cost[1]:.0f} MB"
        checkout = getattr(args, option.replace("-", "_"))
        if checkout:
            command = [args.peer_python, "-c", script, "" if checkout == "installed" else checkout, str(folder)]
            theirs, printed = least(command, 1)
            others = json.loads(next(text for text in reversed(printed.splitlines()) if text.startswith('{"')))
            odd = differences(values, others)
            found += [f"{protocol}: {text}" for text in odd]
            equal = f"{len(others) - len(odd)} of {len(others)} numbers equal"
            line += f"; {option}: {theirs[0]:.2f} CPU-s, {theirs[1]:.0f} MB: ratio {theirs[0] / cost[0]:.1f}, {equal}"
        print(line, flush=True)
    return found


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)} (default: all)")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--size", help="HEIGHTxWIDTH instead of the benchmark's")
    parser.add_argument("--seeds", type=int, default=1, help="so many sets of each")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to score with")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with the evaluators' packages")
    for peer in PEERS:
        parser.add_argument(f"--{peer}", metavar="FOLDER", help="a checkout of the evaluator, or `installed`")
    return parser.parse_args(words)


def main() -> int:
    args = parsed()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for name in args.sets or SETS:
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as temporary:
                size = tuple(map(int, args.size.split("x"))) if args.size else SETS[name].size
                folder = Path(temporary)
                SETS[name].make(folder, np.random.default_rng(seed), args.scale, size)
                found += [f"seed {seed}, {text}" for text in compare(args, SETS[name], folder)]
    print("\n".join(found) or "No number differs.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
