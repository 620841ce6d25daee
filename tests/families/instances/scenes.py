"""Writes scenes as truths and uploads of images and videos of instances, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.builders import written, zipped
from tests.report.known_files import (
    OF_INSTANCES,
    STREET,
    STREET_NAMES,
    Benchmark,
    box_of,
    label_png,
    list_images,
    publish_streets,
    rle_of,
    to_json,
)
from tests.report.known_scenes import NAMES, POINTS, SIGMA, SIZE, World


def publish_coco(world: World, folder: Path) -> Path:
    records: list[dict[str, Any]] = []
    for image, video in enumerate(world, 1):
        for number, text in video.runs()[0].items():
            mask, points = video.labels[0] == number, video.points[number]
            records.append({
                "id": len(records) + 1, "image_id": image, "category_id": video.classes[number], "iscrowd": 0,
                "area": int(mask.sum()), "bbox": box_of(mask), "segmentation": rle_of(text),
                "keypoints": np.insert(points, 2, 2, axis=1).reshape(-1).tolist(), "num_keypoints": len(points),
            })  # fmt: skip
    categories = [
        {"id": number, "name": name, "frequency": "f", "keypoints": list(POINTS), "skeleton": [[1, 2]],
         "sigmas": [SIGMA] * len(POINTS)}
        for number, name in NAMES.items()
    ]  # fmt: skip
    document = {"images": list_images(world), "categories": categories, "annotations": records}
    return written(folder, {"instances.json": document}) / "instances.json"


def send_coco(world: World) -> bytes:
    return to_json([
        {"image_id": image, "category_id": video.classes[number], "score": video.scores.get(number, 0.9),
         "segmentation": rle_of(text), "bbox": box_of(video.labels[0] == number)}
        for image, video in enumerate(world, 1) for number, text in video.runs()[0].items()
    ])  # fmt: skip


def send_keypoints(world: World) -> bytes:
    return to_json([
        {"image_id": image, "category_id": video.classes[number], "score": video.scores.get(number, 0.9),
         "keypoints": np.insert(points, 2, 1, axis=1).reshape(-1).tolist()}
        for image, video in enumerate(world, 1) for number, points in video.points.items()
    ])  # fmt: skip


def publish_vis(world: World, folder: Path) -> Path:
    videos, records = [], []
    for index, video in enumerate(world, 1):
        files = [f"{video.name}/{frame:05d}.jpg" for frame in range(len(video.labels))]
        size = {"height": SIZE[0], "width": SIZE[1]}
        videos.append({"id": index, **size, "length": len(files), "file_names": files})
        runs = video.runs()
        for number in video.numbers():
            records.append({
                "id": len(records) + 1, "video_id": index, "category_id": video.classes[number], "iscrowd": 0, **size,
                "segmentations": [rle_of(texts[number]) if number in texts else None for texts in runs],
                "areas": [int((frame == number).sum()) or None for frame in video.labels],
                "occlusion": ["no_occlusion"] * len(files),
            })  # fmt: skip
    categories = [{"id": number, "name": name} for number, name in NAMES.items()]
    document = {"videos": videos, "categories": categories, "annotations": records}
    return written(folder, {"instances.json": document}) / "instances.json"


def send_vis(world: World) -> bytes:
    records = []
    for index, video in enumerate(world, 1):
        runs = video.runs()
        records += [
            {"video_id": index, "category_id": video.classes[number], "score": video.scores.get(number, 0.9),
             "segmentations": [rle_of(texts[number]) if number in texts else None for texts in runs]}
            for number in video.numbers()
        ]  # fmt: skip
    return to_json(records)


def send_street_instances(world: World) -> bytes:
    files = {}
    for video in world:
        lines = []
        for number in video.numbers():
            member = f"{video.name}_{number}.png"
            files[member] = label_png((video.labels[0] == number).astype(np.uint8))
            lines.append(f"{member} {STREET[video.classes[number]]} {video.scores.get(number, 0.9)}\n")
        files[f"{video.name}_000000_000019.txt"] = "".join(lines).encode()
    return zipped(files)


_COCO = Benchmark(publish_coco, send_coco, faults=OF_INSTANCES)
SCENES = {
    "coco": _COCO,
    "coco-boundary": _COCO,
    "lvis": _COCO,
    "coco-keypoints": Benchmark(publish_coco, send_keypoints, kinds=1, faults=("missed", "surplus", "shifted", "scores", "sides", "joint")),
    "cityscapes-instance": Benchmark(publish_streets, send_street_instances, names=STREET_NAMES, faults=OF_INSTANCES),
    "youtube-vis-2021": Benchmark(publish_vis, send_vis, frames=8, faults=(*OF_INSTANCES, "identities", "late identities")),
    "ovis": Benchmark(publish_vis, send_vis, frames=8, faults=(*OF_INSTANCES, "identities", "late identities")),
}  # fmt: skip
