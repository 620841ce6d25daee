"""The benchmarks of instance masks, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Dict, Tuple

#: A detection matches from this intersection over union on: .50, .55, … .95, as numpy divides the range.
THRESHOLDS = tuple(0.5 + step * ((0.95 - 0.5) / 9) for step in range(10))

#: Areas in pixels, both ends included: an instance of 1,024 pixels is small and medium.
AREAS = {"": (0, 10**10), "s": (0, 32**2), "m": (32**2, 96**2), "l": (96**2, 10**10)}

PER_IMAGE, PER_CATEGORY = "image", "category"


@dataclass(frozen=True)
class InstanceProtocol:
    """The rules of one benchmark."""

    track: ClassVar[str] = "instances"

    name: str
    #: One line for people: what is applied, and what it skips.
    about: str
    #: Recall is reported at these numbers of detections; the last one is the cap.
    detections: Tuple[int, int, int]
    #: What the cap counts: detections of an image, or of an image and category.
    cap: str = PER_CATEGORY
    #: An annotation with the id 0 can never be matched, as in the COCO API.
    id_zero_quirk: bool = False
    #: Boxes are compared instead of masks.
    boxes: bool = False
    #: Raised with whatever changes any score.
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""
        recalls = (f"AR@{count}" for count in self.detections)
        return ("AP", "AP50", "AP75", "APs", "APm", "APl", *recalls, "ARs", "ARm", "ARl")


_places = InstanceProtocol(
    "places2017",
    "Up to 255 masks for each image, over all categories; what lies beyond is dropped.",
    (1, 50, 255),
    PER_IMAGE,
)
_coco = InstanceProtocol("coco", "Up to 100 masks for each image and category.", (1, 10, 100))

_ROWS = (
    _places,
    replace(
        _places,
        name="places2017-official",
        about="As the task's script computes: up to 255 masks for each image and category; the annotation with id 0 "
        "cannot be matched.",
        cap=PER_CATEGORY,
        id_zero_quirk=True,
    ),
    _coco,
    replace(_coco, name="coco-box", about="Boxes; up to 100 for each image and category.", boxes=True),
)

INSTANCE_PROTOCOLS: Dict[str, InstanceProtocol] = {protocol.name: protocol for protocol in _ROWS}
