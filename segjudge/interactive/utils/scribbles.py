"""Scribbles: lines in frames, as people and the robot draw them; x and y of a path lie in [0, 1]."""

from typing import NotRequired, TypedDict

import numpy as np

from segjudge.evaluation_script.masks.stack import Array

from .operations import MOST_POINTS, bezier_curve
from .operations import bresenham as bresenham_lines


class ScribbleLine(TypedDict):
    """A line that was drawn on an object, or with `object_id` 0 on the background."""

    path: list[list[float]]
    object_id: int
    start_time: float
    end_time: float


class Scribbles(TypedDict):
    """The lines of a sequence, a list for each frame."""

    scribbles: list[list[ScribbleLine]]
    sequence: str
    annotated_frame: NotRequired[int]


def scribbles2mask(
    scribbles: Scribbles,
    output_resolution: tuple[int, int],
    bezier_curve_sampling: bool = False,  # noqa: FBT001, FBT002 - a published signature
    nb_points: int = MOST_POINTS,
    bresenham: bool = True,  # noqa: FBT001, FBT002 - a published signature
    default_value: int = -1,
) -> Array:
    """Return the lines as pixels (frames, height, width): object ids, and `default_value` elsewhere.

    Where lines cross, the later one counts.
    """
    if len(output_resolution) != 2 or any(size < 1 for size in output_resolution):
        raise ValueError(f"Invalid output resolution: {output_resolution}")
    frames = scribbles["scribbles"]
    masks = np.full((len(frames), *output_resolution), default_value, dtype=int)
    height, width = output_resolution
    scale = np.array([width - 1, height - 1])
    for mask, lines in zip(masks, frames, strict=True):
        for line in lines:
            path = np.asarray(line["path"], dtype=float)
            if bezier_curve_sampling:
                path = bezier_curve(path, nb_points)
            pixels = (path * scale).astype(int)
            if bresenham:
                pixels = bresenham_lines(pixels)
            mask[pixels[:, 1], pixels[:, 0]] = line["object_id"]
    return masks


def scribbles2points(scribbles: Scribbles, output_resolution: tuple[int, int] | None = None) -> tuple[Array, Array]:
    """Return all points as rows of frame, x and y, and their object ids.

    With a resolution (height, width) x is multiplied by height - 1 and y by width - 1, as in the original: programs
    depend on it.
    """
    rows, ids = [], []
    for frame, lines in enumerate(scribbles["scribbles"]):
        for line in lines:
            rows += [(frame, *point) for point in line["path"]]
            ids += [line["object_id"]] * len(line["path"])
    points = np.asarray(rows, dtype=float)
    if output_resolution is not None:
        points = (points * np.array([1, *(size - 1 for size in output_resolution)])).astype(int)
    return points, np.asarray(ids, dtype=int)


def fuse_scribbles(scribbles_a: Scribbles, scribbles_b: Scribbles) -> Scribbles:
    """Append the second's lines to the first's, frame by frame, in place; return a shallow copy of the first."""
    if scribbles_a["sequence"] != scribbles_b["sequence"]:
        raise ValueError("Scribbles to fuse are not from the same sequence")
    if len(scribbles_a["scribbles"]) != len(scribbles_b["scribbles"]):
        raise ValueError("Scribbles does not have the same number of frames")
    for lines, more in zip(scribbles_a["scribbles"], scribbles_b["scribbles"], strict=True):
        lines.extend(list(more))
    return scribbles_a.copy()


def is_empty(scribbles: Scribbles) -> bool:
    """Return whether no frame has a line."""
    return not any(scribbles["scribbles"])


def annotated_frames(scribbles: Scribbles) -> list[int]:
    """Return the frames with at least one line."""
    return [frame for frame, lines in enumerate(scribbles["scribbles"]) if lines]


def annotated_frames_object(scribbles: Scribbles, object_id: int) -> list[int]:
    """Return the frames with at least one line of an object."""
    frames = enumerate(scribbles["scribbles"])
    return [frame for frame, lines in frames if any(line["object_id"] == object_id for line in lines)]
