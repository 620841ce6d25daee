"""The data of microscopy for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np

from segjudge.evaluation_script.families.microscopy.protocols import MICROSCOPY_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.families.slips import MIRRORED, Slip, pictures
from tests.published import frames


def cell_maps(ending: str) -> dict[str, bytes]:
    """Return frames of both videos as images of cells; numbers have gaps."""
    return {f"{name}-{k}{ending}": png(published.labels(name, k).astype(np.uint16) * 300) for name, k in frames()}


def microscopy(folder: Path) -> Path:
    return written(folder / "test", cell_maps("_masks.png"))


def send_cell_maps(_truth: Path) -> bytes:
    return zipped(cell_maps("_img_cp_masks.png"))


PUBLISHED = dict.fromkeys(MICROSCOPY_PROTOCOLS, microscopy)
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "cellpose-ap": (send_cell_maps, {"AP50": 1, "AP90": 1}),
    "cellpose-ap-official": (send_cell_maps, {"AP50": 1, "AP90": 1}),
}
UPLOAD_OF_OTHERS = ""
REFUSALS = dict.fromkeys(UPLOADS, "Send one zip with a PNG or TIFF of labels for each image, such as 007_masks.png")


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "one cell": ("cellpose-ap", pictures(lambda cells: (cells > 0) * np.uint16(1)), "no image tried has more than 1 number"),
    "no background": ("cellpose-ap", pictures(lambda cells: cells + np.uint16(1)), "one number covers most of the background"),
    "turned cells": ("cellpose-ap", pictures(lambda cells: cells[::-1, ::-1]), "maps look rotated by 180 degrees"),
    "mirrored cells": ("cellpose-ap", MIRRORED, "maps look mirrored, with left and right exchanged: corrected, AP50 would be 1.00"),
    "no cells": ("cellpose-ap", pictures(lambda cells: cells * 0), "all maps are empty"),
}  # fmt: skip
EXAMPLES: dict[str, tuple[str, ...]] = {
    "pages": ("cellpose-ap",),
    "mounts": ("cellpose-ap",),
    "surplus": ("cellpose-ap",),
}
SAMPLE_SCORES = {"cellpose-ap": (1.0, 0.49583333333333335), "cellpose-ap-official": (1.0, 0.49583330750465393)}
