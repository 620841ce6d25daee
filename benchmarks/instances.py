"""Scoring a Places-size set of instance masks, beside pycocotools and others on the same files in the same run.

    python -m benchmarks.instances [--images 2000] [--repeat N] [--python PYTHON] [--peer-python PYTHON] [--folder FOLDER]

Peers: pycocotools, faster-coco-eval, hotcoco, ultrafast-pycocotools, those that the peers' interpreter has.  The set is made by a seeded generator: images of 480×640 and 512×683, 15 instances an image in 100
categories, about 107 detections an image (some images 340), scores with ties. Everything runs on one
core, from bytecode as installed packages have it; CPU is user and system time of a process and its children, start-up
included.  The stages of ours are measured in one process, and beside each what the floor under it takes: what does no
more than the work that is left there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sequences import measured
from segjudge.evaluation_script.masks.run_lengths import compress
from tests.data import ROOT

CATEGORIES = 100

OURS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from evaluation_script import main
from evaluation_script.scoring.phase import Phase, PhaseSplit
from evaluation_script.files.limits import INSTANCE_LIMITS
labels = ("AP", "AP50", "AP75")
main.PHASES = (Phase("bench", "", (PhaseSplit("val", "places2017-official", labels),), limits=INSTANCE_LIMITS),)
print(json.dumps(main.evaluate(sys.argv[2], sys.argv[3], "bench")["result"]))
"""

PYCOCOTOOLS = """
import contextlib, io, json, sys
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
with contextlib.redirect_stdout(io.StringIO()):
    truth = COCO(sys.argv[1])
    run = COCOeval(truth, truth.loadRes(sys.argv[2]), "segm")
    run.params.maxDets = [1, 50, 255]
    run.evaluate()
    run.accumulate()
precision = run.eval["precision"]
taken = precision[:, :, :, 0, 2]
print(json.dumps([{"val": {"AP": float(taken[taken > -1].mean())}}]))
"""

#: CPU seconds of each stage, and of what is its floor.
STAGES = """
import os, sys, time
clock = time.process_time
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
floors = {"start": clock()}
sys.path.insert(0, sys.argv[1])
from evaluation_script.families.base.family import ScoringRules
from evaluation_script.families.instances import engine, truth as instance_truth
from evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from evaluation_script.files import INSTANCE_LIMITS
from evaluation_script.masks.kernel import Kernel
from evaluation_script.runner import tuning
from evaluation_script.scoring.scorer import Scorer, read_truth

def timed(stage, module, name):
    work = getattr(module, name)
    def call(*given, **options):
        started = clock()
        try:
            return work(*given, **options)
        finally:
            floors[stage] = floors.get(stage, 0.0) + clock() - started
    setattr(module, name, call)

protocol, marks = INSTANCE_PROTOCOLS["places2017-official"], [("start", clock())]
tuning.reuse_memory()
for stage, module, name in (
    ("truth", instance_truth.json, "loads"), ("records and matching", engine, "read_records"),
    ("records", Kernel, "records"), ("matching", Kernel, "overlaps"), ("matching", Kernel, "match"),
    ("curves", Kernel, "curve"),
):
    timed(stage, module, name)
(truth,) = read_truth(sys.argv[2], "coco").splits.values()
marks.append(("truth", clock()))
matched = Scorer("val", truth, ScoringRules(protocol, INSTANCE_LIMITS)).count(sys.argv[3])
marks.append(("matching", clock()))
matched.compute()
marks.append(("curves", clock()))
spent = {name: end - start for (name, end), start in zip(marks, [0.0, *(end for _, end in marks)])}
spent["records"] = floors["records and matching"]
spent["matching"] -= spent["records"]
for name in ("start", "truth", "records", "matching", "curves"):
    print(f"{name}: {spent[name]:.3f}, floor {floors.get(name, 0.0):.3f}")
"""

ULTRAFAST = PYCOCOTOOLS.replace("from pycocotools.", "from ultrafast_pycocotools.")

FASTER = PYCOCOTOOLS.replace(
    """from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
""",
    """from faster_coco_eval import COCO, COCOeval_faster
COCOeval = lambda *given: COCOeval_faster(*given, print_function=lambda *_: None)
""",
)

HOTCOCO = """
import json, sys
from hotcoco import COCO, COCOeval
truth = COCO(sys.argv[1])
run = COCOeval(truth, truth.load_res(sys.argv[2]), "segm")
run.params.max_dets = [1, 50, 255]
run.evaluate()
run.accumulate()
run.summarize()
print(json.dumps([{"val": {"AP": float(run.stats[0])}}]))
"""


PEERS = {
    "pycocotools": PYCOCOTOOLS,
    "faster-coco-eval": FASTER,
    "hotcoco": HOTCOCO,
    "ultrafast-pycocotools": ULTRAFAST,
}

#: A blob: its first column, and column by column top and height.
Blob = tuple[int, list[int]]
Size = tuple[int, int]


def blob(generator: np.random.Generator, size: Size) -> Blob:
    """Draw a wobbly disk."""
    height, width = size
    radius = float(generator.lognormal(3.3, 0.6))
    centre = generator.uniform(0.1, 0.9, 2) * size
    left = int(max(0, centre[1] - radius))
    columns = np.arange(left, int(min(width, centre[1] + radius)) + 1)[: width - left]
    half = np.sqrt(np.maximum(radius**2 - (columns - centre[1]) ** 2, 0)) * generator.uniform(0.85, 1.15, len(columns))
    top = np.clip(centre[0] - half, 0, height - 1).astype(int)
    bottom = np.clip(centre[0] + half, 0, height - 1).astype(int)
    return left, np.stack([top, np.maximum(bottom - top, 0)], axis=1).reshape(-1).tolist()


def shifted(generator: np.random.Generator, shape: Blob, size: Size, by: int) -> Blob:
    """Return the same blob a little elsewhere and frayed."""
    left, spans = shape
    table = np.array(spans).reshape(-1, 2)
    table[:, 0] = np.clip(table[:, 0] + by + generator.integers(-1, 2, len(table)), 0, size[0] - 1)
    table[:, 1] = np.clip(table[:, 1] + generator.integers(-2, 3, len(table)), 0, size[0] - table[:, 0])
    left = int(np.clip(left + by, 0, size[1] - 1))
    return left, table[: size[1] - left].reshape(-1).tolist()


def segmentation(shape: Blob, size: Size) -> dict[str, Any]:
    """Return a blob as COCO's compressed run lengths."""
    left, spans = shape
    height, width = size
    runs, gap = [], left * height
    for top, tall in zip(spans[::2], spans[1::2], strict=True):
        if tall:
            runs += [gap + top, tall]
            gap = height - top - tall
        else:
            gap += height
    used = left * height + len(spans) // 2 * height
    return {"size": list(size), "counts": compress([*runs, gap + width * height - used])}


def category_of(generator: np.random.Generator) -> int:
    return int(generator.zipf(1.35)) % CATEGORIES + 1


def detection(generator: np.random.Generator, truths: list[tuple[Blob, int]], size: Size) -> dict[str, Any]:
    """Draw a record: mostly a true instance with another outline, else something that is not there."""
    if truths and generator.random() < 0.55:
        shape, category = truths[int(generator.integers(len(truths)))]
        shape = shifted(generator, shape, size, int(generator.integers(-6, 7)))
        category = category if generator.random() < 0.85 else int(generator.integers(1, CATEGORIES + 1))
    else:
        shape, category = blob(generator, size), category_of(generator)
    score = float(generator.random())
    score = round(score, 2) if generator.random() < 0.3 else score
    return {"category_id": category, "score": score, "segmentation": segmentation(shape, size)}


def write_set(folder: Path, images: int, seed: int = 2017) -> tuple[int, int]:
    """Write truth and detections; return how many of each."""
    generator = np.random.default_rng(seed)
    categories = [{"id": k, "name": f"category {k}"} for k in range(1, CATEGORIES + 1)]
    truth: dict[str, Any] = {"images": [], "categories": categories, "annotations": []}
    records = []
    for image in range(1, images + 1):
        size = ((480, 640), (512, 683))[image % 2]
        truth["images"].append({"id": image, "file_name": f"{image}.jpg", "height": size[0], "width": size[1]})
        shapes = [(blob(generator, size), category_of(generator)) for _ in range(int(generator.poisson(13.44)))]
        truth["annotations"] += [
            {
                "id": number,
                "image_id": image,
                "category_id": category,
                "area": sum(shape[1][1::2]),
                "iscrowd": 0,
                "segmentation": segmentation(shape, size),
            }
            for number, (shape, category) in enumerate(shapes, len(truth["annotations"]) + 1)
        ]
        count = 340 if image % 40 == 0 else int(generator.poisson(101))
        records += [{"image_id": image, **detection(generator, shapes, size)} for _ in range(count)]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "records.json").write_text(json.dumps(records))
    return len(truth["annotations"]), len(records)


def measured_wall(python: str, truth: str, records: str, jobs: int) -> float:
    """Return the seconds of `segjudge score` with so many processes, on all cores."""
    command = [python, "-m", "segjudge", "score", records, "--truth", truth, "--protocol", "places2017-official"]
    started = time.perf_counter()
    subprocess.run([*command, "--jobs", str(jobs)], check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to score with")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with the peers")
    parser.add_argument("--folder", help="keep the set here and use it again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        if not (folder / "records.json").exists():
            print("{} instances, {} detections".format(*write_set(folder, args.images)))
        truth, records = str(folder / "truth.json"), str(folder / "records.json")
        measure(args, truth, records)


def measure(args: argparse.Namespace, truth: str, records: str) -> None:
    """Print what ours and each peer takes, in turns, and the stages of ours."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    commands = {"segjudge": [args.python, "-c", OURS, str(ROOT), truth, records]}
    commands |= {name: [args.peer_python, "-c", code, truth, records] for name, code in PEERS.items()}
    runs: dict[str, list[tuple[float, float, float, str]]] = {name: [] for name in commands}
    for turn in range(args.repeat + 1):  # the first writes bytecode
        for name, command in commands.items():
            try:
                run = measured(command)
            except SystemExit as error:
                if not turn:
                    print(f"{name}: not measured ({str(error).splitlines()[-1]})")
                continue
            runs[name] += [run] if turn else []
    ours = min(run[0] for run in runs["segjudge"])
    for name, known in runs.items():
        if known:
            cpu, most = min(run[0] for run in known), max(run[0] for run in known)
            print(
                f"{name}: {cpu:.2f} CPU-s (spread {most / cpu - 1:.0%} of {len(known)} runs), "
                f"{max(run[2] for run in known):.0f} MB: ratio {cpu / ours:.2f}"
            )
            print("  ", known[0][3].splitlines()[-1][:200])
    print(measured([args.python, "-c", STAGES, str(ROOT), truth, records])[3], end="")
    walls = [min(measured_wall(args.python, truth, records, jobs) for _ in range(args.repeat)) for jobs in (1, 2)]
    print(f"wall: one process {walls[0]:.2f} s, two {walls[1]:.2f} s: {walls[1] / walls[0]:.2f}")


if __name__ == "__main__":
    main()
