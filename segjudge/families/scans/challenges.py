"""New challenges of scans: samples, and a synthetic truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import move_labels
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import first_scenes, still_images

#: The approximate number of rings in a scan; samples are moved by a share of one.
_RINGS = 64
#: The classes of the demo's rings, from above, and of its objects in turn: every class, and some that move.
_STUFF = (50, 70, 71, 80, 81, 51, 72, 48, 44, 49, 40, 40)
_THINGS = (252, 10, 30, 11, 31, 15, 18, 254, 20, 32)
#: The demo's geometry: degrees of the highest and lowest ring, metres of the sensor above the ground, from the middle
#: of the street to its edge objects, and to the farthest point; the labels of those objects.
_ELEVATIONS, _HEIGHT, _STREET, _FAR, _TALL = (3.0, -25.0), 1.73, 14.0, 32.0, (50, 51, 70, 71, 80, 81)


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield the truth's labels, moved along the rings."""
    for unit in [unit for truth in truths for unit in truth.units]:
        (frame,) = unit.load()
        pixels = frame.read()
        labels = np.unique(pixels.numbers) if pixels.labels is None else pixels.labels
        sequence, _, name = unit.name.partition("/")
        values = move_labels(pixels, labels, share / _RINGS).astype("<u4")
        yield f"sequences/{sequence}/predictions/{name}.label", values.tobytes()


def make_demo(_protocol: Any) -> Content:
    """Yield the demo's frames as scans, ring by ring, in SemanticKITTI's layout."""
    for name, labels in _label_scans():
        yield f"sequences/08/labels/{name}.label", labels.astype("<u4").tobytes()


def make_demo_pictures(_protocol: Any) -> Members:
    """Yield the points of the demo's scans: x, y, z and remission."""
    for name, labels in _label_scans():
        yield f"sequences/08/velodyne/{name}.bin", _place_points(labels).astype("<f4").tobytes()


def _place_points(labels: Array) -> Array:
    """Place the points of a scan in a street: structures stand along it, objects where their lowest ring is."""
    rings, columns = labels.shape
    elevation = np.radians(np.linspace(*_ELEVATIONS, rings))[:, None]
    azimuth = np.pi - 2 * np.pi * (np.arange(columns) + 0.5)[None] / columns
    kinds = labels & 0xFFFF
    ground = _HEIGHT / np.maximum(np.sin(-elevation), 0.01)
    wall = _STREET / np.maximum(np.abs(np.sin(azimuth)), 0.2)
    distance = np.minimum(ground, np.where(np.isin(kinds, _TALL), wall, ground)) + 0 * azimuth
    for value in np.unique(labels[labels >> 16 > 0]).tolist():
        rows, _ = np.nonzero(labels == value)
        distance[labels == value] = min(float(ground[rows.max(), 0]), _FAR)
    grain = np.random.default_rng(int(labels.sum()) % (1 << 32)).normal(0, 1, (2, rings, columns))
    distance = np.minimum(distance, _FAR) * (1 + 0.004 * grain[0])
    flat = distance * np.cos(elevation)
    remission = np.clip(0.15 + 0.6 * ((kinds * 37) % 11) / 10 + 0.06 * grain[1], 0, 1)
    points = (flat * np.cos(azimuth), flat * np.sin(azimuth), distance * np.sin(elevation), remission)
    stacked: Array = np.stack([side.reshape(-1) for side in points], axis=1)
    return stacked


def _label_scans() -> Iterator[tuple[str, Array]]:
    """Yield the name of each scan, and its labels by ring and column."""
    objects = 0
    for number, labels in still_images(first_scenes()):
        rings = np.array(_STUFF, np.uint32)[np.arange(len(labels)) * len(_STUFF) // len(labels)]
        points = np.repeat(rings[:, None], labels.shape[1], axis=1)
        for label in np.unique(labels[labels > 0]).tolist():
            points[labels == label] = _THINGS[objects % len(_THINGS)] | label << 16
            objects += 1
        yield f"{number - 1:06d}", points
