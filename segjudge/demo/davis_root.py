"""A DAVIS root with synthetic videos: pictures, masks, lists, and scribbles that the robot drew."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from .make import SEED, png_of
from .scenes import Scene, scene

#: Name, objects, frames.
SCENES = (("drift", 1, 24), ("pair", 2, 24))


def scenes(seed: int = SEED) -> list[Scene]:
    """The videos of this root."""
    return [
        scene(name, seed + place, objects=objects, frames=frames)
        for place, (name, objects, frames) in enumerate(SCENES)
    ]


def write(folder: Path, videos: list[Scene], sets: int = 1) -> None:
    """Write a root; `sets` of scribbles for each sequence, none for 0."""
    lists = folder / "ImageSets/2017"
    lists.mkdir(parents=True, exist_ok=True)
    (lists / "val.txt").write_text("".join(f"{one.name}\n" for one in videos), encoding="utf-8")
    for one in videos:
        masks, pictures = (folder / kind / "480p" / one.name for kind in ("Annotations", "JPEGImages"))
        for place in (masks, pictures):
            place.mkdir(parents=True, exist_ok=True)
        for frame in range(one.frames):
            (masks / f"{frame:05d}.png").write_bytes(png_of(one.truth(frame)))
            Image.fromarray(one.picture(frame)).save(pictures / f"{frame:05d}.jpg", quality=92)
    if sets:
        _draw(folder, videos, sets)


def _draw(folder: Path, videos: list[Scene], sets: int) -> None:
    from segjudge.interactive.dataset import Davis
    from segjudge.interactive.other_datasets import DrawnScribbles

    drawn = DrawnScribbles(Davis(str(folder)), sets)
    for one in videos:
        place = folder / "Scribbles" / one.name
        place.mkdir(parents=True, exist_ok=True)
        for number in range(1, sets + 1):
            scribbles = drawn.load_scribble(one.name, number)
            (place / f"{number:03d}.json").write_text(json.dumps(scribbles), encoding="utf-8")
