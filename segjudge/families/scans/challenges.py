"""New challenges of scans: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.families.base.challenges import move_labels
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import first_scenes, still_images

#: A scan has about so many rings; samples are moved by a share of one.
_RINGS = 64
#: What rings of the demo show, from above, and what objects are, in turns: every class, and some that move.
_STUFF = (50, 70, 71, 80, 81, 51, 72, 48, 44, 49, 40, 40)
_THINGS = (252, 10, 30, 11, 31, 15, 18, 254, 20, 32)


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield the truth's labels, moved along the rings."""
    for unit in [unit for truth in truths for unit in truth.units]:
        (frame,) = unit.load()
        pixels = frame.read()
        labels = np.unique(pixels.numbers) if pixels.labels is None else pixels.labels
        sequence, _, name = unit.name.partition("/")
        values = move_labels(pixels, labels, share / _RINGS).astype("<u4")
        yield f"sequences/{sequence}/predictions/{name}.label", values.tobytes()


def make_demo(_protocol: Any) -> Content:
    """Yield the demo's frames as scans, ring by ring, in SemanticKITTI's layout."""
    objects = 0
    for number, labels in still_images(first_scenes()):
        rings = np.array(_STUFF, np.uint32)[np.arange(len(labels)) * len(_STUFF) // len(labels)]
        points = np.repeat(rings[:, None], labels.shape[1], axis=1)
        for label in np.unique(labels[labels > 0]).tolist():
            points[labels == label] = _THINGS[objects % len(_THINGS)] | label << 16
            objects += 1
        yield f"sequences/08/labels/{number - 1:06d}.label", points.astype("<u4").tobytes()
