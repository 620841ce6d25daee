"""Truth and detections drawn beside each other: the worst images inside a page, and all for `segjudge show`."""

from __future__ import annotations

import base64
import io
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pycocotools.mask as coco
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from segjudge.evaluation_script.families.base.family import Progress
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.families.instances.diagnosis import KINDS, InstanceDiagnosis
from segjudge.report.page import PageOptions, ReportPage, Section, render_page
from segjudge.report.painting import (
    EVENLY,
    FALLING,
    FONT_SIZE,
    MISSED,
    OUTLINED,
    RIGHT,
    RISING,
    WRONG,
    PaintedMask,
    ground_of,
    paint_masks,
    picture_kind,
    pixels_of,
)
from segjudge.system.files import make_folder, open_output

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE

#: Pictures are so wide and high at most, in pixels, and so good.
_SIDE, _QUALITY = 480, 60
_SMALL_FONT, _OUTLINE = 12, 2
#: So much of a page may be pictures.
_SHARE = 0.7
#: On a picture with more masks only the mistakes are written down, and of these so many.
_FEW, _MOST_LABELS = 10, 40


@dataclass(frozen=True)
class _MistakePicture:
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


def make_mistake_pictures(diagnosis: InstanceDiagnosis, count: int, options: PageOptions) -> list[_MistakePicture]:
    """Return images with most mistakes, of all and of single categories, as many as fit; the first one always does."""
    counts = diagnosis.counts
    mistakes = counts.wrong + counts.missed
    chosen = dict.fromkeys([*diagnosis.worst_images(count - count // 3), *diagnosis.worst_of_categories()])
    worst = sorted([index for index in chosen if mistakes[index]][:count], key=lambda index: -int(mistakes[index]))
    pictures: list[_MistakePicture] = []
    room = options.budget * _SHARE
    for index in worst:
        picture = _picture(diagnosis, index, options.images)
        room -= len(picture.truth) + len(picture.detections)
        if pictures and room < 0:
            break
        pictures.append(picture)
    return pictures


def _picture(diagnosis: InstanceDiagnosis, index: int, folder: str) -> _MistakePicture:
    truth, counts = diagnosis.judged.truth, diagnosis.counts
    name = diagnosis.image_name(index)
    ground = ground_of(folder, name, truth.images.sizes[index].tolist())
    ground.thumbnail((_SIDE, _SIDE))
    instances, (masks, mistakes) = _instances(diagnosis, index, ground), _detections(diagnosis, index, ground)
    font = ImageFont.load_default(size=_SMALL_FONT)
    return _MistakePicture(
        name,
        ground.size,
        _address(paint_masks(ground, _readable(instances), font)),
        _address(paint_masks(ground, _readable(masks), font)),
        int(counts.right[index]),
        int(counts.wrong[index]),
        int(counts.missed[index]),
        mistakes,
        " ".join(sorted({mask.label for mask in (*instances, *masks)})),
    )


def _instances(diagnosis: InstanceDiagnosis, index: int, ground: Image.Image) -> list[PaintedMask]:
    """Return the instances of an image, those that no detection kept shows as missed."""
    judged, truth, masks = diagnosis.judged, diagnosis.judged.truth, []
    for row in np.flatnonzero((judged.instance_image == index) & ~judged.crowd).tolist():
        name = diagnosis.names[judged.instance_category[row]]
        pixels = _mask(diagnosis, truth, int(judged.annotation[row]), index, ground)
        missed = (f"missed: {name}", MISSED, RISING)
        masks.append(PaintedMask(pixels, *(missed if diagnosis.misses[row] else (name, RIGHT, OUTLINED))))
    return masks


def _detections(diagnosis: InstanceDiagnosis, index: int, ground: Image.Image) -> tuple[list[PaintedMask], str]:
    """Return the detections of an image that are kept, and how often each kind of error is among them."""
    judged, masks, kinds = diagnosis.judged, [], list(KINDS)
    mistakes: dict[str, int] = {}
    for row in np.flatnonzero((judged.image == index) & diagnosis.selection).tolist():
        kind = int(diagnosis.errors.kind[row])
        label = f"{diagnosis.names[judged.category[row]]} {judged.score[row]:.2f}"
        pixels = _mask(diagnosis, judged.records, int(judged.record[row]), index, ground)
        if kind < 0:
            masks.append(PaintedMask(pixels, label, RIGHT, OUTLINED))
        else:
            masks.append(PaintedMask(pixels, f"{kinds[kind]}: {label}", WRONG, FALLING))
            mistakes[kinds[kind]] = mistakes.get(kinds[kind], 0) + 1
    return masks, ", ".join(f"{name} {count}" for name, count in mistakes.items())


def _readable(masks: list[PaintedMask]) -> list[PaintedMask]:
    """Return what is right first, so that mistakes lie on top, and fewer labels where there are many."""
    masks = [replace(mask, width=_OUTLINE) for mask in masks]
    right = [mask for mask in masks if mask.fill == OUTLINED]
    wrong = [mask for mask in masks if mask.fill != OUTLINED]
    if len(masks) > _FEW:
        right = [replace(mask, label="") for mask in right]
    return [*right, *(replace(mask, label="") for mask in wrong[_MOST_LABELS:]), *wrong[:_MOST_LABELS]]


def _mask(
    diagnosis: InstanceDiagnosis, side: InstanceTruth | InstanceRecords, number: int, index: int, ground: Image.Image
) -> NDArray[np.bool_]:
    """Return a mask, or where boxes are compared the box, in the size of the picture."""
    height, width = diagnosis.judged.truth.images.sizes[index].tolist()
    rows, columns = (
        np.arange(side) * whole // side for side, whole in ((ground.height, height), (ground.width, width))
    )
    if diagnosis.protocol.boxes:
        x, top, across, down = side.boxes[number].tolist()
        return np.outer((rows >= top) & (rows < top + down), (columns >= x) & (columns < x + across))
    pixels: NDArray[np.bool_] = (
        pixels_of(side.masks[number], [height, width]).T[columns][:, rows].T
    )  # column by column in memory
    return pixels


def _address(picture: Image.Image) -> str:
    """Return an address that holds a picture itself."""
    data = io.BytesIO()
    picture.save(data, picture_kind(), quality=_QUALITY, method=2)
    return f"data:image/{picture_kind()};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"


# ── every image ─────────────────────────────────────────────────────────────


#: Instances of a truth that is drawn alone.
_COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
#: Between the two halves of a picture, and above each for its title.
_GAP, _TITLE = 8, 26


@dataclass(frozen=True)
class _DrawnImage:
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


def draw_images(
    truth: InstanceTruth, records: InstanceRecords | None, out: str, view: View, progress: Progress
) -> list[_DrawnImage]:
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
            _compose_sides(ground, sides).save(partial, "PNG")
        images.append(_DrawnImage(name, picture, *counts))
    images.sort(key=lambda image: -(image.wrong + image.missed))
    with open_output(os.path.join(out, "index.html")) as file:
        file.write(_render_index(images, view, alone=records is None))
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
    pixels = [pixels_of(truth.masks[index], size) for index in instances]
    labels = [names[truth.category[index]] for index in instances]
    if records is None:
        return [list(map(PaintedMask, pixels, labels, itertools.cycle(_COLOURS)))], (len(instances), 0, 0)
    shown = np.flatnonzero((records.image == image) & (records.category >= 0) & (records.score >= view.score))
    detections = shown[np.argsort(-records.score[shown], kind="stable")].tolist()
    matches = _match_by_overlap(truth, records, instances, detections, size, view.iou)
    matched = set(matches.values())
    truths = [
        PaintedMask(mask, label, *((RIGHT, EVENLY) if index in matched else (MISSED, RISING)))
        for index, mask, label in zip(instances, pixels, labels, strict=True)
    ]
    right = [
        PaintedMask(
            pixels_of(records.masks[index], size),
            f"{names[records.category[index]]} {records.score[index]:.2f}",
            *((RIGHT, EVENLY) if index in matches else (WRONG, FALLING)),
        )
        for index in detections
    ]
    return [truths, right], (len(matches), len(detections) - len(matches), len(instances) - len(matched))


def _match_by_overlap(
    truth: InstanceTruth,
    records: InstanceRecords,
    instances: list[int],
    detections: list[int],
    size: list[int],
    iou: float,
) -> dict[int, int]:
    """Return detection → instance: each detection takes the best instance of its category that is left."""
    detected: list[_EncodedRLE] = [{"size": size, "counts": records.masks[index]} for index in detections]
    annotated: list[_EncodedRLE] = [{"size": size, "counts": truth.masks[index]} for index in instances]
    overlaps = np.reshape(coco.iou(detected, annotated, [0] * len(annotated)), (len(detected), len(annotated)))
    overlaps[records.category[detections][:, None] != truth.category[instances]] = -1
    matches: dict[int, int] = {}
    for detection, row in zip(detections, overlaps, strict=True):
        if row.max(initial=-1) >= iou:
            best = int(row.argmax())
            matches[detection] = instances[best]
            overlaps[:, best] = -1
    return matches


def _compose_sides(ground: Image.Image, sides: Sequence[list[PaintedMask]]) -> Image.Image:
    """Draw the truth at the left, and detections at the right where there are any."""
    width, height = ground.size
    picture = Image.new("RGB", (len(sides) * (width + _GAP) - _GAP, height + _TITLE), (255, 255, 255))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=FONT_SIZE)
    for index, (title, masks) in enumerate(zip(("truth", "detections"), sides, strict=False)):
        x = index * (width + _GAP)
        draw.text((x + 4, 4), f"{title}: {len(masks)}", fill=(0, 0, 0), font=font)
        picture.paste(paint_masks(ground, masks, font), (x, _TITLE))
    return picture


def _render_index(images: list[_DrawnImage], view: View, *, alone: bool) -> str:
    totals = {word: sum(getattr(image, word) for image in images) for word in ("right", "missed", "wrong")}
    title = "Truth" if alone else "Truth and detections"
    values = {"images": images, "view": view, "alone": alone, "totals": totals}
    return render_page(
        ReportPage(
            title, [Section("drawn_images", "Images", values, package="segjudge.families.instances")], beside=("img",)
        )
    )
