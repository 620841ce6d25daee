"""Writes scenes as truths and uploads of images of cells, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

import numpy as np

from tests.builders import written, zipped
from tests.report.known_files import OF_OBJECTS, Benchmark, grey_png
from tests.report.known_scenes import World


def _cellpose_files(world: World) -> dict[str, bytes]:
    return {f"{video.name}_masks.png": grey_png(video.labels[0].astype(np.uint16)) for video in world}


SCENES = {
    "cellpose-ap": Benchmark(
        lambda world, folder: written(folder, _cellpose_files(world)), lambda world: zipped(_cellpose_files(world)),
        kinds=1, faults=OF_OBJECTS,
    )
}  # fmt: skip
