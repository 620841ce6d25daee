"""Writes scenes as truths and uploads of label maps, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.masks.run_lengths import encode_labels
from tests.builders import written, zipped
from tests.report.known_files import (
    OF_MAPS,
    ROAD,
    STREET,
    STREET_NAMES,
    Benchmark,
    label_png,
    list_images,
    paint,
    publish_streets,
    rle_of,
    to_json,
)
from tests.report.known_scenes import GROUND, NAMES, World


def publish_vspw(world: World, folder: Path) -> Path:
    files: dict[str, Any] = {"val.txt": "".join(f"{video.name}\n" for video in world)}
    for video in world:
        for frame in range(len(video.labels)):
            painted = paint(video, frame, {1: 2, 2: 3, 3: 4}, 1)
            files[f"data/{video.name}/mask/{frame:05d}.png"] = label_png(painted.astype(np.uint8))
    return written(folder, files)


def send_vspw(world: World) -> bytes:
    return zipped({
        f"{video.name}/{frame:05d}.png": label_png(
            paint(video, frame, {1: 2, 2: 3, 3: 4}, 1).astype(np.uint8)
        ) for video in world for frame in range(len(video.labels))
    })  # fmt: skip


def _label_images(world: World, values: dict[int, int], ground: int) -> dict[str, bytes]:
    return {f"{video.name}.png": label_png(paint(video, 0, values, ground).astype(np.uint8)) for video in world}


def _as_maps(protocol: str, values: dict[int, int], ground: int) -> Benchmark:
    rules: Any = PROTOCOLS[protocol]
    return Benchmark(
        lambda world, folder: written(folder, _label_images(world, values, ground)),
        lambda world: zipped(_label_images(world, values, ground)),
        names={key: rules.name_class(value) for key, value in values.items()}, ground=rules.name_class(ground),
        faults=OF_MAPS, asks="maps",
    )  # fmt: skip


_STUFF = {1: 93, 2: 94, 3: 95}


def _stuff_records(world: World) -> list[dict[str, Any]]:
    return [
        {
            "id": 10 * image + label,
            "image_id": image,
            "category_id": label,
            "segmentation": rle_of(counts),
            "iscrowd": 0,
        }
        for image, video in enumerate(world, 1)
        for label, counts in encode_labels(paint(video, 0, _STUFF, 92).astype(np.uint8)).items()
    ]


def publish_stuff(world: World, folder: Path) -> Path:
    labels = {92: GROUND, **{_STUFF[number]: name for number, name in NAMES.items()}}
    rules: Any = PROTOCOLS["coco-stuff"]
    categories = [
        {"id": label, "name": labels.get(label, f"stuff {label}"), "supercategory": f"group {label % 5}"}
        for label in rules.labels
    ]
    document = {"images": list_images(world), "annotations": _stuff_records(world), "categories": categories}
    return written(folder, {"stuff_val.json": document}) / "stuff_val.json"


def send_streets(world: World) -> bytes:
    return zipped({
        f"{video.name}_000000_000019.png": label_png(paint(video, 0, STREET, ROAD).astype(np.uint8))
        for video in world
    })  # fmt: skip


SCENES = {
    "vspw": Benchmark(
        publish_vspw, send_vspw, frames=8, names={1: "class 2", 2: "class 3", 3: "class 4"}, ground="class 1", faults=OF_MAPS,
        asks="maps",
    ),
    "ade20k": _as_maps("ade20k", {1: 13, 2: 21, 3: 5}, 1),
    "coco-stuff": Benchmark(publish_stuff, lambda world: to_json(_stuff_records(world)), faults=OF_MAPS, asks="maps"),
    "cityscapes": Benchmark(publish_streets, send_streets, names=STREET_NAMES, faults=OF_MAPS, asks="maps"),
}  # fmt: skip
