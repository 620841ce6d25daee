"""Writes scenes as truths and uploads of panoptic segments, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.builders import written, zipped
from tests.report.known_files import OF_SEGMENTS, OF_TRACKS, Benchmark, code_png, paint, to_json
from tests.report.known_scenes import GROUND, NAMES, Video, World

_GROUND_ID, _IDS = 4, 1000
_PANOPTIC = [
    *({"id": number, "name": name, "isthing": 1} for number, name in NAMES.items()),
    {"id": _GROUND_ID, "name": GROUND, "isthing": 0},
]


def _segments(video: Video, frame: int) -> tuple[bytes, list[dict[str, int]]]:
    labels = video.labels[frame]
    ids = np.where(labels > 0, labels, 900) * np.int64(_IDS) + 1
    segments = [
        {"id": int(key), "category_id": video.classes[key // _IDS] if key // _IDS != 900 else _GROUND_ID,
         "iscrowd": 0, "area": int((ids == key).sum())}
        for key in np.unique(ids).tolist()
    ]  # fmt: skip
    return code_png(ids), segments


def publish_panoptic(world: World, folder: Path) -> Path:
    files: dict[str, Any] = {}
    records = []
    for image, video in enumerate(world, 1):
        data, segments = _segments(video, 0)
        files[f"panoptic_val/{image:012d}.png"] = data
        records.append({"image_id": image, "file_name": f"{image:012d}.png", "segments_info": segments})
    listing = [{"id": record["image_id"], "file_name": record["file_name"]} for record in records]
    files["panoptic_val.json"] = {"images": listing, "annotations": records, "categories": _PANOPTIC}
    return written(folder, files) / "panoptic_val.json"


def send_panoptic(world: World) -> bytes:
    files, records = {}, []
    for image, video in enumerate(world, 1):
        files[f"segments/{image:012d}.png"], segments = _segments(video, 0)
        records.append({"image_id": image, "file_name": f"{image:012d}.png", "segments_info": segments})
    return zipped({**files, "segments.json": to_json({"annotations": records})})


def publish_vipseg(world: World, folder: Path) -> Path:
    files: dict[str, Any] = {}
    records = []
    for video in world:
        entries = []
        for frame in range(len(video.labels)):
            files[f"panomasksRGB/{video.name}/{frame:05d}.png"], segments = _segments(video, frame)
            entries.append({"image_id": f"{frame:05d}", "file_name": f"{frame:05d}.png", "segments_info": segments})
        records.append({"video_id": video.name, "annotations": entries})
    listing = [{"video_id": video.name} for video in world]
    document = {"videos": listing, "annotations": records, "categories": _PANOPTIC}
    return written(folder, {**files, "panoptic_gt_VIPSeg_val.json": document})


def send_vipseg(world: World) -> bytes:
    files, records = {}, []
    for video in world:
        entries = []
        for frame in range(len(video.labels)):
            files[f"segments/{video.name}/{frame:05d}.png"], segments = _segments(video, frame)
            entries.append({"file_name": f"{frame:05d}.png", "segments_info": segments})
        records.append({"video_id": video.name, "annotations": entries})
    return zipped({**files, "segments.json": to_json({"annotations": records})})


def _step(values: dict[int, int], prefix: str) -> Callable[[World], dict[str, bytes]]:
    def make(world: World) -> dict[str, bytes]:
        return {
            f"{prefix}{video.name}/{frame:05d}.png": code_png(paint(video, frame, values, 0) + (labels << 16))
            for video in world for frame, labels in enumerate(video.labels)
        }  # fmt: skip

    return make


def _as_step(faults: tuple[str, ...], values: dict[int, int], names: dict[int, str], ground: str) -> Benchmark:
    publish, send = _step(values, "panoptic_maps/val/"), _step(values, "")
    return Benchmark(
        lambda world, folder: written(folder, publish(world)), lambda world: zipped(send(world)), 8, len(names), names,
        ground, faults,
    )  # fmt: skip


SCENES = {
    "coco-panoptic": Benchmark(publish_panoptic, send_panoptic, faults=OF_SEGMENTS),
    "vipseg": Benchmark(publish_vipseg, send_vipseg, frames=8, faults=(*OF_SEGMENTS, "identities")),
    "kitti-step": _as_step((*OF_SEGMENTS, "identities"), {1: 13, 2: 11}, {1: "car", 2: "person"}, "road"),
    "motchallenge-step": _as_step(OF_TRACKS, {1: 4}, {1: "person"}, "sidewalk"),
}
