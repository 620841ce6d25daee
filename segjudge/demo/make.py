"""`segjudge demo`: the annotation files and sample submissions of this bundle, from a seed."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image

from segjudge.datasets.opening import TruthSource
from segjudge.datasets.packing import pack, pack_places
from segjudge.evaluation_script.packed_file import EPOCH, replaced
from segjudge.evaluation_script.png import davis_palette
from segjudge.evaluation_script.rle import compressed
from segjudge.files import written as whole

from .instance_images import CATEGORIES, SIZE, Thing, instance_image, places_png
from .scenes import Array, Scene, scene

SEED = 2017

#: Phase → split → scenes as (name, objects, frames, hard).
SPLITS: dict[str, dict[str, list[tuple[str, int, int, bool]]]] = {
    "sequences-dev": {"dev": [("crossing", 2, 16, False), ("late-guest", 3, 20, False), ("solo", 1, 12, False)]},
    "sequences-test": {
        "test": [("carousel", 3, 18, False), ("duet", 2, 14, False)],
        "test-hard": [("needle", 3, 18, True), ("swarm", 5, 20, True)],
    },
}

INSTANCE_PHASE = "instances-dev"
PICTURES = 12

Predict = Callable[[Scene, int], Array]

#: What the sample submissions do, from strong to weak.
LAG = 3


def strong(one: Scene, frame: int) -> Array:
    """A method whose masks are a little too fat."""
    return one.labels(frame, grow=1.0)


def lagging(one: Scene, frame: int) -> Array:
    """A method that is three frames behind."""
    return one.labels(max(frame - LAG, 0))


def first_mask(one: Scene, frame: int) -> Array:
    """The first mask, repeated."""
    del frame
    return one.labels(0)


def make(root: str, seed: int = SEED) -> list[str]:
    """Write `annotations/` and `examples/` below a folder; returns the files written."""
    written = []
    for phase, splits in SPLITS.items():
        scenes = {split: _scenes(rows, f"{phase}/{split}", seed) for split, rows in splits.items()}
        written.append(_annotations(root, phase, scenes))
        every = [one for members in scenes.values() for one in members]
        folder = os.path.join(root, "examples", phase)
        os.makedirs(folder, exist_ok=True)
        for name, predict in (("strong", strong), ("lagging", lagging)):
            path = os.path.join(folder, f"{name}.zip")
            _write_zip(path, _images(every, predict))
            written.append(path)
        path = os.path.join(folder, "first-mask.json")
        with whole(path) as file:
            json.dump(_run_lengths(every, first_mask), file, separators=(",", ":"))
            file.write("\n")
        written.append(path)
    return written + _instances(root, seed)


def frames(root: str, seed: int = SEED) -> None:
    """The pictures of the sequences, below a folder: for agents, who look at them."""
    for phase, splits in SPLITS.items():
        for split, rows in splits.items():
            for one in _scenes(rows, f"{phase}/{split}", seed):
                folder = os.path.join(root, one.name)
                os.makedirs(folder, exist_ok=True)
                for frame in range(one.frames):
                    Image.fromarray(one.picture(frame)).save(os.path.join(folder, f"{frame:05d}.jpg"), quality=92)
                Image.fromarray(one.labels(0)).save(os.path.join(folder, "first.png"))


def _instances(root: str, seed: int) -> list[str]:
    """The phase of instance masks: truth from Places-style PNGs, and detections of three qualities."""
    lot = np.random.default_rng(seed)
    pictures = [instance_image(lot) for _ in range(PICTURES)]
    annotations = os.path.join(root, "annotations", f"{INSTANCE_PHASE}.zip")
    if os.path.exists(annotations):
        os.remove(annotations)
    with tempfile.TemporaryDirectory() as folder:
        masks, listing = (os.path.join(folder, name) for name in ("png", "listing.json"))
        os.mkdir(masks)
        for number, things in enumerate(pictures):
            Image.fromarray(places_png(things)).save(os.path.join(masks, f"image_{number:03d}.png"))
        with open(listing, "w", encoding="utf-8") as file:
            json.dump(_listing(), file)
        pack_places(TruthSource(masks, categories=listing), annotations, split="dev")
    written = [annotations]
    folder = os.path.join(root, "examples", INSTANCE_PHASE)
    os.makedirs(folder, exist_ok=True)
    for name, quality in (("sharp.json", 0.9), ("coarse.json", 0.5), ("wild.json", 0.15)):
        path = os.path.join(folder, name)
        with whole(path) as file:
            json.dump(_detections(pictures, quality, np.random.default_rng(seed + 1)), file, separators=(",", ":"))
            file.write("\n")
        written.append(path)
    return written


def _listing() -> dict[str, Any]:
    return {
        "images": [
            {"id": number + 1, "file_name": f"image_{number:03d}.jpg", "height": SIZE[0], "width": SIZE[1]}
            for number in range(PICTURES)
        ],
        "categories": [{"id": place, "name": name} for place, name in enumerate(CATEGORIES, 1)],
    }


def _detections(pictures: list[list[Thing]], quality: float, lot: np.random.Generator) -> list[dict[str, Any]]:
    """Masks that are the more off, the worse the method is; the worst also sees things that are not there."""
    found = []
    for image, things in enumerate(pictures, 1):
        seen = [*things, *(instance_image(lot) if quality < 0.3 else [])]
        for thing in seen:
            off = lot.normal(0, 6 * (1 - quality), 3)
            right = lot.random() < 0.5 + quality / 2
            category = thing.category if right else int(lot.integers(len(CATEGORIES)))
            found.append(
                {
                    "image_id": image,
                    "category_id": category + 1,
                    "score": round(float(np.clip(lot.normal(0.4 + quality / 2 * right, 0.15), 0.01, 0.99)), 3),
                    "segmentation": _compressed(thing.mask(*off.tolist())),
                }
            )
    return found


def _compressed(mask: Array) -> dict[str, Any]:
    runs = run_lengths(mask)
    return {"size": runs["size"], "counts": compressed(runs["counts"])}


def _scenes(rows: list[tuple[str, int, int, bool]], salt: str, seed: int) -> list[Scene]:
    start = seed + sum(map(ord, salt))
    return [
        scene(name, start + place, objects=objects, frames=frames, hard=hard)
        for place, (name, objects, frames, hard) in enumerate(rows)
    ]


def _annotations(root: str, phase: str, scenes: dict[str, list[Scene]]) -> str:
    """The truth in DAVIS's layout, packed."""
    out = os.path.join(root, "annotations", f"{phase}.zip")
    if os.path.exists(out):
        os.remove(out)
    for split, members in scenes.items():
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "dataset.zip")
            images = _images(members, Scene.truth)
            _write_zip(source, ((f"Annotations/480p/{name}", data) for name, data in images))
            pack(TruthSource(source, "davis2017"), out, split=split)
    return out


def _images(scenes: list[Scene], labels: Predict) -> Iterator[tuple[str, bytes]]:
    for one in scenes:
        for frame in range(one.frames):
            yield f"{one.name}/{frame:05d}.png", png_of(labels(one, frame))


def png_of(labels: Array) -> bytes:
    """A label image as DAVIS publishes it, with its palette."""
    image = Image.fromarray(labels)
    image.putpalette(davis_palette().tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _write_zip(path: str, files: Iterator[tuple[str, bytes]]) -> None:
    with replaced(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files:
            out.writestr(zipfile.ZipInfo(name, EPOCH), data)


def _run_lengths(scenes: list[Scene], labels: Predict) -> dict[str, dict[str, list[Any]]]:
    """The JSON form of a submission."""
    document: dict[str, dict[str, list[Any]]] = {}
    for one in scenes:
        objects: dict[str, list[Any]] = {}
        for number in range(1, len(one.shapes) + 1):
            masks = [labels(one, frame) == number for frame in range(one.frames)]
            objects[str(number)] = [run_lengths(mask) if mask.any() else None for mask in masks]
        document[one.name] = objects
    return document


def run_lengths(mask: Array) -> dict[str, Any]:
    """COCO's uncompressed run lengths: down the columns, background first."""
    down = mask.T.reshape(-1)
    edges = np.flatnonzero(np.diff(down)) + 1
    bounds = np.concatenate(([0], edges, [len(down)]))
    runs = np.diff(bounds).tolist()
    return {"size": list(mask.shape), "counts": [0, *runs] if down[0] else runs}
