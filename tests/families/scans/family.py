"""The data of scans for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.scans.protocols import SCAN_PROTOCOLS
from tests import published
from tests.builders import written, zipped
from tests.families.slips import Slip, points
from tests.published import SIZE, frames


def scan_values(name: str, frame: int) -> bytes:
    """Return every class: stuff in bands, a thing that differs from frame to frame, a car that moves."""
    bands = np.array([40, 44, 48, 49, 50, 51, 70, 71, 72, 80, 81, 81], "<u4").repeat(SIZE[0] // 12)[:, None]
    thing = (10, 11, 15, 18, 20, 30, 31, 32)[frame]
    return np.choose(published.labels(name, frame), [bands, thing | 1 << 16, 252 | 2 << 16]).astype("<u4").tobytes()


def scans(folder: Path) -> Path:
    """Return frames of both videos as scans of a sequence."""
    files = {f"sequences/08/labels/{k:06d}.label": scan_values(*frame) for k, frame in enumerate(frames())}
    return written(folder / "dataset", files)


def send_scans(_truth: Path) -> bytes:
    return zipped({f"sequences/08/predictions/{k:06d}.label": scan_values(*frame) for k, frame in enumerate(frames())})


PUBLISHED = dict.fromkeys(SCAN_PROTOCOLS, scans)
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "semantic-kitti": (send_scans, {"mIoU": 1, "Acc": 1}),
    "semantic-kitti-panoptic": (send_scans, {"PQ": 1, "PQ_dagger": 1, "RQ-Stuff": 1}),
    "semantic-kitti-moving": (send_scans, {"IoU-moving": 1}),
}
UPLOAD_OF_OTHERS = "semantic-kitti"
REFUSALS = dict.fromkeys(UPLOADS, "Send one zip with sequences/08/predictions/000000.label and so on")


TRAIN_IDS = {label: place for place, label in enumerate((10, 11, 15, 18, 20, 30, 31, 32, 40, 44, 48, 49, 50, 51, 70, 71, 72, 80, 81), 1)}  # fmt: skip


def trained(first: int) -> Callable[[Any], Any]:
    table = np.zeros(1 << 16, np.uint32)
    for label, place in TRAIN_IDS.items():
        table[label] = place - 1 + first
    return lambda values: table[values & 0xFFFF]


def exchanged(values: Any) -> Any:
    table = np.arange(1 << 16, dtype=np.uint32)
    table[[*TRAIN_IDS]] = np.roll([*TRAIN_IDS], 1)
    return table[values & 0xFFFF]


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "train ids from 1": ("semantic-kitti", points(trained(1)), "labels look like training ids from 1: corrected, mIoU would be 0.9"),
    "train ids from 0": ("semantic-kitti", points(trained(0)), "labels look like training ids from 0: corrected, mIoU would be 0.9"),
    "no labels": ("semantic-kitti", points(lambda values: values * 0), "all places of the scans have the same value"),
    "shuffled points": ("semantic-kitti", points(lambda values: np.random.default_rng(3).permutation(values)), "as many as by chance: check the labels, and which scan"),
    "nothing moves": ("semantic-kitti-moving", points(lambda values: values * 0 + 10), "all places of the scans have the same value"),
    "exchanged classes": ("semantic-kitti", points(exchanged), "labels look exchanged, such as "),
    "upper half": ("semantic-kitti-panoptic", points(lambda values: values >> 16 | values << 16), "labels seem to be in the upper 16 bits"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"semantic-kitti": []}
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "semantic-kitti-panoptic": ("PQ", "PQ_dagger", "SQ", "RQ", "PQ-Things", "PQ-Stuff", "mIoU")
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "pages": ("semantic-kitti", "semantic-kitti-panoptic"),
    "pages shown whole": ("semantic-kitti",),
    "mounts": ("semantic-kitti",),
    "surplus": ("semantic-kitti",),
    "wrong roots": ("semantic-kitti",),
}
SAMPLE_SCORES = {
    "semantic-kitti": (0.956651006785163, 0.616220253023056),
    "semantic-kitti-official": (0.956651006785163, 0.616220253023056),
    "semantic-kitti-panoptic": (0.9516175455814652, 0.5106945308966158),
    "semantic-kitti-panoptic-official": (0.9516175455814652, 0.5106945308966158),
    "semantic-kitti-moving": (0.9139486467730743, 0.288785046728972),
}
