"""Writes scenes as truths and uploads of volumes, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.families.volumes.challenges import encode_nifti
from tests.builders import written, zipped
from tests.report.known_files import BORDERS, CLASSES, Benchmark
from tests.report.known_scenes import World

_OF_VOLUMES = ("missed", "surplus", *BORDERS, "bridged", "broken")


def _volume_files(world: World) -> dict[str, Any]:
    """Return the volumes of scenes whose frames are slices."""
    files = {}
    for video in world:
        values = np.zeros(max([*video.classes, *video.numbers()]) + 1, np.uint8)
        values[list(video.classes)] = list(video.classes.values())
        z, y, x = video.labels.shape
        geometry = Geometry((x, y, z), (1.0, 1.0, 2.0), np.column_stack([np.diag([-1.0, 1.0, 2.0]), np.zeros(3)]))
        files[f"{video.name}.nii.gz"] = encode_nifti(values[video.labels], geometry)
    return files


def _as_volumes(names: dict[int, str], faults: tuple[str, ...] = _OF_VOLUMES) -> Benchmark:
    return Benchmark(
        lambda world, folder: written(folder, _volume_files(world)), lambda world: zipped(_volume_files(world)),
        8, len(names), names, "background", faults,
    )  # fmt: skip


SCENES = {
    "volumes": _as_volumes(
        {1: "label 1", 2: "label 2", 3: "label 3"}, (*_OF_VOLUMES, *CLASSES)
    ),
    "brats-2023": _as_volumes({1: "label 1 (TC)", 2: "label 2 (WT)", 3: "ET"}),
    "isles22": _as_volumes({1: "lesion"}),
}  # fmt: skip
