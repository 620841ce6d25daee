"""The benchmarks of panoptic segmentation, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Dict, List, Tuple

#: The layouts of published truths.
IMAGE_LAYOUT, VIDEO_LAYOUT, CODED_LAYOUT = "coco-panoptic", "vipseg", "step"
QUALITIES = ("PQ", "SQ", "RQ")
#: The groups of categories that are averaged: all, those with instances, those without.
GROUPS = ("", "-Things", "-Stuff")


@dataclass(frozen=True)
class PanopticProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "panoptic"

    name: str
    about: str
    #: The numbers of frames over which segments are compared; an image is one frame.
    windows: Tuple[int, ...] = (1,)
    #: The boundaries of segments must match as well.
    boundary: bool = False
    #: The protocol scores videos, with STQ too.
    video: bool = False
    #: Association omits the first segment that a video lists, if it is a thing, as in VIPSeg's script.
    first_is_crowd: bool = False
    #: The names of the classes if pixels, not a JSON, encode class and object; + marks classes with objects.
    classes: str = ""
    #: Unlabelled pixels are a class of their own, which is never correct.
    void_is_class: bool = True
    revision: int = 1

    @property
    def form(self) -> str:
        return CODED_LAYOUT if self.classes else VIDEO_LAYOUT if self.video else IMAGE_LAYOUT

    @property
    def categories(self) -> List[Tuple[int, str, bool]]:
        """The number, name and kind (thing or stuff) of each class, if the benchmark fixes them."""
        names = self.classes.split(", ") if self.classes else []
        return [(number, name.rstrip("+"), name.endswith("+")) for number, name in enumerate(names)]

    @property
    def metrics(self) -> Tuple[str, ...]:
        if not self.video:
            return tuple(f"{quality}{group}" for group in GROUPS for quality in QUALITIES)
        measures = ("STQ", "AQ", "IoU")
        if not self.windows:
            return measures
        return (*(f"VPQ{group}" for group in GROUPS), *(f"VPQ{frames}" for frames in self.windows), *measures)


_coco = PanopticProtocol(
    "coco-panoptic", "PQ of images. Segments match above an IoU of 0.5; areas of true segments come from the JSON."
)
_vipseg = PanopticProtocol(
    "vipseg",
    "VPQ over windows of 1, 2, 4, 6 and 8 frames; STQ over every instance.",
    windows=(1, 2, 4, 6, 8),
    video=True,
)
_step = PanopticProtocol(
    "kitti-step",
    "STQ over all frames. Unlabelled pixels count as missed; AQ ignores crowds (things without a number).",
    windows=(),
    video=True,
    classes="road, sidewalk, building, wall, fence, pole, traffic light, traffic sign, vegetation, terrain, sky, "
    "person+, rider, car+, truck, bus, train, motorcycle, bicycle",
    void_is_class=False,
)
_step_official = replace(
    _step,
    name="kitti-step-official",
    about="As computed by deeplab2: one unlabelled pixel where the truth has a class adds a class with IoU 0.",
    void_is_class=True,
)
_MOTCHALLENGE = "sidewalk, building, vegetation, sky, person+, rider, bicycle"

_ROWS = (
    _coco,
    replace(
        _coco, name="coco-panoptic-boundary", about="PQ with the smaller of mask IoU and boundary IoU.", boundary=True
    ),
    replace(
        _coco,
        name="cityscapes-panoptic",
        about="As coco-panoptic, with the categories of Cityscapes' JSON, whose ids are labels from 7 to 33.",
    ),
    _vipseg,
    replace(
        _vipseg,
        name="vipseg-official",
        about="As computed by VIPSeg's scripts: VPQ, and STQ without the first segment listed in each video.",
        first_is_crowd=True,
    ),
    _step,
    _step_official,
    replace(_step, name="motchallenge-step", classes=_MOTCHALLENGE),
    replace(_step_official, name="motchallenge-step-official", classes=_MOTCHALLENGE),
)

PANOPTIC_PROTOCOLS: Dict[str, PanopticProtocol] = {protocol.name: protocol for protocol in _ROWS}
#: The layouts of truths whose pixels encode class and object.
CODED_LAYOUTS = tuple(protocol.name for protocol in _ROWS if protocol.classes)
