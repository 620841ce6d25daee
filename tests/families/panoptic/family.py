"""The data of panoptic for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.data import FAMILIES_DATA
from tests.families.slips import BGR, MIRRORED, Slip, documents, pictures
from tests.published import FRAMES, SIZE, frames

#: Golden numbers of the shared data.
STEP = FAMILIES_DATA / "step/kitti-step"
CATEGORIES = [
    {"id": 1, "name": "swan", "isthing": 1}, {"id": 18, "name": "boat", "isthing": 1},
    {"id": 119, "name": "water", "isthing": 0},
]  # fmt: skip


#: Ids of segments, and their categories.
SEGMENTS = {70_000: 119, 257: 1, 600: 18}


def segments(image: Any) -> tuple[bytes, list[dict[str, int]]]:
    ids = np.array(list(SEGMENTS))[image]
    colours = np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8)
    return png(colours), [
        {"id": item, "category_id": category, "iscrowd": 0, "area": int((ids == item).sum())}
        for item, category in SEGMENTS.items()
    ]


def coco_panoptic(folder: Path) -> Path:
    """Return the JSON next to the folder of PNGs with its name."""
    files: dict[str, Any] = {}
    listed = []
    for number, (name, k) in enumerate(frames(), 139):
        files[f"panoptic_val2017/{number:012d}.png"], records = segments(published.labels(name, k))
        listed.append({"image_id": number, "file_name": f"{number:012d}.png", "segments_info": records})
    files["panoptic_val2017.json"] = {"annotations": listed, "categories": CATEGORIES, "images": []}
    return written(folder, files) / "panoptic_val2017.json"


def vipseg(folder: Path) -> Path:
    files: dict[str, Any] = {}
    annotations = []
    for video in published.VIDEOS:
        listed = []
        for k in range(FRAMES):
            files[f"panomasksRGB/{video}/{k:08d}.png"], records = segments(published.labels(video, k))
            listed.append({"image_id": f"{k:08d}", "file_name": f"{k:08d}.png", "segments_info": records})
        annotations.append({"video_id": video, "annotations": listed})
    videos = [{"video_id": video, "images": []} for video in published.VIDEOS]
    files["panoptic_gt_VIPSeg_val.json"] = {"videos": videos, "annotations": annotations, "categories": CATEGORIES}
    return written(folder / "VIPSeg", files)


#: A class that has objects, by protocol.
STEP_THINGS = {
    f"{name}-step{row}": thing for name, thing in (("kitti", 13), ("motchallenge", 4)) for row in ("", "-official")
}


def step_map(name: str, frame: int, thing: int) -> bytes:
    """Return a map with an object, a crowd, ground of the first class, and void at the top."""
    disks = published.labels(name, frame)
    classes = np.where(disks, thing, 0)
    classes[:4] = 255
    return png(np.dstack([classes, disks * 0, disks == 1]).astype(np.uint8))


def step(thing: int, folder: Path) -> Path:
    """Return maps of val, with those of train next to them."""
    maps = {f"panoptic_maps/val/{name}/{k:06d}.png": step_map(name, k, thing) for name, k in frames()}
    second = {"panoptic_maps/train/0000/000000.png": png(np.zeros((*SIZE, 3), np.uint8))}
    return written(folder / "step", {**maps, **second})


def without_areas(listed: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{"id": item["id"], "category_id": item["category_id"]} for item in listed]


def send_coco_panoptic(_truth: Path) -> bytes:
    """Return a JSON, and a folder of PNGs with its name."""
    files: dict[str, Any] = {}
    listed = []
    for number, (name, k) in enumerate(frames(), 139):
        files[f"panoptic_val2017_ours_results/{number:012d}.png"], records = segments(published.labels(name, k))
        listed.append({"image_id": number, "file_name": f"{number:012d}.png", "segments_info": without_areas(records)})
    return zipped({**files, "panoptic_val2017_ours_results.json": json.dumps({"annotations": listed})})


def send_vipseg(_truth: Path) -> bytes:
    """Return `pred.json` and `pan_pred`, as the script reads them."""
    files: dict[str, Any] = {}
    videos = []
    for video in published.VIDEOS:
        listed = []
        for k in range(FRAMES):
            files[f"pan_pred/{video}/{k:08d}.png"], records = segments(published.labels(video, k))
            listed.append({"file_name": f"{k:08d}.png", "segments_info": without_areas(records)})
        videos.append({"video_id": video, "annotations": listed})
    return zipped({**files, "pred.json": json.dumps({"annotations": videos}, ensure_ascii=False)})


def send_step(thing: int, _truth: Path) -> bytes:
    return zipped({f"{name}/{k:06d}.png": step_map(name, k, thing) for name, k in frames()})


_PUBLISHED: dict[str, Callable[[Path], Path]] = {
    "coco-panoptic": coco_panoptic, "coco-panoptic-boundary": coco_panoptic, "cityscapes-panoptic": coco_panoptic,
    **{name: partial(step, thing) for name, thing in STEP_THINGS.items()},
}  # fmt: skip
PUBLISHED = {name: _PUBLISHED.get(name, vipseg) for name in PANOPTIC_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "coco-panoptic": (send_coco_panoptic, {"PQ": 1, "SQ-Stuff": 1}),
    "coco-panoptic-boundary": (send_coco_panoptic, {"PQ": 1}),
    "cityscapes-panoptic": (send_coco_panoptic, {"PQ": 1}),
    "vipseg": (send_vipseg, {"VPQ": 1, "STQ": 1}),
    "vipseg-official": (send_vipseg, {"VPQ": 1, "STQ": 1}),
    **{name: (partial(send_step, thing), {"STQ": 1.0, "AQ": 1}) for name, thing in STEP_THINGS.items()},
}
UPLOAD_OF_OTHERS = ""
REFUSALS = {
    **dict.fromkeys(
        UPLOADS, "Send one zip with a JSON file that lists segments, and the PNGs whose colours are their ids"
    ),
    **dict.fromkeys(STEP_THINGS, "Send one zip with a folder of PNGs for each sequence: red is the class"),
}


def put_into_one_category(document: dict[str, Any]) -> None:
    for annotation in document["annotations"]:
        for segment in annotation["segments_info"]:
            segment["category_id"] = 18


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "channels": ("kitti-step", BGR, "red and blue look swapped: corrected, the mean IoU of categories would be 1.00 instead of 0.49 (tried on 2 of 2"),
    "channels-mot": ("motchallenge-step", BGR, "red and blue look swapped"),
    "roads alone": ("kitti-step", pictures(lambda image: image * 0), "all places of the maps have the same value"),
    "mirrored maps": ("kitti-step", MIRRORED, "maps look mirrored, with left and right exchanged: corrected, the mean IoU of categories would be 1.00"),
    "mirrored segments": ("coco-panoptic", MIRRORED, "maps look mirrored"),
    "mirrored videos": ("vipseg", MIRRORED, "maps look mirrored"),
    "rotated segments": ("coco-panoptic", pictures(lambda image: image[::-1, ::-1]), "maps look rotated by 180 degrees"),
    "one category": ("coco-panoptic", documents(put_into_one_category), "all places of the maps have the same value (18)"),
    "all void": ("motchallenge-step", pictures(lambda image: image * 0 + np.uint8(255)), "all places of the maps have the same value"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"kitti-step": ["panoptic_maps/val/solo", "panoptic_maps/val/late-guest"]}
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "vipseg": (lambda root: (root / "panomasksRGB/swan/00000001.png").unlink(), "no PNG swan/00000001.png"),
    "coco-panoptic": (lambda path: published.replaced(path, '"category_id": 18', '"category_id": 19'), "139: cannot be read"),
    "coco-panoptic-boundary": (lambda path: published.replaced(path, '"isthing"', '"is"'), "cannot be read as a panoptic truth"),
}  # fmt: skip
LOSSES = {"coco-panoptic": "PQ", "vipseg": "VPQ"}
SHARED_LOSSES = {
    "vipseg": ("vps/truth.json", "vps/submission", "VPQ"),
    "kitti-step": (STEP / "truth", STEP / "ordinary", "AQ and IoU"),
    "kitti-step-official": (STEP / "truth", STEP / "void-predicted", "AQ and IoU"),
}
UNFIT: dict[str, list[tuple[str, str]]] = {
    "vipseg": [("coco-panoptic", "coco-panoptic")],
    "coco-panoptic": [("vipseg", "vipseg")],
}
SEGMENT_FRAMES = [(frame + 1, {1: 1, 2: 2, 3: 1}) for frame in published.LABEL_FRAMES]
THING_AND_STUFF = [{"id": 1, "name": "thing", "isthing": 1}, {"id": 2, "name": "stuff", "isthing": 0}]
SAVED_MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "coco-panoptic": (SEGMENT_FRAMES, THING_AND_STUFF),
    "vipseg": ({"a": SEGMENT_FRAMES}, THING_AND_STUFF),
}
DAMAGED_FACTS: dict[str, list[dict[str, Any]]] = {
    "vipseg": [{"categories": [[1, "thing", 5]]}],
    "coco-panoptic": [{"categories": [[1, ["thing"], True]]}, {"categories": []}, {}],
}
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "coco-panoptic": ("PQ", "SQ", "RQ", "PQ-Things", "SQ-Things", "PQ-Stuff", "SQ-Stuff"),
    "vipseg": ("VPQ", "VPQ-Things", "VPQ-Stuff", "STQ", "AQ", "IoU"),
}
JSON_TRUTHS = {"coco-panoptic": "panoptic_val2017.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "no label maps": ("coco-panoptic", "vipseg"),
    "first screens": ("coco-panoptic",),
    "sharing": ("coco-panoptic", "vipseg"),
    "promises": ("kitti-step",),
    "pages": ("coco-panoptic", "vipseg", "kitti-step"),
    "pages of reports": ("kitti-step", "vipseg"),
    "mounts": ("coco-panoptic", "vipseg", "kitti-step"),
    "any names": ("vipseg",),
    "folders": ("vipseg",),
    "surplus": ("coco-panoptic", "kitti-step"),
    "samples": ("coco-panoptic", "vipseg", "kitti-step"),
    "rankings": ("vipseg",),
    "painted": ("coco-panoptic", "vipseg", "kitti-step"),
    "painted beside": ("coco-panoptic",),
    "subsets": ("vipseg", "coco-panoptic"),
    "chosen units": ("vipseg",),
    "hosts": ("coco-panoptic", "vipseg"),
}
SAMPLE_SCORES = {
    "coco-panoptic": (0.9284414162388879, 0.5093233691799693),
    "coco-panoptic-boundary": (0.8197555383119421, 0.15831593862314097),
    "cityscapes-panoptic": (0.9284414162388879, 0.5093233691799693),
    "vipseg": (0.9271017333893565, 0.4981024926674952),
    "vipseg-official": (0.9271017333893565, 0.4981024926674952),
    "kitti-step": (0.9169435709427953, 0.515818792412859),
    "kitti-step-official": (0.9169435709427953, 0.515818792412859),
    "motchallenge-step": (0.9169435709427953, 0.515818792412859),
    "motchallenge-step-official": (0.9169435709427953, 0.515818792412859),
}
