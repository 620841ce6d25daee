"""Photographs of the synthetic scenes: cut-outs in the shapes of their objects, over photographed grounds.

`material/` has the cut-outs; `demo/SOURCES.md` lists their photographs.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from .demo import STEP, Scene, first_scenes, label_frames, still_images

MATERIAL = Path(__file__).parent / "material"
#: The looks of objects in turn, and the grounds of scenes by the number of their objects.
_COATS = ("planet", "photo-raccoon", "badge", "photo-cat", "photo-coffee")
_GROUNDS = {"gravel": (0.82, 0.8, 0.78), "grass": (0.62, 0.8, 0.36), "brick": (1.0, 0.72, 0.55)}
#: The photograph's pixels per pixel of the truth, in each direction.
_FINE = 2
#: The length of a shadow in pixels, and the share of light that remains in it.
_REACH, _SHADE = 5, 0.55
_QUALITY = 85
_Floats = NDArray[np.float32]


def photograph(video: Scene, frame: int) -> NDArray[np.uint8]:
    """Draw a frame of a scene as a photograph."""
    if not features.check("webp"):
        return video.picture(frame)  # this Pillow cannot read the material's format
    rows, columns = _grid(video.size)
    canvas = _ground(video.size, list(_GROUNDS)[len(video.shapes) % len(_GROUNDS)]).copy()
    for number, shape in enumerate(video.shapes):
        across, along = shape.place(rows, columns, frame)
        inside = (across**2 + along**2 <= 1) & (frame >= shape.enters)
        canvas[np.roll(inside, (_REACH, _REACH), (0, 1)) & ~inside] *= _SHADE
        across, along = across[inside], along[inside]
        coat = _load(_COATS[(number + len(video.name)) % len(_COATS)])
        light = np.clip(1.1 - 0.25 * (along**2 + across**2) - 0.1 * (along + across), 0.6, 1.2)
        side = min(coat.shape[:2]) * 0.49
        seen = _sample(coat[..., :3], coat.shape[0] / 2 + across * side, coat.shape[1] / 2 + along * side)
        canvas[inside] = seen * light[..., None]
    pixels: NDArray[np.uint8] = np.clip(canvas * 255, 0, 255).astype(np.uint8)
    return pixels


def photograph_videos() -> Iterator[tuple[Scene, list[tuple[str, bytes]]]]:
    """Yield the videos of the first phase, each with the names and JPEGs of its frames."""
    for video in first_scenes():
        names = [name for name, _ in label_frames(video)]
        yield video, [(name, _photograph_as_jpeg(video, frame)) for frame, name in enumerate(names)]


def photograph_frames() -> Iterator[tuple[str, bytes]]:
    """Yield the JPEGs of all frames of these videos, named VIDEO/FRAME.jpg."""
    for video, frames in photograph_videos():
        yield from ((f"{video.name}/{name}.jpg", data) for name, data in frames)


def photograph_images() -> dict[int, bytes]:
    """Return the JPEGs of the images by the numbers of `still_images`."""
    frames = [(video, frame) for video in first_scenes() for frame in range(0, video.frames, STEP)]
    numbers = [number for number, _ in still_images(first_scenes())]
    return {number: _photograph_as_jpeg(*frame) for number, frame in zip(numbers, frames, strict=True)}


@cache
def _photograph_as_jpeg(video: Scene, frame: int) -> bytes:
    data = io.BytesIO()
    Image.fromarray(photograph(video, frame)).save(data, "JPEG", quality=_QUALITY)
    return data.getvalue()


def _grid(size: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows and the columns of a photograph's pixels, in pixels of the truth."""
    rows, columns = np.ogrid[: _FINE * size[0], : _FINE * size[1]]
    return (rows + 0.5) / _FINE - 0.5, (columns + 0.5) / _FINE - 0.5


@lru_cache(maxsize=1)
def _ground(size: tuple[int, int], name: str) -> _Floats:
    """Return the ground of a scene, without shadows."""
    rows, columns = _grid(size)
    ground = _sample(_load(f"ground-{name}")[..., :3], 1.5 * rows, 1.5 * columns)
    coloured: _Floats = ground.mean(axis=2, keepdims=True) * np.array(_GROUNDS[name], np.float32)
    return coloured


@cache
def _load(name: str) -> _Floats:
    with Image.open(MATERIAL / f"{name}.webp") as image:
        pixels = np.asarray(image.convert("RGBA"))
    return (pixels / 255).astype(np.float32)


def _sample(source: _Floats, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> _Floats:
    """Return the mean of four samples for each pixel, which repeat beyond the edges."""
    height, width = source.shape[:2]
    steps = ((-0.25, -0.25), (-0.25, 0.25), (0.25, -0.25), (0.25, 0.25))
    samples = [
        source[np.floor(rows + down).astype(int) % height, np.floor(columns + right).astype(int) % width]
        for down, right in steps
    ]
    mean: _Floats = np.mean(samples, axis=0, dtype=np.float32)
    return mean
