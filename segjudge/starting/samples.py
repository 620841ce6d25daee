"""Sample submissions made from a truth: a good one, a little off, and a poor one."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from segjudge.compression import label_png, mask_of
from segjudge.evaluation_script.annotation_file import SplitTruth
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.packed_file import EPOCH
from segjudge.evaluation_script.rle import compressed_many, runs_of
from segjudge.evaluation_script.sequence_protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Sequence, Split
from segjudge.masks.comparison import VOID, ids_of, labels_of

#: How far the masks of each sample are moved to the right, as a share of the width.
SAMPLES = {"good": 0.0012, "poor": 0.03}
#: The effort of compressing them.
QUICK = 3
#: The most proposals of protocols that match them, and the most objects of a phase.
MOST_OBJECTS = 20, 254

Labels = NDArray[np.uint8]
#: Benchmarks that there are templates and samples for.
HostedProtocol = SequenceProtocol | InstanceProtocol


def write_samples(truths: dict[str, SplitTruth], protocol: HostedProtocol, folder: str) -> None:
    """Write `good` and `poor` into a folder."""
    if isinstance(protocol, SequenceProtocol):
        with ExitStack() as stack:
            archives = {
                share: stack.enter_context(zipfile.ZipFile(os.path.join(folder, f"{name}.zip"), "w"))
                for name, share in SAMPLES.items()
            }
            splits = [truth for truth in truths.values() if isinstance(truth, Split)]
            for sequence in chain.from_iterable(split.sequences for split in splits):
                for member, labels in _frames(sequence, protocol):
                    for share, archive in archives.items():
                        archive.writestr(zipfile.ZipInfo(member, EPOCH), label_png(_moved(labels, share), QUICK))
        return
    for name, share in SAMPLES.items():
        records = [record for truth in truths.values() for record in _detections(truth, share, boxes=protocol.boxes)]
        with gzip.GzipFile(os.path.join(folder, f"{name}.json.gz"), "wb", mtime=0) as file:
            file.write(json.dumps(records, separators=(",", ":")).encode())


def _frames(sequence: Sequence, protocol: SequenceProtocol) -> Iterator[tuple[str, Labels]]:
    """Yield the true masks as a submission holds them."""
    ids = ids_of(sequence)
    for index, block in enumerate(sequence.blocks):
        stacks, frames = sequence.read_block(index), sequence.frames[block.start : block.stop]
        if protocol.overlapping:
            for label in sequence.objects:
                for place, frame in enumerate(frames):
                    seen = label in stacks
                    mask = mask_of(stacks[label], place, block.size) if seen else np.zeros(block.size, bool)
                    yield f"{sequence.name}/{label}/{frame}.png", mask.astype(np.uint8)
            continue
        labels = labels_of(stacks, block, ids)
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            labels = (labels > 0).astype(np.uint8)
        labels[(labels > MOST_OBJECTS[not protocol.proposals]) | (labels == VOID)] = 0
        for part in protocol.rounds or (".",):
            for frame, image in zip(frames, labels, strict=True):
                yield os.path.normpath(f"{part}/{sequence.name}/{frame}.png"), image


def _moved(labels: Labels, share: float) -> Labels:
    """Return an image moved to the right, by a pixel at least."""
    return np.pad(labels, ((0, 0), (_step(labels.shape[1], share), 0)))[:, : labels.shape[1]]


def _detections(truth: SplitTruth, share: float, *, boxes: bool) -> Iterator[dict[str, object]]:
    """Yield a detection for each instance, moved to the right."""
    if not isinstance(truth, InstanceTruth):
        return
    indices = np.flatnonzero(~truth.crowd).tolist()
    frames = truth.images.frames
    for index in indices:
        image = int(truth.image[index])
        height, width = truth.images.sizes[image].tolist()
        if boxes:
            left, *others = truth.boxes[index].tolist()
            shape: dict[str, object] = {"bbox": [left + _step(width, share), *others]}
        else:
            count = 1 if frames is None else int(frames[image])
            moved = _moved_runs(truth.masks[index], (height, width // count), count, share)
            masks = [{"size": [height, width // count], "counts": mask} for mask in compressed_many(moved)]
            shown = [mask if len(runs) > 1 else None for mask, runs in zip(masks, moved, strict=True)]
            shape = {"segmentation": masks[0]} if frames is None else {"segmentations": shown}
        yield {
            truth.images.key: int(truth.images.ids[truth.image[index]]),
            "category_id": truth.categories[int(truth.category[index])].id,
            "score": round(1 - share, 3),
            **shape,
        }


def _moved_runs(mask: str, size: tuple[int, int], frames: int, share: float) -> list[list[int]]:
    """Return the runs of the masks of frames side by side, each moved to the right; runs go down the columns."""
    height, width = size
    pixels = height * width
    ends = np.cumsum(runs_of(mask, pixels * frames))
    parts = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    moved = []
    for frame in range(frames):
        inside = np.clip(parts - frame * pixels, 0, pixels)
        borders = inside[inside[:, 1] > inside[:, 0]].reshape(-1) + _step(width, share) * height
        moved.append(np.diff(borders[borders < pixels], prepend=0, append=pixels).tolist())
    return moved


def _step(width: int, share: float) -> int:
    return min(width, max(1, round(width * share)))
