"""Sample submissions made from a truth: a good one, a little off, and a poor one."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from segjudge.compression import label_png, mask_of
from segjudge.evaluation_script.annotation_file import SplitTruth
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.packed_file import EPOCH
from segjudge.evaluation_script.rle import compressed, runs_of
from segjudge.evaluation_script.sequence_protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Sequence, Split
from segjudge.masks.comparison import VOID, ids_of, labels_of
from segjudge.masks.run_lengths import runs_of_mask

#: How far masks are moved to the right, as a share of the width.
GOOD, POOR = 0.0012, 0.03
#: The most proposals of protocols that match them, and the most objects of a phase.
MOST_OBJECTS = 20, 254

Labels = NDArray[np.uint8]
#: Benchmarks that there are templates and samples for.
HostedProtocol = SequenceProtocol | InstanceProtocol


def write_samples(truths: dict[str, SplitTruth], protocol: HostedProtocol, folder: str) -> None:
    """Write `good` and `poor` into a folder."""
    for name, share in (("good", GOOD), ("poor", POOR)):
        path = os.path.join(folder, name)
        if isinstance(protocol, SequenceProtocol):
            with zipfile.ZipFile(f"{path}.zip", "w") as archive:
                for truth in truths.values():
                    for sequence in truth.sequences if isinstance(truth, Split) else ():
                        for member, labels in _frames(sequence, protocol):
                            archive.writestr(zipfile.ZipInfo(member, EPOCH), label_png(_moved(labels, share), effort=6))
        else:
            records = [
                record for truth in truths.values() for record in _detections(truth, share, boxes=protocol.boxes)
            ]
            with gzip.GzipFile(f"{path}.json.gz", "wb", mtime=0) as file:
                file.write(json.dumps(records, separators=(",", ":")).encode())


def _frames(sequence: Sequence, protocol: SequenceProtocol) -> Iterator[tuple[str, Labels]]:
    """Yield the true masks as a submission holds them."""
    ids = ids_of(sequence)
    for index, block in enumerate(sequence.blocks):
        stacks, frames = sequence.read_block(index), sequence.frames[block.start : block.stop]
        if protocol.overlapping:
            for label, stack in stacks.items():
                for place, frame in enumerate(frames):
                    yield f"{sequence.name}/{label}/{frame}.png", mask_of(stack, place, block.size).astype(np.uint8)
            continue
        labels = labels_of(stacks, block, ids)
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            labels = (labels > 0).astype(np.uint8)
        labels[(labels > MOST_OBJECTS[not protocol.proposals]) | (labels == VOID)] = 0
        for frame, image in zip(frames, labels, strict=True):
            yield f"{sequence.name}/{frame}.png", image


def _moved(labels: Labels, share: float) -> Labels:
    """Return an image moved to the right, by a pixel at least."""
    step = min(labels.shape[1], max(1, round(labels.shape[1] * share)))
    return np.pad(labels, ((0, 0), (step, 0)))[:, : labels.shape[1]]


def _detections(truth: SplitTruth, share: float, *, boxes: bool) -> Iterator[dict[str, object]]:
    """Yield a detection for each instance."""
    if not isinstance(truth, InstanceTruth):
        return
    for index in np.flatnonzero(~truth.crowd).tolist():
        image = int(truth.image[index])
        height, width = (int(side) for side in truth.images.sizes[image])
        record: dict[str, object] = {
            "image_id": int(truth.images.ids[image]),
            "category_id": truth.categories[int(truth.category[index])].id,
            "score": round(1 - share, 3),
        }
        if boxes:
            left, *others = truth.boxes[index].tolist()
            yield {**record, "bbox": [left + share * width, *others]}
            continue
        runs = runs_of(truth.masks[index], height * width)
        down = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height)
        counts = compressed(runs_of_mask(_moved(down.T.astype(np.uint8), share) > 0))
        yield {**record, "segmentation": {"size": [height, width], "counts": counts}}
