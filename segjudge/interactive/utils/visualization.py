"""Scribbles and masks as pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import ImageDraw
from scipy.ndimage import binary_dilation

from segjudge.evaluation_script.png import davis_palette

from .scribbles import Scribbles

#: Marks a line's first pixels wide.
WIDTH = 5


def _lines(scribbles: Scribbles, frame: int, size: tuple[int, int]) -> list[tuple[int, Any]]:
    """Object and pixels (x, y) of each line in a frame; `size` is (width, height)."""
    frames = scribbles["scribbles"]
    if not 0 <= frame < len(frames):
        raise ValueError("Frame value not valid")
    scale = np.array(size) - 1
    return [(line["object_id"], np.asarray(line["path"], dtype=float) * scale) for line in frames[frame]]


def draw_scribble(
    img: Any, scribble: Scribbles, frame: int, output_size: tuple[int, int] | None = None, width: int = WIDTH
) -> Any:
    """The lines of a frame drawn into a picture of Pillow's; `output_size` is (width, height)."""
    pen = ImageDraw.Draw(img)
    for one, path in _lines(scribble, frame, output_size or img.size):
        colour = tuple(davis_palette()[one].tolist())
        pen.line([tuple(point) for point in path.tolist()], fill=colour, width=width)
    return img


def plot_scribble(
    ax: Any, scribble: Scribbles, frame: int, output_size: tuple[int, int] | None = None, **line: Any
) -> Any:
    """The lines of a frame drawn into axes of Matplotlib's; further options are those of its lines."""
    unscaled = (2, 2)
    for one, path in _lines(scribble, frame, output_size or unscaled):
        ax.plot(path[:, 0], path[:, 1], **{"color": davis_palette()[one] / 255, **line})
    return ax


def overlay_mask(
    im: Any, ann: Any, alpha: float = 0.5, colors: Any = None, contour_thickness: int | None = None
) -> Any:
    """A picture with objects laid over it; `alpha` is the weight of the picture."""
    im, ann = np.asarray(im), np.asarray(ann)
    if im.shape[:2] != ann.shape:
        raise ValueError("First two dimensions of `im` and `ann` must match")
    if im.ndim != 3 or im.shape[2] != 3:
        raise ValueError(f"`im` must have three channels (RGB): its shape is {im.shape}")
    colours = davis_palette() if colors is None else np.asarray(colors)
    shown: Any = im.astype(np.uint8, copy=True)
    for one in (int(found) for found in np.unique(ann) if found > 0):
        mask = ann == one
        shown[mask] = (im[mask] * alpha + (1 - alpha) * colours[one]).astype(np.uint8)
        if contour_thickness:
            rim = binary_dilation(mask, iterations=contour_thickness) & ~mask
            shown[rim] = colours[one]
    return shown
