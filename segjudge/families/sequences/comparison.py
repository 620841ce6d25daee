"""Comparison of label images in memory: objects, and their similarity to a truth's."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.families.sequences.truth import VOID as VOID_LABEL
from segjudge.evaluation_script.families.sequences.truth import Block, Sequence, blocks_of, label_order
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    Disk,
    Region,
    boundary_similarity,
    disk,
    join_counts,
    region_similarity,
)
from segjudge.evaluation_script.masks.stack import WORD, Stacks, crop, empty_labels, pack, unpack

#: The label of ignored pixels; no object has this id.
VOID = 255


class FrameComparison:
    """The objects of a sequence's true masks, for comparison with any number of predictions."""

    def __init__(self, masks: np.ndarray, ids: list[int]) -> None:
        self.ids = ids
        self.size: tuple[int, int] = masks.shape[1:]
        self._blocks = list(blocks_of([self.size] * len(masks)))
        self._regions = [[_crop_region(masks, block, number) for number in ids] for block in self._blocks]

    def compare(self, prediction: np.ndarray, match: Disk) -> list[Counts]:
        """Return the counts of all frames for each object."""
        counts_of_objects: list[list[Counts]] = [[] for _ in self.ids]
        for block, regions in zip(self._blocks, self._regions, strict=True):
            predictions = [_crop_region(prediction, block, number) for number in self.ids]
            counts_of_block = backend().compare(list(zip(regions, predictions, strict=True)), match)
            for counts, of_object in zip(counts_of_objects, counts_of_block, strict=True):
                counts.append(of_object)
        return list(map(join_counts, counts_of_objects))

    def similarities(self, prediction: np.ndarray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return J and F, each (frames, objects)."""
        counts = self.compare(prediction, disk_of(BOUNDARY_TOLERANCE, self.size))
        j, f = (np.stack(list(map(measure, counts)), axis=1) for measure in (region_similarity, boundary_similarity))
        return j, f


def disk_of(tolerance: float, size: tuple[int, int]) -> Disk:
    """Return the disk in which boundary pixels match: a fraction of the diagonal, or pixels from 1 on."""
    return disk(int(tolerance if tolerance >= 1 else math.ceil(tolerance * float(np.linalg.norm(size)))))


def _crop_region(masks: np.ndarray, block: Block, number: int) -> Region:
    height, width = block.size
    flags = empty_labels(block.stop - block.start, (height, width), bool)
    np.equal(masks[block.start : block.stop], number, out=flags[:, :, :width])
    return Region(crop(pack(flags), (height, width)))


def ids_of(sequence: Sequence) -> dict[str, int]:
    """Return the numbers of a sequence's objects: their labels, or their ranks (SA-V's folders)."""
    labels = sorted((label for label in sequence.objects if label != VOID_LABEL), key=label_order)
    if all(label.isdecimal() and 0 < int(label) < VOID for label in labels):
        return {label: int(label) for label in labels}
    return {label: rank for rank, label in enumerate(labels, 1)}


def labels_of(stacks: Stacks, block: Block, ids: dict[str, int]) -> NDArray[np.uint8]:
    """Return the label images (frames, height, width) of a block's objects."""
    height, width = block.size
    labels = np.zeros((block.stop - block.start, height, width), np.uint8)
    for label, stack in stacks.items():
        column = stack.column * WORD
        across = min(width - column, stack.words.shape[2] * WORD)
        if stack.words.size:
            window = labels[:, stack.top : stack.top + stack.words.shape[1], column : column + across]
            window[unpack(stack.words, across)] = ids.get(label, VOID)
    return labels
