"""Compare the drop-in for pycocotools with other packages that replace its classes.

    python -m benchmarks.drop_in [--images 1000] [--repeat N] [--peer-python PYTHON] [--folder FOLDER]

The set is that of `instances`, and each record has a box beside its mask, as detectors write it.  Masks are written as
texts, with smooth edges or with ragged ones and speckle, as lists of counts, and as polygons.  Keypoints are those of
`keypoints`, five images for each of `instances`.  The small set has 50 images. Each process imports the classes, loads
truth and detections, evaluates, accumulates and summarizes, on one core.  A list in memory stays in use, as in Detectron2, MMDetection and
torchvision's reference.  Peers are those that their interpreter has; their statistics are compared with ours.  Files are
scored by the command, too, which also prints categories and standard errors.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import keypoints
from benchmarks.detectors import write_forms
from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, add_peers, least, options, segjudge, show, take_turns
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS

PROGRAM = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()):
    from PACKAGE.coco import COCO
    from PACKAGE.cocoeval import COCOeval
    truth, detections, kind, way = sys.argv[1:]
    coco = COCO(truth)
    given = json.load(open(detections)) if way == "list" else detections
    found = coco.loadRes(given)
    run = COCOeval(coco, found, kind)
    run.evaluate()
    run.accumulate()
    run.summarize()
print(json.dumps([float(value) for value in run.stats]))
"""
HOTCOCO = PROGRAM.replace("PACKAGE.cocoeval", "hotcoco").replace("PACKAGE.coco", "hotcoco")
HOTCOCO = HOTCOCO.replace("loadRes", "load_res")
VERNIER = """
import json, sys
from vernier.instance import Bbox, Evaluator, Keypoints, Segm
truth, detections, kind, way = sys.argv[1:]
both = [open(path, "rb").read() for path in (truth, detections)]
if way == "list":
    both[1] = json.loads(both[1])
summary = Evaluator(iou={"segm": Segm, "bbox": Bbox, "keypoints": Keypoints}[kind](), parity_mode="strict").evaluate(*both, num_threads=1)
print(json.dumps(list(map(float, summary.stats))))
"""
FASTER = PROGRAM.replace("PACKAGE.cocoeval import COCOeval", "faster_coco_eval import COCOeval_faster as COCOeval")
FASTER = FASTER.replace("PACKAGE.coco", "faster_coco_eval")
#: The programs by name; Segjudge's is first.
PROGRAMS = {
    "segjudge.drop_in": PROGRAM.replace("PACKAGE", "segjudge.drop_in"),
    "ultrafast-pycocotools": PROGRAM.replace("PACKAGE", "ultrafast_pycocotools"),
    "hotcoco": HOTCOCO,
    "vernier": VERNIER,
    "faster-coco-eval": FASTER,
    "pycocotools": PROGRAM.replace("PACKAGE", "pycocotools"),
}
#: The subjects of the comparison: files of truth and detections, kind, and whether the program has parsed the latter.
CASES = {
    "masks, of a file with boxes beside them": ("truth.json", "both.json", "segm", "file"),
    "masks with ragged edges and speckle": ("truth.json", "ragged.json", "segm", "file"),
    "masks as lists of counts": ("truth.json", "counts.json", "segm", "file"),
    "masks as polygons": ("truth.json", "polygons.json", "segm", "file"),
    "boxes, of the first file": ("truth.json", "both.json", "bbox", "file"),
    "boxes, of a file without masks": ("truth.json", "boxes.json", "bbox", "file"),
    "boxes, of a list in memory": ("truth.json", "boxes.json", "bbox", "list"),
    "masks, small set": ("small/truth.json", "small/both.json", "segm", "file"),
    "boxes, small set": ("small/truth.json", "small/boxes.json", "bbox", "file"),
    "keypoints, of a file with boxes beside them": ("points/truth.json", "points/records.json", "keypoints", "file"),
}
#: The column of the command, and its protocol by kind.
COMMAND = "segjudge score"
PROTOCOLS = {
    "segm": "coco-official",
    "bbox": next(name for name, row in INSTANCE_PROTOCOLS.items() if row.boxes),
    "keypoints": keypoints.PROTOCOL,
}
#: The images with keypoints for each image with masks, and the images of the small set.
POINTED, FEW = 5, 50


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--folder", help="keep the set here and use it again")
    add_peers(parser)
    args = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        if not (folder / "polygons.json").exists():
            print("{} instances, {} detections".format(*write_forms(folder, args.images)))
        if not (folder / "small").exists():
            (folder / "small").mkdir()
            write_forms(folder / "small", min(FEW, args.images))
        if not (folder / "points").exists():
            (folder / "points").mkdir()
            print("{} people, {} detections".format(*keypoints.write_set(folder / "points", POINTED * args.images)))
        for case, (truth, file, kind, way) in CASES.items():
            given = [str(folder / truth), str(folder / file), kind, way]
            tasks = {
                name: Task([args.peer_python if index else sys.executable, "-c", code, *given], is_peer=index > 0)
                for index, (name, code) in enumerate(PROGRAMS.items())
            }
            if way == "file":
                tasks[COMMAND] = Task(segjudge("score", given[1], "--truth", given[0], "--protocol", PROTOCOLS[kind]))
            runs = take_turns(tasks, args.repeat)
            known = [name for name in runs if name != COMMAND]
            (own, *others) = (json.loads(runs[name][0].printed.splitlines()[-1]) for name in known)
            for name, values in zip(known[1:], others, strict=True):
                if any(abs(one - two) > CLOSE for one, two in zip(own, values, strict=True)):
                    print(f"{case}: {name} has {values}, here {own}")
            best = [least(runs[name]) if name in runs else None for name in (*PROGRAMS, COMMAND)]
            rows.append([case, *(f"{run.cpu:.2f}, {run.megabytes:.0f}" if run else "" for run in best)])
    return show(Table(["CPU seconds, MB", *PROGRAMS, COMMAND], rows))


if __name__ == "__main__":
    main()
