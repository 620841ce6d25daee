"""Writes scenes as truths and uploads of salient objects, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.builders import written, zipped
from tests.report.known_files import OF_ONE, Benchmark, grey_png
from tests.report.known_scenes import OBJECTS, Video, World


def publish_maps(world: World, folder: Path) -> Path:
    return written(folder, {f"DEMO/GT/{name}": data for name, data in _grey(world).items()})


def _grey(world: World) -> dict[str, bytes]:
    return {f"{video.name}.png": grey_png((video.labels[0] == 1) * np.uint8(255)) for video in world}


def send_maps(world: World) -> bytes:
    return zipped({
        f"DEMO/{video.name}.png": grey_png(((video.labels[0] > 0) & np.isin(video.labels[0], _salient(video)))
                                            * np.uint8(255)) for video in world
    })  # fmt: skip


def _salient(video: Video) -> list[int]:
    """Return the objects that a map shows: the first one, its parts, and invented ones."""
    return [number for number in video.numbers() if number == 1 or number > OBJECTS]


SCENES = {"sod-official": Benchmark(publish_maps, send_maps, kinds=1, faults=OF_ONE, asks="object")}
