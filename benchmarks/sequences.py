"""How much CPU and memory scoring a submission takes, beside the peers on the same masks in the same run.

    python -m benchmarks.sequences [--davis FOLDER] [--vos-benchmark FOLDER] [--peer-python PYTHON] [--repeat N]

Without a peer's folder (a checkout of davis2017-evaluation or vos-benchmark) the yardstick is
`reference.py`, the formulas written plainly.  Masks are pair B of the golden data where
SEGJUDGE_SHARED has it, else synthetic sequences of the same size.  Everything runs on one core;
CPU is user and system time of a process and its children, start-up included.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import reference
from segjudge.demo.scenes import scene
from segjudge.evaluation_script import dataset_reader, sequence_truth
from tests.data import ROOT, SEQUENCES
from tests.golden.pairs import frames_of

#: The reference is so slow that it does every n-th frame and is multiplied.
EVERY = 10

OURS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from evaluation_script import main
from evaluation_script.phase import Phase, PhaseSplit
labels = ("J&F-Mean", "J-Mean", "F-Mean")
main.PHASES = (Phase("bench", "", (PhaseSplit("val", sys.argv[4], labels),)),)
print(json.dumps(main.evaluate(sys.argv[2], sys.argv[3], "bench")["result"]))
"""


def synthetic_frames() -> Iterator[tuple[str, int, Any, Any]]:
    for number in range(6):
        one = scene(f"video-{number}", number, objects=3, frames=60)
        for frame in range(one.frames):
            sides = (one.labels(frame), one.labels(frame, grow=-1.5))
            yield (one.name, frame, *(np.kron(side, np.ones((4, 5), np.uint8)) for side in sides))


def write_dataset(folder: Path) -> int:
    """A DAVIS root with truth, a folder and a zip of predictions, a packed truth; the number of frames."""
    frames = frames_of("B") if SEQUENCES.is_dir() else synthetic_frames()
    count, names = 0, []
    with zipfile.ZipFile(folder / "predictions.zip", "w") as archive:
        for sequence, k, *sides in frames:
            for place, side in zip(("root/Annotations/480p", "predictions"), sides, strict=True):
                path = folder / place / sequence / f"{k:05d}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                out = io.BytesIO()
                Image.fromarray(side).save(out, "PNG")
                path.write_bytes(out.getvalue())
            archive.writestr(f"{sequence}/{k:05d}.png", out.getvalue())
            jpeg = folder / "root/JPEGImages/480p" / sequence / f"{k:05d}.jpg"
            jpeg.parent.mkdir(parents=True, exist_ok=True)
            jpeg.touch()
            names.append(sequence)
            count += 1
    lists = folder / "root/ImageSets/2017"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("\n".join(dict.fromkeys(names)) + "\n")
    sequence_truth.write(str(folder / "truth.zip"), dataset_reader.read(str(folder / "root")).splits)
    return count


def measured(command: list[str]) -> tuple[float, float, float, str]:
    """CPU seconds, wall seconds and megabytes of a command on one core, and what it printed."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=lambda: os.sched_setaffinity(0, {0})
    )
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{printed[-2000:]}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024, printed


def reference_seconds(folder: Path) -> float:
    """CPU of the plain formulas, from every n-th frame."""
    started = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for path in sorted((folder / "root/Annotations/480p").rglob("*.png"))[::EVERY]:
        labels = np.array(Image.open(path))
        other = np.array(Image.open(folder / "predictions" / path.parent.name / path.name))
        for number in range(1, int(labels.max()) + 1):
            reference.region_similarity(labels == number, other == number)
            reference.boundary_similarity(labels == number, other == number)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - started) * EVERY


#: What is scored, with which protocol, and what the peer's script takes.
COMPARED = (
    ("davis2017", "davis", ["evaluation_method.py", "--task", "semi-supervised", "--set", "val"]),
    ("vos-benchmark", "vos_benchmark", ["benchmark.py", "-n", "1"]),
)


def our_seconds(args: argparse.Namespace, folder: Path, protocol: str) -> float:
    """CPU of our scorer, the least of several runs."""
    command = [args.python, "-c", OURS, str(ROOT), str(folder / "truth.zip"), str(folder / "predictions.zip"), protocol]
    runs = [measured(command) for _ in range(args.repeat)]
    cpu = min(run[0] for run in runs)
    spread = max(run[0] for run in runs) / cpu - 1
    print(
        f"\n{protocol}: {cpu:.2f} CPU-s (spread {spread:.0%} of {args.repeat} runs), "
        f"{min(run[1] for run in runs):.2f} s wall, {max(run[2] for run in runs):.0f} MB"
    )
    print("  ", json.loads(runs[0][3].splitlines()[-1])[0]["val"])
    return cpu


def compare_with_peer(command: list[str], peer: str, folder: Path, cpu: float) -> None:
    """Time a peer's script on the same masks."""
    paths = {
        "evaluation_method.py": ["--davis_path", str(folder / "root"), "--results_path", str(folder / "predictions")],
        "benchmark.py": ["-g", str(folder / "root/Annotations/480p"), "-m", str(folder / "predictions")],
    }
    script = Path(command[1]).name
    seconds, _, megabytes, _ = measured([*command, *paths[script]])
    print(f"   {Path(peer).name}: {seconds:.2f} CPU-s, {megabytes:.0f} MB: ratio {seconds / cpu:.1f}")
    for path in (folder / "predictions").glob("*.csv"):
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--davis", help="a checkout of davis2017-evaluation")
    parser.add_argument("--vos-benchmark", help="a checkout of vos-benchmark")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with the peers' packages")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to score with")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = write_dataset(folder)
        print(f"{frames} frames of {'pair B' if SEQUENCES.is_dir() else 'synthetic sequences'}, one core")
        results = {}
        for protocol, option, (script, *options) in COMPARED:
            results[protocol] = our_seconds(args, folder, protocol)
            peer = getattr(args, option)
            if peer:
                command = [args.peer_python, str(Path(peer) / script), *options]
                compare_with_peer(command, peer, folder, results[protocol])
        if not (args.davis or args.vos_benchmark):
            plain = reference_seconds(folder)
            print(f"\nplain formulas: {plain:.1f} CPU-s: ratio {plain / results['davis2017']:.1f}")


if __name__ == "__main__":
    main()
