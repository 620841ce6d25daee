"""New challenges of grey maps: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.saliency.engine import read_object
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import QUICK, move_image
from segjudge.families.base.tools import Content, Members
from segjudge.masks.compression import grey_png
from segjudge.masks.demo import NAMES, first_scenes, still_images
from segjudge.masks.photographs import photograph_images

#: The number of pixels over which edges of samples fade on either side.
_FADE = 2


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield masks with soft edges, moved."""
    for unit in [unit for truth in truths for unit in truth.units]:
        (frame,) = unit.load()
        yield f"{unit.name}.png", grey_png(_soften(move_image(read_object(frame.read()), share)), QUICK)


def _soften(flags: Array) -> Array:
    """Fade an object out from left to right."""
    padded = np.pad(flags, ((0, 0), (_FADE, _FADE)), mode="edge").astype(np.uint16)
    windows = 2 * _FADE + 1
    total = sum(padded[:, shift : shift + flags.shape[1]] for shift in range(windows))
    return np.asarray(total * 255 // windows).astype(np.uint8)


def make_demo(_protocol: Any) -> Content:
    """Yield frames of the demo, each with one object or more, in two data sets."""
    for image, labels in still_images(first_scenes()):
        mask = np.isin(labels, list(NAMES))
        if mask.any():
            yield f"DEMO-{'AB'[image % 2]}/GT/{image:04d}.png", grey_png(mask * np.uint8(255), QUICK)


def make_demo_pictures(_protocol: Any) -> Members:
    return ((f"DEMO-{'AB'[image % 2]}/{image:04d}.jpg", data) for image, data in photograph_images().items())
