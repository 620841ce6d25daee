"""`segjudge demo`: the annotation files and sample submissions of this bundle, from a seed."""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segjudge.datasets.opening import TruthSource, pack
from segjudge.evaluation_script.files.packed import EPOCH, replace_file
from segjudge.evaluation_script.masks.png import davis_palette
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.system.files import replace

from . import SEED
from .scenes import CATEGORIES, SIZE, Labels, Scene, SyntheticInstance, instance_image, places_png, scene

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

Predict = Callable[[Scene, int], Labels]


#: COCO's uncompressed run lengths, `size` and `counts`: down the columns, background first.
UncompressedMask = dict[str, list[int]]

#: Methods: masks that are a little too fat, and those of some frames ago.
METHODS: dict[str, Predict] = {
    "strong": lambda video, frame: video.labels(frame, grow=1.0),
    "lagging": lambda video, frame: video.labels(max(frame - 3, 0)),
}


def make(root: str, seed: int = SEED) -> list[str]:
    """Write `annotations/` and `examples/` below a folder; return the files written."""
    paths = []
    for phase, scenes in _videos(seed).items():
        paths.append(_annotations(root, phase, scenes))
        videos = [video for members in scenes.values() for video in members]
        folder = os.path.join(root, "examples", phase)
        os.makedirs(folder, exist_ok=True)
        for name, predict in METHODS.items():
            paths.append(os.path.join(folder, f"{name}.zip"))
            _write_zip(paths[-1], images(videos, predict))
        paths.append(os.path.join(folder, "first-mask.json"))
        _write_json(paths[-1], _run_lengths(videos, lambda video, _frame: video.labels(0)))
    return paths + _instances(root, seed)


def first_scenes(seed: int = SEED) -> list[Scene]:
    """Return the videos of the first phase."""
    return _videos(seed)["sequences-dev"]["dev"]


def write_frames(root: str, seed: int = SEED) -> None:
    """Write the pictures of the sequences below a folder, for agents."""
    for video in [video for splits in _videos(seed).values() for members in splits.values() for video in members]:
        folder = os.path.join(root, video.name)
        os.makedirs(folder, exist_ok=True)
        for frame in range(video.frames):
            write_picture(os.path.join(folder, f"{frame:05d}.jpg"), video, frame)
        with replace_file(os.path.join(folder, "first.png")) as partial:
            Image.fromarray(video.labels(0)).save(partial, "PNG")


def write_picture(path: str | os.PathLike[str], video: Scene, frame: int) -> None:
    """Write the picture of a frame, whole or not at all."""
    with replace_file(os.fspath(path)) as partial:
        Image.fromarray(video.picture(frame)).save(partial, "JPEG", quality=92)


def _instances(root: str, seed: int) -> list[str]:
    """Write the phase of instance masks: truth from Places-style PNGs, and detections of three qualities."""
    generator = np.random.default_rng(seed)
    pictures = [instance_image(generator) for _ in range(PICTURES)]
    annotations = os.path.join(root, "annotations", f"{INSTANCE_PHASE}.zip")
    Path(annotations).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        masks, listing = (os.path.join(folder, name) for name in ("png", "listing.json"))
        os.mkdir(masks)
        for number, instances in enumerate(pictures):
            Image.fromarray(places_png(instances)).save(os.path.join(masks, f"image_{number:03d}.png"))
        images_listed = [
            {"id": number + 1, "file_name": f"image_{number:03d}.jpg", "height": SIZE[0], "width": SIZE[1]}
            for number in range(PICTURES)
        ]
        categories = [{"id": place, "name": name} for place, name in enumerate(CATEGORIES, 1)]
        _write_json(listing, {"images": images_listed, "categories": categories})
        pack(TruthSource(masks, "places2017", categories=listing), annotations, "dev")
    paths = [annotations]
    folder = os.path.join(root, "examples", INSTANCE_PHASE)
    os.makedirs(folder, exist_ok=True)
    for name, quality in (("sharp.json", 0.9), ("coarse.json", 0.5), ("wild.json", 0.15)):
        paths.append(os.path.join(folder, name))
        _write_json(paths[-1], _detections(pictures, quality, np.random.default_rng(seed + 1)))
    return paths


def _write_json(path: str, document: object) -> None:
    replace(Path(path), json.dumps(document, separators=(",", ":")) + "\n")


def _detections(
    pictures: list[list[SyntheticInstance]], quality: float, generator: np.random.Generator
) -> list[dict[str, object]]:
    """Return masks that are the more off, the worse the method is; the worst also sees instances that are not there."""
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
                    "segmentation": {"size": SIZE, "counts": compress(runs_of_mask(instance.mask(*off.tolist())))},
                }
            )
    return records


def _videos(seed: int) -> dict[str, dict[str, list[Scene]]]:
    """Return the videos of each phase and split."""
    return {
        phase: {split: scenes_of(rows, f"{phase}/{split}", seed) for split, rows in splits.items()}
        for phase, splits in SPLITS.items()
    }


def scenes_of(rows: list[tuple[str, int, int, bool]], salt: str, seed: int) -> list[Scene]:
    """Return the videos of rows as in `SPLITS`."""
    start = seed + sum(map(ord, salt))
    return [
        scene(name, start + place, objects=objects, frames=frames, hard=hard)
        for place, (name, objects, frames, hard) in enumerate(rows)
    ]


def _annotations(root: str, phase: str, scenes: dict[str, list[Scene]]) -> str:
    """Pack the truth in DAVIS's layout."""
    out = os.path.join(root, "annotations", f"{phase}.zip")
    Path(out).unlink(missing_ok=True)
    for split, members in scenes.items():
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            source = os.path.join(folder, "dataset.zip")
            _write_zip(source, davis_files(members))
            pack(TruthSource(source, "davis2017"), out, split)
    return out


def davis_files(scenes: list[Scene]) -> Iterator[tuple[str, bytes]]:
    """Yield the truth as DAVIS publishes it."""
    return ((f"Annotations/480p/{name}", data) for name, data in images(scenes, Scene.truth))


def images(scenes: list[Scene], labels: Predict) -> Iterator[tuple[str, bytes]]:
    """Yield a PNG for each frame, by the names of video and frame."""
    for video in scenes:
        for frame in range(video.frames):
            yield f"{video.name}/{frame:05d}.png", png_of(labels(video, frame))


def png_of(labels: NDArray[np.uint8]) -> bytes:
    """Return a label image as DAVIS publishes it, with its palette."""
    image = Image.fromarray(labels)
    image.putpalette(davis_palette().tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _write_zip(path: str, files: Iterable[tuple[str, bytes]]) -> None:
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files:
            out.writestr(zipfile.ZipInfo(name, EPOCH), data)


def _run_lengths(scenes: list[Scene], labels: Predict) -> dict[str, dict[str, list[UncompressedMask | None]]]:
    """Return the JSON form of a submission."""
    document: dict[str, dict[str, list[UncompressedMask | None]]] = {}
    for video in scenes:
        objects = document[video.name] = {}
        for number in range(1, len(video.shapes) + 1):
            masks = [labels(video, frame) == number for frame in range(video.frames)]
            objects[str(number)] = [
                {"size": list(mask.shape), "counts": runs_of_mask(mask)} if mask.any() else None for mask in masks
            ]
    return document
