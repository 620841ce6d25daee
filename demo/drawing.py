"""Drawing of frames: cut-outs that move over a ground, with soft edges, shadows, and the object of each pixel.

Only numpy decides what a pixel is, so that the same seed gives the same masks everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segjudge.masks.photographs import MATERIAL

Floats = NDArray[np.float32]
Labels = NDArray[np.uint8]
#: Red, green and blue, each from 0 to 1.
Colour = tuple[float, float, float]

#: Height and width of all frames.
SIZE = (270, 480)
#: Cut-outs that only this demo shows, and those that `new --demo` shows too.
_FOLDERS = (Path(__file__).parent / "material", MATERIAL)


# ── motion ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pose:
    """The pose of a cut-out at a moment: its centre in the frame, its height in pixels, its rotation in degrees.

    What has a larger depth hides what has a smaller one.
    """

    at: float
    x: float
    y: float
    height: float
    turn: float = 0.0
    depth: float = 0.0


def pose_at(poses: Sequence[Pose], moment: float) -> Pose:
    """Return the pose at a moment, on a smooth path through a film's poses."""
    rows = np.array([[pose.at, pose.x, pose.y, pose.height, pose.turn, pose.depth] for pose in poses])
    if len(rows) == 1 or moment <= rows[0, 0]:
        return poses[0]
    if moment >= rows[-1, 0]:
        return poses[-1]
    index = int(np.searchsorted(rows[:, 0], moment, side="right")) - 1
    before, start, end, after = (
        rows[max(index - 1, 0)],
        rows[index],
        rows[index + 1],
        rows[min(index + 2, len(rows) - 1)],
    )
    span = end[0] - start[0]
    share = (moment - start[0]) / span
    # Rest at both ends, and pass through what is between them with the slope of its neighbours.
    slope_in = np.zeros(6) if index == 0 else (end - before) / (end[0] - before[0]) * span
    slope_out = np.zeros(6) if index + 2 == len(rows) else (after - start) / (after[0] - start[0]) * span
    values = (
        (2 * share**3 - 3 * share**2 + 1) * start
        + (share**3 - 2 * share**2 + share) * slope_in
        + (3 * share**2 - 2 * share**3) * end
        + (share**3 - share**2) * slope_out
    )
    return Pose(moment, *map(float, values[1:]))


# ── cut-outs ────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Cutout:
    """A picture with an alpha channel from 0 to 1, by which its colours are multiplied."""

    pixels: Floats

    @property
    def height(self) -> int:
        return self.pixels.shape[0]


@cache
def load_cutout(name: str) -> Cutout:
    """Load a cut-out of the material, or a print of one of its photographs."""
    with Image.open(_find_material(name)) as image:
        pixels = np.asarray(image.convert("RGBA"), np.float32) / 255
    if name.startswith("photo-"):
        pixels = _print_photo(pixels)
    return Cutout(_multiply(pixels))


def _find_material(name: str) -> Path:
    return next(path for folder in _FOLDERS if (path := folder / f"{name}.webp").is_file())


def tint(cutout: Cutout, colour: Colour) -> Cutout:
    """Return a cut-out in another colour, similar to others of its kind."""
    return Cutout(cutout.pixels * np.array([*colour, 1.0], np.float32))


def _print_photo(pixels: Floats) -> Floats:
    """Set a photograph in a white frame, as an instant camera prints it."""
    height, width = pixels.shape[:2]
    paper = np.ones((height + 46, width + 20, 4), np.float32)
    paper[..., :3] = (0.96, 0.95, 0.92)
    paper[10 : 10 + height, 10 : 10 + width] = pixels
    return np.pad(paper, ((2, 2), (2, 2), (0, 0)))


def paint_cutout(alpha: Floats, colours: Floats) -> Cutout:
    """Make a cut-out of a drawn shape."""
    return Cutout(_multiply(np.dstack([colours, alpha]).astype(np.float32)))


def _multiply(pixels: Floats) -> Floats:
    return np.dstack([pixels[..., :3] * pixels[..., 3:], pixels[..., 3:]])


@cache
def _halve(cutout: Cutout, times: int) -> Cutout:
    """Return a cut-out of half the size, so that it can be drawn small without flicker."""
    pixels = cutout.pixels
    for _ in range(times):
        pixels = np.pad(pixels, ((0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)))
        pixels = (pixels[::2, ::2] + pixels[1::2, ::2] + pixels[::2, 1::2] + pixels[1::2, 1::2]) / 4
    return Cutout(pixels)


# ── frames ──────────────────────────────────────────────────────────────────


@dataclass
class Frame:
    """A frame while it is drawn: its colours, and the number of the object at each pixel."""

    colours: Floats
    labels: Labels = field(default_factory=lambda: np.zeros(SIZE, np.uint8))

    def draw(self, cutout: Cutout, pose: Pose, number: int = 0, shadow: float = 0.0) -> None:
        """Draw a cut-out and its shadow over the frame; number 0 is not an object."""
        drawn = _place(cutout, pose)
        if shadow:
            reach = max(2, round(pose.height * 0.035))
            shade = blur(np.pad(drawn[..., 3], ((reach, 0), (reach, 0)))[: SIZE[0], : SIZE[1]], reach)
            self.colours *= 1 - shadow * shade[..., None]
        alpha = drawn[..., 3:]
        self.colours = self.colours * (1 - alpha) + drawn[..., :3]
        self.labels[drawn[..., 3] >= 0.5] = number

    def picture(self) -> NDArray[np.uint8]:
        """Return its colours as a camera stores them, slightly darker towards the corners."""
        height, width = self.colours.shape[:2]
        y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
        dimmed = self.colours * (1 - 0.16 * (x**2 + y**2) ** 1.5 / 2.83)[..., None]
        return np.rint(np.clip(dimmed, 0, 1) * 255).astype(np.uint8)


def _place(cutout: Cutout, pose: Pose) -> Floats:
    """Sample a cut-out at its pose, between its four nearest pixels."""
    scale = pose.height / cutout.height
    times = max(0, int(np.floor(-np.log2(max(scale, 1e-3)))))
    source = _halve(cutout, times).pixels
    scale *= 2**times
    height, width = source.shape[:2]
    angle = np.deg2rad(pose.turn)
    cos, sin = np.float64(np.cos(angle)), np.float64(np.sin(angle))
    drawn = np.zeros((*SIZE, 4), np.float32)
    # Only the box around it is looked at.
    reach = scale * np.hypot(height, width) / 2 + 2
    top, bottom = (int(np.clip(edge, 0, SIZE[0])) for edge in (pose.y - reach, pose.y + reach + 1))
    left, right = (int(np.clip(edge, 0, SIZE[1])) for edge in (pose.x - reach, pose.x + reach + 1))
    if top >= bottom or left >= right:
        return drawn
    y, x = np.mgrid[top:bottom, left:right].astype(np.float64)
    y, x = y - pose.y, x - pose.x
    column = (x * cos + y * sin) / scale + (width - 1) / 2
    row = (y * cos - x * sin) / scale + (height - 1) / 2
    drawn[top:bottom, left:right] = sample(source, row, column)
    return drawn


def sample(source: Floats, row: NDArray[np.float64], column: NDArray[np.float64]) -> Floats:
    """Sample an array between its four nearest pixels; beyond its edges it is empty."""
    padded = np.pad(source, ((1, 1), (1, 1), (0, 0)))
    row = np.clip(row + 1, 0, padded.shape[0] - 1.001)
    column = np.clip(column + 1, 0, padded.shape[1] - 1.001)
    y, x = row.astype(int), column.astype(int)
    down, across = ((row - y)[..., None].astype(np.float32), (column - x)[..., None].astype(np.float32))
    upper = padded[y, x] * (1 - across) + padded[y, x + 1] * across
    lower = padded[y + 1, x] * (1 - across) + padded[y + 1, x + 1] * across
    mixed: Floats = upper * (1 - down) + lower * down
    return mixed


def blur(values: Floats, reach: int) -> Floats:
    """Blur an array by two box filters."""
    for _ in range(2):
        for axis in (0, 1):
            pad = [(0, 0), (0, 0)]
            pad[axis] = (reach + 1, reach)
            sums = np.cumsum(np.pad(values, pad, mode="edge"), axis=axis, dtype=np.float64)
            length = values.shape[axis]
            ahead = np.take(sums, range(2 * reach + 1, 2 * reach + 1 + length), axis=axis)
            behind = np.take(sums, range(length), axis=axis)
            values = ((ahead - behind) / (2 * reach + 1)).astype(np.float32)
    return values


# ── grounds ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Ground:
    """The background of a film: larger than the frame, so that the camera can move over it."""

    colours: Floats

    def seen(self, x: float, y: float, zoom: float = 1.0) -> Frame:
        """Return the frame as a camera with this corner and zoom sees it; the surroundings are mirrored."""
        rows = np.arange(SIZE[0], dtype=np.float64)[:, None] / zoom + y
        columns = np.arange(SIZE[1], dtype=np.float64)[None, :] / zoom + x
        height, width = self.colours.shape[:2]
        row, column = (np.broadcast_to(_mirror(at, side), SIZE) for at, side in ((rows, height), (columns, width)))
        return Frame(sample(self.colours, row, column))


def _mirror(at: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    turned: NDArray[np.float64] = (side - 2) - np.abs((side - 2) - np.mod(at, 2 * (side - 2)))
    return turned


@cache
def load_ground(name: str, dark: Colour, light: Colour, *, lies: bool = False) -> Ground:
    """Load a grey ground, slightly out of focus, coloured between two colours, and optionally turned on its side."""
    with Image.open(_find_material(f"ground-{name}")) as image:
        grey = blur(np.asarray(image.convert("L"), np.float32) / 255, 1)[..., None]
    if lies:
        grey = grey.swapaxes(0, 1)
    colours = np.array(dark, np.float32) * (1 - grey) + np.array(light, np.float32) * grey
    return Ground(colours)


@cache
def load_view(name: str) -> Ground:
    """Load a ground in its own colours."""
    with Image.open(_find_material(f"ground-{name}")) as image:
        return Ground(np.asarray(image.convert("RGB"), np.float32) / 255)


@cache
def make_wood(seed: int, dark: Colour, light: Colour) -> Ground:
    """Return a table of planks: stretched rings, and dark gaps."""
    generator = np.random.default_rng(seed)
    height, width, plank = 420, 720, 70
    y, x = np.mgrid[:height, :width].astype(np.float32)
    number = (y // plank).astype(int)
    shift = generator.uniform(0, 900, number.max() + 1).astype(np.float32)[number]
    wave = make_clouds(generator, (height, width), (3, 5)) * 26
    rings = np.sin((y + 0.015 * (x + shift) + wave + shift) * 0.42) * 0.5 + 0.5
    fibre = make_clouds(generator, (height, width), (70, 4)) + 0.6 * make_clouds(generator, (height, width), (140, 6))
    tone = generator.uniform(-0.12, 0.12, number.max() + 1).astype(np.float32)[number]
    value = np.clip(0.3 * rings + 0.75 * (fibre - 0.8) + 0.38 + tone, 0, 1)[..., None]
    colours = np.array(dark, np.float32) * (1 - value) + np.array(light, np.float32) * value
    gap = np.minimum(y % plank, plank - y % plank)
    return Ground(colours * np.clip(0.45 + gap / 4, 0, 1)[..., None])


def make_clouds(generator: np.random.Generator, size: tuple[int, int], cells: tuple[int, int]) -> Floats:
    """Return soft noise between 0 and 1, with this many cells down and across, and finer ones inside."""
    noise = np.zeros(size, np.float32)
    for octave in range(4):
        grid = generator.random((cells[0] * 2**octave + 2, cells[1] * 2**octave + 2, 1)).astype(np.float32)
        rows = np.linspace(0.5, grid.shape[0] - 1.5, size[0])[:, None]
        columns = np.linspace(0.5, grid.shape[1] - 1.5, size[1])[None, :]
        row, column = np.broadcast_arrays(_round_off(rows), _round_off(columns))
        noise += sample(grid, row, column)[..., 0] / 2**octave
    low, high = noise.min(), noise.max()
    return (noise - low) / (high - low)


def _round_off(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an eased position between two cells."""
    whole = np.floor(at)
    share = at - whole
    eased: NDArray[np.float64] = whole + share * share * (3 - 2 * share)
    return eased
