"""New challenges of instances: texts, samples, and a synthetic truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.instances.mask_files import name_of
from segjudge.evaluation_script.families.instances.protocols import PER_IMAGE, InstanceProtocol
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks.run_lengths import compress_many
from segjudge.families.base.challenges import count_categories, encode_json, move_runs, shift_of
from segjudge.families.base.tools import Content, Facts, Members
from segjudge.masks.demo import NAMES, Scene, first_scenes, label_frames, mask_records, still_images
from segjudge.masks.photographs import photograph_images, photograph_videos
from segjudge.masks.run_lengths import encode_labels

from .streets import make_street_sample, publish_streets

#: The points of the demo, as shares of width and height, and the sigma of each.
_POINTS = {"middle": (0.5, 0.5), "top": (0.5, 0), "right": (1, 0.5), "bottom": (0.5, 1), "left": (0, 0.5)}
_SIGMA = 0.1
#: The assumed detections per image, and bytes of JSON per detection.
_DETECTIONS, _BYTES = 100, 500
_FREQUENCIES = {1: "f", 2: "c", 3: "r"}


def describe_truth(truths: list[InstanceTruth], protocol: InstanceProtocol) -> Facts:
    example = truths[0]
    kind, lengths = "video" if protocol.tubes else "image", example.images.frames
    total = quantity(sum(len(truth.images.ids) for truth in truths), kind)
    height, width = example.images.sizes[0].tolist()
    return {
        "content": f"{total} with {count_categories(len(example.categories))}",
        "about": f"Find every object in {total}.",
        "examples": [int(example.images.ids[0]), example.categories[0].id],
        "name": name_of(example.names.get(int(example.images.ids[0]), "")) if protocol.streets else "",
        "size": [height, width if lengths is None else width // int(lengths[0])],
        "kind": kind,
        "points": example.images.keypoints,
        "room": _measure_room(sum(len(truth.images.ids) for truth in truths), protocol),
    }


def _measure_room(images: int, protocol: InstanceProtocol) -> dict[str, int]:
    """Return larger limits for a submission if the usual ones are too small for the images."""
    if protocol.streets:
        return {}
    each = protocol.detections[-1] if protocol.cap == PER_IMAGE else max(protocol.detections[-1], _DETECTIONS)
    records = images * each
    if records <= INSTANCE_LIMITS.records:
        return {}
    return {"records": records, "json_megabytes": -(-records * _BYTES // (1 << 20))}


def make_sample(truths: list[InstanceTruth], protocol: InstanceProtocol, share: float) -> Members:
    """Yield one JSON with a detection for each instance, or texts and masks."""
    if protocol.streets:
        for truth in truths:
            yield from make_street_sample(truth, share)
        return
    yield (
        "results.json",
        encode_json([detection for truth in truths for detection in _list_detections(truth, protocol, share)]),
    )


def _list_detections(truth: InstanceTruth, protocol: InstanceProtocol, share: float) -> Iterator[dict[str, object]]:
    frames = truth.images.frames
    for index in np.flatnonzero(~truth.crowd & (truth.category >= 0)).tolist():
        image = int(truth.image[index])
        height, width = truth.images.sizes[image].tolist()
        if protocol.keypoints:
            if truth.keypoints is None or not truth.keypoints.count[index]:
                continue
            moved = truth.keypoints.points[index] + (shift_of(width, share), 0)
            shape: dict[str, object] = {"keypoints": np.insert(moved, 2, 1, axis=1).reshape(-1).tolist()}
        elif protocol.boxes:
            x, *numbers = truth.boxes[index].tolist()
            shape = {"bbox": [x + shift_of(width, share), *numbers]}
        else:
            count = 1 if frames is None else int(frames[image])
            runs = move_runs(truth.masks[index], (height, width // count), count, share)
            masks = [{"size": [height, width // count], "counts": mask} for mask in compress_many(runs)]
            visible = [mask if len(mask_runs) > 1 else None for mask, mask_runs in zip(masks, runs, strict=True)]
            shape = {"segmentation": masks[0]} if frames is None else {"segmentations": visible}
        yield {
            truth.images.key: int(truth.images.ids[image]),
            "category_id": truth.categories[int(truth.category[index])].id,
            "score": round(1 - share, 3),
            **shape,
        }


def make_demo(protocol: InstanceProtocol) -> Content:
    if protocol.streets:
        return publish_streets()
    videos = first_scenes()
    if protocol.keypoints:
        return _publish_keypoints(videos)
    return _publish_vis(videos) if protocol.tubes else _publish_coco(videos)


def _publish_coco(videos: list[Scene]) -> Content:
    records: list[dict[str, Any]] = []
    pictures = still_images(videos)
    for image, labels in pictures:
        for number, counts in encode_labels(labels).items():
            rows, columns = np.nonzero(labels == number)
            x, top = int(columns.min()), int(rows.min())
            records.append({
                "id": len(records) + 1, "image_id": image, "category_id": number, "iscrowd": 0, "area": len(rows),
                "bbox": [x, top, int(columns.max()) + 1 - x, int(rows.max()) + 1 - top],
                "segmentation": {"size": labels.shape, "counts": counts},
            })  # fmt: skip
    listing = [
        {
            "id": image, "file_name": f"{image:012d}.jpg", "height": labels.shape[0], "width": labels.shape[1],
            "neg_category_ids": [], "not_exhaustive_category_ids": [],
        }
        for image, labels in pictures
    ]  # fmt: skip
    categories = [{"id": number, "name": name, "frequency": _FREQUENCIES[number]} for number, name in NAMES.items()]
    yield "instances.json", {"images": listing, "categories": categories, "annotations": records}


def _publish_keypoints(videos: list[Scene]) -> Content:
    """Yield five points per object, some hidden, one object without any, and a crowd."""
    ((_, document),) = _publish_coco(videos)
    for record in document["annotations"]:
        x, top, across, down = record["bbox"]
        marks = np.full(len(_POINTS), 2)
        if record["image_id"] % 2:
            marks[-1] = 0
        if record["image_id"] % 5 == record["category_id"]:
            marks[:] = 0
        points = [[x + across * right, top + down * below] for right, below in _POINTS.values()]
        rows = np.column_stack((points, marks)) * (marks > 0)[:, None]
        record["keypoints"], record["num_keypoints"] = rows.round(1).reshape(-1).tolist(), int((marks > 0).sum())
        record["iscrowd"] = int(record["image_id"] == len(document["images"]) and record["category_id"] == 1)
    skeleton = [[1, point] for point in range(2, len(_POINTS) + 1)]
    for category in document["categories"]:
        category |= {"keypoints": list(_POINTS), "skeleton": skeleton, "sigmas": [_SIGMA] * len(_POINTS)}
    yield "person_keypoints.json", document


def _publish_vis(videos: list[Scene]) -> Content:
    listing: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for index, video in enumerate(videos, 1):
        size = {"height": video.size[0], "width": video.size[1]}
        files = [f"{video.name}/{name}.jpg" for name, _ in label_frames(video)]
        listing.append({"id": index, **size, "length": video.frames, "file_names": files})
        for number, masks in mask_records(video).items():
            areas = [int((labels == number).sum()) or None for _, labels in label_frames(video)]
            hidden = [None if area is None else ("no", "slight", "severe")[number - 1] + "_occlusion" for area in areas]
            records.append({
                "id": len(records) + 1, "video_id": index, "category_id": number, "iscrowd": 0, **size,
                "segmentations": masks, "areas": areas, "occlusion": hidden,
            })  # fmt: skip
    categories = [{"id": number, "name": name} for number, name in NAMES.items()]
    yield "instances.json", {"videos": listing, "categories": categories, "annotations": records}


def make_demo_pictures(protocol: InstanceProtocol) -> Members:
    if protocol.tubes:
        for number, (_, frames) in enumerate(photograph_videos(), 1):
            yield from ((f"{number}/{name}.jpg", data) for name, data in frames)
        return
    for image, data in photograph_images().items():
        yield f"demo_{image:06d}_000019_leftImg8bit.jpg" if protocol.streets else f"{image:012d}.jpg", data
