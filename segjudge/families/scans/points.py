"""The points of scans, `velodyne/SCAN.bin` beside the truth or among its pictures, and where a picture shows them.

A picture has two parts: the scan seen from above, forwards to the right, and below it the range image, forwards in the
middle.
"""

from __future__ import annotations

import os

import numpy as np
from PIL import Image

from segjudge.evaluation_script.families.base.units import open_dataset
from segjudge.evaluation_script.files.problems import HostError, quantity
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.report.player import encode_picture

#: The maximum size of a picture, and the share of its height for the range image and the gap above it.
PICTURE: Size = (512, 640)
_RANGE_IMAGE, _GAP = 0.2, 0.015
#: x, y, z and remission, as 32-bit floats.
_FLOATS = 4
#: The minimum and maximum metres that a picture from above shows, and the share of points that it should contain.
_NEAREST, _FARTHEST, _SHOWN = 5.0, 50.0, 0.95
#: The maximum size of a point in pixels.
_WIDEST = 4
_ENDING, _FOLDER = ".bin", "velodyne"


class ScanPoints:
    """The points of all scans below a folder or in an archive, which are read one scan at a time."""

    def __init__(self, path: str) -> None:
        self._files, self._members = open_dataset(path), dict[str, str]()
        #: The member last read, and its points: labels and picture of a scan are drawn one after the other.
        self._last_read: tuple[str, Array] | None = None
        above = os.path.abspath(path).split(os.sep) if os.path.isdir(path) else []
        for member in sorted(self._files.sizes):
            if member.lower().endswith(_ENDING):
                *folders, file = [*above, *member.split("/")]
                folders = folders[:-1] if folders[-1:] == [_FOLDER] else folders
                self._members.setdefault(f"{(folders or [''])[-1]}/{file[: -len(_ENDING)]}", member)

    def __bool__(self) -> bool:
        return bool(self._members)

    def explain_absence(self, name: str, points: int) -> str:
        """Return why the points of a scan cannot be drawn; "" if they can."""
        member = self._members.get(name)
        if member is None:
            return f"{name} has no points"
        counted, bytes_beyond = divmod(self._files.sizes[member], 4 * _FLOATS)
        if bytes_beyond or counted != points:
            content = quantity(self._files.sizes[member], "byte") if bytes_beyond else quantity(counted, "point")
            return f"{member} has {content}, but the truth of {name} has {quantity(points, 'point')}"
        return ""

    def read(self, name: str) -> Array:
        """Return x, y, z and remission of each point of a scan that can be drawn."""
        member = self._members[name]
        if self._last_read is None or self._last_read[0] != member:
            try:
                data = self._files.read(member)
            except (OSError, ValueError) as error:
                raise HostError(f"{member}: cannot be read ({error})") from None
            points = np.nan_to_num(np.frombuffer(data, "<f4").reshape(-1, _FLOATS), posinf=0, neginf=0)
            self._last_read = (member, points)
        return self._last_read[1]


def index_points(points: Array, size: Size) -> Array:
    """Return for each pixel of a picture the number of the point that it shows, from 1; 0 without one."""
    height, width = size
    deep = max(1, round(height * _RANGE_IMAGE))
    high = max(1, height - deep - max(1, round(height * _GAP)))
    image = np.zeros(size, np.int32)
    image[:high] = _index_from_above(points, (high, width))
    image[height - deep :] = _index_ranges(points, (deep, width))
    return image


def _index_from_above(points: Array, size: Size) -> Array:
    """Return the highest point of each pixel, seen from above."""
    x, y, z = (points[:, axis].astype(np.float64) for axis in range(3))
    distance = np.maximum(np.abs(x), np.abs(y) * size[1] / size[0])
    reach = float(np.clip(np.quantile(distance, _SHOWN, method="nearest"), _NEAREST, _FARTHEST))
    scale = size[1] / (2 * reach)
    return _index_pixels(size[0] / 2 - y * scale, size[1] / 2 + x * scale, z, size)


def _index_ranges(points: Array, size: Size) -> Array:
    """Return the nearest point of each pixel, seen from the sensor."""
    x, y, z = (points[:, axis].astype(np.float64) for axis in range(3))
    distance = np.sqrt(x * x + y * y + z * z)
    elevation = np.arcsin(np.clip(z / np.maximum(distance, 1e-6), -1, 1))
    low, high = np.quantile(elevation, (0.002, 0.998), method="nearest")
    rows = (high - elevation) / max(float(high - low), 1e-6) * (size[0] - 1)
    columns = (0.5 - np.arctan2(y, x) / (2 * np.pi)) * (size[1] - 1)
    return _index_pixels(rows, columns, -distance, size)


def _index_pixels(rows: Array, columns: Array, heights: Array, size: Size) -> Array:
    """Return for each pixel the highest point, from 1; empty pixels take the value of one beside or above."""
    order = np.argsort(heights, kind="stable")
    down, across = np.floor(rows[order]).astype(np.int64), np.floor(columns[order]).astype(np.int64)
    inside = (down >= 0) & (down < size[0]) & (across >= 0) & (across < size[1])
    image = np.zeros(size, np.int32)
    image[down[inside], across[inside]] = order[inside] + 1
    spread = min(_WIDEST, 1 + round(float(np.sqrt(image.size / max(int(inside.sum()), 1)))))
    for axis in (1, 0) * (spread - 1):
        moved = np.roll(image, 1, axis)
        moved[(slice(None), 0) if axis else (0, slice(None))] = 0
        image = np.where(image > 0, image, moved)
    return image


def shade_points(points: Array, places: Array) -> bytes:
    """Draw the remission of the points that a picture shows, in grey on dark."""
    remission = points[:, 3].astype(np.float64)
    brightest = float(np.quantile(remission, 0.98)) if len(remission) else 0.0
    bright = np.sqrt(np.clip(remission / brightest, 0, 1)) if brightest > 0 else np.full(len(points), 0.5)
    greys = np.append(24, 78 + 150 * bright).astype(np.uint8)
    return encode_picture(Image.fromarray(greys[places]).convert("RGB"))
