"""Regions, and masks of moving objects, that generated sets consist of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.instances import Blob, Size, shifted
from benchmarks.instances import segmentation as with_empty_runs
from segjudge.evaluation_script.masks.run_lengths import compress, runs_of

Array = np.ndarray[Any, Any]
Lot = np.random.Generator
#: Regions are drawn at a quarter of the size.
COARSE = 4
VOID = 255


class Regions:
    """Regions with wavy borders that move from frame to frame; each pixel of a frame has the index of its region."""

    def __init__(self, lot: Lot, size: Size, count: int) -> None:
        self.size = size
        self._ys, self._xs = np.mgrid[: -(-size[0] // COARSE), : -(-size[1] // COARSE)]
        self._centres = lot.random((count, 2)) * self._ys.shape
        self._speeds = lot.normal(0, 2, (count, 2))

    def labels(self, frame: int, off: Array | float = 0.0) -> Array:
        """Return the regions of a frame; `off` moves their centres."""
        places = self._centres + self._speeds * frame + off
        waves = 400 * np.sin(self._xs / 4 + places[:, :1, None]) * np.cos(self._ys / 13 + places[:, 1:, None])
        far = (self._ys - places[:, :1, None]) ** 2 + (self._xs - places[:, 1:, None]) ** 2 + waves
        large = np.kron(far.argmin(0), np.ones((COARSE, COARSE), np.int64))
        return large[: self.size[0], : self.size[1]]


def save(path: Path, picture: Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.astype(np.uint8)).save(path, compress_level=3)


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def coloured(ids: Array) -> Array:
    return np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1)


def scaled(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def segmentation(shape: Blob, size: Size) -> dict[str, Any]:
    """Return a blob as non-empty run lengths, because pycocotools' union stops where two masks have an empty run."""
    drawn, pixels = with_empty_runs(shape, size), size[0] * size[1]
    borders, times = np.unique(np.cumsum(runs_of(drawn["counts"], pixels)), return_counts=True)
    borders = borders[(times % 2 == 1) & (borders < pixels)]
    return {**drawn, "counts": compress(np.diff(borders, prepend=0, append=pixels).tolist())}


def runs(mask: dict[str, Any]) -> Array:
    return runs_of(mask["counts"], mask["size"][0] * mask["size"][1])


def tube(lot: Lot, shape: Blob, size: Size, frames: int, seen: float) -> list[Any]:
    """Return the masks of a moving object; null in frames without it."""
    speed, off = int(lot.integers(-4, 5)), int(lot.integers(-3, 4))
    return [
        segmentation(shifted(lot, shape, size, speed * index + off), size) if lot.random() < seen else None
        for index in range(frames)
    ]


def near(lot: Lot, masks: list[Any], shape: Blob, size: Size) -> list[Any]:
    """Return results for an object: its own masks, others near it, or none."""
    other = tube(lot, shape, size, len(masks), 0.9)
    return [mask if lot.random() < 0.7 else two for mask, two in zip(masks, other, strict=True)]


def score(lot: Lot) -> float:
    return round(float(lot.random()), 2) if lot.random() < 0.3 else float(lot.random())


def area(mask: Any) -> int | None:
    return None if mask is None else int(sum(runs(mask)[1::2]))


def pixels(mask: Any, size: Size) -> Array:
    """Return a mask as flags."""
    if mask is None:
        return np.zeros(size, bool)
    lengths = runs(mask)
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(size[::-1]).T
