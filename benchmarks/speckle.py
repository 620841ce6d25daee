"""Regions with smooth edges, and predictions of them with speckle and ragged edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.compression import grey_png

#: The kinds of predictions; the clean one is first.
KINDS = ("clean", "speckled")
#: The share of pixels that have any label, how far edges are off, and how far the clean prediction is moved.
_SPECKLE, _RAGGED, _SHIFT = 0.05, 3, 5
EFFORT = 3


def draw_regions(generator: np.random.Generator, size: tuple[int, int], labels: Array, count: int) -> Array:
    """Return a map of regions: each pixel has the label of its nearest point, by warped distances."""
    points = generator.uniform(0, 1, (count, 2)) * size
    stretch = generator.uniform(0.5, 2, (count, 2))
    rows, columns = np.ogrid[: size[0] : 2, : size[1] : 2]
    nearest, image = np.full((len(rows), columns.shape[1]), np.inf), np.zeros((len(rows), columns.shape[1]), np.int64)
    for (y, x), (tall, wide), label in zip(points, stretch, generator.choice(labels, count), strict=True):
        distance = (tall * (rows - y)) ** 2 + (wide * (columns - x)) ** 2
        closer = distance < nearest
        nearest[closer], image[closer] = distance[closer], label
    return image.repeat(2, 0).repeat(2, 1)[: size[0], : size[1]]


def predict(generator: np.random.Generator, truth: Array, labels: Array, kind: str) -> Array:
    """Return a prediction of one of the kinds."""
    if kind == KINDS[0]:
        return np.roll(truth, _SHIFT, (0, 1))
    rows, columns = np.indices(truth.shape)
    off = generator.integers(-_RAGGED, _RAGGED + 1, (2, *truth.shape))
    rows, columns = (
        np.clip(at + by, 0, side - 1) for at, by, side in zip((rows, columns), off, truth.shape, strict=True)
    )
    answer = truth[rows, columns]
    noisy = generator.random(truth.shape) < _SPECKLE
    answer[noisy] = generator.choice(labels, np.count_nonzero(noisy))
    return answer


def write_labels(folder: Path, images: int, size: tuple[int, int], labels: Array, regions: int, ending: str) -> None:
    generator = np.random.default_rng(4)
    kind = np.uint8 if labels.max() < 256 else np.uint16
    for number in range(images):
        chosen = labels if labels.max() < 256 else np.append(0, generator.permutation(labels)[:regions])
        truth = draw_regions(generator, size, chosen, regions)
        sides = {"truth": truth, **{name: predict(generator, truth, chosen, name) for name in KINDS}}
        for side, image in sides.items():
            (folder / side).mkdir(exist_ok=True)
            (folder / side / f"{number:04d}{ending}").write_bytes(grey_png(image.astype(kind), EFFORT))
