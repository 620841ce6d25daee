"""`segjudge show`: truth and detections drawn over images, for people who look rather than read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pycocotools.mask as coco
from PIL import Image, ImageDraw, ImageFont

from segjudge.evaluation_script.families.base.family import Progress
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.system.files import make_folder, open_output

from .page import ReportPage, Section, rendered
from .painting import (
    EVENLY,
    FALLING,
    FONT_SIZE,
    MISSED,
    RIGHT,
    RISING,
    WRONG,
    PaintedMask,
    ground_of,
    painted,
    pixels_of,
)

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE

#: Instances of a truth that is drawn alone.
COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
#: Between the two halves of a picture, and above each for its title.
GAP, TITLE = 8, 26


@dataclass(frozen=True)
class DrawnImage:
    """One image's picture and what it shows; of a truth alone all instances count as right."""

    name: str
    picture: str
    right: int
    wrong: int
    missed: int


@dataclass(frozen=True)
class View:
    """What to show."""

    #: Folder of the images; without it masks are drawn on a plain ground.
    pictures: str = ""
    #: From which overlap a detection is right.
    iou: float = 0.5
    #: Detections with a lower score are left out.
    score: float = 0.0


def draw_all(
    truth: InstanceTruth, records: InstanceRecords | None, out: str, view: View, progress: Progress
) -> list[DrawnImage]:
    """Draw every image as PNG below `out`, and one page with all of them, worst first; the truth alone has no worst."""
    make_folder(os.path.join(out, "images"))
    images = []
    for index, number in enumerate(truth.images.ids.tolist()):
        name = truth.names.get(number, str(number))
        progress(name, index, len(truth.images.ids))
        sides, counts = _sides(truth, records, index, view)
        ground = ground_of(view.pictures, name, truth.images.sizes[index].tolist())
        picture = os.path.join("images", f"{number}.png")
        with replace_file(os.path.join(out, picture)) as partial:
            _picture(ground, sides).save(partial, "PNG")
        images.append(DrawnImage(name, picture, *counts))
    images.sort(key=lambda image: -(image.wrong + image.missed))
    with open_output(os.path.join(out, "index.html")) as file:
        file.write(_page(images, view, alone=records is None))
    return images


def _sides(
    truth: InstanceTruth, records: InstanceRecords | None, image: int, view: View
) -> tuple[list[list[PaintedMask]], tuple[int, int, int]]:
    """Return the masks of the truth and of detections, and how many were right, wrong and missed.

    Colours tell how masks matched; of a truth alone each mask has a colour of its own.
    """
    size = truth.images.sizes[image].tolist()
    names = [category.name for category in truth.categories]
    instances = np.flatnonzero((truth.image == image) & (truth.category >= 0)).tolist()
    pixels = [pixels_of(truth.masks[one], size) for one in instances]
    labels = [names[truth.category[one]] for one in instances]
    if records is None:
        return [list(map(PaintedMask, pixels, labels, itertools.cycle(COLOURS)))], (len(instances), 0, 0)
    kept = np.flatnonzero((records.image == image) & (records.category >= 0) & (records.score >= view.score))
    detections = kept[np.argsort(-records.score[kept], kind="stable")].tolist()
    matches = _matches(truth, records, instances, detections, size, view.iou)
    matched = set(matches.values())
    left = [
        PaintedMask(mask, label, *((RIGHT, EVENLY) if one in matched else (MISSED, RISING)))
        for one, mask, label in zip(instances, pixels, labels, strict=True)
    ]
    right = [
        PaintedMask(
            pixels_of(records.masks[one], size),
            f"{names[records.category[one]]} {records.score[one]:.2f}",
            *((RIGHT, EVENLY) if one in matches else (WRONG, FALLING)),
        )
        for one in detections
    ]
    return [left, right], (len(matches), len(detections) - len(matches), len(instances) - len(matched))


def _matches(
    truth: InstanceTruth,
    records: InstanceRecords,
    instances: list[int],
    detections: list[int],
    size: list[int],
    iou: float,
) -> dict[int, int]:
    """Return detection → instance: each detection takes the best instance of its category that is left."""
    sent: list[_EncodedRLE] = [{"size": size, "counts": records.masks[one]} for one in detections]
    real: list[_EncodedRLE] = [{"size": size, "counts": truth.masks[one]} for one in instances]
    overlaps = np.reshape(coco.iou(sent, real, [0] * len(real)), (len(sent), len(real)))
    overlaps[records.category[detections][:, None] != truth.category[instances]] = -1
    matches: dict[int, int] = {}
    for detection, row in zip(detections, overlaps, strict=True):
        if row.max(initial=-1) >= iou:
            best = int(row.argmax())
            matches[detection] = instances[best]
            overlaps[:, best] = -1
    return matches


def _picture(ground: Image.Image, sides: Sequence[list[PaintedMask]]) -> Image.Image:
    """Draw the truth at the left, and detections at the right where there are any."""
    width, height = ground.size
    picture = Image.new("RGB", (len(sides) * (width + GAP) - GAP, height + TITLE), (255, 255, 255))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=FONT_SIZE)
    for index, (title, masks) in enumerate(zip(("truth", "detections"), sides, strict=False)):
        left = index * (width + GAP)
        draw.text((left + 4, 4), f"{title}: {len(masks)}", fill=(0, 0, 0), font=font)
        picture.paste(painted(ground, masks, font), (left, TITLE))
    return picture


def _page(images: list[DrawnImage], view: View, *, alone: bool) -> str:
    totals = {word: sum(getattr(image, word) for image in images) for word in ("right", "missed", "wrong")}
    title = "Truth" if alone else "Truth and detections"
    values = {"images": images, "view": view, "alone": alone, "totals": totals}
    return rendered(ReportPage(title, [Section("drawn_images", "Images", values)], beside=("img",)))
