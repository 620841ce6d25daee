"""A generated set of maps of salience."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.families import SpeckledSet
from benchmarks.speckle import EFFORT, draw_regions, predict
from segjudge.masks.compression import grey_png


def _write_greys(folder: Path, images: int) -> None:
    generator = np.random.default_rng(4)
    for number in range(images):
        truth = draw_regions(generator, (300, 400), np.array([0, 0, 0, 255]), 12)
        levels = np.array([20, 90, 160, 255])
        clean = np.where(truth > 0, 230, 0)
        sides = {"truth": truth, "clean": clean, "speckled": predict(generator, clean, levels, "speckled")}
        for side, image in sides.items():
            (folder / side).mkdir(exist_ok=True)
            (folder / side / f"{number:04d}.png").write_bytes(grey_png(image.astype(np.uint8), EFFORT))


SPECKLED_SETS = {"sod": SpeckledSet(_write_greys, 100)}
