"""Sample submissions of each track, as participants of the benchmarks send them.

Every mask of the truth is moved to the right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segjudge.datasets.compression import CompressedMask, code_png, label_png, run_lengths_of
from segjudge.evaluation_script.families.base.units import Rows, TruthFrame, UnitTruth
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.families.sequences.protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Sequence, Split
from segjudge.evaluation_script.families.tracking.files import CATEGORY, IGNORED, MASK, TRACK_ID
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.run_lengths import compress_many, runs_of
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.comparison import VOID, ids_of, labels_of

#: The most proposals of protocols that match them, and the most objects of a phase.
MOST_OBJECTS = 20, 254
#: How far the masks of each sample are moved, as a share of the width.
SAMPLES = {"good": 0.0012, "poor": 0.03}
#: The effort of compressing PNGs.
QUICK = 3

#: The files of a sample: their names, and what they hold.
Members = Iterator[tuple[str, bytes]]


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
        for mask, counts in zip(seen, compress_many(shifted), strict=True):
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
            masks = [{"size": [height, width // count], "counts": mask} for mask in compress_many(runs)]
            shown = [mask if len(parts) > 1 else None for mask, parts in zip(masks, runs, strict=True)]
            shape = {"segmentation": masks[0]} if frames is None else {"segmentations": shown}
        yield {
            truth.images.key: int(truth.images.ids[image]),
            "category_id": truth.categories[int(truth.category[index])].id,
            "score": round(1 - share, 3),
            **shape,
        }


def _kept(pixels: LabelMap, kept: Array, share: float) -> Array:
    """Return the moved labels of a map; those that are not kept are 0."""
    numbers = moved(pixels.numbers, share)
    labels = numbers if pixels.labels is None else pixels.labels
    shown: Array = np.where(np.isin(labels, kept), labels, 0)
    return shown if pixels.labels is None else shown[numbers]


def panoptic_files(truths: list[UnitTruth], protocol: PanopticProtocol, share: float) -> Members:
    """Yield PNGs whose colours are ids, and the JSON that lists their segments; crowds are left out."""
    entries: list[dict[str, Any]] = []
    for unit, listed in [(unit, truth.facts["categories"]) for truth in truths for unit in truth.units]:
        frames = []
        for frame in unit.load():
            categories = {row[0]: listed[row[1]][0] for row in frame.rows if not row[2]}
            ids = _kept(frame.read(), np.array(list(categories), np.int64), share)
            flat = ids.reshape(-1)
            seen = [number for number in np.unique(flat[np.append(True, flat[1:] != flat[:-1])]).tolist() if number]
            folder, name = f"segments/{unit.name}" if protocol.video else "segments", f"{frame.name}.png"
            yield f"{folder}/{name}", code_png(ids, QUICK)
            segments = [{"id": number, "category_id": categories[number]} for number in seen]
            frames.append({"file_name": name, "segments_info": segments})
        if protocol.video:
            entries.append({"video_id": unit.name, "annotations": frames})
        else:
            entries += [{"image_id": unit.name, **frame} for frame in frames]
    yield "segments.json", as_json({"annotations": entries})


def semantic_files(truths: list[UnitTruth], protocol: SemanticProtocol, share: float) -> Members:
    """Yield PNGs of classes; where the truth is void, they hold 0."""
    classes = np.arange(protocol.classes)
    for unit in [unit for truth in truths for unit in truth.units]:
        for frame in unit.load():
            labels = _kept(frame.read(), classes, share).astype(np.uint8)
            yield f"{unit.name}/{frame.name}.png", label_png(labels, QUICK)


def track_files(truths: list[UnitTruth], protocol: TracksProtocol, share: float) -> Members:
    """Yield a text for each sequence, or one JSON of BURST's."""
    units = [(unit.name, unit.load()) for truth in truths for unit in truth.units]
    if protocol.burst:
        yield "results.json", as_json({"sequences": [_burst_entry(name, frames, share) for name, frames in units]})
        return
    for name, frames in units:
        lines = [
            f"{frame.name} {row[TRACK_ID]} {row[CATEGORY]} {frame.size[0]} {frame.size[1]} {row[MASK]}\n"
            for frame in frames
            for row in _moved_rows(frame, share)
            if row[CATEGORY] != IGNORED
        ]
        yield f"{name}.txt", "".join(lines).encode()


def _moved_rows(frame: TruthFrame, share: float) -> Rows:
    """Return the masks of a frame that are still in it."""
    runs = [moved_runs(row[MASK], frame.size, 1, share)[0] for row in frame.rows]
    masks = zip(frame.rows, compress_many(runs), runs, strict=True)
    return [[row[TRACK_ID], row[CATEGORY], mask] for row, mask, parts in masks if len(parts) > 1]


def _burst_entry(name: str, frames: list[TruthFrame], share: float) -> dict[str, object]:
    dataset, _, sequence = name.partition("/")
    rows = [_moved_rows(frame, share) for frame in frames]
    return {
        "dataset": dataset,
        "seq_name": sequence,
        "annotated_image_paths": [frame.name for frame in frames],
        "track_category_ids": {str(row[TRACK_ID]): row[CATEGORY] for of_frame in rows for row in of_frame},
        "segmentations": [
            {str(row[TRACK_ID]): {"rle": row[MASK], "score": round(1 - share, 3)} for row in of_frame}
            for of_frame in rows
        ],
    }


def moved(labels: Array, share: float) -> Array:
    """Return an image moved to the right; its first column fills the gap."""
    width = labels.shape[1]
    image: Array = labels[:, np.maximum(np.arange(width) - step(width, share), 0)]
    return image


def moved_runs(mask: str, size: tuple[int, int], frames: int, share: float) -> list[list[int]]:
    """Return the runs of the masks of frames side by side, each moved to the right; runs go down the columns."""
    height, width = size
    pixels = height * width
    ends = np.cumsum(runs_of(mask, pixels * frames))
    parts = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    moved_masks = []
    for frame in range(frames):
        inside: NDArray[np.int64] = np.clip(parts - frame * pixels, 0, pixels)
        borders = inside[inside[:, 1] > inside[:, 0]].reshape(-1) + step(width, share) * height
        moved_masks.append(np.diff(borders[borders < pixels], prepend=0, append=pixels).tolist())
    return moved_masks


def step(width: int, share: float) -> int:
    """Return how many pixels a share of the width is: one at least."""
    return min(width, max(1, round(width * share)))


def as_json(document: object) -> bytes:
    """Return a document without blanks."""
    return json.dumps(document, separators=(",", ":")).encode()
