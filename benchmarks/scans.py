"""Compare the scoring of LiDAR scans as large as SemanticKITTI's with semantic-kitti-api.

    python -m benchmarks.scans [--scans 200] [--wrong stretches|points] [--repeat N] [--peers FOLDER]
        [--peer-python PYTHON] [--folder FOLDER]

The set is made by a seeded generator: 120,000 points in 64 rings, along which labels change every few points as objects
and ground do.  Answers are wrong in stretches, which is pleasant to count, or, as those of networks that look at each point
by itself, at every seventh point.  Everything runs on one core; metrics are compared.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, add_peers, cost_rows, least, options, segjudge, show, take_turns
from segjudge.evaluation_script.families.scans.protocols import SCAN_PROTOCOLS
from segjudge.evaluation_script.masks.stack import Array

_POINTS = 120_000
#: Labels change at this interval in points; wrong answers last longer.
_RUN, _WRONG_RUN, _WRONG = 12, 40, 0.15
#: One of this number of points is wrong in answers with single wrong points.
_EACH_WRONG = 7
#: The number of objects in a scan.
_OBJECTS = 40
#: The script of each protocol, its option for a folder of scores, and the metric that is compared, by both names.
_SCRIPTS = {
    "semantic-kitti-official": ("evaluate_semantics.py", "--codalab", "mIoU", "iou_mean"),
    "semantic-kitti-panoptic-official": ("evaluate_panoptic.py", "--output", "PQ", "pq_mean"),
}


def draw_scan(generator: np.random.Generator, kind: str) -> tuple[Array, Array]:
    """Return the points of a scan, and a prediction that is wrong in stretches or at single points."""
    classes = SCAN_PROTOCOLS["semantic-kitti"]
    kinds = [labels[0] for labels in classes.class_labels]
    things = generator.choice(kinds[: classes.things], _OBJECTS) | np.arange(1, _OBJECTS + 1) << 16
    values = np.concatenate([[0], kinds[classes.things :] * 6, things])

    def draw(mean: float, chosen: Array) -> Array:
        lengths = generator.geometric(1 / mean, 2 * int(_POINTS / mean) + 9)
        return np.repeat(generator.choice(chosen, len(lengths)), lengths)[:_POINTS].astype("<u4")

    truth = draw(_RUN, values)
    if kind == "points":
        answer = truth.copy()
        answer[::_EACH_WRONG] = generator.choice(values, len(answer[::_EACH_WRONG]))
        return truth, answer
    wrong = draw(_WRONG_RUN, np.arange(100)) < 100 * _WRONG
    return truth, np.where(wrong, draw(_WRONG_RUN, values), truth).astype("<u4")


def write_set(folder: Path, scans: int, wrong: str) -> None:
    """Write the truth and the predictions, also as a zip."""
    generator = np.random.default_rng(8)
    with zipfile.ZipFile(folder / "answers.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(scans):
            for side, points in zip(("dataset", "answers"), draw_scan(generator, wrong), strict=True):
                kind = "labels" if side == "dataset" else "predictions"
                path = folder / side / f"sequences/08/{kind}/{number:06d}.label"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(points.tobytes())
                if side == "answers":
                    archive.write(path, path.relative_to(folder / side))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--wrong", choices=("stretches", "points"), default="stretches", help="where answers are wrong")
    parser.add_argument("--folder", help="keep the set here and use it again")
    add_peers(parser)
    args = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary).resolve()
        if not (folder / "answers.zip").exists():
            write_set(folder, args.scans, args.wrong)
        truth, packed, scores = folder / "dataset", folder / "val.zip", folder / "scores.json"
        pack = segjudge("pack", "--layout", "semantic-kitti", "--root", truth, "--out", packed)
        take_turns({"pack": Task(pack)}, 0)
        for protocol, (script, option, metric, name) in _SCRIPTS.items():
            score = ["--protocol", protocol, "--json", scores]
            ours, out = f"`{protocol}`: zip, packed truth", folder / protocol
            out.mkdir(exist_ok=True)
            code = [args.peer_python, script, "-d", str(truth), "-p", str(folder / "answers"), option, str(out)]
            tasks = {
                ours: Task(segjudge("score", folder / "answers.zip", "--truth", packed, *score)),
                "folders as they are published": Task(segjudge("score", folder / "answers", "--truth", truth, *score)),
                script: Task(code, args.peers / "semantic-kitti-api", is_peer=True),
            }
            runs = take_turns(tasks, args.repeat)
            rows += cost_rows(runs, ours)
            print(f"{1000 * least(runs[ours]).cpu / args.scans:.1f} ms for each scan, start-up included")
            own = json.loads(scores.read_text())["result"][0]["val"][metric]
            if script in runs:
                lines = (out / "scores.txt").read_text().splitlines()
                value = next(float(line.partition(":")[2]) for line in lines if line.startswith(f"{name}:"))
                if abs(value - own) > CLOSE:
                    print(f"{script}: {name} {value}, here {own}")
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], rows))


if __name__ == "__main__":
    main()
