"""Shared by all families' files in which benchmarks publish and receive scenes.

A family's own are `SCENES` of `tests/families/NAME/scenes.py`, by protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.evaluation_script.families import FOLDERS
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import QUICK
from segjudge.masks import compression
from tests.builders import written

from .known_scenes import GROUND, NAMES, SIZE, Video, World

FAMILIES = Path(__file__).parents[1] / "families"
BORDERS = ("shifted", "eroded", "dilated", "half", "noise")
CLASSES = ("exchanged", "renamed")
#: Faults that results of each sort can have.
OF_OBJECTS = ("missed", "surplus", *BORDERS, "merged", "split")
OF_INSTANCES = (*OF_OBJECTS, *CLASSES, "scores")
OF_SEGMENTS = (*OF_OBJECTS, *CLASSES)
OF_TRACKS = (*OF_OBJECTS, "identities", "late identities")
OF_MAPS = ("missed", "surplus", *BORDERS, *CLASSES)
OF_ONE = ("missed", "surplus", *BORDERS)
#: Labels of streets, which are published with their objects and as maps.
STREET, ROAD = {1: 26, 2: 24, 3: 28}, 7
STREET_NAMES = {1: "car", 2: "person", 3: "bus"}


@dataclass(frozen=True)
class Benchmark:
    """The format of a benchmark's files, and the content of its scenes."""

    #: Writes a truth into a folder, and returns what a host names.
    publish: Callable[[World, Path], Path]
    #: Makes the upload of a prediction; the truth is given beside it.
    send: Callable[[World], bytes]
    frames: int = 1
    kinds: int = 3
    #: Names of the classes, and of what is around the objects.
    names: dict[int, str] = field(default_factory=lambda: dict(NAMES))
    ground: str = GROUND
    #: Faults that its results can have.
    faults: tuple[str, ...] = ()
    #: Whether it asks for objects, for one object, or for maps of classes.
    asks: str = "objects"


def list_benchmarks() -> dict[str, Benchmark]:
    """Return the benchmarks of all families by protocol."""
    modules = [f"tests.families.{folder}.scenes" for folder in FOLDERS if (FAMILIES / folder / "scenes.py").exists()]
    return {protocol: row for name in modules for protocol, row in import_module(name).SCENES.items()}


def code_png(codes: Array) -> bytes:
    return compression.code_png(codes, QUICK)


def grey_png(labels: Array) -> bytes:
    return compression.grey_png(labels, QUICK)


def label_png(labels: Array) -> bytes:
    return compression.label_png(labels, QUICK)


def rle_of(text: str) -> dict[str, Any]:
    return {"size": list(SIZE), "counts": text}


def box_of(mask: Array) -> list[int]:
    rows, columns = np.nonzero(mask)
    x, y = int(columns.min()), int(rows.min())
    return [x, y, int(columns.max()) + 1 - x, int(rows.max()) + 1 - y]


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


def list_images(world: World) -> list[dict[str, Any]]:
    return [
        {"id": image, "file_name": f"{video.name}.jpg", "height": SIZE[0], "width": SIZE[1],
         "neg_category_ids": [], "not_exhaustive_category_ids": []}
        for image, video in enumerate(world, 1)
    ]  # fmt: skip


def paint(video: Video, frame: int, values: dict[int, int], ground: int) -> Array:
    """Return the map of a frame with the value of each object's class."""
    painted = np.full(SIZE, ground, np.int64)
    for number in np.unique(video.labels[frame]).tolist():
        if number:
            painted[video.labels[frame] == number] = values[video.classes[number]]
    return painted


def publish_streets(world: World, folder: Path) -> Path:
    files = {}
    for video in world:
        classes = paint(video, 0, STREET, ROAD)
        ids = np.where(video.labels[0] > 0, 1000 * classes + video.labels[0], classes)
        name = f"gtFine/val/demo/{video.name}_000000_000019_gtFine"
        files[f"{name}_instanceIds.png"] = grey_png(ids)
        files[f"{name}_labelIds.png"] = label_png(classes.astype(np.uint8))
    return written(folder, files)
