"""Two small sequences with their scribbles, answers that become better, and a clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 40, 60


class Clock:
    """Time that advances on command."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def write_root(folder: Path) -> None:
    """Write two sequences: `box` with one object and two sets of scribbles, `duo` with two objects and void."""
    for name in ("ImageSets/2017", *(f"{kind}/{name}" for kind in ("Annotations/480p", "JPEGImages/480p", "Scribbles")
                                     for name in ("box", "duo"))):  # fmt: skip
        (folder / name).mkdir(parents=True)
    for name, lines in (
        ("val", "box\nduo\n"),
        ("train", "duo\n\n"),
        ("mine", " box \n"),
        ("none", ""),
        ("twice", "box\nbox"),
    ):
        (folder / f"ImageSets/2017/{name}.txt").write_text(lines)
    for name, frames in (("box", 3), ("duo", 4)):
        for frame in range(frames):
            labels = draw_truth(name, frame)
            Image.fromarray(labels).save(folder / f"Annotations/480p/{name}/{frame:05d}.png")
            picture = np.stack([80 + 60 * (labels == number) for number in range(3)], axis=-1).astype(np.uint8)
            Image.fromarray(picture).save(folder / f"JPEGImages/480p/{name}/{frame:05d}.jpg")
    for name, number, frame, path in (("box", 1, 0, [[0.2, 0.5], [0.4, 0.5]]), ("box", 2, 2, [[0.3, 0.4], [0.5, 0.6]]),
                                      ("duo", 1, 1, [[0.25, 0.5], [0.3, 0.75]])):  # fmt: skip
        lines: list[Any] = [[] for _ in range(3 + (name == "duo"))]
        lines[frame] = [{"path": path, "object_id": 1, "start_time": 0, "end_time": 1}]
        value = {"scribbles": lines, "sequence": name, "annotated_frame": frame}
        (folder / f"Scribbles/{name}/{number:03d}.json").write_text(json.dumps(value))


def draw_truth(name: str, frame: int) -> Any:
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    if name == "box":
        labels[8:32, 5 + 4 * frame : 35 + 4 * frame] = 1
        return labels
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    far = (y - 20) ** 2 + (x - 18 - frame) ** 2
    labels[(far < 170) & (far > 60)] = 1
    labels[5:35, 44:50] = labels[15:20, 36:58] = 2
    labels[36:, :10] = 255
    return labels


def answer(name: str, frames: int, interaction: int) -> Any:
    """Return masks that become better: the truth, moved, without its right part."""
    truth = np.stack([draw_truth(name, frame) for frame in range(frames)]).astype(int)
    moved = np.roll(np.where(truth == 255, 0, truth), 4 // interaction, axis=1)
    moved[:, :, 30 + 7 * interaction :] = 0
    return moved
