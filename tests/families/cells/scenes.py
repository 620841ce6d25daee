"""Writes scenes as truths and uploads of cells, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from segjudge.families.cells.challenges import follow_labels, write_tracks
from segjudge.masks.tiff import encode_tiff
from tests.builders import written, zipped
from tests.report.known_files import OF_TRACKS, Benchmark
from tests.report.known_scenes import World


def _cell_files(world: World, folder: str, marker: str, tracks: str) -> dict[str, bytes]:
    files = {}
    for index, video in enumerate(world, 1):
        frames = [frame.astype(np.uint16) for frame in video.labels]
        files[f"{index:02d}_{folder}/{tracks}"] = write_tracks(follow_labels(frames, {})).encode()
        for number, labels in enumerate(frames):
            files[f"{index:02d}_{folder}/{marker}{number:03d}.tif"] = encode_tiff(labels[None])
    return files


def publish_cells(world: World, folder: Path) -> Path:
    outlines = {
        name.replace("TRA/man_track", "SEG/man_seg"): data
        for name, data in _cell_files(world, "GT", "TRA/man_track", "TRA/man_track.txt").items() if ".tif" in name
    }  # fmt: skip
    return written(folder, {**_cell_files(world, "GT", "TRA/man_track", "TRA/man_track.txt"), **outlines})


SCENES = {
    "ctc": Benchmark(
        publish_cells, lambda world: zipped(_cell_files(world, "RES", "mask", "res_track.txt")), 8, 1, faults=OF_TRACKS
    )
}
