"""Scenes of moving objects, whose classes, scores and points are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.run_lengths import encode_labels

#: Objects lie in cells of a grid, two neighbours of each class, and leave room between them.
ROWS, COLUMNS, CELL = 2, 3, (48, 42)
SIZE = (ROWS * CELL[0], COLUMNS * CELL[1])
OBJECTS = ROWS * COLUMNS
#: What classes are called where a truth names its own.
NAMES = {1: "car", 2: "dog", 3: "tree"}
GROUND = "road"
#: Where the points of a body are, in the radii of its ellipse, and how exact they are.
POINTS = {
    "head": (0, -0.9), "left hand": (-0.9, -0.2), "right hand": (0.9, -0.2), "left foot": (-0.6, 0.7),
    "right foot": (0.6, 0.7),
}  # fmt: skip
SIGMA = 0.08


@dataclass
class Video:
    """Objects by number in all frames, with their classes, scores and points; an image has one frame."""

    name: str
    labels: Array
    classes: dict[int, int]
    scores: dict[int, float] = field(default_factory=dict)
    points: dict[int, Array] = field(default_factory=dict)

    def copy(self) -> Video:
        points = {key: value.copy() for key, value in self.points.items()}
        return replace(self, labels=self.labels.copy(), classes=dict(self.classes), scores={}, points=points)

    def runs(self) -> list[dict[int, str]]:
        return [{key: text for key, text in encode_labels(frame).items() if key} for frame in self.labels]

    def numbers(self) -> list[int]:
        return [number for number in np.unique(self.labels).tolist() if number]


World = list[Video]


def make_world(random: np.random.Generator, count: int, frames: int, kinds: int) -> World:
    """Make scenes with two adjacent objects of each class; with fewer kinds, several pairs share one."""
    return [_make_video(f"scene{index:02d}", random, frames, kinds) for index in range(1, count + 1)]


def _make_video(name: str, random: np.random.Generator, frames: int, kinds: int) -> Video:
    labels = np.zeros((frames, *SIZE), np.int64)
    down, across = np.mgrid[: SIZE[0], : SIZE[1]]
    points = {}
    for number in range(1, OBJECTS + 1):
        column, row = divmod(number - 1, ROWS)
        radii = random.integers(13, 17), random.integers(12, 15)
        middle = np.array([(row + 0.5) * CELL[0], (column + 0.5) * CELL[1]]) + random.integers(-1, 2, 2)
        for frame in range(frames):
            y, x = middle[0], middle[1] + (frame % 3) - 1
            labels[frame][((down - y) / radii[0]) ** 2 + ((across - x) / radii[1]) ** 2 <= 1] = number
        points[number] = np.array([(middle[1] + radii[1] * a, middle[0] + radii[0] * b) for a, b in POINTS.values()])
    classes = {number: 1 + (number - 1) // ROWS % kinds for number in range(1, OBJECTS + 1)}
    return Video(name, labels, classes, {}, points)
