"""Compare the scoring of as many instance masks as in Places with pycocotools and others.

    python -m benchmarks.instances [--images 1000] [--repeat N] [--peer-python PYTHON] [--folder FOLDER]

Peers are those that their interpreter has.  The set is made by a seeded generator: images of 480×640 and 512×683, 15
instances an image in 100 categories, about 107 detections an image (some images 340), scores with ties.  Everything runs
on one core; every peer's AP is compared with ours.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Table, Task, add_peers, cost_rows, options, segjudge, show, take_turns
from segjudge.evaluation_script.masks.run_lengths import compress

CATEGORIES = 100
#: Numbers that differ by more are reported.
CLOSE = 1e-9

PYCOCOTOOLS = """
import contextlib, io, sys
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
print(float(taken[taken > -1].mean()))
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
import sys
from hotcoco import COCO, COCOeval
truth = COCO(sys.argv[1])
run = COCOeval(truth, truth.load_res(sys.argv[2]), "segm")
run.params.max_dets = [1, 50, 255]
run.evaluate()
run.accumulate()
run.summarize()
print(float(run.stats[0]))
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
    """Return the blob slightly moved, with a frayed outline."""
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
    """Return a record: mostly a true instance with another outline, else a false detection."""
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
    """Write truth and detections; return their numbers."""
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


def compare_with_peers(
    about: str | None,
    protocol: str,
    peers: dict[str, str],
    write: Callable[[Path, int], tuple[int, int]],
    images: int,
    arguments: Sequence[str] | None,
) -> Table:
    """Compare the scoring of a set with other tools; `write` makes the set for a number of images."""
    parser = options(about)
    parser.add_argument("--images", type=int, default=images)
    parser.add_argument("--folder", help="keep the set here and use it again")
    add_peers(parser)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        truth, records, scores = (folder / name for name in ("truth.json", "records.json", "scores.json"))
        if not records.exists():
            print("{} instances, {} detections".format(*write(folder, args.images)))
        command = segjudge("score", records, "--truth", truth, "--protocol", protocol)
        tasks = {"segjudge score": Task(command), "the same, written as JSON": Task([*command, "--json", str(scores)])}
        tasks |= {
            name: Task([args.peer_python, "-c", code, str(truth), str(records)], is_peer=True)
            for name, code in peers.items()
        }
        runs = take_turns(tasks, args.repeat)
        own = json.loads(scores.read_text())["result"][0]["val"]["AP"]
    for name in peers.keys() & runs.keys():
        value = float(runs[name][0].printed.splitlines()[-1])
        if abs(value - own) > CLOSE:
            print(f"{name}: AP {value}, here {own}")
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], cost_rows(runs, "segjudge score")))


def main(arguments: Sequence[str] | None = None) -> Table:
    return compare_with_peers(__doc__, "places2017-official", PEERS, write_set, 1000, arguments)


if __name__ == "__main__":
    main()
