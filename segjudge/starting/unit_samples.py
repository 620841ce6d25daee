"""Sample submissions of the tracks that count by unit, as participants of the benchmarks send them."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.compression import code_png, label_png
from segjudge.evaluation_script.label_maps import LabelMap
from segjudge.evaluation_script.masks import Array
from segjudge.evaluation_script.panoptic_protocols import PanopticProtocol
from segjudge.evaluation_script.rle import compressed_many
from segjudge.evaluation_script.semantic_protocols import SemanticProtocol
from segjudge.evaluation_script.tracks_files import CATEGORY, IGNORED, MASK, TRACK_ID
from segjudge.evaluation_script.tracks_protocols import TracksProtocol
from segjudge.evaluation_script.unit_truth import Rows, TruthFrame, UnitTruth

from .moving import QUICK, Members, as_json, moved, moved_runs


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
        rows = [(frame, row) for frame in frames for row in _moved_rows(frame, share) if row[CATEGORY] != IGNORED]
        lines = [
            f"{frame.name} {row[TRACK_ID]} {row[CATEGORY]} {frame.size[0]} {frame.size[1]} {row[MASK]}\n"
            for frame, row in rows
        ]
        yield f"{name}.txt", "".join(lines).encode()


def _moved_rows(frame: TruthFrame, share: float) -> Rows:
    """Return the masks of a frame that are still in it."""
    runs = [moved_runs(row[MASK], frame.size, 1, share)[0] for row in frame.rows]
    masks = zip(frame.rows, compressed_many(runs), runs, strict=True)
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
