"""Measure CPU and memory of scoring sequences, compared with peers on the same masks.

    python -m benchmarks.sequences [--set NAME] [--peers FOLDER] [--peer-python PYTHON] [--python PYTHON] [--repeat N]

Peers are checkouts of vos-benchmark, davis2017-evaluation and sam2 (its `sav_dataset`) in one folder.  Masks are pair A
(one object) or B of the golden data where SEGJUDGE_SHARED has it, else synthetic sequences.  Everything runs on one core.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.measuring import Table, Task, add_peers, cost_rows, least, options, run, segjudge, show, take_turns
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.masks.demo import make_scene
from tests.data import ROOT, SEQUENCES
from tests.golden.pairs import frames_of

#: The protocol, and the evaluator that it equals.
PROTOCOL = PEER = "vos-benchmark"
#: What EvalAI's worker does: the truth is opened once, and each submission scored by the same process.
WORKER = f"""
import sys
sys.path.insert(0, sys.argv[1])
from evaluation_script import main
from evaluation_script.scoring.phase import Phase, PhaseSplit
main.PHASES = (Phase("bench", "", (PhaseSplit("val", {PROTOCOL!r}, ("J&F-Mean",)),)),)
for _ in range(int(sys.argv[4])):
    main.evaluate(sys.argv[2], sys.argv[3], "bench")
"""
#: The number of submissions that one process scores, to measure the cost of a further one while the truth is open.
WARM = 6

#: Sequence, number of the frame, truth, prediction.
Frames = Iterator[tuple[str, int, Any, Any]]


def synthetic(lengths: list[int], objects: list[int], zoom: tuple[int, int] = (4, 5)) -> Frames:
    """Return sequences of these lengths and numbers of objects; each pixel of the scene becomes a block."""
    for number, (length, count) in enumerate(zip(lengths, objects, strict=True)):
        video = make_scene(f"video-{number:02d}", number, objects=count, frames=length)
        for frame in range(video.frames):
            sides = (video.labels(frame), video.labels(frame, grow=-1.5))
            yield (video.name, frame, *(np.kron(side, np.ones(zoom, np.uint8)) for side in sides))


def pair(name: str) -> Frames:
    return frames_of(name) if SEQUENCES.is_dir() else synthetic([60] * 6, [3 if name == "B" else 1] * 6)


#: The sets that can be scored; `val` has the size of DAVIS 2017's: 30 sequences, 61 objects, 1,999 frames.
SETS: dict[str, Callable[[], Frames]] = {
    "B": lambda: pair("B"),
    "A": lambda: pair("A"),
    "val": lambda: synthetic([67] * 19 + [66] * 11, [3] + [2] * 29),
    "1080p": lambda: synthetic([60] * 4, [2, 3, 2, 3], (9, 12)),
    "long": lambda: synthetic([4000], [2]),
    "empty": lambda: synthetic([3], [1], (1, 1)),
}
MASKS = "root/Annotations/480p"


def write_dataset(folder: Path, frames: Frames) -> int:
    """Write a DAVIS root, predictions as folder and zip, and a packed truth; return the number of frames."""
    lengths: dict[str, int] = {}
    with zipfile.ZipFile(folder / "predictions.zip", "w") as archive:
        for sequence, k, *sides in frames:
            for target, side in zip((MASKS, "predictions"), sides, strict=True):
                out = io.BytesIO()
                Image.fromarray(side).save(out, "PNG")
                write(folder / target / sequence / f"{k:05d}.png", out.getvalue())
            archive.writestr(f"{sequence}/{k:05d}.png", out.getvalue())
            write(folder / "root/JPEGImages/480p" / sequence / f"{k:05d}.jpg", b"")
            lengths[sequence] = k + 1
    write(folder / "root/ImageSets/2017/val.txt", "".join(f"{name}\n" for name in lengths).encode())
    sequence_truth.write(str(folder / "truth.zip"), dataset_reader.read(str(folder / "root")).splits)
    return sum(lengths.values())


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def peers(folder: Path, checkouts: Path, python: str) -> dict[str, Task]:
    """Return the commands of the peers, each in its checkout; `sav` and `vos-benchmark` use one process."""
    root, masks, results = (str(folder / name) for name in ("root", MASKS, "predictions"))
    commands = {
        PEER: ["benchmark.py", "-n", "1", "-g", masks, "-m", results],
        "davis2017-evaluation": [
            *("evaluation_method.py", "--task", "semi-supervised", "--set", "val"),
            *("--davis_path", root, "--results_path", results),
        ],
        "sam2": ["sav_dataset/sav_evaluator.py", "-n", "1", "--gt_root", masks, "--pred_root", results],
    }
    clean = f"import glob, os; [os.remove(path) for path in glob.glob({results + '/*.csv'!r})]"
    start = "import runpy, sys; sys.argv = sys.argv[1:]; sys.path[0] = '.'; runpy.run_path(sys.argv[0], run_name='__main__')"
    return {
        name: Task([python, "-c", f"{clean}; {start}", *words], checkouts / name, is_peer=True)
        for name, words in commands.items()
    }


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--set", choices=SETS, default="B", help="what is scored")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the worker")
    add_peers(parser)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = write_dataset(folder, SETS[args.set]())
        print(f"set {args.set}{'' if SEQUENCES.is_dir() else ', synthetic'}: {frames} frames, one core")
        by = ["--protocol", PROTOCOL]
        packed = segjudge("score", folder / "predictions.zip", "--truth", folder / "truth.zip", *by)
        tasks = {
            "segjudge score: zip, packed truth": Task(packed),
            "the same without its kernel": Task(packed, env={"SEGJUDGE_KERNEL": "off"}),
            "folder, dataset root": Task(segjudge("score", folder / "predictions", "--truth", folder / "root", *by)),
        }
        ours = next(iter(tasks))
        rows = cost_rows(take_turns(tasks | peers(folder, args.peers, args.peer_python), args.repeat), ours)
        worker = [args.python, "-c", WORKER, str(ROOT), str(folder / "truth.zip"), str(folder / "predictions.zip")]
        first, more = (least([run([*worker, str(count)]) for _ in range(args.repeat)]) for count in (1, WARM))
    further = (more.cpu - first.cpu) / (WARM - 1)
    rows.append(["each further submission to a worker", f"{further:.2f}", f"{more.megabytes:.0f}", ""])
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], rows))


if __name__ == "__main__":
    main()
