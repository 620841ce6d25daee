"""The benchmarks of panoptic segmentation, one row each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Dict, Tuple

from ...values import dataclass

#: How truths are published.
IMAGE_LAYOUT, VIDEO_LAYOUT = "coco-panoptic", "vipseg"
QUALITIES = ("PQ", "SQ", "RQ")
#: The groups of categories that are averaged: all, those with instances, those without.
GROUPS = ("", "-Things", "-Stuff")


@dataclass(frozen=True)
class PanopticProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "panoptic"

    name: str
    #: One line for people: what is applied, and what it skips.
    about: str
    #: Segments are compared over this many frames; an image is one frame.
    windows: Tuple[int, ...] = (1,)
    #: The boundaries of segments have to match as well.
    boundary: bool = False
    #: Videos are scored, with STQ too.
    video: bool = False
    #: The first segment that a video lists is left out of association, if it is a thing, as in VIPSeg's script.
    first_is_crowd: bool = False
    #: Raised with whatever changes any score.
    revision: int = 1

    @property
    def form(self) -> str:
        """What the truth holds."""
        return VIDEO_LAYOUT if self.video else IMAGE_LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""
        if not self.video:
            return tuple(f"{quality}{group}" for group in GROUPS for quality in QUALITIES)
        return (*(f"VPQ{group}" for group in GROUPS), *(f"VPQ{frames}" for frames in self.windows), "STQ", "AQ", "IoU")


_coco = PanopticProtocol(
    "coco-panoptic",
    "PQ of images; a segment matches above an IoU of one half; areas of the truth are those in its JSON.",
)
_vipseg = PanopticProtocol(
    "vipseg",
    "VPQ over windows of 1, 2, 4, 6 and 8 frames, and STQ with every instance.",
    windows=(1, 2, 4, 6, 8),
    video=True,
)

_ROWS = (
    _coco,
    replace(
        _coco,
        name="coco-panoptic-boundary",
        about="PQ with the smaller of the IoU of masks and the IoU of their boundaries.",
        boundary=True,
    ),
    replace(
        _coco,
        name="cityscapes-panoptic",
        about="As coco-panoptic, by the categories of Cityscapes' JSON, whose ids are labels from 7 to 33.",
    ),
    _vipseg,
    replace(
        _vipseg,
        name="vipseg-official",
        about="As VIPSeg's scripts compute: VPQ, and STQ without the segment that each video lists first.",
        first_is_crowd=True,
    ),
)

PANOPTIC_PROTOCOLS: Dict[str, PanopticProtocol] = {protocol.name: protocol for protocol in _ROWS}
