"""The films of the demo: the actors, their paths, and their grounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .drawing import (
    Colour,
    Cutout,
    Frame,
    Ground,
    Labels,
    Pose,
    load_cutout,
    load_ground,
    load_view,
    make_clouds,
    make_wood,
    paint_cutout,
    pose_at,
    tint,
)

#: What decides the grain of drawn grounds and the course of every method's faults.
SEED = 2017


@dataclass(frozen=True)
class Actor:
    """An object of the truth, or an obstacle with the number 0 that hides objects."""

    cutout: Callable[[], Cutout]
    number: int
    poses: Sequence[Pose]
    shadow: float = 0.45


@dataclass(frozen=True)
class Film:
    """One sequence."""

    name: str
    #: What its objects are, from number 1.
    names: tuple[str, ...]
    ground: Callable[[], Ground]
    #: Where the camera looks at the beginning and at the end: from the left, from above, how far in.
    camera: tuple[tuple[float, float, float], tuple[float, float, float]]
    actors: tuple[Actor, ...]
    frames: int = 16

    def draw(self, frame: int) -> tuple[NDArray[np.uint8], Labels]:
        """Draw a frame: its picture, and the number of the object that each pixel shows."""
        moment = frame / (self.frames - 1)
        eased = moment * moment * (3 - 2 * moment)
        begin, end = (np.array(view) for view in self.camera)
        canvas: Frame = self.ground().seen(*(begin + (end - begin) * eased).tolist())
        placed = [(pose_at(actor.poses, moment), actor) for actor in self.actors]
        for pose, actor in sorted(placed, key=lambda pair: pair[0].depth):
            canvas.draw(actor.cutout(), pose, actor.number, actor.shadow)
        return canvas.picture(), canvas.labels

    def object_numbers(self) -> range:
        """Return the numbers of its objects."""
        return range(1, len(self.names) + 1)


# ── what is in them ─────────────────────────────────────────────────────────


def _named(name: str, colour: Colour | None = None) -> Callable[[], Cutout]:
    return cache(lambda: tint(load_cutout(name), colour) if colour else load_cutout(name))


ASTRONAUT, SHUTTLE, ROCKET, CUP = map(_named, ("astronaut", "shuttle", "rocket", "cup"))
RACCOON, BADGE, PLANET = map(_named, ("raccoon", "badge", "planet"))
CAT_PRINT, RACCOON_PRINT = _named("photo-cat"), _named("photo-raccoon")
COFFEE_PRINT, ROCKET_PRINT = _named("photo-coffee"), _named("photo-rocket")
BLUE_PLANET, PALE_PLANET = _named("planet", (0.32, 0.9, 1.5)), _named("planet", (0.95, 1.5, 1.2))


def _stars() -> Ground:
    return load_view("stars")


def _pad() -> Ground:
    return load_view("pad")


def lay_grass() -> Ground:
    return load_ground("grass", (0.0, 0.06, 0.0), (0.72, 0.9, 0.38))


def _gravel() -> Ground:
    return load_ground("gravel", (0.06, 0.04, 0.03), (1.0, 0.94, 0.86))


def lay_wall() -> Ground:
    return load_ground("brick", (0.2, 0.06, 0.03), (1.0, 0.72, 0.55), lies=True)


def _hangar() -> Ground:
    return load_ground("brick", (0.06, 0.09, 0.13), (0.6, 0.68, 0.76), lies=True)


def lay_table() -> Ground:
    return make_wood(SEED, (0.26, 0.12, 0.05), (0.72, 0.45, 0.24))


def _desk() -> Ground:
    return make_wood(SEED + 1, (0.13, 0.11, 0.1), (0.48, 0.43, 0.38))


@cache
def _pillar() -> Cutout:
    """Return a pillar of bricks, lit from the left."""
    colours = lay_wall().colours[:330, 40:130]
    light = np.interp(np.arange(90), (0, 18, 60, 89), (0.75, 1.15, 0.8, 0.35)).astype(np.float32)
    alpha = np.ones((330, 90), np.float32)
    return paint_cutout(np.pad(alpha, 1), np.pad(colours * light[None, :, None], ((1, 1), (1, 1), (0, 0))))


@cache
def _parapet() -> Cutout:
    """Return a wall as wide as the frame, with a bright top."""
    colours = lay_wall().colours[:150, :380].copy()
    colours[:7] = colours[:7] * 0.4 + 0.52
    colours[7:12] *= 0.6
    return paint_cutout(np.pad(np.ones((150, 380), np.float32), 1), np.pad(colours, ((1, 1), (1, 1), (0, 0))))


@cache
def _blades() -> Cutout:
    """Return high grass in front of the lens, out of focus."""
    generator = np.random.default_rng(SEED + 2)
    height, width = 130, 600
    y, x = np.mgrid[:height, :width].astype(np.float32)
    alpha, colours = np.zeros((height, width), np.float32), np.zeros((height, width, 3), np.float32)
    for _ in range(300):
        root, tall = generator.uniform(-10, width + 10), generator.uniform(50, 124)
        lean, wide = generator.normal(0, 26), generator.uniform(3.5, 7)
        up = np.clip((height - y) / tall, 0, 1)
        across = np.abs(x - root - lean * up**2)
        blade = np.clip(wide * (1 - up) - across + 0.5, 0, 1) * (up < 1)
        shade = generator.uniform(0.45, 1.0) * (0.45 + 0.55 * up)
        colour = np.array((0.36, 0.62, 0.16), np.float32) * shade[..., None]
        colours = colours * (1 - blade[..., None]) + colour * blade[..., None]
        alpha = np.maximum(alpha, blade)
    return paint_cutout(alpha, colours)


@cache
def _smoke() -> Cutout:
    """Return a cloud of smoke, lit from above and thin at its rim."""
    generator = np.random.default_rng(SEED + 3)
    height, width = 150, 420
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
    noise = make_clouds(generator, (height, width), (4, 9))
    alpha = np.clip((1.05 - np.hypot(x, y) + 0.9 * (noise - 0.55)) * 2.6, 0, 1)
    light = 0.55 + 0.5 * noise - 0.2 * y
    return paint_cutout(alpha, light[..., None] * np.array((1.0, 0.9, 0.78), np.float32))


@cache
def _flame() -> Cutout:
    """Return the fire below a rocket."""
    height, width = 90, 26
    y, x = np.mgrid[0 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
    reach = np.clip(1 - np.abs(x) / (0.35 + 0.6 * np.sqrt(y)) - 0.2 * y, 0, 1)
    alpha = np.clip(reach * 2.2 * (1 - y**2), 0, 1)
    colours = np.stack([1.25 - 0 * y, 1.15 - 0.65 * y, 0.85 - 0.8 * y], -1)
    return paint_cutout(alpha, colours)


def _roll(place: int) -> tuple[Pose, ...]:
    """Return the path of one of five objects that roll in a ring and approach each other."""
    poses = []
    for at in np.linspace(0, 1, 9).tolist():
        turn = 1.05 * place + (4.2 + 0.5 * place) * at
        x = 240 + (172 - 6 * place) * np.cos(turn)
        y = 136 + 86 * np.sin(turn) + 12 * (place % 2)
        poses.append(Pose(at, x, y, 46 - 3 * place, 140 * at + 60 * place, place))
    return tuple(poses)


def _orbit(place: int) -> tuple[Pose, ...]:
    """Return the path of one of three objects that circle each other, seen slightly from above."""
    poses = []
    for at in np.linspace(0, 1, 11).tolist():
        near = np.sin(2.094 * place + 3.9 * at)
        x = 240 + 150 * np.cos(2.094 * place + 3.9 * at)
        poses.append(Pose(at, x, 138 + 44 * near, 92 + 30 * near, 30 * at, near))
    return tuple(poses)


def _fixed(cutout: Callable[[], Cutout], x: float, y: float, height: float, depth: float) -> Actor:
    """Return an obstacle that stands before the objects and does not move."""
    return Actor(cutout, 0, (Pose(0, x, y, height, 0, depth),), 0.0)


# ── the films ───────────────────────────────────────────────────────────────

FILMS = (
    Film(
        "lift-off",
        ("rocket",),
        _pad,
        ((45, 95, 1.0), (45, 30, 1.0)),
        (
            Actor(ROCKET, 1, (Pose(0, 248, 168, 210), Pose(0.3, 248, 164, 210), Pose(1, 256, -32, 206, 3)), 0.0),
            Actor(
                _flame,
                0,
                (Pose(0, 248, 300, 4, 0, -1), Pose(0.3, 248, 300, 90, 0, -1), Pose(1, 251, 110, 92, 3, -1)),
                0.0,
            ),
            Actor(
                _smoke,
                0,
                (Pose(0, 246, 330, 60, 0, 1), Pose(0.4, 246, 268, 90, 0, 1), Pose(1, 240, 276, 190, 4, 1)),
                0.0,
            ),
        ),
    ),
    Film(
        "round-the-planet",
        ("shuttle", "planet"),
        _stars,
        ((10, 30, 1.0), (70, 45, 1.0)),
        (
            Actor(PLANET, 2, (Pose(0, 262, 142, 150, 0, 1), Pose(1, 238, 138, 158, 14, 1)), 0.0),
            Actor(
                SHUTTLE,
                1,
                (
                    Pose(0, 60, 205, 84, 62, 2),
                    Pose(0.22, 180, 176, 96, 66, 2),
                    Pose(0.42, 330, 120, 82, 50, 2),
                    Pose(0.52, 372, 88, 62, -10, 1),
                    Pose(0.6, 335, 84, 48, -80, 0),
                    Pose(0.75, 240, 108, 42, -96, 0),
                    Pose(1, 108, 108, 46, -90, 0),
                ),
                0.0,
            ),
        ),
        18,
    ),
    Film(
        "twin-shuttles",
        ("shuttle", "shuttle"),
        _stars,
        ((130, 90, 1.15), (40, 60, 1.15)),
        (
            Actor(SHUTTLE, 1, (Pose(0, 70, 215, 120, 58), Pose(0.5, 236, 142, 112, 66), Pose(1, 420, 62, 96, 78))),
            Actor(
                SHUTTLE,
                2,
                (Pose(0, 420, 205, 104, -50, 1), Pose(0.5, 246, 132, 116, -58, 1), Pose(1, 66, 78, 124, -70, 1)),
            ),
        ),
    ),
    Film(
        "shell-game",
        ("cup", "cup", "cup"),
        lay_table,
        ((60, 60, 1.0), (90, 70, 1.03)),
        (
            Actor(
                CUP,
                1,
                (
                    Pose(0, 100, 140, 112, 0, 1),
                    Pose(0.3, 240, 186, 118, 20, 3),
                    Pose(0.5, 385, 140, 112, 30, 1),
                    Pose(0.75, 300, 98, 106, 10, 0),
                    Pose(1, 240, 142, 112, 0, 1),
                ),
            ),
            Actor(
                CUP,
                2,
                (
                    Pose(0, 242, 134, 112, 12, 2),
                    Pose(0.5, 240, 136, 112, 6, 2),
                    Pose(0.75, 330, 184, 118, -20, 3),
                    Pose(1, 388, 136, 112, -30, 2),
                ),
            ),
            Actor(
                CUP,
                3,
                (
                    Pose(0, 384, 144, 112, -8, 1.5),
                    Pose(0.25, 240, 90, 104, -26, 0),
                    Pose(0.5, 98, 138, 112, -40, 1),
                    Pose(1, 92, 150, 116, -46, 1),
                ),
            ),
        ),
        18,
    ),
    Film(
        "espresso",
        ("cup", "print"),
        lay_table,
        ((20, 100, 1.1), (0, 92, 1.25)),
        (
            Actor(CUP, 1, (Pose(0, 150, 168, 168, -16), Pose(1, 268, 150, 214, 22))),
            Actor(
                CAT_PRINT,
                2,
                (Pose(0, -24, 66, 150, -34, 2), Pose(0.5, 236, 150, 156, 6, 2), Pose(1, 560, 214, 160, 40, 2)),
            ),
        ),
    ),
    Film(
        "holiday-snaps",
        ("print", "print", "print", "print"),
        _desk,
        ((60, 50, 1.0), (40, 80, 1.04)),
        (
            Actor(
                CAT_PRINT,
                1,
                (Pose(0, 110, 96, 128, -12, 1), Pose(0.6, 250, 130, 130, 18, 1), Pose(1, 330, 178, 132, 34, 1)),
            ),
            Actor(
                COFFEE_PRINT,
                2,
                (Pose(0, 350, 90, 124, 16, 2), Pose(0.5, 240, 104, 126, -2, 2), Pose(1, 118, 96, 126, -22, 2)),
            ),
            Actor(RACCOON_PRINT, 3, (Pose(0, 130, 206, 126, 8, 3), Pose(1, 208, 196, 130, -16, 3))),
            Actor(
                ROCKET_PRINT,
                4,
                (Pose(0, 496, 238, 124, 40, 4), Pose(0.45, 420, 190, 126, 12, 4), Pose(1, 300, 96, 124, -8, 4)),
            ),
        ),
    ),
    Film(
        "peekaboo",
        ("raccoon",),
        lay_grass,
        ((20, 20, 1.3), (30, 26, 1.32)),
        (
            Actor(
                RACCOON,
                1,
                (
                    Pose(0, 120, 128, 140, -6),
                    Pose(0.2, 124, 116, 142, -2),
                    Pose(0.36, 130, 126, 142, 4),
                    Pose(0.5, 140, 270, 140, 6),
                    Pose(0.58, 350, 270, 140, 4),
                    Pose(0.74, 352, 116, 144, -6),
                    Pose(1, 340, 122, 144, 6),
                ),
                0.3,
            ),
            _fixed(_parapet, 240, 256, 196, 5),
        ),
        20,
    ),
    Film(
        "hide-and-seek",
        ("raccoon",),
        lay_grass,
        ((60, 40, 1.0), (170, 44, 1.0)),
        (
            Actor(RACCOON, 1, (Pose(0, -30, 170, 104, -8), Pose(0.5, 232, 160, 116, 6), Pose(1, 450, 176, 120, -6))),
            *(_fixed(_pillar, x, 128, 310, 5) for x in (120, 262, 396)),
        ),
        18,
    ),
    Film(
        "two-raccoons",
        ("raccoon", "raccoon"),
        lay_grass,
        ((150, 60, 1.1), (80, 90, 1.1)),
        (
            Actor(RACCOON, 1, (Pose(0, 92, 120, 112, -10), Pose(0.5, 232, 134, 108, 6), Pose(1, 400, 128, 100, 14))),
            Actor(
                RACCOON,
                2,
                (Pose(0, 396, 150, 128, 10, 1), Pose(0.5, 256, 158, 130, -4, 1), Pose(1, 90, 146, 132, -12, 1)),
            ),
            _fixed(_blades, 240, 226, 128, 5),
        ),
    ),
    Film(
        "roll-call",
        ("astronaut", "shuttle", "rocket"),
        _hangar,
        ((0, 20, 1.3), (60, 34, 1.3)),
        (
            Actor(SHUTTLE, 2, (Pose(0, 350, 118, 190, 4, 1), Pose(1, 300, 124, 196, -3, 1))),
            Actor(ROCKET, 3, (Pose(0, 420, 112, 200, 4, 0), Pose(1, 380, 116, 204, 10, 0))),
            Actor(
                ASTRONAUT,
                1,
                (Pose(0, 60, 168, 214, -2, 2), Pose(0.5, 230, 158, 226, 2, 2), Pose(1, 410, 166, 232, -2, 2)),
            ),
        ),
    ),
    Film(
        "roulette",
        ("badge",) * 5,
        _gravel,
        ((0, 30, 1.2), (24, 20, 1.2)),
        tuple(Actor(BADGE, 1 + place, _roll(place)) for place in range(5)),
        18,
    ),
    Film(
        "far-away",
        ("shuttle",),
        _stars,
        ((100, 20, 1.0), (10, 90, 1.0)),
        (
            Actor(
                SHUTTLE,
                1,
                (
                    Pose(0, 440, 60, 30, -64),
                    Pose(0.4, 300, 96, 26, -70),
                    Pose(0.7, 190, 150, 22, -52),
                    Pose(1, 76, 214, 18, -40),
                ),
                0.0,
            ),
        ),
    ),
    Film(
        "three-worlds",
        ("planet", "planet", "planet"),
        _stars,
        ((60, 60, 1.0), (20, 30, 1.05)),
        tuple(
            Actor(world, 1 + place, _orbit(place), 0.0)
            for place, world in enumerate((PLANET, BLUE_PLANET, PALE_PLANET))
        ),
        18,
    ),
    Film(
        "coffee-thief",
        ("cup", "raccoon"),
        lay_grass,
        ((0, 60, 1.0), (0, 50, 1.0)),
        (
            Actor(CUP, 1, (Pose(0, 170, 168, 100, 4), Pose(0.55, 172, 168, 100, 4), Pose(1, 520, 150, 104, 30))),
            Actor(
                RACCOON,
                2,
                (
                    Pose(0, 492, 122, 130, 12, 1),
                    Pose(0.45, 206, 142, 150, -6, 1),
                    Pose(0.58, 200, 146, 152, -10, 1),
                    Pose(1, 470, 130, 140, 16, 1),
                ),
            ),
            _fixed(_blades, 246, 236, 116, 5),
        ),
        18,
    ),
)
