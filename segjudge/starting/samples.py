"""Sample submissions of mask sequences and instance masks, as participants of the benchmarks send them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from segjudge.compression import CompressedMask, label_png, run_lengths_of
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.rle import compressed_many
from segjudge.evaluation_script.sequence_protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Sequence, Split
from segjudge.masks.comparison import VOID, ids_of, labels_of

from .moving import QUICK, Members, as_json, moved, moved_runs, step

#: The most proposals of protocols that match them, and the most objects of a phase.
MOST_OBJECTS = 20, 254


def sequence_files(truths: list[Split], protocol: SequenceProtocol, share: float) -> Members:
    """Yield PNGs of labels; where objects may overlap, which takes a PNG for each of them, one JSON of run lengths."""
    sequences = [sequence for truth in truths for sequence in truth.sequences]
    if protocol.overlapping:
        yield "results.json", as_json({sequence.name: _objects(sequence, share) for sequence in sequences})
        return
    for sequence in sequences:
        yield from _frames(sequence, protocol, share)


def _objects(sequence: Sequence, share: float) -> dict[str, list[CompressedMask | None]]:
    """Return the moved masks of each object, frame by frame."""
    objects = run_lengths_of(sequence)
    for masks in objects.values():
        seen = [mask for mask in masks if mask]
        shifted = [moved_runs(mask["counts"], mask["size"], 1, share)[0] for mask in seen]
        for mask, counts in zip(seen, compressed_many(shifted), strict=True):
            mask["counts"] = counts
    return objects


def _frames(sequence: Sequence, protocol: SequenceProtocol, share: float) -> Members:
    ids = ids_of(sequence)
    for index, block in enumerate(sequence.blocks):
        labels = labels_of(sequence.read_block(index), block, ids)
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            labels = (labels > 0).astype(np.uint8)
        labels[(labels > MOST_OBJECTS[not protocol.proposals]) | (labels == VOID)] = 0
        for frame, image in zip(sequence.frames[block.start : block.stop], labels, strict=True):
            data = label_png(moved(image, share), QUICK)
            for part in protocol.rounds or ("",):
                yield f"{part}/{sequence.name}/{frame}.png".lstrip("/"), data


def instance_files(truths: list[InstanceTruth], protocol: InstanceProtocol, share: float) -> Members:
    """Yield one JSON with a detection for each instance."""
    yield "results.json", as_json([one for truth in truths for one in _detections(truth, share, boxes=protocol.boxes)])


def _detections(truth: InstanceTruth, share: float, *, boxes: bool) -> Iterator[dict[str, object]]:
    frames = truth.images.frames
    for index in np.flatnonzero(~truth.crowd).tolist():
        image = int(truth.image[index])
        height, width = truth.images.sizes[image].tolist()
        if boxes:
            left, *others = truth.boxes[index].tolist()
            shape: dict[str, object] = {"bbox": [left + step(width, share), *others]}
        else:
            count = 1 if frames is None else int(frames[image])
            runs = moved_runs(truth.masks[index], (height, width // count), count, share)
            masks = [{"size": [height, width // count], "counts": mask} for mask in compressed_many(runs)]
            shown = [mask if len(parts) > 1 else None for mask, parts in zip(masks, runs, strict=True)]
            shape = {"segmentation": masks[0]} if frames is None else {"segmentations": shown}
        yield {
            truth.images.key: int(truth.images.ids[image]),
            "category_id": truth.categories[int(truth.category[index])].id,
            "score": round(1 - share, 3),
            **shape,
        }
