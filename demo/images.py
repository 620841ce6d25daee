"""The phase of instances: photographs composed of objects in the places and shapes of its truth.

A disk is a patch, a planet or a pin, a bar is a strip of photographs, a ring is a lifebuoy or a glazed doughnut, and a
wedge is a slice of melon.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from segjudge.masks.demo import (
    CATEGORIES,
    IMAGE_SIZE,
    INSTANCE_PHASE,
    SyntheticInstance,
    image_name,
    instance_images,
)

from .drawing import Colour, Floats, Frame, Ground, blur, load_cutout, load_ground, load_view, make_wood, sample
from .files import encode_picture, replace
from .films import SEED

#: How dark shadows are, and how far they fall for each pixel of radius.
_SHADOW, _REACH = 0.5, 0.09
#: Where in a pixel it is asked whether a shape covers it, down and across.
_PARTS = (-0.375, -0.125, 0.125, 0.375)
_Places = NDArray[np.float64]


def write(root: Path) -> list[Path]:
    """Write the pictures; return their paths."""
    paths = []
    for number, instances in enumerate(instance_images()):
        paths.append(root / "pictures" / INSTANCE_PHASE / f"{image_name(number)}.jpg")
        replace(paths[-1], encode_picture(draw_image(number, instances)))
    return paths


def draw_image(number: int, instances: list[SyntheticInstance]) -> NDArray[np.uint8]:
    """Return an image with these instances; the number decides the background and each instance's look."""
    generator = np.random.default_rng([SEED, number])
    ground = _GROUNDS[number % len(_GROUNDS)]()
    view = ground.seen(*generator.uniform(0, 60, 2).tolist(), 1.1)
    canvas = Frame(view.colours[: IMAGE_SIZE[0], : IMAGE_SIZE[1]].copy())
    for instance in instances:
        _draw_instance(canvas, instance, int(generator.integers(1 << 30)))
    return canvas.picture()


def _draw_instance(canvas: Frame, instance: SyntheticInstance, seed: int) -> None:
    """Draw an instance and its shadow over the image."""
    covered = np.mean([instance.mask(y, x) for y in _PARTS for x in _PARTS], axis=0, dtype=np.float32)
    reach = max(2, round(instance.radius * _REACH))
    shade = blur(np.pad(covered, ((reach, 0), (reach, 0)))[: IMAGE_SIZE[0], : IMAGE_SIZE[1]], reach)
    canvas.colours *= 1 - _SHADOW * shade[..., None]
    y, x = np.mgrid[: IMAGE_SIZE[0], : IMAGE_SIZE[1]].astype(np.float64)
    y, x = (y - instance.centre[0]) / instance.radius, (x - instance.centre[1]) / instance.radius
    cos, sin = np.cos(instance.turn), np.sin(instance.turn)
    coat = _COATS[CATEGORIES[instance.category]](x * cos + y * sin, y * cos - x * sin, np.random.default_rng(seed))
    light = np.clip(1.02 - 0.12 * (x + y), 0.75, 1.2).astype(np.float32)[..., None]
    alpha = covered[..., None]
    canvas.colours = canvas.colours * (1 - alpha) + coat * light * alpha


# ── what they look like ─────────────────────────────────────────────────────
#
# Each is given how far along an instance and across it a pixel is, in radii, and returns the colours there.


def _coat_disk(along: _Places, across: _Places, generator: np.random.Generator) -> Floats:
    """Return the look of a disk: a patch, a planet in one of four colours, or a pin with a photograph."""
    kind = int(generator.integers(5))
    if kind == 0:
        return _fit(load_cutout("badge").pixels, along, across, 2.0)
    if kind == 1:
        photo = _photo(("cat", "raccoon", "coffee")[int(generator.integers(3))])
        rim = np.clip((np.hypot(along, across) - 0.9) * 12, 0, 1).astype(np.float32)[..., None]
        return _fit(photo, along, across, 2.1) * (1 - rim) + np.float32(0.93) * rim
    worlds: tuple[Colour, ...] = ((1.0, 1.0, 1.0), (0.32, 0.9, 1.5), (0.95, 1.5, 1.2))
    edge = np.clip(1.25 - 0.5 * np.hypot(along, across) ** 3, 0.3, 1.1).astype(np.float32)[..., None]
    return _fit(load_cutout("planet").pixels, along, across, 2.06) * np.array(worlds[kind - 2], np.float32) * edge


def _coat_bar(along: _Places, across: _Places, generator: np.random.Generator) -> Floats:
    """Return the look of a bar: a strip of three photographs on white paper."""
    colours = np.full((*along.shape, 3), 0.94, np.float32)
    names = generator.permutation(["cat", "raccoon", "coffee", "rocket"])[:3]
    for place, name in enumerate(names.tolist()):
        middle = 1.02 * (place - 1)
        inside = (np.abs(along - middle) <= 0.46) & (np.abs(across) <= 0.41)
        colours[inside] = _fit(_photo(name), along - middle, across, 0.84)[inside]
    return colours


def _coat_ring(along: _Places, across: _Places, generator: np.random.Generator) -> Floats:
    """Return the look of a ring: a lifebuoy, or a doughnut with icing and sprinkles, shaded like a tube."""
    distance, angle = np.hypot(along, across), np.arctan2(across, along)
    tube = np.clip((distance - 0.775) / 0.225, -1, 1)
    light = (0.55 + 0.5 * np.sqrt(1 - tube**2)).astype(np.float32)[..., None]
    if generator.random() < 0.5:
        red = (np.mod(angle * 4 / np.pi, 2) < 1)[..., None]
        return np.where(red, np.array((0.9, 0.2, 0.1), np.float32), np.float32(0.97)) * light
    wave = 0.72 + 0.1 * np.sin(7 * angle + generator.uniform(0, 6)) + 0.05 * np.sin(13 * angle)
    iced = (np.abs(tube) < wave)[..., None]
    shift = generator.uniform(0, 80)
    sprinkles = sample(load_view("stars").colours, (across + 1.2) * 80 + shift, (along + 1.2) * 80 + shift)
    glaze = np.array((0.36, 0.16, 0.09) if generator.random() < 0.5 else (0.98, 0.5, 0.65), np.float32)
    dough = np.array((0.86, 0.6, 0.3), np.float32)
    return np.where(iced, glaze + 1.5 * np.clip(sprinkles - 0.2, 0, 1), dough) * light


def _coat_wedge(along: _Places, across: _Places, generator: np.random.Generator) -> Floats:
    """Return the look of a wedge: a slice of melon with seeds, and the rind on its round side."""
    distance = np.hypot(along, across) / 1.3
    flesh_colour, rind = (
        ((1.05, 0.75, 0.75), (0.12, 0.36, 0.12)) if generator.random() < 0.6 else ((1.15, 1.75, 1.2), (0.75, 0.62, 0.3))
    )
    turn = generator.uniform(-0.2, 0.2)
    flesh = _fit(load_cutout("planet").pixels, along - 0.65 + turn, across + turn, 2.9) * np.array(
        flesh_colour, np.float32
    )
    for seed_along, seed_across in ((0.42, 0.05), (0.66, -0.3), (0.7, 0.14), (0.93, -0.1), (0.86, 0.46), (0.92, -0.52)):
        seed = np.hypot((along - seed_along) / 0.075, (across - seed_across) / 0.04) < 1
        flesh[seed] = (0.12, 0.07, 0.05)
    pale = np.clip((distance - 0.83) * 25, 0, 1).astype(np.float32)[..., None]
    green = np.clip((distance - 0.92) * 40, 0, 1).astype(np.float32)[..., None]
    flesh = flesh * (1 - pale) + np.array((0.93, 0.97, 0.78), np.float32) * pale
    return flesh * (1 - green) + np.array(rind, np.float32) * green


_COATS = {"disk": _coat_disk, "bar": _coat_bar, "ring": _coat_ring, "wedge": _coat_wedge}


def _fit(pixels: Floats, along: _Places, across: _Places, height: float) -> Floats:
    """Sample a picture's colours around its middle; the picture is this many radii high."""
    scale = (pixels.shape[0] - 1) / height
    row, column = across * scale + (pixels.shape[0] - 1) / 2, along * scale + (pixels.shape[1] - 1) / 2
    return sample(pixels[..., :3], row, column)


@cache
def _photo(name: str) -> Floats:
    """Return a photograph of the material without its white frame."""
    return load_cutout(f"photo-{name}").pixels[12:-38, 12:-12, :3]


def _table() -> Ground:
    return make_wood(SEED, (0.3, 0.16, 0.08), (0.74, 0.5, 0.3))


def _board() -> Ground:
    return make_wood(SEED + 7, (0.5, 0.42, 0.32), (0.95, 0.88, 0.76))


def _gravel() -> Ground:
    return load_ground("gravel", (0.1, 0.1, 0.12), (0.8, 0.82, 0.86))


def _lawn() -> Ground:
    return load_ground("grass", (0.0, 0.1, 0.0), (0.6, 0.8, 0.36))


_GROUNDS = (_table, _lawn, _board, _gravel)
