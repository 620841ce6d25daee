"""Scenes of several units, as the doctor samples them, and honest but weak predictions of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from segjudge.evaluation_script.doctor import (
    Examination,
    PictureBoxes,
    Points,
    Sample,
    fit_boxes,
    fit_classes,
    fit_flags,
    fit_greys,
    fit_masks,
    fit_points,
    fit_segments,
)
from segjudge.evaluation_script.doctor.samples import choose_frames

SIZE = (40, 58)
UNITS, FRAMES = 14, 9
#: The points of a person, in shares of its box.
BODY = np.array([[0.5, 0.1], [0.2, 0.3], [0.8, 0.35], [0.3, 0.6], [0.75, 0.55], [0.35, 0.95]])
SIDES = np.array([0, 2, 1, 4, 3, 5])
#: Kind of data -> its traits and its fit.
KINDS: dict[str, tuple[str, Callable[..., float]]] = {
    "masks": ("pictures places frames units masks labels runs", fit_masks),
    "binary": ("pictures places units masks binary runs", fit_flags),
    "classes": ("pictures places filled units labels", fit_classes),
    "segments": ("pictures places frames units masks tracks", fit_segments),
    "greys": ("pictures places units greys", fit_greys),
    "boxes": ("pictures places units", fit_boxes),
    "points": ("pictures places units", fit_points),
    "voxels": ("voxels places units masks labels", fit_masks),
}
Frames = list[list[Any]]


def draw_objects(draw: np.random.Generator, frames: int, count: int) -> list[Any]:
    """Return frames of ellipses that move, numbered from 1."""
    rows, columns = np.ogrid[: SIZE[0], : SIZE[1]]
    objects = [(draw.uniform(0.2, 0.8, 2), draw.uniform(0.1, 0.25, 2), draw.uniform(-2, 2, 2)) for _ in range(count)]
    drawn = []
    for frame in range(frames):
        labels = np.zeros(SIZE, np.int64)
        for number, (middle, radii, speed) in enumerate(objects, 1):
            y, x = middle * SIZE + 1.5 * frame * speed
            height, width = radii * SIZE
            tilt = (rows - y) / height + 0.5 * (columns - x) / width
            labels[(tilt**2 + ((columns - x) / width) ** 2) < 1] = number
        drawn.append(labels)
    return drawn


def draw_classes(draw: np.random.Generator) -> Any:
    """Return a map of classes from 3 to 8: bands, and things on them."""
    labels = np.repeat(np.sort(draw.integers(0, 3, SIZE[0])), SIZE[1]).reshape(SIZE) + 3
    (things,) = draw_objects(draw, 1, 4)
    return np.where(things > 0, things % 3 + 6, labels)


def draw_truth(kind: str, draw: np.random.Generator) -> Frames:
    """Return the frames of each unit."""
    units: Frames = []
    for _ in range(UNITS):
        frames = FRAMES if kind in ("masks", "segments") else 1
        count = int(draw.integers(2, 4))
        if kind == "classes":
            units.append([draw_classes(draw)])
        elif kind == "voxels":
            units.append([np.stack(draw_objects(draw, 12, count))])
        elif kind in ("boxes", "points"):
            places = np.column_stack([draw.uniform(2, 24, (4, 2)), draw.uniform(6, 14, (4, 2))])
            people = places[:, None, :2] + BODY * places[:, None, 2:]
            labels = np.arange(4) % 2 + 1
            units.append([
                PictureBoxes(places, labels, SIZE) if kind == "boxes"
                else Points(people, np.ones(people.shape[:2], bool), labels, SIZE, SIDES)
            ])  # fmt: skip
        else:
            drawn = draw_objects(draw, frames, count)
            units.append([np.minimum(frame, 1) for frame in drawn] if kind in ("binary", "greys") else drawn)
    return units


def examine(kind: str, truth: Frames, prediction: Frames, **options: Any) -> Examination:
    """Return predictions as the doctor examines them; those of grey maps are 0 and 1, too."""
    words, fit = KINDS[kind]

    def sample(number: int) -> list[Sample]:
        chosen = choose_frames(len(truth[number]))
        sides = [[side[number][frame] for frame in chosen] for side in (truth, prediction)]
        return [Sample(number, f"u{number}", *sides, chosen, len(truth[number]))]

    names = [f"u{number}" for number in range(len(truth))]
    return Examination(names, sample, frozenset(words.split()), fit=fit, **options)


def change_each(truth: Frames, change: Callable[[Any], Any]) -> Frames:
    return [[change(frame) for frame in frames] for frames in truth]


# ── honest but weak ─────────────────────────────────────────────────────────


def weaken(kind: str, truth: Frames, how: str, draw: np.random.Generator) -> Frames:
    """Return the predictions of a weak method without any slip."""
    return [[weaken_frame(kind, frame, how, draw) for frame in frames] for frames in truth]


def weaken_frame(kind: str, frame: Any, how: str, draw: np.random.Generator) -> Any:
    if isinstance(frame, np.ndarray):
        weak = _weaken_map(frame, how, draw)
        if kind == "greys":
            return np.clip(weak * 255 * draw.uniform(0.4, 1) + draw.normal(0, 20, frame.shape), 0, 255).astype(np.int64)
        return weak
    places = np.array(frame.places, float)
    if how == "incomplete":
        kept = draw.random(len(places)) < 0.5
        return frame._replace(
            places=places[kept],
            labels=frame.labels[kept],
            **({"marked": frame.marked[kept]} if kind == "points" else {}),
        )
    if how == "empty":
        return weaken_frame(kind, frame, "incomplete", draw) if draw.random() < 0.3 else _take_none(frame)
    return frame._replace(places=places + draw.normal(0, {"grown": 6}.get(how, 4), places.shape))


def _take_none(frame: Any) -> Any:
    none = {"places": frame.places[:0], "labels": frame.labels[:0]}
    return frame._replace(**none, **({"marked": frame.marked[:0]} if isinstance(frame, Points) else {}))


def _weaken_map(frame: Any, how: str, draw: np.random.Generator) -> Any:
    if how == "inexact":  # each object somewhere near
        return sum_up(
            [
                np.roll(frame == label, draw.integers(-6, 7, frame.ndim), range(frame.ndim)) * label
                for label in np.unique(frame)
            ]
        )
    if how == "ragged":
        steps = draw.integers(-5, 6, frame.shape[0])
        return np.stack([np.roll(row, step, -1) for row, step in zip(frame, steps)])
    if how == "speckled":
        noise = draw.random(frame.shape) < draw.uniform(0.2, 0.6)
        return np.where(noise, draw.permutation(frame.reshape(-1)).reshape(frame.shape), frame)
    if how == "incomplete":
        lost = draw.choice(np.unique(frame), max(1, len(np.unique(frame)) // 2), replace=False)
        return np.where(np.isin(frame, lost), frame.min(), frame)
    if how == "grown":
        grown = frame
        for _ in range(int(draw.integers(3, 9))):
            for axis in (frame.ndim - 2, frame.ndim - 1):
                for step in (-1, 1):
                    grown = np.maximum(grown, np.roll(grown, step, axis))
        return grown
    return frame * 0 + frame.min() if draw.random() < 0.7 else frame  # mostly empty


def sum_up(layers: list[Any]) -> Any:
    joined = layers[0]
    for layer in layers[1:]:
        joined = np.maximum(joined, layer)
    return joined


WEAKNESSES = ("inexact", "ragged", "speckled", "incomplete", "grown", "empty")
