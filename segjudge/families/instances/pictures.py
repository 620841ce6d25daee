"""The images with most mistakes, truth and detections drawn beside each other, as pictures inside a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFont

from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.families.instances.diagnosis import InstanceDiagnosis
from segjudge.families.instances.error_kinds import KINDS
from segjudge.report.page import PageOptions
from segjudge.report.painting import (
    FALLING,
    MISSED,
    OUTLINED,
    RIGHT,
    RISING,
    WRONG,
    PaintedMask,
    ground_of,
    painted,
    picture_kind,
    pixels_of,
)

#: Pictures are so wide and high at most, in pixels, and so good.
SIDE, QUALITY = 480, 60
FONT_SIZE, OUTLINE = 12, 2
#: So much of a page may be pictures.
SHARE = 0.7
#: On a picture with more masks only the mistakes are written down, and of these so many.
FEW, MOST_LABELS = 10, 40


@dataclass(frozen=True)
class MistakePicture:
    """One image: its truth and its detections as addresses that hold the picture itself, and what is on it."""

    name: str
    size: tuple[int, int]
    truth: str
    detections: str
    right: int
    wrong: int
    missed: int
    #: How often each kind of error is, in words.
    mistakes: str
    #: What is written on its masks, to find it by.
    words: str


def mistake_pictures(diagnosis: InstanceDiagnosis, count: int, options: PageOptions) -> list[MistakePicture]:
    """Return images with most mistakes, of all and of single categories, as many as fit; the first one always does."""
    counts = diagnosis.counts
    mistakes = counts.wrong + counts.missed
    chosen = dict.fromkeys([*diagnosis.worst_images(count - count // 3), *diagnosis.worst_of_categories()])
    worst = sorted([index for index in chosen if mistakes[index]][:count], key=lambda index: -int(mistakes[index]))
    pictures: list[MistakePicture] = []
    room = options.budget * SHARE
    for index in worst:
        one = _picture(diagnosis, index, options.images)
        room -= len(one.truth) + len(one.detections)
        if pictures and room < 0:
            break
        pictures.append(one)
    return pictures


def _picture(diagnosis: InstanceDiagnosis, index: int, folder: str) -> MistakePicture:
    truth, counts = diagnosis.judged.truth, diagnosis.counts
    name = diagnosis.image_name(index)
    ground = ground_of(folder, name, truth.images.sizes[index].tolist())
    ground.thumbnail((SIDE, SIDE))
    instances, (masks, mistakes) = _instances(diagnosis, index, ground), _detections(diagnosis, index, ground)
    font = ImageFont.load_default(size=FONT_SIZE)
    return MistakePicture(
        name,
        ground.size,
        _address(painted(ground, _readable(instances), font)),
        _address(painted(ground, _readable(masks), font)),
        int(counts.right[index]),
        int(counts.wrong[index]),
        int(counts.missed[index]),
        mistakes,
        " ".join(sorted({mask.label for mask in (*instances, *masks)})),
    )


def _instances(diagnosis: InstanceDiagnosis, index: int, ground: Image.Image) -> list[PaintedMask]:
    """Return the instances of an image, those that no detection kept shows as missed."""
    found, truth, masks = diagnosis.judged, diagnosis.judged.truth, []
    for one in np.flatnonzero((found.instance_image == index) & ~found.crowd).tolist():
        name = diagnosis.names[found.instance_category[one]]
        pixels = _mask(diagnosis, truth, int(found.annotation[one]), index, ground)
        missed = (f"missed: {name}", MISSED, RISING)
        masks.append(PaintedMask(pixels, *(missed if diagnosis.missed[one] else (name, RIGHT, OUTLINED))))
    return masks


def _detections(diagnosis: InstanceDiagnosis, index: int, ground: Image.Image) -> tuple[list[PaintedMask], str]:
    """Return the detections of an image that are kept, and how often each kind of error is among them."""
    found, masks, kinds = diagnosis.judged, [], list(KINDS)
    mistakes: dict[str, int] = {}
    for one in np.flatnonzero((found.image == index) & diagnosis.kept).tolist():
        kind = int(diagnosis.errors.kind[one])
        label = f"{diagnosis.names[found.category[one]]} {found.score[one]:.2f}"
        pixels = _mask(diagnosis, found.records, int(found.record[one]), index, ground)
        if kind < 0:
            masks.append(PaintedMask(pixels, label, RIGHT, OUTLINED))
        else:
            masks.append(PaintedMask(pixels, f"{kinds[kind]}: {label}", WRONG, FALLING))
            mistakes[kinds[kind]] = mistakes.get(kinds[kind], 0) + 1
    return masks, ", ".join(f"{name} {count}" for name, count in mistakes.items())


def _readable(masks: list[PaintedMask]) -> list[PaintedMask]:
    """Return what is right first, so that mistakes lie on top, and fewer labels where there are many."""
    masks = [replace(mask, width=OUTLINE) for mask in masks]
    right = [mask for mask in masks if mask.fill == OUTLINED]
    wrong = [mask for mask in masks if mask.fill != OUTLINED]
    if len(masks) > FEW:
        right = [replace(mask, label="") for mask in right]
    return [*right, *(replace(mask, label="") for mask in wrong[MOST_LABELS:]), *wrong[:MOST_LABELS]]


def _mask(
    diagnosis: InstanceDiagnosis, side: InstanceTruth | InstanceRecords, one: int, index: int, ground: Image.Image
) -> NDArray[np.bool_]:
    """Return a mask, or where boxes are compared the box, in the size of the picture."""
    height, width = diagnosis.judged.truth.images.sizes[index].tolist()
    rows, columns = (
        np.arange(side) * whole // side for side, whole in ((ground.height, height), (ground.width, width))
    )
    if diagnosis.protocol.boxes:
        left, top, across, down = side.boxes[one].tolist()
        return np.outer((rows >= top) & (rows < top + down), (columns >= left) & (columns < left + across))
    pixels: NDArray[np.bool_] = (
        pixels_of(side.masks[one], [height, width]).T[columns][:, rows].T
    )  # column by column in memory
    return pixels


def _address(picture: Image.Image) -> str:
    """Return an address that holds a picture itself."""
    data = io.BytesIO()
    picture.save(data, picture_kind(), quality=QUALITY, method=2)
    return f"data:image/{picture_kind()};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
