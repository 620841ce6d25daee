"""The data of instances for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import numpy as np
from pycocotools import mask as coco

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.families.choices import MAPS
from tests.families.slips import Slip, records
from tests.published import FRAMES, SIZE, frames, rle
from tests.scoring.shares import Files, write_instances


def coco_instances(folder: Path) -> Path:
    """Return polygons, with LVIS's facts about images and categories."""
    squares = [(10, 10), (40, 50), (20, 80)]
    annotations = [
        {
            "id": k + 1, "image_id": 1 + k % 2, "category_id": 3, "iscrowd": 0, "area": 400, "bbox": [x, y, 20, 20],
            "segmentation": [[x, y, x + 20, y, x + 20, y + 20, x, y + 20]],
        }
        for k, (y, x) in enumerate(squares)
    ]  # fmt: skip
    images = [
        {
            "id": k, "height": SIZE[0], "width": SIZE[1], "file_name": f"{k}.jpg", "neg_category_ids": [],
            "not_exhaustive_category_ids": [],
        }
        for k in (1, 2)
    ]  # fmt: skip
    categories = [{"id": 3, "name": "box", "frequency": "c"}]
    document = {"images": images, "categories": categories, "annotations": annotations}
    return written(folder, {"instances_val.json": document}) / "instances_val.json"


def coco_keypoints(folder: Path) -> Path:
    """Return people with all, some or none of COCO's 17 points, and a crowd."""
    corners = [(10, 10), (40, 50), (20, 80), (60, 100)]
    annotations = []
    for k, (y, x) in enumerate(corners):
        marks = [2 * int(point % 4 >= k) for point in range(17)] if k < 3 else [0] * 17
        points = [[x + point, y + 2 * point % 20, mark] if mark else [0, 0, 0] for point, mark in enumerate(marks)]
        annotations.append({
            "id": k + 1, "image_id": 1 + k % 2, "category_id": 1, "iscrowd": int(k == 2), "area": 1100 + k,
            "bbox": [x, y, 20, 20], "keypoints": [number for point in points for number in point],
            "num_keypoints": sum(map(bool, marks)),
            "segmentation": [[x, y, x + 20, y, x + 20, y + 20, x, y + 20]],
        })  # fmt: skip
    images = [{"id": k, "height": SIZE[0], "width": SIZE[1], "file_name": f"{k}.jpg"} for k in (1, 2)]
    categories = [{"id": 1, "name": "person", "keypoints": [f"point {k}" for k in range(17)], "skeleton": [[1, 2]]}]
    document = {"images": images, "categories": categories, "annotations": annotations}
    return written(folder, {"person_keypoints_val.json": document}) / "person_keypoints_val.json"


def video_instances(folder: Path) -> Path:
    """Uncompressed run lengths, as YouTube-VIS and OVIS publish them, and a frame without a mask."""
    annotations = []
    for video, name in enumerate(published.VIDEOS, 1):
        for number in (1, 2):
            masks = [published.labels(name, k) == number for k in range(FRAMES)]
            runs: list[Any] = [
                {"size": list(SIZE), "counts": np.diff(np.flatnonzero(np.diff(down, prepend=0)), prepend=0).tolist()}
                for down in (mask.T.reshape(-1).astype(np.int8) for mask in masks)
            ]
            for mask in runs:
                mask["counts"].append(SIZE[0] * SIZE[1] - sum(mask["counts"]))
            areas: list[Any] = [int(mask.sum()) for mask in masks]
            runs[3] = areas[3] = None
            annotations.append({
                "id": len(annotations) + 1, "video_id": video, "category_id": number, "iscrowd": 0, "areas": areas,
                "height": SIZE[0], "width": SIZE[1], "segmentations": runs,
                "occlusion": [None if area is None else "slight_occlusion" for area in areas],
            })  # fmt: skip
    videos = [{"id": k, "height": SIZE[0], "width": SIZE[1], "length": FRAMES, "file_names": []} for k in (1, 2)]
    categories = [{"id": 1, "name": "large"}, {"id": 2, "name": "small"}]
    document = {"videos": videos, "categories": categories, "annotations": annotations}
    return written(folder, {"valid.json": document}) / "valid.json"


def numbered(name: str, frame: int) -> Any:
    """Return a map of numbered objects, enlarged until they count."""
    ids = published.streets(name, frame).repeat(4, axis=0).repeat(4, axis=1)
    return np.where(ids > 7, 1000 * ids, ids).astype(np.uint16)


def cityscapes_instances(folder: Path) -> Path:
    maps = {
        f"gtFine/val/{name}/{name}_{k:06d}_000019_gtFine_instanceIds.png": png(numbered(name, k))
        for name, k in frames()
    }
    return written(folder / "cityscapes", maps)


def send_coco(truth: Path) -> bytes:
    """Return a plain list; masks are boxes here, so that run lengths can be written without a library."""
    records = []
    for item in json.loads(truth.read_text())["annotations"]:
        x, y, width, height = item["bbox"]
        mask = np.zeros(SIZE, bool)
        mask[y : y + height, x : x + width] = True
        record = {key: item[key] for key in ("image_id", "category_id")}
        records.append({**record, "score": 0.9, "segmentation": rle(mask)})
    return json.dumps(records).encode()


def send_keypoints(truth: Path) -> bytes:
    """Return a plain list, with flags of 1 and the boxes that some tools add."""
    return json.dumps([
        {
            "image_id": item["image_id"], "category_id": 1, "score": 0.9, "bbox": [0, 0, 9, 9],
            "keypoints": [1 if k % 3 == 2 else number for k, number in enumerate(item["keypoints"])],
        }
        for item in json.loads(truth.read_text())["annotations"]
    ]).encode()  # fmt: skip


def send_video_instances(truth: Path) -> bytes:
    """`results.json` in a zip, with null if an object is not visible."""
    names = list(published.VIDEOS)
    records = [
        {
            "video_id": item["video_id"], "category_id": item["category_id"], "score": 0.9,
            "segmentations": [
                mask and rle(published.labels(names[item["video_id"] - 1], k) == item["category_id"])
                for k, mask in enumerate(item["segmentations"])
            ],
        }
        for item in json.loads(truth.read_text())["annotations"]
    ]  # fmt: skip
    return zipped({"results.json": json.dumps(records)})


def send_cityscapes_instances(_truth: Path) -> bytes:
    """Return a text for each image that names a mask of every object."""
    members: dict[str, bytes] = {}
    for name, k in frames():
        image, numbers = f"{name}_{k:06d}_000019", numbered(name, k)
        values = [number // 1000 for number in np.unique(numbers).tolist() if number >= 1000]
        members |= {f"pred/{image}/{label}.png": png(np.uint8(255) * (numbers == 1000 * label)) for label in values}
        members[f"pred/{image}_pred.txt"] = "".join(f"{image}/{label}.png {label} 0.9\n" for label in values).encode()
    return zipped(members)


_PUBLISHED: dict[str, Callable[[Path], Path]] = {
    "coco-keypoints": coco_keypoints, "coco-keypoints-official": coco_keypoints,
    "cityscapes-instance": cityscapes_instances, "cityscapes-instance-official": cityscapes_instances,
}  # fmt: skip
PUBLISHED = {
    name: video_instances if rules.tubes else _PUBLISHED.get(name, coco_instances)
    for name, rules in INSTANCE_PROTOCOLS.items()
}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "coco": (send_coco, {"AP": 1}),
    "coco-boundary": (send_coco, {"AP": 1}),
    "coco-keypoints": (send_keypoints, {"AP": 1, "APm": 1, "AR75": 1}),
    "coco-keypoints-official": (send_keypoints, {"AP": 1, "APm": 1}),
    "lvis": (send_coco, {"AP": 1, "APc": 1}),
    "youtube-vis-2019": (send_video_instances, {"AP": 1}),
    "ovis": (send_video_instances, {"AP": 1, "AP-light": 1}),
    "cityscapes-instance": (send_cityscapes_instances, {"AP": 1, "AP50%": 1}),
    "cityscapes-instance-official": (send_cityscapes_instances, {"AP": 1}),
}
UPLOAD_OF_OTHERS = ""
REFUSALS = {
    **dict.fromkeys(UPLOADS, "Send one JSON file, plain, gzipped or zipped, with a list of records"),
    **dict.fromkeys(
        ("cityscapes-instance", "cityscapes-instance-official"),
        "Send one zip with a text file for each image; each line names a mask, its label and its score",
    ),
}


def send_boxes(truth: Path) -> bytes:
    """Return a plain list of boxes, without masks."""
    keys = ("image_id", "category_id", "bbox")
    listed = json.loads(truth.read_text())["annotations"]
    return json.dumps([{**{key: each[key] for key in keys}, "score": 0.9} for each in listed]).encode()


FURTHER_UPLOADS = {"coco-box": send_boxes}


#: The beginnings of protocols whose results are not only masks.
_NOT_MASKS = ("coco-keypoints", "cityscapes-instance")


def write_results(protocol: str, folder: Path) -> Files | None:
    """Return the detections of shared scoring, if the benchmark only has masks."""
    if protocol.startswith(_NOT_MASKS):
        return None
    return write_instances(folder, videos=INSTANCE_PROTOCOLS[protocol].tubes)


def spoil(protocol: str, truth: Path, results: Path) -> None:
    """Send masks twice with equal scores, write the boxes of masks, and move keypoints."""
    if not protocol.startswith(_NOT_MASKS):
        write_instances(results.parent, videos=INSTANCE_PROTOCOLS[protocol].tubes, share=1)
    if protocol == "coco-box":
        for path in (results, truth):
            path.write_text(json.dumps(_with_boxes(json.loads(path.read_text()))))
    elif "keypoints" in protocol:
        results.write_text(json.dumps([_move_points(*pair) for pair in enumerate(json.loads(results.read_text()))]))


def _with_boxes(document: Any) -> Any:
    """Return the document with the boxes of its masks."""
    for record in document if isinstance(document, list) else document["annotations"]:
        record["bbox"] = coco.toBbox(record["segmentation"]).tolist()
    return document


def _move_points(number: int, record: Any) -> Any:
    moved = [
        value + (7 * k + number) % (9 + number) - 4 if k % 3 < 2 else value
        for k, value in enumerate(record["keypoints"])
    ]
    return {**record, "keypoints": moved}


def as_corners(record: dict[str, Any]) -> None:
    x, y, width, height = record["bbox"]
    record["bbox"] = [x, y, x + width, y + height]


def as_rows_first(record: dict[str, Any]) -> None:
    places = record["keypoints"]
    record["keypoints"] = [places[k + (1, -1, 0)[k % 3]] for k in range(len(places))]


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "corners": ("coco-box", records(as_corners), "boxes look like [x1, y1, x2, y2]: corrected, the mean IoU of the true boxes would be 1.00 instead of 0.1"),
    "y before x": ("coco-box", records(lambda record: record.update(bbox=[record["bbox"][k] for k in (1, 0, 3, 2)])), "boxes look like [y, x, height, width]"),
    "half a size": ("coco-box", records(lambda record: record.update(bbox=[side / 2 for side in record["bbox"]])), "boxes look half as wide and high, in the upper left corner"),
    "shares": ("coco-box", records(lambda record: record.update(bbox=[side / SIZE[1 - k % 2] for k, side in enumerate(record["bbox"])])), "boxes look like fractions of the image size"),
    "percent": ("coco", records(lambda record: record.update(score=90)), "12 of 12 scores lie outside of 0 to 1, as percentages do"),
    "logits": ("coco", records(lambda record: record.update(score=1.7)), "12 of 12 scores lie outside of 0 to 1, as logits do"),
    "empty masks": ("lvis", records(lambda record: record.update(segmentation=published.rle(np.zeros(published.SIZE, np.uint8)))), "all masks are empty: check the category ids"),
    "points as y and x": ("coco-keypoints", records(as_rows_first), "keypoints look like y and x"),
    "points as shares": ("coco-keypoints", records(lambda record: record.update(keypoints=[place / (*SIZE[::-1], 1)[k % 3] for k, place in enumerate(record["keypoints"])])), "keypoints look like fractions of the image size"),
}  # fmt: skip
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "ovis": (lambda path: published.replaced(path, '"video_id": 2', '"video_id": 9'), "video 9, which is not listed"),
    "lvis": (lambda path: published.replaced(path, '"categories"', '"classes"'), "'categories' is missing"),
}
UNFIT: dict[str, list[tuple[str, str]]] = {
    "youtube-vis-2019": [("coco", "images")],
    "coco": [("ovis", "videos"), (MAPS, "semantic")],
}
SAVED_MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "coco": ([{"labels": [3], "masks": published.LABEL_FRAMES[:1] == 1, "scores": [0.5]}] * 2, [])
}
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "coco": ("AP", "AP50", "AP75", "APs", "APm", "APl"),
    "youtube-vis-2019": ("AP", "AP50", "AP75", "AR@1", "AR@10"),
    "places2017": ("AP", "AP50", "AP75", "APs", "APm", "APl"),
}
JSON_TRUTHS = {"coco": "instances_val.json", "ovis": "valid.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "no label maps": ("coco", "youtube-vis-2019"),
    "first screens": ("coco",),
    "sharing": ("coco", "ovis"),
    "promises": ("cityscapes-instance",),
    "pages": ("coco", "lvis", "ovis", "coco-keypoints", "cityscapes-instance", "places2017"),
    "pages shown whole": ("coco", "ovis", "coco-keypoints", "places2017"),
    "pages of challenges": ("cityscapes-instance",),
    "mounts": ("coco", "coco-keypoints", "cityscapes-instance", "ovis"),
    "JSON mounts": ("coco",),
    "samples": ("coco", "ovis"),
    "rankings": ("lvis", "youtube-vis-2019", "coco"),
    "records": ("coco", "ovis"),
    "good results": ("coco-box",),
    "machines": ("coco-keypoints",),
    "subsets": ("coco", "lvis"),
    "wrong roots": ("coco",),
    "packed first": ("cityscapes-instance", "cityscapes-instance-official"),
    "hosts": ("lvis", "ovis"),
}
SAMPLE_SCORES = {
    "places2017": (0.8459178060663209, 0.06828539996856829),
    "places2017-official": (0.8459178060663209, 0.06828539996856829),
    "coco": (0.8459178060663209, 0.06828539996856829),
    "coco-official": (0.8459178060663209, 0.06828539996856829),
    "coco-box": (0.9166588087380166, 0.2887592330661638),
    "coco-boundary": (0.5887081565299387, 0.0),
    "coco-keypoints": (0.9941831683168317, 0.0010726072607260726),
    "coco-keypoints-official": (0.9941831683168317, 0.0010726072607260726),
    "lvis": (0.8459178060663209, 0.06828539996856829),
    "lvis-boundary": (0.5887081565299387, 0.0),
    "cityscapes-instance": (1.0, 0.07590466742252457),
    "cityscapes-instance-official": (1.0, 0.07590466742252457),
    "youtube-vis-2019": (0.8686468646864687, 0.07612761276127611),
    "youtube-vis-2021": (0.8686468646864687, 0.07612761276127611),
    "youtube-vis-2022": (0.8686468646864687, 0.07612761276127611),
    "ovis": (0.8686468646864687, 0.07612761276127611),
}
