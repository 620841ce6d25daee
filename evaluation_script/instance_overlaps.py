"""The IoU of pairs of masks or boxes; with a crowd, the share of the detection that lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, List

import numpy as np

from . import kernel, kernel_runs
from .kernel_runs import Pairs
from .mask_texts import MaskTexts
from .masks import Array
from .rle import runs_of

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE


@dataclass(frozen=True)
class Masks:
    """Masks whose runs were all checked, the pixels of each, and the sizes of their images."""

    texts: MaskTexts
    area: Array
    sizes: Array
    #: Some runs may be empty.
    empty_runs: bool = False


def mask_overlaps(pairs: Pairs, sent: Masks, real: Masks, crowd: Array) -> Array:
    """Return the IoU of each pair of masks: by the kernel, or by pycocotools."""
    library = kernel.library()
    if library is None and sent.empty_runs:
        return _by_numpy(pairs, sent, real)
    if library is None:
        return _by_pycocotools(pairs, sent, real, crowd)
    shared = kernel_runs.overlaps(sent.texts, real.texts, pairs, library)
    area = sent.area[pairs.sent]
    joint = np.where(crowd[pairs.real], area, area + real.area[pairs.real] - shared)
    return np.where(shared > 0, shared / np.maximum(joint, 1), 0.0)


def _by_numpy(pairs: Pairs, sent: Masks, real: Masks) -> Array:
    """Return the IoU of masks without crowds, which may have runs of nothing."""
    ious = np.zeros(len(pairs.sent))
    last, known = -1, np.zeros(0, np.int64)
    for index, (one, other) in enumerate(zip(pairs.sent.tolist(), pairs.real.tolist())):
        if one != last:
            last, known = one, _ends(sent, one)
        others = _ends(real, other)
        if not len(known) or not len(others):
            continue
        # What a mask covers before each end of the other's runs grows by what they share.
        covered = np.concatenate(([0], np.cumsum(np.diff(known)[::2])))
        turn = np.searchsorted(known, others, side="right") - 1
        before = covered[(turn + 1) // 2] + np.where(turn % 2 == 0, others - known[np.maximum(turn, 0)], 0)
        shared = int(np.diff(before)[::2].sum())
        ious[index] = shared / max(int(sent.area[one] + real.area[other]) - shared, 1)
    return ious


def _ends(masks: Masks, index: int) -> Array:
    """Return where each run of object begins and ends."""
    ends = np.cumsum(runs_of(masks.texts[index], int(masks.sizes[index].prod())))
    return ends[: len(ends) // 2 * 2]


def _by_pycocotools(pairs: Pairs, sent: Masks, real: Masks, crowd: Array) -> Array:
    from pycocotools.mask import iou

    ious = np.zeros(len(pairs.sent))
    for start, stop in zip(pairs.bounds[:-1].tolist(), pairs.bounds[1:].tolist()):
        if start < stop:
            rows, row = np.unique(pairs.sent[start:stop], return_inverse=True)
            columns, column = np.unique(pairs.real[start:stop], return_inverse=True)
            crowds = crowd[columns].astype(np.uint8).tolist()
            table = np.asarray(iou(_encoded(sent, rows), _encoded(real, columns), crowds))
            ious[start:stop] = table.reshape(len(rows), len(columns))[row, column]
    return ious


def _encoded(masks: Masks, indices: Array) -> List[_EncodedRLE]:
    return [{"size": masks.sizes[index].tolist(), "counts": masks.texts[index]} for index in indices.tolist()]


def box_overlaps(pairs: Pairs, sent: Array, real: Array, crowd: Array) -> Array:
    """Return the IoU of each pair of boxes (left, top, width, height)."""
    mine, other = sent[pairs.sent], real[pairs.real]
    end = np.minimum(mine[:, 2:] + mine[:, :2], other[:, 2:] + other[:, :2])
    sides = end - np.maximum(mine[:, :2], other[:, :2])
    meet = (sides > 0).all(axis=1)
    shared = sides[:, 0] * sides[:, 1]
    area = mine[:, 2] * mine[:, 3]
    joint = np.where(crowd[pairs.real], area, area + other[:, 2] * other[:, 3] - shared)
    ious = np.zeros(len(meet))
    ious[meet] = shared[meet] / joint[meet]
    return ious
