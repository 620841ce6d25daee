"""The benchmarks of LiDAR scans, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Dict, List, Tuple

#: The layout of published truths.
LAYOUT = "semantic-kitti"
QUALITIES = ("PQ", "SQ", "RQ")
#: The groups of classes that are averaged: all, those with instances, those without.
GROUPS = ("", "-Things", "-Stuff")
#: The exclusive maximum of labels, as in SemanticKITTI's tables.
LABELS_END = 359

#: Each class with its labels; moving objects come last.
_CLASSES = (
    "car 10 252, bicycle 11, motorcycle 15, truck 18 258, other-vehicle 13 16 20 256 257 259, person 30 254, "
    "bicyclist 31 253, motorcyclist 32 255, road 40 60, parking 44, sidewalk 48, other-ground 49, building 50, "
    "fence 51, vegetation 70, trunk 71, terrain 72, pole 80, traffic-sign 81"
)
_MOTION = (
    "static 9 10 11 13 15 16 18 20 30 31 32 40 44 48 49 50 51 52 60 70 71 72 80 81 99, "
    "moving 251 252 253 254 255 256 257 258 259"
)


@dataclass(frozen=True)
class ScanProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "scans"
    form: ClassVar[str] = LAYOUT

    name: str
    about: str
    #: The names of its classes, each followed by its labels.
    table: str = _CLASSES
    #: Labels that the benchmark knows, but does not score.
    unscored: Tuple[int, ...] = (0, 1, 52, 99)
    #: The number of leading classes with instances, if segments are matched.
    panoptic: bool = False
    things: int = 8
    #: The index of the only reported class.
    reported: int = -1
    #: Follow the script: means over all classes, accuracy over labelled points, segments by label and number
    #: everywhere.
    as_script: bool = False
    #: Unmatched segments with fewer points cost nothing.
    fewest_points: int = 50
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        if self.reported >= 0:
            return (f"IoU-{self.class_names[self.reported]}",)
        if self.panoptic:
            named = tuple(f"{quality}{group}" for group in GROUPS for quality in QUALITIES)
            return (named[0], "PQ_dagger", *named[1:], "mIoU")
        return ("mIoU", "Acc") if self.as_script else ("mIoU", "mIoU-official", "Acc")

    @property
    def class_names(self) -> List[str]:
        """The names of its classes, in the order of their indices."""
        return [name for name, _ in _read_table(self.table)]

    @property
    def class_labels(self) -> List[List[int]]:
        """The labels of each class; development kits write the first one."""
        return [labels for _, labels in _read_table(self.table)]


@lru_cache(maxsize=None)
def _read_table(table: str) -> List[Tuple[str, List[int]]]:
    """Return the name and labels of each class of a table."""
    entries = [entry.split() for entry in table.split(", ")]
    return [(name, list(map(int, labels))) for name, *labels in entries]


_semantic = ScanProtocol(
    "semantic-kitti",
    "mIoU over the classes in the truth, and over all 19 as in the benchmark; points without a class are ignored.",
)
_panoptic = replace(
    _semantic,
    name="semantic-kitti-panoptic",
    about="PQ over the classes in the truth. Objects have a class and a number; a stuff class is one segment per scan.",
    panoptic=True,
)

_ROWS = (
    _semantic,
    replace(
        _semantic,
        name="semantic-kitti-official",
        about="As computed by the script: mIoU over all 19 classes; accuracy over the points with a predicted class.",
        as_script=True,
    ),
    _panoptic,
    replace(
        _panoptic,
        name="semantic-kitti-panoptic-official",
        about="As computed by the script: PQ over all 19 classes; every segment, stuff too, has a label and a number.",
        as_script=True,
    ),
    replace(
        _semantic,
        name="semantic-kitti-moving",
        about="IoU of moving points; all other points form one class.",
        table=_MOTION,
        unscored=(0, 1),
        things=0,
        reported=1,
    ),
)

SCAN_PROTOCOLS: Dict[str, ScanProtocol] = {protocol.name: protocol for protocol in _ROWS}
