"""A DAVIS root with synthetic videos: pictures, masks, lists, and scribbles that the robot drew."""

import json
from pathlib import Path

from segjudge.datasets.demo import SEED
from segjudge.datasets.demo.make import png_of, scenes_of, write_picture
from segjudge.datasets.demo.scenes import Scene
from segjudge.system.files import replace

from .dataset import Davis
from .other_datasets import DrawnScribbles


def scenes(seed: int = SEED) -> list[Scene]:
    """Return the videos of this root."""
    return scenes_of([("drift", 1, 24, False), ("pair", 2, 24, False)], "", seed)


def write(folder: Path, videos: list[Scene], sets: int = 1) -> None:
    """Write a root; `sets` of scribbles for each sequence, none for 0."""
    lists = folder / "ImageSets/2017"
    lists.mkdir(parents=True, exist_ok=True)
    replace(lists / "val.txt", "".join(f"{video.name}\n" for video in videos))
    for video in videos:
        masks, pictures = (folder / kind / "480p" / video.name for kind in ("Annotations", "JPEGImages"))
        for target in (masks, pictures):
            target.mkdir(parents=True, exist_ok=True)
        for frame in range(video.frames):
            replace(masks / f"{frame:05d}.png", png_of(video.truth(frame)))
            write_picture(pictures / f"{frame:05d}.jpg", video, frame)
    if sets:
        _draw_scribbles(folder, videos, sets)


def _draw_scribbles(folder: Path, videos: list[Scene], sets: int) -> None:
    drawn = DrawnScribbles(Davis(str(folder)), sets)
    for video in videos:
        target = folder / "Scribbles" / video.name
        target.mkdir(parents=True, exist_ok=True)
        for number in range(1, sets + 1):
            scribbles = drawn.load_scribble(video.name, number)
            replace(target / f"{number:03d}.json", json.dumps(scribbles))
