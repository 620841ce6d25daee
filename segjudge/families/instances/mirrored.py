"""Images and videos whose detections are mirrored: masks, boxes or keypoints that fit far better mirrored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.masks.run_lengths import pack_texts
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.mirrored import SUSPECT, TOP_AND_BOTTOM, WAYS, MirrorSearch, fits_mirrored
from segjudge.masks.run_lengths import mirror_mask

from .diagnosis import InstanceDiagnosis

#: The maximum number of images that decide whether detections are mirrored.
_MOST_TRIED = 12


class Mirrored(NamedTuple):
    """The images whose detections are mirrored."""

    #: The exchanged sides.
    way: str
    #: By image, the quality that it gains once its detections are mirrored back, times its segments.
    gains: dict[int, float]
    #: The diagnosis of all detections, these mirrored back.
    righted: InstanceDiagnosis


def find_mirrored(diagnosis: InstanceDiagnosis, images: Sequence[int]) -> Mirrored | None:
    """Find which of these images have mirrored detections, if most of those that fit badly agree."""
    counts, fits = diagnosis.counts, measure_fits(diagnosis)
    instances = counts.right + counts.missed
    has_both = (instances > 0) & (np.bincount(diagnosis.judged.image, minlength=len(instances)) > 0)
    suspects = [image for image in images if has_both[image] and fits[image] <= SUSPECT]
    search, tried = MirrorSearch[None](), suspects[:_MOST_TRIED]
    if instances[tried].sum() == 0:
        return None
    fits_of_ways = {way: measure_fits(_right(diagnosis, tried, way)) for way in WAYS}
    for image in tried:
        righted = {way: (float(fits_of_way[image]), None) for way, fits_of_way in fits_of_ways.items()}
        search.add(str(image), int(instances[image]), float(fits[image]), righted)
    ways = {way for way, _ in search.decide().values()}
    if not ways:
        return None
    (way,) = ways
    righted_fits = measure_fits(_right(diagnosis, suspects, way))
    mirrored = [
        image
        for image in suspects
        if fits_mirrored(int(instances[image]), float(fits[image]), float(righted_fits[image]))
    ]
    segments = 2 * counts.right + counts.wrong + counts.missed
    gains = {image: float((righted_fits[image] - fits[image]) * segments[image]) for image in mirrored}
    return Mirrored(way, gains, _right(diagnosis, mirrored, way, among_others=True))


def measure_fits(diagnosis: InstanceDiagnosis) -> Array:
    """Return the panoptic quality of each image, of all categories and its kept detections together."""
    judged, counts = diagnosis.judged, diagnosis.counts
    matched = judged.partner[judged.pairs.prediction] == judged.pairs.truth
    pairs = judged.pairs.select(matched & (diagnosis.selection & judged.right)[judged.pairs.prediction])
    ious = np.bincount(judged.image[pairs.prediction], weights=pairs.iou, minlength=len(counts.right))
    fits: Array = 2 * ious / np.maximum(2 * counts.right + counts.wrong + counts.missed, 1)
    return fits


def _right(
    diagnosis: InstanceDiagnosis, images: Sequence[int], way: str, *, among_others: bool = False
) -> InstanceDiagnosis:
    """Return the diagnosis of the detections in these images, mirrored back, alone or among all others."""
    judged, records = diagnosis.judged, diagnosis.judged.records
    chosen = np.isin(records.image, images)
    mirrored = _mirror(records, judged.truth.images.sizes, judged.truth.images.frames, chosen, way)
    if not among_others:
        columns = ("image", "category", "score", "area", "pixels", "boxes", "points")
        chosen_columns = {name: getattr(mirrored, name)[chosen] for name in columns if len(getattr(mirrored, name))}
        masks = mirrored.masks.take(chosen) if len(mirrored.masks) else mirrored.masks
        mirrored = replace(mirrored, masks=masks, **chosen_columns)
    return diagnosis.judge_again(mirrored)


def _mirror(records: InstanceRecords, sizes: Array, frames: Array | None, chosen: Array, way: str) -> InstanceRecords:
    """Return the records with the chosen ones mirrored."""
    upside_down = way == TOP_AND_BOTTOM
    axis, sides = (1, sizes[:, 0]) if upside_down else (0, sizes[:, 1])
    whole = sides[records.image[chosen]]
    changes: dict[str, Any] = {}
    if len(records.boxes):
        boxes = records.boxes.copy()
        boxes[chosen, axis] = whole - boxes[chosen, axis] - boxes[chosen, axis + 2]
        changes["boxes"] = boxes
    if len(records.points):
        points = records.points.copy()
        of_axis = points.reshape(len(points), -1, 2)[..., axis]
        of_axis[chosen] = whole[:, None] - 1 - of_axis[chosen]
        changes["points"] = points
    if len(records.masks):
        texts = [records.masks[index] for index in range(len(records.masks))]
        for index in (number for number in np.flatnonzero(chosen).tolist() if texts[number]):
            image = int(records.image[index])
            height, width = sizes[image].tolist()
            count = 1 if frames is None else int(frames[image])
            texts[index] = mirror_mask(texts[index], (height, width), upside_down=upside_down, frames=count)
        changes["masks"] = pack_texts(texts)
    return replace(records, **changes)
