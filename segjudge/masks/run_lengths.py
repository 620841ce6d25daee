"""The conversion of label images to and from COCO's compressed run lengths, object by object.

It needs only numpy, so agents can use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.masks import run_lengths as rle

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def encode_labels(labels: ArrayLike, ids: NDArray[np.integer] | None = None) -> dict[int, str]:
    """Return the compressed run lengths of each object in a label image (height, width), by its id.

    `ids` may have the id of each label.
    """
    image = np.asarray(labels)
    if not image.size:
        return {}
    down = np.ascontiguousarray(image.T).reshape(-1)
    values = down if ids is None else ids[down]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    values = values[starts]
    ends = np.append(starts[1:], image.size)
    order = np.argsort(values, kind="stable")
    numbers, bounds = np.unique(values[order], return_index=True)
    objects = {
        int(number): _runs(starts[indices], ends[indices], image.size)
        for number, indices in zip(numbers, np.split(order, bounds[1:]), strict=True)
        if number
    }
    return dict(zip(objects, rle.compress_many(list(objects.values())), strict=True))


def runs_of_mask(mask: NDArray[np.bool_]) -> list[int]:
    """Return the uncompressed run lengths of one mask: down the columns, background first."""
    down = np.ascontiguousarray(mask.T).reshape(-1)
    edges = np.flatnonzero(down[1:] != down[:-1]) + 1
    start = [0, 0] if down[:1].any() else [0]
    runs: list[int] = np.diff(np.concatenate((start, edges, [down.size]))).tolist()
    return runs


def _runs(starts: NDArray[np.int_], ends: NDArray[np.int_], total: int) -> list[int]:
    """Return the runs of an object, given its starts and ends."""
    bounds = np.empty(2 * len(starts) + 2, np.int64)
    bounds[0], bounds[-1] = 0, total
    bounds[1:-1:2], bounds[2:-1:2] = starts, ends
    runs: list[int] = np.diff(bounds).tolist()
    return runs if runs[-1] else runs[:-1]


def decode_labels(
    objects: Iterable[tuple[int, str]], size: tuple[int, int], *, overlapping: bool = False
) -> NDArray[np.uint8]:
    """Return the label image of some objects' run lengths, within the bounds of a trusted size; raises Flaw.

    The work is bounded by the runs and the objects' pixels. Unless masks may overlap (then the larger id is on top), an
    untrusted agent cannot send more object pixels than the frame has.
    """
    height, width = size
    down = np.zeros(height * width, np.uint8)
    free = down.size
    for number, counts in objects:
        runs = rle.runs_of(counts, down.size)
        lengths = runs[1::2]
        free -= int(lengths.sum())
        if free < 0 and not overlapping:
            raise Flaw("has masks that overlap", "Give each pixel at most one object")
        skipped = np.cumsum(runs[::2])[: len(lengths)]
        pixels = np.repeat(skipped, lengths) + np.arange(int(lengths.sum()))
        down[pixels] = np.maximum(down[pixels], np.uint8(number))
    return np.ascontiguousarray(down.reshape(width, height).T)
