"""The benchmarks of instance masks, one row each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Dict, Tuple

#: The minimum IoU of a match: .50, .55, … .95, as numpy divides the range.
THRESHOLDS = tuple(0.5 + step * ((0.95 - 0.5) / 9) for step in range(10))

#: Ranges of areas in pixels, both ends included: an instance of 1,024 pixels is small and medium.
AREAS = {"": (0, 10**10), "s": (0, 32**2), "m": (32**2, 96**2), "l": (96**2, 10**10)}
#: Ranges of mean areas in pixels of instances in videos.
_VIDEO_AREAS = ((0, 10**10), (0, 128**2), (128**2, 256**2), (256**2, 10**10))
#: Suffix -> range of occlusion by `truth.LABELS`, both ends included.
OCCLUSIONS = {"": (0, 1), "-light": (0, 0.25), "-medium": (0.25, 0.5), "-heavy": (0.5, 1)}
#: The metrics of Cityscapes' instances: of all, and of those within a distance.
STREET_METRICS = ("AP", "AP50%", "AP100m", "AP50m", "AP50%50m")
#: Groups of categories by their frequency in the training data, as LVIS marks them.
FREQUENCIES = ("r", "c", "f")

_Range = Tuple[float, float]

PER_IMAGE, PER_CATEGORY = "image", "category"
#: A cap above the maximum number of detections in a submission.
_NO_CAP = 1 << 30


@dataclass(frozen=True)
class InstanceProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "instances"

    name: str
    about: str
    #: Recall is reported at these numbers of detections; the last one is the cap.
    detections: Tuple[int, ...]
    #: The unit of the cap: an image, or an image and category.
    cap: str = PER_CATEGORY
    #: An annotation with the id 0 is never matched, as in the COCO API.
    id_zero_quirk: bool = False
    #: Boxes are compared instead of masks.
    boxes: bool = False
    #: Keypoints are compared instead of masks: OKS replaces IoU.
    keypoints: bool = False
    #: If the first detection has a box, areas of detections come from boxes, as in the COCO API.
    boxes_give_areas: bool = False
    #: Ranges of areas, named as in AREAS.
    areas: Tuple[_Range, ...] = tuple(AREAS.values())
    #: Instances are in videos, with one mask per frame.
    tubes: bool = False
    #: The ranges of OCCLUSIONS have scores too.
    occlusion: bool = False
    #: The width of boundaries as a share of the image's diagonal. The smaller of the overlaps of masks and of
    #: boundaries counts; 0 compares only masks.
    boundary: float = 0.0
    #: As in LVIS, an image counts only for the categories that were searched for, and empty masks are dropped.
    federated: bool = False
    #: Crowds are ignored; otherwise they count like any other instance.
    crowds: bool = True
    #: As in Cityscapes, text files list PNGs of masks; matching and averaging differ.
    streets: bool = False
    #: Groups that are too small are ignored twice, numbered objects without a class are not
    #: ignored, and if several lines of a text file list one mask, the last one counts.
    street_quirks: bool = False
    revision: int = 1

    @property
    def measure(self) -> str:
        """The measure of overlap between a detection and an instance."""
        return "OKS" if self.keypoints else "IoU"

    @property
    def form(self) -> str:
        return "videos" if self.tubes else "images"

    @property
    def metrics(self) -> Tuple[str, ...]:
        if self.streets:
            return STREET_METRICS
        if self.keypoints:
            return ("AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl")
        recalls = [f"AR@{count}" for count in self.detections]
        sizes = [f"AR{self.recall_of(size)}" for size in ("s", "m", "l")]
        hidden = [name for name in OCCLUSIONS if name] if self.occlusion else []
        precisions = ["APs", "APm", "APl", *(f"AP{name}" for name in hidden)]
        if self.federated:
            precisions += [f"AP{name}" for name in FREQUENCIES]
        sizes += [f"AR{name}" for name in hidden]
        if self.tubes:  # the leaderboards' metrics, then those that only the programs print
            return ("AP", "AP50", "AP75", *recalls[:2], *precisions, *recalls[2:], *sizes)
        return ("AP", "AP50", "AP75", *precisions, *recalls, *sizes)

    @property
    def aspects(self) -> int:
        """The number of properties that define ranges: area, and occlusion if the benchmark uses it."""
        return 2 if self.occlusion else 1

    def recall_of(self, size: str) -> str:
        """Return the name of a size in metrics of recall."""
        return f"{size}@{self.detections[-1]}" if self.federated else size


_places = InstanceProtocol(
    "places2017", "Up to 255 masks per image, over all categories; further masks are dropped.", (1, 50, 255), PER_IMAGE
)
_coco = InstanceProtocol("coco", "Up to 100 masks per image and category.", (1, 10, 100))
_lvis = InstanceProtocol(
    "lvis",
    "Up to 300 masks per image, over all categories. In each image, only categories that the truth lists as present or "
    "absent count. Crowds count as any other instance; the annotation with id 0 cannot be matched.",
    (300,),
    PER_IMAGE,
    id_zero_quirk=True,
    federated=True,
    crowds=False,
)
_keypoints = InstanceProtocol(
    "coco-keypoints",
    "Up to 20 sets of keypoints per image and category, compared by OKS. Annotations without keypoints are ignored; "
    "boxes of detections are not read.",
    (20,),
    keypoints=True,
)
_streets = InstanceProtocol(
    "cityscapes-instance",
    "Masks of objects of at least 100 pixels match above an IoU of .50, .55, ... .95. Detections on groups, on smaller "
    "objects or on pixels without a class are ignored; caravans and trailers have no class.",
    (_NO_CAP,),
    streets=True,
)
_video = InstanceProtocol(
    "youtube-vis-2019",
    "Up to 100 instances per video and category, compared over all frames; the annotation with id 0 cannot be matched.",
    (1, 10, 100),
    id_zero_quirk=True,
    areas=_VIDEO_AREAS,
    tubes=True,
)

_ROWS = (
    _places,
    replace(
        _places,
        name="places2017-official",
        about="As computed by the task's script: up to 255 masks per image and category; the annotation with id 0 "
        "cannot be matched.",
        cap=PER_CATEGORY,
        id_zero_quirk=True,
    ),
    _coco,
    replace(
        _coco,
        name="coco-official",
        about="As computed by pycocotools: if the first detection has a box, boxes set the areas of detections; the "
        "annotation with id 0 cannot be matched.",
        id_zero_quirk=True,
        boxes_give_areas=True,
    ),
    replace(_coco, name="coco-box", about="Up to 100 boxes per image and category.", boxes=True),
    replace(
        _coco,
        name="coco-boundary",
        about="As coco, but with the smaller of mask IoU and boundary IoU; boundaries are 2 % of the diagonal wide.",
        boundary=0.02,
    ),
    _keypoints,
    replace(
        _keypoints,
        name="coco-keypoints-official",
        about="As computed by pycocotools: num_keypoints alone decides whether an annotation counts; boxes of "
        "detections set their areas; the annotation with id 0 cannot be matched.",
        id_zero_quirk=True,
        boxes_give_areas=True,
    ),
    _lvis,
    replace(
        _lvis,
        name="lvis-boundary",
        about="As lvis, but with the smaller of mask IoU and boundary IoU; boundaries are 2 % of the diagonal wide. "
        "Crowds are ignored; the annotation with id 0 cannot be matched.",
        areas=tuple((low, math.nextafter(high, 0)) for low, high in AREAS.values()),  # without the upper end
        boundary=0.02,
        crowds=True,
    ),
    _streets,
    replace(
        _streets,
        name="cityscapes-instance-official",
        about="As computed by Cityscapes' script: overlap with groups below 100 pixels counts twice, detections on "
        "numbered caravans and trailers are wrong, and if several lines name one mask, the last counts.",
        street_quirks=True,
    ),
    _video,
    replace(_video, name="youtube-vis-2021"),
    replace(_video, name="youtube-vis-2022", about=f"{_video.about} Score short and long videos as two splits."),
    replace(_video, name="ovis", about=f"{_video.about} Also by occlusion: light, medium, heavy.", occlusion=True),
)

INSTANCE_PROTOCOLS: Dict[str, InstanceProtocol] = {protocol.name: protocol for protocol in _ROWS}
