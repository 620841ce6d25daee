"""Masks of label images in memory: their objects, and how like those of a truth they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segjudge.evaluation_script.mask_files import Stacks
from segjudge.evaluation_script.masks import WORD, cropped, empty_labels, pack, unpack
from segjudge.evaluation_script.sequence_truth import VOID as VOID_LABEL
from segjudge.evaluation_script.sequence_truth import Block, Sequence, blocks_of, label_order
from segjudge.evaluation_script.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    Disk,
    Region,
    boundary_similarity,
    disk,
    joined,
    region_similarity,
)

#: Nobody is judged by these pixels, and no object has this id.
VOID = 255


class FrameComparison:
    """The objects of a sequence's true masks, ready to be compared with any number of predictions."""

    def __init__(self, masks: Any, ids: list[int]) -> None:
        self.ids = ids
        self.size: tuple[int, int] = masks.shape[1:]
        self._blocks = blocks_of([self.size] * len(masks))
        self._regions = [[_region(masks, block, one) for one in ids] for block in self._blocks]

    def compared(self, prediction: Any, match: Disk) -> list[Counts]:
        """For each object the counts of all frames."""
        parts: list[list[Counts]] = [[] for _ in self.ids]
        for block, regions in zip(self._blocks, self._regions, strict=True):
            for part, one, truth in zip(parts, self.ids, regions, strict=True):
                part.append(truth.compared(_region(prediction, block, one), match))
        return [joined(part) for part in parts]

    def similarities(self, prediction: Any) -> tuple[Any, Any]:
        """J and F, each (frames, objects)."""
        counts = self.compared(prediction, disk_of(BOUNDARY_TOLERANCE, self.size))
        columns = [[measure(one) for one in counts] for measure in (region_similarity, boundary_similarity)]
        return np.stack(columns[0], axis=1), np.stack(columns[1], axis=1)


def disk_of(tolerance: float, size: tuple[int, int]) -> Disk:
    """What matches a boundary pixel: a share of the frame's diagonal, or from 1 on pixels."""
    return disk(int(tolerance if tolerance >= 1 else math.ceil(tolerance * float(np.linalg.norm(size)))))


def _region(masks: Any, block: Block, one: int) -> Region:
    height, width = block.size
    flags = empty_labels(block.stop - block.start, (height, width), bool)
    np.equal(masks[block.start : block.stop], one, out=flags[:, :, :width])
    return Region(cropped(pack(flags), (height, width)))


def ids_of(one: Sequence) -> dict[str, int]:
    """Numbers of a sequence's objects: their own, or where those are none (SA-V's folders) their place."""
    labels = sorted((label for label in one.objects if label != VOID_LABEL), key=label_order)
    if all(label.isdecimal() and 0 < int(label) < VOID for label in labels):
        return {label: int(label) for label in labels}
    return {label: place for place, label in enumerate(labels, 1)}


def labels_of(stacks: Stacks, block: Block, ids: dict[str, int]) -> Any:
    """Label images (frames, height, width) of a block's objects."""
    height, width = block.size
    out = np.zeros((block.stop - block.start, height, width), np.uint8)
    for label, stack in stacks.items():
        left = stack.left * WORD
        across = min(width - left, stack.words.shape[2] * WORD)
        if stack.words.size:
            part = out[:, stack.top : stack.top + stack.words.shape[1], left : left + across]
            part[unpack(stack.words, across)] = ids.get(label, VOID)
    return out
