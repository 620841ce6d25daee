"""Scribbles: lines in frames, as people and the robot draw them.

`{"scribbles": [[line, …], …one list for each frame], "sequence": name}`, where a line is
`{"path": [[x, y], …], "object_id": k, "start_time": t, "end_time": t}` and x and y lie in [0, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .operations import MOST_POINTS, bezier_curve
from .operations import bresenham as bresenham_lines

Scribbles = dict[str, Any]


def scribbles2mask(
    scribbles: Scribbles,
    output_resolution: tuple[int, int],
    bezier_curve_sampling: bool = False,  # noqa: FBT001, FBT002 - as its callers write it
    nb_points: int = MOST_POINTS,
    bresenham: bool = True,  # noqa: FBT001, FBT002 - likewise
    default_value: int = -1,
) -> Any:
    """The lines as pixels, frame by frame: object ids on a ground of `default_value`; later lines lie on top."""
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


def scribbles2points(scribbles: Scribbles, output_resolution: tuple[int, int] | None = None) -> tuple[Any, Any]:
    """All points as rows of frame, x and y, and their object ids.

    With a resolution (height, width) x is multiplied by height - 1 and y by width - 1, which is the original's way;
    programs count on it.
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
    """Both, frame by frame; the lists of the first grow."""
    if scribbles_a["sequence"] != scribbles_b["sequence"]:
        raise ValueError("Scribbles to fuse are not from the same sequence")
    if len(scribbles_a["scribbles"]) != len(scribbles_b["scribbles"]):
        raise ValueError("Scribbles does not have the same number of frames")
    for mine, theirs in zip(scribbles_a["scribbles"], scribbles_b["scribbles"], strict=True):
        mine.extend(list(theirs))
    return dict(scribbles_a)


def is_empty(scribbles: Scribbles) -> bool:
    """Whether nothing is drawn in any frame."""
    return not any(scribbles["scribbles"])


def annotated_frames(scribbles: Scribbles) -> list[int]:
    """Frames with at least one line."""
    return [frame for frame, lines in enumerate(scribbles["scribbles"]) if lines]


def annotated_frames_object(scribbles: Scribbles, object_id: int) -> list[int]:
    """Frames with at least one line of an object."""
    return [
        frame
        for frame, lines in enumerate(scribbles["scribbles"])
        if any(line["object_id"] == object_id for line in lines)
    ]
