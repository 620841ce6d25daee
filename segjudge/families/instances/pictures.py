"""Pictures of all images for `report --draw`: truth and detections side by side."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pycocotools.mask as coco
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from segjudge.evaluation_script.families.base.family import Progress
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.report.colours import GROUND, MISSING, OBJECTS, RIGHT, SURPLUS
from segjudge.report.page import ReportPage, Section, render_page
from segjudge.report.player import read_picture
from segjudge.system.files import make_folder, open_output

# ── every image ─────────────────────────────────────────────────────────────


#: The gap between the two halves of a picture, and the height of each title.
_GAP, _TITLE = 8, 26


@dataclass(frozen=True)
class _DrawnImage:
    """A drawn image and its counts; of a truth alone all instances count as correct."""

    name: str
    picture: str
    right: int
    wrong: int
    missed: int


@dataclass(frozen=True)
class View:
    """The detections that a picture shows, and the images below them."""

    #: The folder of the images; without it, masks are drawn on a plain ground.
    pictures: str = ""
    #: The minimum IoU of a correct detection.
    iou: float = 0.5
    #: Detections with a lower score are skipped.
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
        sides, counts = _match_image(truth, records, index, view)
        ground = _open_ground(view.pictures, name, truth.images.sizes[index].tolist())
        picture = f"images/{number}.png"
        with replace_file(os.path.join(out, picture)) as partial:
            _compose_sides(ground, sides).save(partial, "PNG")
        images.append(_DrawnImage(name, picture, *counts))
    images.sort(key=lambda image: -(image.wrong + image.missed))
    with open_output(os.path.join(out, "index.html")) as file:
        file.write(_render_index(images, view, alone=records is None))
    return images


def _match_image(
    truth: InstanceTruth, records: InstanceRecords | None, image: int, view: View
) -> tuple[list[list[_PaintedMask]], tuple[int, int, int]]:
    """Paint truth and detections; return the numbers of correct, wrong and missed.

    Colours show how masks matched; in a truth alone, each mask has its own colour.
    """
    size = truth.images.sizes[image].tolist()
    names = [category.name for category in truth.categories]
    instances = np.flatnonzero((truth.image == image) & (truth.category >= 0)).tolist()
    pixels = [_decode_mask(truth.masks[index], size) for index in instances]
    labels = [names[truth.category[index]] for index in instances]
    if records is None:
        return [list(map(_PaintedMask, pixels, labels, itertools.cycle(OBJECTS)))], (len(instances), 0, 0)
    kept_rows = np.flatnonzero((records.image == image) & (records.category >= 0) & (records.score >= view.score))
    detections = kept_rows[np.argsort(-records.score[kept_rows], kind="stable")].tolist()
    matches = _match_by_overlap(truth, records, instances, detections, size, view.iou)
    matched = set(matches.values())
    truths = [
        _PaintedMask(mask, label, *((RIGHT, _EVENLY) if index in matched else (MISSING, _RISING)))
        for index, mask, label in zip(instances, pixels, labels, strict=True)
    ]
    right = [
        _PaintedMask(
            _decode_mask(records.masks[index], size),
            f"{names[records.category[index]]} {records.score[index]:.2f}",
            *((RIGHT, _EVENLY) if index in matches else (SURPLUS, _FALLING)),
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
    """Return the match of each detection: the best free instance of its category."""
    detected: list[Any] = [{"size": size, "counts": records.masks[index]} for index in detections]
    annotated: list[Any] = [{"size": size, "counts": truth.masks[index]} for index in instances]
    overlaps = np.reshape(coco.iou(detected, annotated, [0] * len(annotated)), (len(detected), len(annotated)))
    overlaps[records.category[detections][:, None] != truth.category[instances]] = -1
    matches: dict[int, int] = {}
    for detection, row in zip(detections, overlaps, strict=True):
        if row.max(initial=-1) >= iou:
            best = int(row.argmax())
            matches[detection] = instances[best]
            overlaps[:, best] = -1
    return matches


def _compose_sides(ground: Image.Image, sides: Sequence[list[_PaintedMask]]) -> Image.Image:
    """Draw the truth on the left, and any detections on the right."""
    width, height = ground.size
    picture = Image.new("RGB", (len(sides) * (width + _GAP) - _GAP, height + _TITLE), (255, 255, 255))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=_FONT_SIZE)
    for index, (title, masks) in enumerate(zip(("truth", "detections"), sides, strict=False)):
        x = index * (width + _GAP)
        draw.text((x + 4, 4), f"{title}: {len(masks)}", fill=(0, 0, 0), font=font)
        picture.paste(_paint_masks(ground, masks, font), (x, _TITLE))
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


# ── masks painted over an image ─────────────────────────────────────────────


_Colour = tuple[int, int, int]
_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")
_ALPHA = 0.45
_FONT_SIZE = 14
#: The fill of a mask: its plain colour, rising or falling stripes, or only its outline.
_EVENLY, _RISING, _FALLING, _OUTLINED = "evenly", "rising", "falling", "outlined"
#: The width of stripes and of the gaps between them, in pixels.
_STRIPE = 4


@dataclass(frozen=True)
class _PaintedMask:
    """A mask, and how it looks."""

    pixels: NDArray[np.bool_]
    label: str
    colour: _Colour
    fill: str = _EVENLY
    #: The width of its outline in pixels.
    width: int = 1


def _decode_mask(mask: str, size: list[int]) -> NDArray[np.bool_]:
    pixels: NDArray[np.bool_] = rle.flags({"size": size, "counts": mask}, (size[0], size[1]))[0][:, : size[1]]
    return pixels


def _open_ground(pictures: str, name: str, size: list[int]) -> Image.Image:
    """Return the image, or a plain background."""
    stem = os.path.join(pictures, os.path.splitext(name)[0])
    paths = [path for ending in _ENDINGS if os.path.isfile(path := stem + ending)] if pictures else []
    if not paths:
        return Image.new("RGB", (size[1], size[0]), GROUND)
    return read_picture(paths[0]).resize((size[1], size[0]))


def _paint_masks(ground: Image.Image, masks: list[_PaintedMask], font: _Font) -> Image.Image:
    canvas = np.asarray(ground).astype(float)
    for mask in masks:
        window = _find_window(mask.pixels)
        pixels, under = mask.pixels[window], canvas[window]
        filled = pixels & _make_pattern(mask.fill, pixels.shape)
        under[filled] = (1 - _ALPHA) * under[filled] + _ALPHA * np.array(mask.colour)
        for _ in range(mask.width):
            outline = _find_outline(pixels)
            under[outline] = mask.colour
            pixels = pixels & ~outline
    image = Image.fromarray(canvas.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for mask, (x, y) in _place_labels(masks):
        box = draw.textbbox((x, y), mask.label, font=font)
        shift = max(2 - x, min(0, image.width - 2 - box[2]))  # the beginning stays visible rather than the end
        draw.rectangle((box[0] + shift - 2, box[1] - 1, box[2] + shift + 2, box[3] + 1), fill=mask.colour)
        draw.text((x + shift, y), mask.label, fill=_choose_ink(mask.colour), font=font)
    return image


def _choose_ink(colour: _Colour) -> _Colour:
    """Return black or white, whichever contrasts more."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in colour)
    return (0, 0, 0) if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else (255, 255, 255)


def _find_window(pixels: NDArray[np.bool_]) -> tuple[slice, slice]:
    sides = (np.flatnonzero(pixels.any(axis=axis)) for axis in (1, 0))
    rows, columns = (slice(side[0], side[-1] + 1) if len(side) else slice(0) for side in sides)
    return rows, columns


def _make_pattern(fill: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if fill in (_EVENLY, _OUTLINED):
        return np.full(shape, fill == _EVENLY)
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    flags: NDArray[np.bool_] = (columns + (rows if fill == _RISING else -rows)) // _STRIPE % 2 == 0
    return flags


def _find_outline(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels of a mask that touch its outside."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    outline: NDArray[np.bool_] = mask & ~inner
    return outline


def _place_labels(masks: list[_PaintedMask]) -> Iterator[tuple[_PaintedMask, tuple[int, int]]]:
    """Yield the position of each label: the top left of its mask, below earlier labels."""
    corners: list[tuple[int, int]] = []
    for mask in masks:
        rows, columns = _find_window(mask.pixels)
        if not rows.stop or not mask.label:
            continue
        x, y = columns.start + 2, rows.start + 2
        while any(abs(x - column) < 60 and abs(y - row) < _FONT_SIZE + 3 for column, row in corners):
            y += _FONT_SIZE + 3
        y = min(y, mask.pixels.shape[0] - _FONT_SIZE - 4)
        corners.append((x, y))
        yield mask, (x, y)
