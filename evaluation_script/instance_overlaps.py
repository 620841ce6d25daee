"""The IoU of pairs of masks or boxes; with a crowd, the share of the detection that lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, List

import numpy as np

from . import kernel, kernel_runs
from .kernel_runs import Pairs
from .mask_texts import MaskTexts
from .masks import Array
from .rle import compressed, runs_of

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
    if library is None:
        return _by_pycocotools(pairs, sent, real, crowd)
    shared = kernel_runs.overlaps(sent.texts, real.texts, pairs, library)
    area = sent.area[pairs.sent]
    joint = np.where(crowd[pairs.real], area, area + real.area[pairs.real] - shared)
    return np.where(shared > 0, shared / np.maximum(joint, 1), 0.0)


def _by_pycocotools(pairs: Pairs, sent: Masks, real: Masks, crowd: Array) -> Array:
    from pycocotools.mask import iou

    ious = np.zeros(len(pairs.sent))
    for start, stop in zip(pairs.bounds[:-1].tolist(), pairs.bounds[1:].tolist()):
        if start < stop:
            rows, row = np.unique(pairs.sent[start:stop], return_inverse=True)
            columns, column = np.unique(pairs.real[start:stop], return_inverse=True)
            crowds = crowd[columns].astype(np.uint8).tolist()
            table = np.asarray(iou(encoded(sent, rows), encoded(real, columns), crowds))
            ious[start:stop] = table.reshape(len(rows), len(columns))[row, column]
    return ious


def encoded(masks: Masks, indices: Array) -> List[_EncodedRLE]:
    """Return some of the masks as pycocotools takes them."""
    texts = [masks.texts[index] for index in indices.tolist()]
    sizes = masks.sizes[indices].tolist()
    if masks.empty_runs:  # which pycocotools does not take
        texts = [compressed(_without_empty(runs_of(text, h * w)).tolist()) for text, (h, w) in zip(texts, sizes)]
    return [{"size": size, "counts": text} for size, text in zip(sizes, texts)]


def _without_empty(runs: Array) -> Array:
    """Return the same mask in runs of which the first alone may be empty."""
    ends = np.cumsum(runs)
    borders, times = np.unique(ends[:-1], return_counts=True)
    return np.diff(borders[(times % 2 == 1) & (borders < ends[-1])], prepend=0, append=ends[-1])


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
