"""Generated sets of instances: in images and videos, of streets, with keypoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.drawing import Lot, Regions, area, near, save, scaled, score, tube, write
from benchmarks.families import COMPAT, HD, Orphan, TrackSet
from benchmarks.instances import Blob, Size, blob, segmentation, shifted, write_set
from benchmarks.keypoints import POINTS, people, poses
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS

_SIZE = (480, 640)
#: The number of different shapes.
_SHAPES = 400
CITYSCAPES_INSTANCES = f"""{COMPAT}
os.environ["CITYSCAPES_DATASET"], os.environ["CITYSCAPES_RESULTS"] = f"{{data}}/truth", f"{{data}}/results"
from glob import glob
from cityscapesscripts.evaluation import evalInstanceLevelSemanticLabeling as script
os.chdir(data)  # where it writes its matches
script.args.JSONOutput, script.args.quiet, script.args.gtInstancesFile = False, True, f"{{data}}/instances.json"
truths = glob(script.args.groundTruthSearch)
found = script.evaluateImgLists([script.getPrediction(truth, script.args) for truth in truths], truths, script.args)
os.remove(script.args.gtInstancesFile)
answer({{"AP": found["averages"]["allAp"], "AP50%": found["averages"]["allAp50%"]}})
"""

VIDEO = """
import pycocotools
pycocotools.__path__.append(f"{checkout}/PythonAPI/pycocotools")
def stats(load, evaluator):
    truth = load(f"{data}/truth.json")
    run = evaluator(truth, truth.loadRes(f"{data}/results.json"), "segm")
    run.evaluate(); run.accumulate(); run.summarize()
    return run.stats
"""

YOUTUBE_VIS = f"""{COMPAT}{VIDEO}
from pycocotools.ytvos import YTVOS
from pycocotools.ytvoseval import YTVOSeval
names = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl")
answer(dict(zip(names, stats(YTVOS, YTVOSeval))))
"""

OVIS = f"""{COMPAT}{VIDEO}
from pycocotools.ovis import OVIS
from pycocotools.oviseval import OVISeval
names = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AP-light", "AP-medium", "AP-heavy"]
names += ["AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl", "AR-light", "AR-medium", "AR-heavy"]
answer(dict(zip(names, stats(OVIS, OVISeval))))
"""

LVIS = f"""{COMPAT}
from lvis import LVIS, LVISEval, LVISResults
truth = LVIS(f"{{data}}/truth.json")
run = LVISEval(truth, LVISResults(truth, f"{{data}}/results.json"), "segm")
run.run()
answer(dict(run.get_results()))
"""

BOUNDARY_LVIS = f"""{COMPAT}
from boundary_iou.lvis_instance_api.eval import LVISEval
run = LVISEval(f"{{data}}/truth.json", f"{{data}}/results.json", "boundary")
run.run()
answer(dict(run.get_results()))
"""

BOUNDARY = f"""{COMPAT}
from boundary_iou.coco_instance_api.coco import COCO
from boundary_iou.coco_instance_api.cocoeval import COCOeval
truth = COCO(f"{{data}}/truth.json", get_boundary=True)
run = COCOeval(truth, truth.loadRes(f"{{data}}/results.json"), "boundary")
run.evaluate(); run.accumulate(); run.summarize()
names = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl")
answer(dict(zip(names, run.stats)))
"""


def cityscapes_instances(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 500 images with 20 objects and 40 detections each, half of them noise."""
    labels = np.array([label for label, _ in SEMANTIC_PROTOCOLS["cityscapes"].sizes])
    for number in range(scaled(500, scale)):
        regions, stem = Regions(lot, size, 30), f"town_{number:06d}_000019"
        classes = np.append(lot.choice(labels, 20), np.full(10, 7))
        objects = np.where(classes == 7, classes, classes * 1000 + np.arange(30))
        path = folder / f"truth/gtFine/val/town/{stem}_gtFine_instanceIds.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(objects.astype(np.uint16)[regions.labels(0)]).save(path, compress_level=3)
        lines = []
        for shift in (1, 12):
            moved = regions.labels(0, lot.normal(0, shift * size[0] / 1024, (30, 2)))
            for region in range(20):
                name = f"masks/{stem}_{shift}_{region}.png"
                save(folder / "results" / name, np.uint8(255) * (moved == region))
                label = classes[region] if lot.random() < 0.9 else lot.choice(labels)
                lines.append(f"{name} {label} {lot.random():.3f}\n")
        write(folder / f"results/{stem}.txt", "".join(lines))


def video_instances(videos: int, frames: int, *, labels: bool) -> Callable[[Path, Lot, float, Size], None]:
    def make(folder: Path, lot: Lot, scale: float, size: Size) -> None:
        truth: dict[str, Any] = {"videos": [], "annotations": [], "categories": []}
        truth["categories"] = [{"id": k, "name": f"c{k}"} for k in range(1, 41)]
        records: list[Any] = []
        for video in range(1, scaled(videos, scale) + 1):
            count = int(lot.integers(frames // 2, frames * 3 // 2 + 1))
            truth["videos"].append({"id": video, "height": size[0], "width": size[1], "length": count})
            for _ in range(int(lot.integers(1, 8))):
                shape, category = blob(lot, size), int(lot.integers(1, 41))
                masks = tube(lot, shape, size, count, 0.85)
                number = len(truth["annotations"]) + 1
                record = {"id": number, "video_id": video, "category_id": category, "segmentations": masks}
                record |= {"iscrowd": int(lot.random() < 0.03), "areas": [area(mask) for mask in masks]}
                if labels:
                    kinds = np.array(["no_occlusion", "slight_occlusion", "severe_occlusion"])
                    drawn = lot.choice(kinds, count).tolist()
                    record["occlusion"] = [label if mask else None for label, mask in zip(drawn, masks, strict=True)]
                    record["occlusion"][0] = record["occlusion"][0] or "no_occlusion"
                truth["annotations"].append(record)
                for _ in range(int(lot.integers(0, 9))):
                    kind = category if lot.random() < 0.8 else int(lot.integers(1, 41))
                    sent = near(lot, masks, shape, size)
                    records.append({"video_id": video, "category_id": kind, "score": score(lot), "segmentations": sent})
        write(folder / "truth.json", truth)
        write(folder / "results.json", records)

    return make


def image_instances(images: int, *, federated: bool) -> Callable[[Path, Lot, float, Size], None]:
    def make(folder: Path, lot: Lot, scale: float, size: Size) -> None:
        del size  # those of `instances`
        folder.mkdir(parents=True, exist_ok=True)
        write_set(folder, scaled(images, scale), int(lot.integers(1 << 30)))
        (folder / "records.json").rename(folder / "results.json")
        if not federated:
            return
        truth = json.loads((folder / "truth.json").read_text())
        numbers = [category["id"] for category in truth["categories"]]
        for category in truth["categories"]:
            category["frequency"] = "rcf"[int(lot.integers(3))]
        present: dict[int, set[int]] = {}
        for record in truth["annotations"]:
            present.setdefault(record["image_id"], set()).add(record["category_id"])
        for image in truth["images"]:
            there = present.get(image["id"], set())
            others = [number for number in numbers if number not in there]
            image["neg_category_ids"] = lot.choice(others, 20, replace=False).tolist()
            image["not_exhaustive_category_ids"] = [record for record in sorted(there) if lot.random() < 0.1]
        write(folder / "truth.json", truth)

    return make


def stream(path: Path, head: str, records: Iterator[Any], tail: str) -> None:
    """Write a list item by item, since it may not fit into memory."""
    with path.open("w") as file:
        file.write(head)
        for number, record in enumerate(records):
            file.write(("," if number else "") + json.dumps(record, separators=(",", ":")))
        file.write(tail)


def _images(count: int, categories: int, lot: Lot | None = None) -> str:
    """Return the beginning of a truth; a generator adds the categories that each image lacks, as in LVIS."""
    listed: list[dict[str, Any]] = [
        {"id": image, "file_name": f"{image:012d}.jpg", "height": _SIZE[0], "width": _SIZE[1]}
        for image in range(1, count + 1)
    ]
    named = [{"id": number, "name": f"category {number}"} for number in range(1, categories + 1)]
    if lot is not None:
        named = [{**category, "frequency": "rcf"[int(category["id"]) % 3]} for category in named]
        for image in listed:
            image["neg_category_ids"] = lot.integers(1, categories + 1, 12).tolist()
            image["not_exhaustive_category_ids"] = []
    return f'{{"images": {json.dumps(listed)}, "categories": {json.dumps(named)}, "annotations": ['


def _write_instances(
    folder: Path, lot: Lot, count: int, *, boxes: bool = False, each: int = 100, kinds: int = 80
) -> None:
    """Write 7 instances per image (12 if there are many categories) and their detections."""
    mean = 7.3 if kinds == 80 else 12.3
    shapes: list[Blob] = [blob(lot, _SIZE) for _ in range(_SHAPES)]
    drawn = [segmentation(shape, _SIZE) for shape in shapes]
    frayed = [segmentation(shifted(lot, shape, _SIZE, int(lot.integers(-6, 7))), _SIZE) for shape in shapes]
    areas = [sum(shape[1][1::2]) for shape in shapes]
    around = [_box(shape) for shape in shapes]
    instances = [np.add(lot.integers(0, (_SHAPES, kinds), (int(lot.poisson(mean)), 2)), (0, 1)) for _ in range(count)]

    def annotations() -> Iterator[Any]:
        number = 0
        for image, rows in enumerate(instances, 1):
            for shape, category in rows.tolist():
                number += 1
                yield {
                    "id": number, "image_id": image, "category_id": category, "iscrowd": 0, "area": areas[shape],
                    "bbox": around[shape], "segmentation": drawn[shape],
                }  # fmt: skip

    def detections() -> Iterator[Any]:
        for image, rows in enumerate(instances, 1):
            chosen = lot.integers(0, max(len(rows), 1), each)
            near, scores = lot.random(each) < 0.55 * bool(len(rows)), lot.random(each).round(4).tolist()
            others = np.add(lot.integers(0, (_SHAPES, kinds), (each, 2)), (0, 1)).tolist()
            for index, row in enumerate(chosen.tolist()):
                shape, category = rows[row].tolist() if near[index] else others[index]
                place = {"bbox": around[shape]} if boxes else {"segmentation": frayed[shape]}
                yield {"image_id": image, "category_id": category, "score": scores[index], **place}

    stream(folder / "truth.json", _images(count, kinds, None if kinds == 80 else lot), annotations(), "]}")
    stream(folder / "results.json", "[", detections(), "]")


def _box(shape: Blob) -> list[float]:
    left, spans = shape
    table = np.array(spans).reshape(-1, 2)
    top = int(table[:, 0].min())
    return [left + 0.25, top + 0.5, len(table), int((table.sum(axis=1)).max()) - top]


def _write_keypoints(folder: Path, lot: Lot, count: int, each: int = 100) -> None:
    """Write 2.2 people per image, and detections."""
    drawn = [
        (group, list(poses(lot, group, each))) for group in (people(lot, int(lot.poisson(2.2))) for _ in range(50))
    ]
    names = [f"point {number}" for number in range(1, POINTS + 1)]
    head = _images(count, 1).replace('"name": "category 1"', f'"name": "person", "keypoints": {json.dumps(names)}')
    order = lot.integers(0, len(drawn), count).tolist()
    annotations = (
        {"image_id": image, **person} for image, number in enumerate(order, 1) for person in drawn[number][0]
    )
    stream(folder / "truth.json", head, ({"id": k, **one} for k, one in enumerate(annotations, 1)), "]}")
    stream(
        folder / "results.json",
        "[",
        ({"image_id": image, **pose} for image, number in enumerate(order, 1) for pose in drawn[number][1]),
        "]",
    )


def _write_videos(folder: Path, lot: Lot, count: int, *, frames: int, labels: bool) -> None:
    video_instances(count, frames, labels=labels)(folder, lot, 1, (720, 1280))


TRACK_SETS = {
    "cityscapes-instance": TrackSet(
        cityscapes_instances, (1024, 2048),
        {"cityscapes-instance-official": ("cityscapesScripts", CITYSCAPES_INSTANCES)}, "truth", "results",
        "street-instances",
    ),
    "youtube-vis": TrackSet(
        video_instances(421, 30, labels=False), HD, {"youtube-vis-2021": ("youtube-vis", YOUTUBE_VIS)}
    ),
    "ovis": TrackSet(
        video_instances(140, 60, labels=True), (1080, 1920), {"ovis": ("ovis", OVIS)}, figure="small-sets"
    ),
    "lvis": TrackSet(
        image_instances(19_809, federated=True), _SIZE,
        {"lvis": ("lvis-api", LVIS), "lvis-boundary": ("boundary-iou-api", BOUNDARY_LVIS)},
    ),
    "coco-boundary": TrackSet(
        image_instances(5000, federated=False), _SIZE, {"coco-boundary": ("boundary-iou-api", BOUNDARY)}
    ),
}  # fmt: skip

_FEDERATED = partial(_write_instances, each=300, kinds=1203)
_SHORT_VIDEOS = partial(_write_videos, frames=36, labels=False)
_LONG_VIDEOS = partial(_write_videos, frames=63, labels=True)
ORPHANS = {
    orphan.protocol: orphan
    for orphan in (
        Orphan("coco-box", "COCO test-dev, 100 boxes each", 20_288, partial(_write_instances, boxes=True)),
        Orphan("coco", "COCO test-dev, 100 masks each", 20_288, partial(_write_instances, boxes=False)),
        Orphan("coco-keypoints", "COCO test-dev, 100 sets of keypoints each", 20_288, _write_keypoints, figure=""),
        Orphan("lvis", "LVIS test-dev, 300 masks each", 19_822, _FEDERATED),
        Orphan("youtube-vis-2021", "YouTube-VIS 2021 val, 36 frames of 720p", 421, _SHORT_VIDEOS),
        Orphan("ovis", "OVIS val, 63 frames of 720p", 140, _LONG_VIDEOS),
    )
}
