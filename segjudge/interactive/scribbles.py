"""Scribbles: lines in frames, as people and the robot draw them; x and y of a path lie in [0, 1]."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw
from scipy.ndimage import binary_dilation
from scipy.special import comb
from skimage import draw

from segjudge.evaluation_script.masks.png import davis_palette
from segjudge.evaluation_script.masks.stack import Array
from segjudge.system.python310 import NotRequired

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The maximum number of samples of a curve.
MOST_POINTS = 1000
#: The width of a line in pixels.
_LINE_WIDTH = 5


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
    """Draw the lines as pixels (frames, height, width): object ids, and `default_value` elsewhere.

    Where lines cross, the later one wins.
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
                pixels = _join_points(pixels)
            mask[pixels[:, 1], pixels[:, 0]] = line["object_id"]
    return masks


def scribbles2points(scribbles: Scribbles, output_resolution: tuple[int, int] | None = None) -> tuple[Array, Array]:
    """Return all points as rows of frame, x and y, and their object ids.

    With a resolution (height, width), x is multiplied by height - 1 and y by width - 1, as in the original; programs
    depend on this.
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
    for lines, added_lines in zip(scribbles_a["scribbles"], scribbles_b["scribbles"], strict=True):
        lines.extend(list(added_lines))
    return scribbles_a.copy()


def is_empty(scribbles: Scribbles) -> bool:
    return not any(scribbles["scribbles"])


def annotated_frames(scribbles: Scribbles) -> list[int]:
    return [frame for frame, lines in enumerate(scribbles["scribbles"]) if lines]


def annotated_frames_object(scribbles: Scribbles, object_id: int) -> list[int]:
    frames = enumerate(scribbles["scribbles"])
    return [frame for frame, lines in frames if any(line["object_id"] == object_id for line in lines)]


def bezier_curve(points: ArrayLike, nb_points: int = MOST_POINTS) -> Array:
    """Draw one Bezier curve with all points as control points, from the last point to the first.

    With many points close together, it smooths locally. If there are more points than samples, the points are returned
    unchanged.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError("`points` should be two dimensional and have shape: (N, 2)")
    nb_points = min(nb_points, MOST_POINTS)
    if len(points) > nb_points:
        return points
    curve: Array = _bernstein_polynomials(len(points), nb_points) @ points
    return curve


@lru_cache(maxsize=16)
def _bernstein_polynomials(count: int, samples: int) -> Array:
    """Return a row of weights per sample, without overflow up to a thousand points."""
    degree, index = count - 1, np.arange(count)
    t = np.linspace(0.0, 1.0, samples)[:, None]
    weights: Array = comb(degree, index) * t ** (degree - index) * (1 - t) ** index
    return weights


def bresenham(points: ArrayLike) -> Array:
    """Return all pixels on the lines between points; inner points appear twice."""
    return _join_points(np.asarray(points).astype(int))


def _join_points(points: Array) -> Array:
    if len(points) < 2:
        return points
    segments = itertools.pairwise(points.tolist())
    lines = [draw.line(*start, *end) for start, end in segments]
    return np.concatenate(lines, axis=1).T


def _paths(scribbles: Scribbles, frame: int, size: tuple[int, int]) -> list[tuple[int, Array]]:
    """Return the object and pixels (x, y) of each line in a frame; `size` is (width, height)."""
    frames = scribbles["scribbles"]
    if not 0 <= frame < len(frames):
        raise ValueError("Frame value not valid")
    scale = np.array(size) - 1
    return [(line["object_id"], np.asarray(line["path"], dtype=float) * scale) for line in frames[frame]]


def draw_scribble(
    img: Image.Image,
    scribble: Scribbles,
    frame: int,
    output_size: tuple[int, int] | None = None,
    width: int = _LINE_WIDTH,
) -> Image.Image:
    """Draw the lines of a frame into a picture and return it; `output_size` is (width, height)."""
    pen = ImageDraw.Draw(img)
    for object_id, path in _paths(scribble, frame, output_size or img.size):
        colour = tuple(davis_palette()[object_id].tolist())
        pen.line([tuple(point) for point in path.tolist()], fill=colour, width=width)
    return img


def plot_scribble(
    ax: Axes, scribble: Scribbles, frame: int, output_size: tuple[int, int] | None = None, **line: Any
) -> Axes:
    """Draw the lines of a frame into axes and return them; further options go to Matplotlib's lines."""
    unscaled = (2, 2)
    for object_id, path in _paths(scribble, frame, output_size or unscaled):
        ax.plot(path[:, 0], path[:, 1], **{"color": davis_palette()[object_id] / 255, **line})
    return ax


def overlay_mask(
    im: ArrayLike,
    ann: ArrayLike,
    alpha: float = 0.5,
    colors: ArrayLike | None = None,
    contour_thickness: int | None = None,
) -> Array:
    """Draw objects over a picture; `alpha` is the weight of the picture."""
    im, ann = np.asarray(im), np.asarray(ann)
    if im.shape[:2] != ann.shape:
        raise ValueError("First two dimensions of `im` and `ann` must match")
    if im.ndim != 3 or im.shape[2] != 3:
        raise ValueError(f"`im` must have three channels (RGB): its shape is {im.shape}")
    colours = davis_palette() if colors is None else np.asarray(colors)
    overlaid: Array = im.astype(np.uint8, copy=True)
    for object_id in (int(value) for value in np.unique(ann) if value > 0):
        mask = ann == object_id
        overlaid[mask] = (im[mask] * alpha + (1 - alpha) * colours[object_id]).astype(np.uint8)
        if contour_thickness:
            contour = binary_dilation(mask, iterations=contour_thickness) & ~mask
            overlaid[contour] = colours[object_id]
    return overlaid
