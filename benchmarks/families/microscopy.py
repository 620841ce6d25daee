"""A generated set of label maps with many cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.families import SpeckledSet
from benchmarks.speckle import write_labels


def _write_cells(folder: Path, images: int) -> None:
    write_labels(folder, images, (512, 512), np.arange(1, 1 << 12), 150, "_masks.png")


SPECKLED_SETS = {"cellpose-ap": SpeckledSet(_write_cells, 60)}
