"""Label images ↔ COCO's compressed run lengths, object by object; needs numpy alone, so that an agent can have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from segjudge.evaluation_script import rle
from segjudge.evaluation_script.errors import Flaw


def encoded(mask: Any) -> dict[int, str]:
    """Object id → run lengths, for each object of a label image (height, width)."""
    down = np.ascontiguousarray(np.asarray(mask).T).reshape(-1)
    if not down.size:
        return {}
    edges = np.flatnonzero(down[1:] != down[:-1]) + 1
    starts = np.concatenate(([0], edges))
    ends = np.concatenate((edges, [down.size]))
    values = down[starts]
    found = {}
    for one in np.unique(values).tolist():
        if one:
            mine = values == one
            found[int(one)] = _text(starts[mine], ends[mine], down.size)
    return found


def _text(starts: Any, ends: Any, total: int) -> str:
    """Runs from where an object begins and ends, background first."""
    bounds = np.empty(2 * len(starts) + 2, np.int64)
    bounds[0], bounds[-1] = 0, total
    bounds[1:-1:2], bounds[2:-1:2] = starts, ends
    runs = np.diff(bounds)
    if not runs[-1]:
        runs = runs[:-1]
    return rle.compressed(runs.tolist())


def decoded(objects: Iterable[tuple[int, str]], size: tuple[int, int], *, overlapping: bool = False) -> Any:
    """The label image, within the bounds of a size that is ours; raises Flaw.

    The work is that of the runs and of the objects' pixels; unless masks may overlap (then the larger id lies on top),
    these are no more than a frame has, however many masks a stranger sends for it.
    """
    height, width = size
    down = np.zeros(height * width, np.uint8)
    left = down.size
    for one, counts in objects:
        runs = rle.runs_of(counts, down.size)
        lengths = runs[1::2]
        left -= int(lengths.sum())
        if left < 0 and not overlapping:
            raise Flaw("has masks that overlap", "Give each pixel one object at most")
        skipped = np.cumsum(runs[::2])[: len(lengths)]
        pixels = np.repeat(skipped, lengths) + np.arange(int(lengths.sum()))
        down[pixels] = np.maximum(down[pixels], np.uint8(one))
    return np.ascontiguousarray(down.reshape(width, height).T)
