"""Images and videos whose detections are mirrored: masks, boxes or keypoints that fit far better mirrored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.masks.run_lengths import pack_texts
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.mirrored import LEFT_AND_RIGHT, SUSPECT, TOP_AND_BOTTOM, WAYS, MirrorSearch, fits_mirrored
from segjudge.masks.run_lengths import mirror_mask

from .diagnosis import InstanceDiagnosis
from .keypoints import list_faults

#: Exchanged names of points, alone and in mirrored images.
POINTS, _BOTH = "left and right points", "left and right with points"
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
    ways_to_try = (*WAYS, POINTS, _BOTH) if _may_exchange_names(diagnosis) else WAYS
    fits_of_ways = {way: measure_fits(_diagnose_mirrored(diagnosis, tried, way)) for way in ways_to_try}
    for image in tried:
        fits_of_image = {way: (float(fits_of_way[image]), None) for way, fits_of_way in fits_of_ways.items()}
        search.add(str(image), int(instances[image]), float(fits[image]), fits_of_image)
    found_images = search.decide()
    if not found_images:
        return None
    way = next(iter(found_images.values()))[0]
    righted_fits = measure_fits(_diagnose_mirrored(diagnosis, suspects, way))
    mirrored = [
        image
        for image in suspects
        if fits_mirrored(int(instances[image]), float(fits[image]), float(righted_fits[image]))
    ]
    if not search.is_general:
        mirrored = [image for image in mirrored if str(image) in found_images]
    segments = 2 * counts.right + counts.wrong + counts.missed
    gains = {image: float((righted_fits[image] - fits[image]) * segments[image]) for image in mirrored}
    righted = _diagnose_mirrored(diagnosis, mirrored, way, among_others=True)
    return Mirrored(LEFT_AND_RIGHT if way == _BOTH else way, gains, righted)


def _may_exchange_names(diagnosis: InstanceDiagnosis) -> bool:
    """Return whether points have sides, and few people are known to have them exchanged."""
    if not list_pairs(diagnosis):
        return False
    exchanged = list_faults(diagnosis).exchanged
    return bool(2 * (exchanged[0][1] if exchanged else 0) < (~diagnosis.judged.crowd).sum())


def list_pairs(diagnosis: InstanceDiagnosis) -> list[tuple[str, str]]:
    """Return the points whose names differ in left and right."""
    keypoints = diagnosis.judged.truth.keypoints
    names = keypoints.names if keypoints is not None and diagnosis.protocol.keypoints else []
    pairs = [(name, name.replace("left", "right")) for name in names if "left" in name]
    return [pair for pair in pairs if pair[1] in names]


def _order_points(diagnosis: InstanceDiagnosis) -> list[int]:
    """Return for each point the one on the other side, or itself."""
    keypoints, pairs = diagnosis.judged.truth.keypoints, list_pairs(diagnosis)
    names = list(keypoints.names) if keypoints is not None else []
    other_sides = dict(pairs) | {pair[1]: pair[0] for pair in pairs}
    return [names.index(other_sides.get(name, name)) for name in names]


def measure_fits(diagnosis: InstanceDiagnosis) -> Array:
    """Return the panoptic quality of each image, of all categories and its kept detections together."""
    judged, counts = diagnosis.judged, diagnosis.counts
    matched = judged.partner[judged.pairs.prediction] == judged.pairs.truth
    pairs = judged.pairs.select(matched & (diagnosis.selection & judged.right)[judged.pairs.prediction])
    ious = np.bincount(judged.image[pairs.prediction], weights=pairs.iou, minlength=len(counts.right))
    fits: Array = 2 * ious / np.maximum(2 * counts.right + counts.wrong + counts.missed, 1)
    return fits


def _diagnose_mirrored(
    diagnosis: InstanceDiagnosis, images: Sequence[int], kind: str, *, among_others: bool = False
) -> InstanceDiagnosis:
    """Return the diagnosis of the detections in these images, mirrored back, alone or among all others."""
    truth, records = diagnosis.judged.truth, diagnosis.judged.records
    if not among_others:
        records = _take_records(records, np.isin(records.image, images))
    chosen = np.isin(records.image, images)
    if kind in {POINTS, _BOTH}:
        points = records.points.copy()
        of_points = points.reshape(len(points), -1, 2)
        of_points[chosen] = of_points[chosen][:, _order_points(diagnosis)]
        records = replace(records, points=points)
    if kind != POINTS:
        records = _mirror_records(records, truth.images.sizes, truth.images.frames, chosen, kind)
    return diagnosis.judge_again(records)


def _take_records(records: InstanceRecords, chosen: Array) -> InstanceRecords:
    """Return the chosen records; columns that the protocol does not read are empty."""
    columns = ("image", "category", "score", "area", "pixels", "boxes", "points")
    chosen_columns = {name: getattr(records, name)[chosen] for name in columns if len(getattr(records, name))}
    masks = records.masks.take(chosen) if len(records.masks) else records.masks
    return replace(records, masks=masks, **chosen_columns)


def _mirror_records(
    records: InstanceRecords, sizes: Array, frames: Array | None, chosen: Array, kind: str
) -> InstanceRecords:
    """Return the records with the chosen ones mirrored."""
    upside_down = kind == TOP_AND_BOTTOM
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
