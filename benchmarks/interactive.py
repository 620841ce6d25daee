"""Measure an interaction: the robot compared with plain code, the scoring with the prediction scorer.

    python -m benchmarks.interactive [--repeat N]

Both sides run in this process, in turns.  The regions are the golden ones where
SEGJUDGE_SHARED has them, else those between a synthetic truth and a prediction that lags behind it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import robot as plain_robot
from benchmarks.measuring import Table, options, show
from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.masks.stack import Array
from segjudge.evaluation_script.scoring.scorer import Scorer
from segjudge.families.truths import TruthSource, pack
from segjudge.interactive.evaluation import ROBOT_DEFAULT_PARAMETERS, EvaluationService
from segjudge.interactive.robot import InteractiveScribblesRobot
from segjudge.interactive.scribbles import Scribbles
from segjudge.masks.demo import make_scene, png_of
from tests.data import INTERACTIVE

OBJECTS = 2


def regions() -> list[Array]:
    if INTERACTIVE.is_dir():
        index = json.loads((INTERACTIVE / "robot/index.json").read_text())
        masks = np.load(INTERACTIVE / "robot/masks.npz")
        return [
            (masks[f"{pair}__gt"].squeeze() == int(number)) & (masks[f"{pair}__pred"].squeeze() != int(number))
            for pair in sorted({key.partition("/")[0] for key in index})
            for number in index.get(f"{pair}/service", {"objects": {}})["objects"]
        ]
    video = make_scene("bench", 7, objects=3, frames=20)
    return [
        np.kron((video.labels(frame) == k) & (video.labels(max(frame - 4, 0)) != k), np.ones((4, 5), bool))
        for frame in range(4, video.frames)
        for k in range(4)
    ]


def drawn(missing: Array) -> Scribbles:
    robot = InteractiveScribblesRobot(**ROBOT_DEFAULT_PARAMETERS)
    return robot.interact("bench", np.zeros_like(missing)[None], missing[None], 1, 0)


def spent(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def robot_rows(repeat: int, most: int | None) -> list[list[str]]:
    missing = regions()[:most]
    best = {"ours": 9e9, "plain": 9e9}
    for _ in range(repeat):
        best["ours"] = min(best["ours"], spent(lambda: [drawn(region) for region in missing]))
        best["plain"] = min(best["plain"], spent(lambda: [plain_robot.lines(region) for region in missing]))
    each = {name: 1000 * seconds / len(missing) for name, seconds in best.items()}
    return [
        [f"the robot, for each of {len(missing)} regions", f"{each['ours']:.1f} ms"],
        ["a plain implementation", f"{each['plain']:.1f} ms, {each['plain'] / each['ours']:.1f} times"],
    ]


def dataset(folder: Path, frames: int) -> Array:
    """Write a DAVIS root with one sequence of 480p and predictions as PNGs; return the predictions as an array."""
    video = make_scene("video", 3, objects=OBJECTS, frames=frames)
    for path, shift in (("root/Annotations/480p/video", 0), ("predictions/video", 2)):
        (folder / path).mkdir(parents=True)
        masks = []
        for frame in range(frames):
            labels = np.kron(video.labels(max(frame - shift, 0)), np.ones((4, 5), np.uint8))
            masks.append(np.pad(labels, ((0, 0), (0, 54))))
            (folder / path / f"{frame:05d}.png").write_bytes(png_of(masks[-1]))
    (folder / "root/ImageSets/2017").mkdir(parents=True)
    (folder / "root/ImageSets/2017/val.txt").write_text("video\n")
    (folder / "root/Scribbles/video").mkdir(parents=True)
    scribbles = {"sequence": "video", "scribbles": [[] for _ in range(frames)]}
    (folder / "root/Scribbles/video/001.json").write_text(json.dumps(scribbles))
    return np.stack(masks)


def scoring_rows(repeat: int, frames: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prediction = dataset(folder, frames)
        packed = str(folder / "truth.zip")
        pack(TruthSource(str(folder / "root"), "davis2017"), packed, split="val")
        truth = sequence_truth.read(packed).splits
        service = EvaluationService("val", davis_root=str(folder / "root"))
        number = iter(range(1, 10_000))
        rules = ScoringRules(SEQUENCE_PROTOCOLS["davis2017"], LOCAL_LIMITS)

        def interactive() -> None:
            service.post_predicted_masks("video", 1, prediction, 1.0, next(number), "", "key")

        def predicted(splits: dict[str, sequence_truth.Split]) -> None:
            Scorer("val", splits["val"], rules).score(str(folder / "predictions"))

        def from_pngs() -> None:
            predicted(dataset_reader.read(str(folder / "root"), LAYOUTS["davis2017"], "val").splits)

        best = {"first": spent(interactive), "again": 9e9, "prediction": spent(lambda: predicted(truth))}
        best["pngs"] = spent(from_pngs)
        for _ in range(repeat):
            best["again"] = min(best["again"], spent(interactive))
            best["prediction"] = min(best["prediction"], spent(lambda: predicted(truth)))
    return [
        [f"measuring {frames} frames of 480p with {OBJECTS} objects", f"{1000 * best['again']:.0f} ms"],
        ["the prediction scorer", f"{1000 * best['prediction']:.0f} ms"],
        ["both, including reading the truth's PNGs", f"{1000 * best['first']:.0f}, {1000 * best['pngs']:.0f} ms"],
    ]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--regions", type=int, help="the robot draws at most so many (default: all)")
    args = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = robot_rows(args.repeat, args.regions) + scoring_rows(args.repeat, args.frames)
    return show(Table(["an interaction", "CPU"], rows))


if __name__ == "__main__":
    main()
