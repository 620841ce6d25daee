"""New challenges of label maps: samples, and a synthetic truth."""

from __future__ import annotations

import numpy as np

from segjudge.datasets.compression import label_png
from segjudge.datasets.demo import Scene, first_scenes, images
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.families.base.samples import QUICK, moved_labels
from segjudge.families.base.tools import Content, Members


def make_sample(truths: list[UnitTruth], protocol: SemanticProtocol, share: float) -> Members:
    """Yield PNGs of classes; where the truth is void, they hold 0."""
    classes = np.arange(protocol.classes)
    for unit in [unit for truth in truths for unit in truth.units]:
        for frame in unit.load():
            labels = moved_labels(frame.read(), classes, share).astype(np.uint8)
            yield f"{unit.name}/{frame.name}.png", label_png(labels, QUICK)


def make_demo() -> Content:
    """Yield the synthetic truth as VSPW publishes its own."""
    videos = first_scenes()
    yield "val.txt", "".join(f"{video.name}\n" for video in videos)
    for name, data in images(videos, Scene.truth):
        yield "data/" + name.replace("/", "/mask/"), data
