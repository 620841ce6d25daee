"""Generated sets of label maps: VSPW, Cityscapes, COCO-Stuff and ADE20K."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.drawing import VOID, Lot, Regions, save, scaled, write
from benchmarks.families import COMPAT, NoisyTracks, SpeckledSet, TrackSet
from benchmarks.instances import Size
from benchmarks.speckle import write_labels
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.masks.run_lengths import encode_labels

CITYSCAPES = f"""{COMPAT}
os.environ["CITYSCAPES_DATASET"], os.environ["CITYSCAPES_RESULTS"] = f"{{data}}/truth", f"{{data}}/results"
from glob import glob
from cityscapesscripts.evaluation import evalPixelLevelSemanticLabeling as script
script.args.JSONOutput, script.args.quiet = False, True
truths = glob(script.args.groundTruthSearch)
predictions = [script.getPrediction(script.args, truth) for truth in truths]
found = script.evaluateImgLists(predictions, truths, script.args)
answer({{f"{{weighted}}IoU{{groups}}": found[f"averageScore{{'Inst' if weighted else ''}}{{kind}}"]
        for weighted in ("", "i") for groups, kind in (("", "Classes"), ("-categories", "Categories"))}})
"""

COCO_STUFF = f"""{COMPAT}
for name in ("cocostuffhelper", "cocostuffeval"):
    path = f"{{checkout}}/PythonAPI/pycocotools/{{name}}.py"
    specification = importlib.util.spec_from_file_location(f"pycocotools.{{name}}", path)
    sys.modules[f"pycocotools.{{name}}"] = script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
from pycocotools.coco import COCO
truth = COCO(f"{{data}}/truth.json")
evaluation = script.COCOStuffeval(truth, truth.loadRes(f"{{data}}/results.json"))
evaluation.evaluate()
names = [f"{{name}}{{suffix}}" for suffix in ("", "-super") for name in ("mIoU", "fwIoU", "Acc_class", "Acc")]
answer(dict(zip(names, evaluation.summarize()[0])))
"""

VSPW = f"""{COMPAT}
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.nn = sys.modules["torch.nn"] = types.ModuleType("torch.nn")
sys.argv = ["", f"{{data}}/truth", f"{{data}}/results"]
found = runpy.run_path(f"{{checkout}}/evaluator_test.py")
values = {{"mIoU": found["mIoU"], "Acc": found["Acc"], "Acc_class": found["Acc_class"], "fwIoU": found["FWIoU"]}}
for frames in (8, 16):
    with open(f"{{checkout}}/VC_perclip.py") as file:
        text = file.read().replace("clip_num=16", f"clip_num={{frames}}")
    space = {{}}
    exec(text, space)
    values[f"VC{{frames}}"] = space["Acc"]
answer(values)
"""

#: A plain program's handling of label maps.
LOOP = """
import json, sys
from pathlib import Path
import numpy as np
from PIL import Image
truth, results, out = map(Path, sys.argv[1:])
table = np.zeros((151, 151), np.int64)
for path in sorted(truth.glob("*.png")):
    true, sent = (np.array(Image.open(side / path.name)).astype(np.int64) for side in (truth, results))
    table += np.bincount((true * 151 + sent).ravel(), minlength=151 * 151).reshape(151, 151)
table[0] = 0
hits, union = np.diagonal(table)[1:], (table.sum(0) + table.sum(1) - np.diagonal(table))[1:]
present = table.sum(1)[1:] > 0
out.write_text(json.dumps({"mIoU": float((hits[present] / union[present]).mean())}))
"""


def vspw(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 343 videos with 71 frames each."""
    names = [f"v{number}" for number in range(scaled(343, scale))]
    for name in names:
        regions, classes = Regions(lot, size, 20), lot.integers(0, 124, 20)
        wrong = np.where(lot.random(20) < 0.8, classes, lot.integers(0, 124, 20))
        for index in range(int(lot.integers(5, 138))):
            truth = classes[regions.labels(index)]
            truth[: size[0] // 18] = VOID
            save(folder / "truth/data" / name / "mask" / f"{index:08d}.png", truth)
            sent = wrong[regions.labels(index, lot.normal(0, 1, (20, 2)))]
            save(folder / "results" / name / f"{index:08d}.png", sent)
    write(folder / "truth/val.txt", "".join(f"{name}\n" for name in names))


def cityscapes(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 500 images with 30 regions each."""
    ids = np.array(SEMANTIC_PROTOCOLS["cityscapes"].labels)
    sized = np.array([label for label, _ in SEMANTIC_PROTOCOLS["cityscapes"].sizes])
    for number in range(scaled(500, scale)):
        regions, classes = Regions(lot, size, 30), lot.choice(ids, 30)
        wrong = np.where(lot.random(30) < 0.8, classes, lot.choice(ids, 30))
        objects = np.where(np.isin(classes, sized), classes * 1000 + np.arange(30), classes)
        stem = f"town_{number:06d}_000019"
        truth = regions.labels(0)
        path = folder / f"truth/gtFine/val/town/{stem}_gtFine_instanceIds.png"
        save(path.with_name(f"{stem}_gtFine_labelIds.png"), classes[truth])
        Image.fromarray(objects.astype(np.uint16)[truth]).save(path, compress_level=3)
        save(folder / "results" / f"{stem}.png", wrong[regions.labels(0, lot.normal(0, 1, (30, 2)))])


def coco_stuff(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val2017's 5,000 images with 8 labels each."""
    categories = [{"id": label, "name": f"s{label}", "supercategory": f"g{label % 15}"} for label in range(92, 184)]
    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": categories}
    results = []
    for image in range(scaled(5000, scale)):
        regions, labels = Regions(lot, size, 8), lot.integers(92, 184, 8).astype(np.uint8)
        wrong = np.where(lot.random(8) < 0.8, labels, lot.integers(91, 184, 8)).astype(np.uint8)
        truth["images"].append({"id": image, "height": size[0], "width": size[1]})
        sides = (
            (labels, truth["annotations"], 0.0),
            (np.where(wrong == 91, 0, wrong), results, lot.normal(0, 1, (8, 2))),
        )
        for own, records, off in sides:
            records += [
                {"image_id": image, "category_id": label, "segmentation": {"size": list(size), "counts": counts},
                 "id": number, "iscrowd": 0, "area": 1, "bbox": [0, 0, 1, 1]}
                for number, (label, counts) in enumerate(
                    encode_labels(own[regions.labels(0, off)]).items(), len(records) + 1
                )
            ]  # fmt: skip
    write(folder / "truth.json", truth)
    write(folder / "results.json", results)


TRACK_SETS = {
    "vspw": TrackSet(
        vspw, (480, 853), {"vspw-official": ("VSPW_baseline", VSPW)}, "truth", "results", shared=0.03
    ),
    "cityscapes": TrackSet(
        cityscapes, (1024, 2048), {"cityscapes": ("cityscapesScripts", CITYSCAPES)}, "truth", "results", "label-maps"
    ),
    "coco-stuff": TrackSet(
        coco_stuff, (480, 640), {"coco-stuff-official": ("cocostuffapi", COCO_STUFF)}, figure="label-maps"
    ),
}  # fmt: skip
NOISY_SETS = {
    "vspw": NoisyTracks("vspw", "vspw-official", 4),
    "coco-stuff": NoisyTracks("coco-stuff", "coco-stuff-official", 20),
}


def _write_scenes(folder: Path, images: int) -> None:
    write_labels(folder, images, (512, 683), np.arange(151), 40, ".png")


SPECKLED_SETS = {"ade20k": SpeckledSet(_write_scenes, 100, LOOP, "Pillow and np.bincount", "mIoU")}
