"""Masks painted over an image, told apart by colour, by pattern and by what is written on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, features

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks import run_lengths as rle

_Colour = tuple[int, int, int]
_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_GROUND = (58, 62, 70)
#: _Colours of what is right and wrong that the colour-blind can tell apart.
RIGHT, MISSED, WRONG = (0, 158, 115), (230, 159, 0), (86, 180, 233)
_ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")
ALPHA = 0.45
FONT_SIZE = 14
#: What a mask is filled with: its colour evenly, stripes of it that rise or fall, or nothing but its outline.
EVENLY, RISING, FALLING, OUTLINED = "evenly", "rising", "falling", "outlined"
#: Width of stripes and of what is between them, in pixels.
_STRIPE = 4


@dataclass(frozen=True)
class PaintedMask:
    """A mask, and how it looks."""

    pixels: NDArray[np.bool_]
    label: str
    colour: _Colour
    fill: str = EVENLY
    #: How wide its outline is, in pixels.
    width: int = 1


def pixels_of(mask: str, size: list[int]) -> NDArray[np.bool_]:
    """Return the pixels of run lengths as text."""
    pixels: NDArray[np.bool_] = rle.flags({"size": size, "counts": mask}, (size[0], size[1]))[0][:, : size[1]]
    return pixels


def ground_of(pictures: str, name: str, size: list[int]) -> Image.Image:
    """Return the image itself where there is one, else a plain ground."""
    stem = os.path.join(pictures, os.path.splitext(name)[0])
    paths = [path for ending in _ENDINGS if os.path.isfile(path := stem + ending)] if pictures else []
    if not paths:
        return Image.new("RGB", (size[1], size[0]), _GROUND)
    try:
        with Image.open(paths[0]) as image:
            return image.convert("RGB").resize((size[1], size[0]))
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{paths[0]}: is not a picture ({error})") from None


def paint_masks(ground: Image.Image, masks: list[PaintedMask], font: _Font) -> Image.Image:
    """Return an image with masks over it."""
    canvas = np.asarray(ground).astype(float)
    for mask in masks:
        window = _window(mask.pixels)
        pixels, under = mask.pixels[window], canvas[window]
        filled = pixels & _pattern(mask.fill, pixels.shape)
        under[filled] = (1 - ALPHA) * under[filled] + ALPHA * np.array(mask.colour)
        for _ in range(mask.width):
            outline = _outline(pixels)
            under[outline] = mask.colour
            pixels = pixels & ~outline
    image = Image.fromarray(canvas.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for mask, (x, y) in _label_corners(masks):
        box = draw.textbbox((x, y), mask.label, font=font)
        shift = min(0, image.width - 2 - box[2])
        draw.rectangle((box[0] + shift - 2, box[1] - 1, box[2] + shift + 2, box[3] + 1), fill=mask.colour)
        draw.text((x + shift, y), mask.label, fill=_ink(mask.colour), font=font)
    return image


def _ink(colour: _Colour) -> _Colour:
    """Return black or white, whichever stands out more."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in colour)
    return (0, 0, 0) if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else (255, 255, 255)


def _window(pixels: NDArray[np.bool_]) -> tuple[slice, slice]:
    """Return the rows and columns that hold a mask."""
    sides = (np.flatnonzero(pixels.any(axis=axis)) for axis in (1, 0))
    rows, columns = (slice(side[0], side[-1] + 1) if len(side) else slice(0) for side in sides)
    return rows, columns


def _pattern(fill: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which pixels of a window a pattern fills."""
    if fill in (EVENLY, OUTLINED):
        return np.full(shape, fill == EVENLY)
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    flags: NDArray[np.bool_] = (columns + (rows if fill == RISING else -rows)) // _STRIPE % 2 == 0
    return flags


def _outline(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels of the mask that touch its outside."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    outline: NDArray[np.bool_] = mask & ~inner
    return outline


def _label_corners(masks: list[PaintedMask]) -> Iterator[tuple[PaintedMask, tuple[int, int]]]:
    """Yield where each label goes: the top left of its mask, below labels that are there already."""
    corners: list[tuple[int, int]] = []
    for mask in masks:
        rows, columns = _window(mask.pixels)
        if not rows.stop or not mask.label:
            continue
        x, y = columns.start + 2, rows.start + 2
        while any(abs(x - column) < 60 and abs(y - row) < FONT_SIZE + 3 for column, row in corners):
            y += FONT_SIZE + 3
        y = min(y, mask.pixels.shape[0] - FONT_SIZE - 4)
        corners.append((x, y))
        yield mask, (x, y)


@lru_cache(maxsize=1)
def picture_kind() -> str:
    """Return the kind of pictures in pages."""
    return "webp" if features.check("webp") else "jpeg"
