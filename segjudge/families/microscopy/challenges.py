"""New challenges of cells in images: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.families.base.challenges import QUICK, move_image
from segjudge.families.base.tools import Content, Members
from segjudge.masks.compression import grey_png
from segjudge.masks.demo import first_scenes, still_images
from segjudge.masks.photographs import photograph_images

#: The ratio of the share of omitted cells to the share by which cells are moved.
_LOST = 4


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield the maps of the truth, moved to the right, without some cells."""
    cells = 0
    for unit in [unit for truth in truths for unit in truth.units]:
        pixels = unit.load()[0].read()
        moved = pixels._replace(numbers=move_image(pixels.numbers, share))
        labels = np.ascontiguousarray(moved.image, np.uint16)
        present = np.unique(labels[labels > 0])
        lost = np.floor(_LOST * share * np.arange(cells, cells + len(present) + 1))
        labels[np.isin(labels, present[np.diff(lost) > 0])] = 0
        cells += len(present)
        yield f"{unit.name}_masks.png", grey_png(labels, QUICK)


def make_demo(_protocol: Any) -> Content:
    """Yield frames of the demo as the test set of Cellpose is published."""
    for image, labels in still_images(first_scenes()):
        yield f"test/{image:03d}_masks.png", grey_png(labels.astype(np.uint16), QUICK)


def make_demo_pictures(_protocol: Any) -> Members:
    return ((f"{image:03d}.jpg", data) for image, data in photograph_images().items())
