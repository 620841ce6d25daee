"""Writes scenes as truths and uploads of sequences, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

import numpy as np

from tests.builders import written, zipped
from tests.report.known_files import BORDERS, Benchmark, label_png
from tests.report.known_scenes import World


def _davis_files(world: World, folder: str) -> dict[str, bytes]:
    return {
        f"{folder}{video.name}/{frame:05d}.png": label_png(labels.astype(np.uint8))
        for video in world for frame, labels in enumerate(video.labels)
    }  # fmt: skip


SCENES = {
    "davis2017": Benchmark(
        lambda world, folder: written(folder, _davis_files(world, "Annotations/480p/")),
        lambda world: zipped(_davis_files(world, "")),
        frames=8, kinds=1, faults=("missed", *BORDERS, "identities", "late identities"),
    )
}  # fmt: skip
