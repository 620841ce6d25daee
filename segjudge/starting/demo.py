"""The demo that a checkout makes from a seed: annotation files, and samples of several qualities."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from segjudge.evaluation_script.files.packed import make_entry, replace_file
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.families.truths import TruthSource, pack
from segjudge.masks import DEMO_SEED
from segjudge.masks.demo import (
    CATEGORIES,
    IMAGE_SIZE,
    INSTANCE_PHASE,
    PICTURES,
    Labels,
    Scene,
    SyntheticInstance,
    davis_files,
    demo_videos,
    image_name,
    images,
    instance_image,
    instance_images,
    places_png,
)
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.system.files import replace

_Predict = Callable[[Scene, int], Labels]
#: COCO's uncompressed run lengths, `size` and `counts`: down the columns, background first.
_UncompressedMask = dict[str, list[int]]

#: Methods: slightly fat masks, and masks of earlier frames.
_METHODS: dict[str, _Predict] = {
    "strong": lambda video, frame: video.labels(frame, grow=1.0),
    "lagging": lambda video, frame: video.labels(max(frame - 3, 0)),
}


def make(root: str, seed: int = DEMO_SEED) -> list[str]:
    """Write `annotations/` and `examples/` below a folder; return the files written."""
    paths = []
    for phase, scenes in demo_videos(seed).items():
        paths.append(_pack_annotations(root, phase, scenes))
        videos = [video for members in scenes.values() for video in members]
        folder = os.path.join(root, "examples", phase)
        os.makedirs(folder, exist_ok=True)
        for name, predict in _METHODS.items():
            paths.append(os.path.join(folder, f"{name}.zip"))
            _write_zip(paths[-1], images(videos, predict))
        paths.append(os.path.join(folder, "first-mask.json"))
        _write_json(paths[-1], _run_lengths(videos, lambda video, _frame: video.labels(0)))
    return paths + _write_instances(root, seed)


def _write_instances(root: str, seed: int) -> list[str]:
    """Write the phase of instance masks: truth from Places-style PNGs, and detections of three qualities."""
    pictures = instance_images(seed)
    annotations = os.path.join(root, "annotations", f"{INSTANCE_PHASE}.zip")
    Path(annotations).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        masks, listing = (os.path.join(folder, name) for name in ("png", "listing.json"))
        os.mkdir(masks)
        for number, instances in enumerate(pictures):
            Image.fromarray(places_png(instances)).save(os.path.join(masks, f"{image_name(number)}.png"))
        images_listed = [
            {
                "id": number + 1,
                "file_name": f"{image_name(number)}.jpg",
                "height": IMAGE_SIZE[0],
                "width": IMAGE_SIZE[1],
            }
            for number in range(PICTURES)
        ]
        categories = [{"id": number, "name": name} for number, name in enumerate(CATEGORIES, 1)]
        _write_json(listing, {"images": images_listed, "categories": categories})
        pack(TruthSource(masks, "places2017", categories=listing), annotations, "dev")
    paths = [annotations]
    folder = os.path.join(root, "examples", INSTANCE_PHASE)
    os.makedirs(folder, exist_ok=True)
    for name, quality in (("sharp.json", 0.9), ("coarse.json", 0.5), ("wild.json", 0.15)):
        paths.append(os.path.join(folder, name))
        _write_json(paths[-1], _draw_detections(pictures, quality, np.random.default_rng(seed + 1)))
    return paths


def _write_json(path: str, document: object) -> None:
    replace(Path(path), json.dumps(document, separators=(",", ":")) + "\n")


def _draw_detections(
    pictures: list[list[SyntheticInstance]], quality: float, generator: np.random.Generator
) -> list[dict[str, object]]:
    """Return masks that are less precise for worse methods; the worst also has false instances."""
    records: list[dict[str, object]] = []
    for image, instances in enumerate(pictures, 1):
        seen = [*instances, *(instance_image(generator) if quality < 0.3 else [])]
        for instance in seen:
            off = generator.normal(0, 6 * (1 - quality), 3)
            right = generator.random() < 0.5 + quality / 2
            category = instance.category if right else int(generator.integers(len(CATEGORIES)))
            records.append(
                {
                    "image_id": image,
                    "category_id": category + 1,
                    "score": round(float(np.clip(generator.normal(0.4 + quality / 2 * right, 0.15), 0.01, 0.99)), 3),
                    "segmentation": {
                        "size": IMAGE_SIZE,
                        "counts": compress(runs_of_mask(instance.mask(*off.tolist()))),
                    },
                }
            )
    return records


def _pack_annotations(root: str, phase: str, scenes: dict[str, list[Scene]]) -> str:
    """Pack the truth in DAVIS's layout."""
    out = os.path.join(root, "annotations", f"{phase}.zip")
    Path(out).unlink(missing_ok=True)
    for split, members in scenes.items():
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            source = os.path.join(folder, "dataset.zip")
            _write_zip(source, davis_files(members))
            pack(TruthSource(source, "davis2017"), out, split)
    return out


def _write_zip(path: str, files: Iterable[tuple[str, bytes]]) -> None:
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files:
            out.writestr(make_entry(name), data)


def _run_lengths(scenes: list[Scene], labels: _Predict) -> dict[str, dict[str, list[_UncompressedMask | None]]]:
    """Return the JSON form of a submission."""
    document: dict[str, dict[str, list[_UncompressedMask | None]]] = {}
    for video in scenes:
        objects = document[video.name] = {}
        for number in range(1, len(video.shapes) + 1):
            masks = [labels(video, frame) == number for frame in range(video.frames)]
            objects[str(number)] = [
                {"size": list(mask.shape), "counts": runs_of_mask(mask)} if mask.any() else None for mask in masks
            ]
    return document
