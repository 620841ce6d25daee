"""A generated set of LiDAR scans."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.families import SpeckledSet
from benchmarks.scans import draw_scan


def _write_scans(folder: Path, scans: int) -> None:
    generator = np.random.default_rng(8)
    for number in range(scans):
        truth, clean = draw_scan(generator, "stretches")
        speckled = truth.copy()
        speckled[::7] = generator.choice(np.unique(truth), len(speckled[::7]))
        for side, points in {"truth": truth, "clean": clean, "speckled": speckled}.items():
            kind = "labels" if side == "truth" else "predictions"
            path = folder / side / f"sequences/08/{kind}/{number:06d}.label"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(points.tobytes())


SPECKLED_SETS = {protocol: SpeckledSet(_write_scans, 140) for protocol in ("semantic-kitti", "semantic-kitti-panoptic")}
