"""The data of saliency for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np

from segjudge.evaluation_script.families.saliency.protocols import SALIENCY_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.families.slips import INVERTED, Slip, pictures
from tests.published import frames


def grey_maps() -> dict[str, bytes]:
    """Return masks of both objects of each frame, with a data set per video."""
    return {f"{name}/{k}.png": png((published.labels(name, k) > 0) * np.uint8(255)) for name, k in frames()}


def saliency(folder: Path) -> Path:
    """Return both videos as data sets of salient objects."""
    return written(folder / "masks", {name.replace("/", "/GT/"): data for name, data in grey_maps().items()})


def send_grey_maps(_truth: Path) -> bytes:
    return zipped(grey_maps())


PUBLISHED = dict.fromkeys(SALIENCY_PROTOCOLS, saliency)
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "sod": (send_grey_maps, {"F_max": 1, "wF": 1, "MAE": 0}),
    "sod-official": (send_grey_maps, {"F_max": 1, "wF": 1, "MAE": 0}),
}
UPLOAD_OF_OTHERS = "sod"
REFUSALS = dict.fromkeys(UPLOADS, "Send one zip with a grey PNG for each image, named as its mask")


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "inverted maps": ("sod", INVERTED, "maps look inverted, dark on objects and bright elsewhere: corrected, S would be 1.00"),
    "inverted maps, script": ("sod-official", INVERTED, "maps look inverted, dark on objects and bright elsewhere: corrected, S would be 1.00"),
    "black maps": ("sod", pictures(lambda grey: grey * 0), "all places of the maps have the same value (0)"),
    "white maps": ("sod", pictures(lambda grey: grey * 0 + np.uint8(200)), "all places of the maps have the same value (200)"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"sod": ["DEMO-B"]}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "pages": ("sod",),
    "mounts": ("sod",),
    "surplus": ("sod",),
    "machines": ("sod",),
    "wrong roots": ("sod",),
}
SAMPLE_SCORES = {
    "sod": (0.972327978901017, 0.7757782958275704),
    "sod-official": (0.972327978901017, 0.7757782958275704),
}
