"""The benchmarks of label maps, of videos and of images, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Dict, Sequence, Tuple

#: The layouts of truths and results: a folder of frames per video, or a PNG per image. Cityscapes' truth numbers
#: objects, and a result's name only begins with its image's.
VIDEOS, IMAGES, CITYSCAPES = "vspw", "images", "cityscapes"
#: COCO-Stuff has one JSON per side, with run lengths.
STUFF = "coco-stuff"
#: The exclusive maximum of 8-bit labels.
_END = 256


@dataclass(frozen=True)
class SemanticProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "semantic"

    name: str
    about: str
    form: str = VIDEOS
    #: The number of classes, from label 0; all other labels of the truth are void.
    classes: int = 255
    first_class: int = 0
    #: The labels of the classes, if they are not consecutive.
    chosen: Tuple[int, ...] = ()
    #: The lowest predicted label that is rejected where the truth has a class; other labels without a class count as
    #: missed.
    refused_from: int = 255
    #: A missing image counts as missed; otherwise it is an error.
    takes_missing: bool = False
    #: The class of pixels that a prediction leaves at 0; 0 counts them as missed.
    unlabelled: int = 0
    #: The number of leading classes in means; 0 means all.
    averaged: int = 0
    #: The name of classes' groups that are scored too, their names, and the labels of each; if none are listed, the
    #: truth lists and names them.
    grouping: str = ""
    groups: Tuple[Tuple[str, Tuple[int, ...]], ...] = ()
    #: The average size in pixels of a label's objects: each object weighs as if it had that size.
    sizes: Tuple[Tuple[int, float], ...] = ()
    #: The numbers of frames over which consistency is measured.
    windows: Tuple[int, ...] = ()
    #: Skip the last window of each video, as VSPW's script does.
    without_last: bool = False
    #: The metrics reported before consistency, and after it.
    leads: Tuple[str, ...] = ("mIoU",)
    measures: Tuple[str, ...] = ("Acc", "Acc_class", "fwIoU")
    #: The names of the labels, in order.
    names: str = ""
    revision: int = 1

    @property
    def labels(self) -> Sequence[int]:
        """The labels that are classes."""
        return self.chosen or range(self.first_class, self.first_class + self.classes)

    @property
    def averages_predicted(self) -> bool:
        """Return True if a class that only the prediction has enters the mean with 0."""
        return self.leads[0] == "IoU"

    @property
    def metrics(self) -> Tuple[str, ...]:
        return (*self.leads, *(f"VC{frames}" for frames in self.windows), *self.measures)

    def name_class(self, label: int) -> str:
        """Return the name of a label's class."""
        names = dict(zip(self.labels, self.names.split(", "))) if self.names else {}
        return names.get(label, f"class {label}")


_ADE20K = (
    "wall, building, sky, floor, tree, ceiling, road, bed, windowpane, grass, cabinet, sidewalk, person, earth, door, "
    "table, mountain, plant, curtain, chair, car, water, painting, sofa, shelf, house, sea, mirror, rug, field, "
    "armchair, seat, fence, desk, rock, wardrobe, lamp, bathtub, railing, cushion, base, box, column, signboard, "
    "chest of drawers, counter, sand, sink, skyscraper, fireplace, refrigerator, grandstand, path, stairs, runway, "
    "case, pool table, pillow, screen door, stairway, river, bridge, bookcase, blind, coffee table, toilet, flower, "
    "book, hill, bench, countertop, stove, palm, kitchen island, computer, swivel chair, boat, bar, arcade machine, "
    "hovel, bus, towel, light, truck, tower, chandelier, awning, streetlight, booth, television receiver, airplane, "
    "dirt track, apparel, pole, land, bannister, escalator, ottoman, bottle, buffet, poster, stage, van, ship, "
    "fountain, conveyer belt, canopy, washer, plaything, swimming pool, stool, barrel, basket, waterfall, tent, bag, "
    "minibike, cradle, oven, ball, food, step, tank, trade name, microwave, pot, animal, bicycle, lake, dishwasher, "
    "screen, blanket, sculpture, hood, sconce, vase, traffic light, tray, ashcan, fan, pier, crt screen, plate, "
    "monitor, bulletin board, shower, radiator, glass, clock, flag"
)
_STREETS = (
    "road, sidewalk, building, wall, fence, pole, traffic light, traffic sign, vegetation, terrain, sky, person, "
    "rider, car, truck, bus, train, motorcycle, bicycle"
)

_vspw = SemanticProtocol(
    "vspw",
    "mIoU over the classes in the truth; VC over all windows of 8 and 16 frames; labels of 124 and above are void.",
    classes=124,
    refused_from=124,
    windows=(8, 16),
)
_bdd100k = SemanticProtocol(
    "bdd100k",
    "mIoU over the classes in the truth; other labels and missing images count as missed.",
    form=IMAGES,
    classes=19,
    refused_from=_END,
    takes_missing=True,
    measures=("Acc", "Acc_class", "fwIoU", "Precision"),
    names=_STREETS,
)
_drivable = replace(
    _bdd100k,
    name="bdd100k-drivable",
    about="Classes are direct, alternative and background. Means cover the first two; errors on background count.",
    classes=3,
    averaged=2,
    names="direct, alternative, background",
)

_stuff = SemanticProtocol(
    "coco-stuff",
    "Means over the classes in the truth: 91 of stuff and one for everything else. Unlabelled pixels count as missed.",
    form=STUFF,
    classes=92,
    first_class=92,
    refused_from=184,
    grouping="super",
    measures=("Acc", "Acc_class", "fwIoU", "mIoU-super", "Acc-super", "Acc_class-super", "fwIoU-super"),
)

_ROWS = (
    _vspw,
    replace(
        _vspw,
        name="vspw-official",
        about="As computed by VSPW's scripts: VC skips the last window of each video.",
        without_last=True,
    ),
    SemanticProtocol("semantic", "As vspw, for labels 0 to 254; 255 is void.", windows=(8, 16)),
    SemanticProtocol(
        "ade20k",
        "mIoU over the classes in the truth, and over all 150 as in the benchmark; 0 in the truth is void.",
        form=IMAGES,
        classes=150,
        first_class=1,
        refused_from=_END,
        measures=("mIoU-official", "Acc", "Score", "Acc_class", "fwIoU"),
        names=_ADE20K,
    ),
    _bdd100k,
    _drivable,
    replace(
        _drivable,
        name="bdd100k-drivable-official",
        about="As computed by BDD100K's script: background is void, so errors on it do not count.",
        classes=2,
        averaged=0,
    ),
    _stuff,
    replace(
        _stuff,
        name="coco-stuff-official",
        about="As computed by COCO-Stuff's evaluator: unlabelled pixels count as predictions of label 183.",
        unlabelled=183,
    ),
    SemanticProtocol(
        "cityscapes",
        "IoU and iIoU over the classes (of 19) and categories (of 7) in truth or prediction; other ids are void.",
        form=CITYSCAPES,
        classes=19,
        chosen=(7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33),
        refused_from=34,
        grouping="categories",
        groups=(
            ("flat", (7, 8)),
            ("construction", (11, 12, 13)),
            ("object", (17, 19, 20)),
            ("nature", (21, 22)),
            ("sky", (23,)),
            ("human", (24, 25)),
            ("vehicle", (26, 27, 28, 29, 30, 31, 32, 33)),
        ),
        sizes=(
            (24, 3462.4756337644),
            (25, 3930.4788056518),
            (26, 12794.0202738185),
            (27, 27855.1264367816),
            (28, 35732.1511111111),
            (31, 67583.7075812274),
            (32, 6298.7200839748),
            (33, 4672.3249222261),
        ),
        leads=("IoU", "iIoU", "IoU-categories", "iIoU-categories"),
        measures=("mIoU", "Acc", "Acc_class"),
        names=_STREETS,
    ),
)

SEMANTIC_PROTOCOLS: Dict[str, SemanticProtocol] = {protocol.name: protocol for protocol in _ROWS}
#: The layouts of truths with a PNG for each image.
IMAGE_LAYOUTS = tuple(protocol.name for protocol in _ROWS if protocol.form != VIDEOS)
