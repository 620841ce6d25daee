"""Writes scenes as truths and uploads of scans, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import written, zipped
from tests.report.known_files import OF_MAPS, OF_SEGMENTS, Benchmark, paint
from tests.report.known_scenes import World

_POINT_LABELS, _POINT_GROUND = {1: 10, 2: 30, 3: 11}, 40


def _scan_files(world: World, folder: str) -> dict[str, bytes]:
    return {
        f"sequences/08/{folder}/{index:06d}.label": (
            paint(video, 0, _POINT_LABELS, _POINT_GROUND) | video.labels[0] << 16
        ).astype("<u4").tobytes()
        for index, video in enumerate(world)
    }  # fmt: skip


_MAPS = Benchmark(
    lambda world, folder: written(folder, _scan_files(world, "labels")),
    lambda world: zipped(_scan_files(world, "predictions")),
    names={1: "car", 2: "person", 3: "bicycle"}, ground="road", faults=OF_MAPS, asks="maps",
)  # fmt: skip
SCENES = {"semantic-kitti": _MAPS, "semantic-kitti-panoptic": replace(_MAPS, faults=OF_SEGMENTS, asks="objects")}
