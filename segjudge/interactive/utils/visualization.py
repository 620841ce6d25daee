"""Scribbles and masks as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw
from scipy.ndimage import binary_dilation

from segjudge.evaluation_script.masks.png import davis_palette
from segjudge.evaluation_script.masks.stack import Array

from .scribbles import Scribbles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The pixels that a line is wide.
LINE_WIDTH = 5


def _paths(scribbles: Scribbles, frame: int, size: tuple[int, int]) -> list[tuple[int, Array]]:
    """Return the object and the pixels (x, y) of each line in a frame; `size` is (width, height)."""
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
    width: int = LINE_WIDTH,
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
    """Draw the lines of a frame into axes and return them; further options are those of Matplotlib's lines."""
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
    """Return a picture with objects laid over it; `alpha` is the weight of the picture."""
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
