"""How much CPU and memory scoring a submission takes, beside the peers on the same masks in the same run.

    python -m benchmarks.sequences [--set NAME] [--davis FOLDER] [--vos-benchmark FOLDER] [--lvos FOLDER] [--sav FOLDER]
                                   [--peer-python PYTHON] [--python PYTHON] [--repeat N]

A peer's folder is a checkout of davis2017-evaluation, vos-benchmark, lvos-evaluation, or of sam2 (its `sav_dataset`);
without any the yardstick is `reference.py`, the formulas written plainly.  Masks are pair A (one object) or B of the
golden data where SEGJUDGE_SHARED has it, else synthetic sequences.  Everything runs on one core, from bytecode as
installed packages have it; CPU is user and system time of a process and its children, start-up included.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import reference
from segjudge.datasets.demo import scene
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from tests.data import ROOT, SEQUENCES
from tests.golden.pairs import frames_of

#: The reference is so slow that it does every n-th frame and is multiplied.
EVERY = 10
#: LVOS numbers frames from 1, and annotates every fifth.
LVOS_STEP = 5

OURS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from evaluation_script import main
from evaluation_script.families import PROTOCOLS
from evaluation_script.scoring.phase import Phase, PhaseSplit
split = PhaseSplit("val", sys.argv[4], PROTOCOLS[sys.argv[4]].metrics[:3])
main.PHASES = (Phase("bench", "", (split,)),)
for _ in range(int(sys.argv[5])):
    result = main.evaluate(sys.argv[2], sys.argv[3], "bench")["result"]
print(json.dumps(result))
"""
#: Submissions that one process scores, to see what another one costs while the truth is open.
WARM = 6

#: Sequence, number of the frame, truth, prediction.
Frames = Iterator[tuple[str, int, Any, Any]]


def synthetic(lengths: list[int], objects: list[int], zoom: tuple[int, int] = (4, 5)) -> Frames:
    """Sequences of these lengths and numbers of objects, each pixel of the scene as a block."""
    for number, (length, count) in enumerate(zip(lengths, objects, strict=True)):
        one = scene(f"video-{number:02d}", number, objects=count, frames=length)
        for frame in range(one.frames):
            sides = (one.labels(frame), one.labels(frame, grow=-1.5))
            yield (one.name, frame, *(np.kron(side, np.ones(zoom, np.uint8)) for side in sides))


def pair(name: str) -> Frames:
    return frames_of(name) if SEQUENCES.is_dir() else synthetic([60] * 6, [3 if name == "B" else 1] * 6)


#: What can be scored; `val` has the size of DAVIS 2017's: 30 sequences, 61 objects, 1,999 frames.
SETS: dict[str, Callable[[], Frames]] = {
    "B": lambda: pair("B"),
    "A": lambda: pair("A"),
    "val": lambda: synthetic([67] * 19 + [66] * 11, [3] + [2] * 29),
    "1080p": lambda: synthetic([60] * 4, [2, 3, 2, 3], (9, 12)),
    "long": lambda: synthetic([4000], [2]),
    "empty": lambda: synthetic([3], [1], (1, 1)),
}


@dataclass(frozen=True)
class Peer:
    """Another project's evaluator: its option, our protocol, its script, and what it takes for a folder of data."""

    option: str
    protocol: str
    script: str
    arguments: Callable[[Path], list[str]]


def paths(first: str, truth: str, second: str, results: str = "predictions") -> Callable[[Path], list[str]]:
    return lambda folder: [first, str(folder / truth), second, str(folder / results)]


MASKS = "root/Annotations/480p"
PEERS = (
    Peer("davis", "davis2017", "evaluation_method.py --task semi-supervised --set val",
         paths("--davis_path", "root", "--results_path")),
    Peer("vos_benchmark", "vos-benchmark", "benchmark.py -n 1", paths("-g", MASKS, "-m")),
    Peer("sav", "sav", "sav_dataset/sav_evaluator.py -n 1", paths("--gt_root", MASKS, "--pred_root")),
    Peer("lvos", "lvos", "evaluation_method.py --task semi-supervised --set valid --mp_nums 1",
         paths("--lvos_path", "lvos", "--results_path", "lvos-predictions")),
)  # fmt: skip


def write_dataset(folder: Path, frames: Frames) -> int:
    """A DAVIS root with truth, a folder and a zip of predictions, a packed truth; the number of frames."""
    lengths: dict[str, int] = {}
    with zipfile.ZipFile(folder / "predictions.zip", "w") as archive:
        for sequence, k, *sides in frames:
            for place, side in zip((MASKS, "predictions"), sides, strict=True):
                out = io.BytesIO()
                Image.fromarray(side).save(out, "PNG")
                write(folder / place / sequence / f"{k:05d}.png", out.getvalue())
            archive.writestr(f"{sequence}/{k:05d}.png", out.getvalue())
            write(folder / "root/JPEGImages/480p" / sequence / f"{k:05d}.jpg", b"")
            lengths[sequence] = k + 1
    write(folder / "root/ImageSets/2017/val.txt", "".join(f"{name}\n" for name in lengths).encode())
    sequence_truth.write(str(folder / "truth.zip"), dataset_reader.read(str(folder / "root")).splits)
    return sum(lengths.values())


def write_lvos(folder: Path) -> None:
    """The same masks as LVOS lays them out, linked: frames 1, 6, 11, …, and the interval of every object."""
    videos: dict[str, Any] = {}
    for place, target in (("predictions", "lvos-predictions"), (MASKS, "lvos/Annotations")):
        for path in sorted((folder / place).glob("*/*.png")):
            link = folder / target / path.parent.name / f"{1 + LVOS_STEP * int(path.stem):08d}.png"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(path)
    for sequence in sorted((folder / MASKS).iterdir()):
        files = sorted(sequence.iterdir())
        labels = set(np.unique(np.array(Image.open(files[0]))).tolist()) - {0, 255}
        interval = {"start": "1", "end": str(1 + LVOS_STEP * len(files)), "frame_nums": str(len(files))}
        videos[sequence.name] = {"objects": {str(label): {"frame_range": interval} for label in sorted(labels)}}
    write(folder / "lvos/valid_meta.json", json.dumps({"videos": videos}).encode())
    truth = dataset_reader.read(str(folder / "lvos"), LAYOUTS["lvos"])
    sequence_truth.write(str(folder / "lvos-truth.zip"), truth.splits)


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def measured(command: list[str], folder: str | None = None) -> tuple[float, float, float, str]:
    """CPU seconds, wall seconds and megabytes of a command on one core, and what it printed."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    )
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{printed[-2000:]}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024, printed


def reference_seconds(folder: Path) -> float:
    """CPU of the plain formulas, from every n-th frame."""
    started = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for path in sorted((folder / MASKS).rglob("*.png"))[::EVERY]:
        labels = np.array(Image.open(path))
        other = np.array(Image.open(folder / "predictions" / path.parent.name / path.name))
        for number in range(1, int(labels.max()) + 1):
            reference.region_similarity(labels == number, other == number)
            reference.boundary_similarity(labels == number, other == number)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - started) * EVERY


def our_seconds(args: argparse.Namespace, folder: Path, protocol: str) -> dict[str, float]:
    """CPU of our scorer by what it is given, the least of several runs."""
    prefix, root = ("lvos-", "lvos") if protocol == "lvos" else ("", "root")
    results = folder / f"{prefix}predictions"
    packed = results if prefix else folder / "predictions.zip"
    commands = {
        f"{'folder' if prefix else 'zip'}, packed truth": [
            args.python, "-c", OURS, str(ROOT), str(folder / f"{prefix}truth.zip"), str(packed), protocol, "1",
        ],
    }  # fmt: skip
    warm = [*next(iter(commands.values()))[:-1], str(WARM)]
    if args.python == sys.executable:
        scored = ["score", str(results), "--truth", str(folder / root), "--protocol", protocol]
        commands["folder, dataset root"] = [args.python, "-m", "segjudge", *scored]
    seconds = {}
    print(f"\n{protocol}")
    for name, command in commands.items():
        runs = [measured(command) for _ in range(args.repeat)]
        seconds[name] = min(run[0] for run in runs)
        spread = max(run[0] for run in runs) / seconds[name] - 1
        print(
            f"   segjudge, {name}: {seconds[name]:.2f} CPU-s (spread {spread:.0%} of {args.repeat} runs), "
            f"{min(run[1] for run in runs):.2f} s wall, {max(run[2] for run in runs):.0f} MB"
        )
    more = (measured(warm)[0] - next(iter(seconds.values()))) / (WARM - 1)
    print(f"   each further submission to the same process: {more:.2f} CPU-s, {30 / more:.0f} a minute on half a core")
    return seconds


def compare_with_peer(args: argparse.Namespace, peer: Peer, folder: Path, ours: dict[str, float]) -> None:
    """Time a peer's script on the same masks."""
    checkout = Path(getattr(args, peer.option))
    script, *options = peer.script.split()
    command = [args.peer_python, str(checkout / script), *options, *peer.arguments(folder)]
    seconds, _, megabytes, _ = measured(command, str(checkout))
    ratios = ", ".join(f"{seconds / one:.1f} ({name})" for name, one in ours.items())
    print(f"   {checkout.name}: {seconds:.2f} CPU-s, {megabytes:.0f} MB: ratio {ratios}")
    for path in folder.glob("*predictions/*.csv"):
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="B", help="what is scored")
    for peer in PEERS:
        parser.add_argument(f"--{peer.option.replace('_', '-')}", metavar="FOLDER", help="a checkout of the peer")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with the peers' packages")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to score with")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    peers = [peer for peer in PEERS if getattr(args, peer.option)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = write_dataset(folder, SETS[args.set]())
        print(f"set {args.set}{'' if SEQUENCES.is_dir() else ', synthetic'}: {frames} frames, one core")
        if any(peer.protocol == "lvos" for peer in peers):
            write_lvos(folder)
        for peer in peers:
            compare_with_peer(args, peer, folder, our_seconds(args, folder, peer.protocol))
        if not peers:
            ours = our_seconds(args, folder, "vos-benchmark")
            plain = reference_seconds(folder)
            print(f"   plain formulas: {plain:.1f} CPU-s: ratio {plain / min(ours.values()):.1f}")


if __name__ == "__main__":
    main()
