"""A phase of instance masks: pair detections with the truth, within the cap, and sum up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .archive_limits import ArchiveLimits
from .errors import SubmissionError, counted, verb
from .instance_precision import (
    Curver,
    Curves,
    Detections,
    Instances,
    averages,
    by_category,
    joined_curves,
    reported_pairs,
)
from .instance_protocols import PER_IMAGE, InstanceProtocol
from .instance_records import InstanceRecords, read_records
from .instance_truth import InstanceTruth
from .masks import Array
from .parallel import map_in_processes

Values = Dict[str, Optional[float]]


#: Standard errors redraw the images so often, and only where that costs little: this many curves in all.
RESAMPLES = 40
MOST_CURVES = 8_000


@dataclass(frozen=True)
class InstanceScore:
    """What a submission scored on one dataset."""

    values: Values
    #: A row for each category of the truth.
    categories: List[Dict[str, Any]]
    #: A standard error for each value, or nothing.
    errors: Values
    warnings: List[str]


def score(
    path: str,
    truth: InstanceTruth,
    protocol: InstanceProtocol,
    limits: ArchiveLimits,
    *,
    strict: bool = False,
    jobs: int = 1,
) -> InstanceScore:
    """Score a submission, by several processes if there are cores to spare; when strict a warning refuses it."""
    records = read_records(path, truth.images, protocol, limits, jobs=jobs)
    caps = protocol.detections
    wanted = reported_pairs(caps)
    shares = _shares(records.category, len(truth.categories), jobs)

    def drawn(number: int) -> Tuple[Curves, List[str]]:
        curver, warnings = matched(records, truth, protocol, shares[number])
        return curver.curves(wanted), warnings

    parts = map_in_processes(drawn, len(shares), jobs)
    warnings = parts[0][1]
    if strict and warnings:
        raise SubmissionError(f"your file: {'; '.join(warnings)}. This is scored strictly. Send only what is scored.")
    result = joined_curves([curves for curves, _ in parts])
    rows = [
        {"id": one.id, "name": one.name, **by_category(result, caps, place)}
        for place, one in enumerate(truth.categories)
    ]
    errors: Values = {}
    if len(truth.categories) * len(wanted) * RESAMPLES <= MOST_CURVES and len(truth.images.ids) > 1:
        errors = _standard_errors(matched(records, truth, protocol)[0], caps, len(truth.images.ids))
    return InstanceScore(averages(result, caps), rows, errors, warnings)


def _shares(category: Array, categories: int, jobs: int) -> List[Array]:
    """The categories dealt out to processes, the most frequent ones first, so that each has as much to do."""
    frequent = np.argsort(-np.bincount(category[category >= 0], minlength=categories), kind="stable")
    shares = np.zeros((max(jobs, 1), categories), bool)
    for place, one in enumerate(frequent.tolist()):
        turn, place_in_turn = divmod(place, len(shares))
        shares[place_in_turn if turn % 2 == 0 else len(shares) - 1 - place_in_turn, one] = True
    return list(shares)


def matched(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, share: Optional[Array] = None
) -> Tuple[Curver, List[str]]:
    """Detections within the cap, matched with the truth, of some categories or of all; and what was left out."""
    kept, dropped = _kept(records, protocol)
    if share is not None:
        kept = kept[share[records.category[kept]]]
    found = Detections(records.image[kept], records.category[kept], records.area[kept], records.score[kept])
    known = np.flatnonzero(truth.category >= 0)
    if share is not None:
        known = known[share[truth.category[known]]]
    extent = truth.boxes[:, 2] * truth.boxes[:, 3] if protocol.boxes else truth.pixels
    instances = Instances(
        truth.image[known],
        truth.category[known],
        truth.area[known],
        extent[known],
        truth.crowd[known],
        (truth.ids[known] == 0) & protocol.id_zero_quirk,
    )
    overlap = _Overlap(records, kept, truth, known, protocol)
    curver = Curver(instances, found, len(truth.categories), protocol.detections, overlap)
    warnings = list(records.warnings)
    if dropped:
        count, images = dropped
        warnings.append(_beyond(count, protocol.detections[-1], images))
    return curver, warnings


def _beyond(count: int, cap: int, images: int) -> str:
    where = counted(images, "image")
    return f"{counted(count, 'record')} beyond {cap} in {where} {verb(count, 'was', 'were')} dropped"


def _standard_errors(curver: Curver, caps: Tuple[int, int, int], images: int) -> Values:
    """The spread of each value when images are drawn anew, always by the same lot."""
    lot = np.random.default_rng(0)
    draws = []
    for _ in range(RESAMPLES):
        weight = np.bincount(lot.integers(0, images, images), minlength=images).astype(float)
        draws.append(averages(curver.curves(reported_pairs(caps), weight), caps))
    table = {name: np.array([draw[name] for draw in draws], float) for name in draws[0]}
    return {name: float(column.std(ddof=1)) for name, column in table.items() if not np.isnan(column).any()}


def _kept(records: InstanceRecords, protocol: InstanceProtocol) -> Tuple[Array, Optional[Tuple[int, int]]]:
    """Records that count: within the cap, of a category that the truth has; and what the cap dropped."""
    cap = protocol.detections[-1]
    first = records.image if protocol.cap == PER_IMAGE else records.category
    order = np.lexsort((-records.score, records.image, first))
    groups = np.stack([records.image[order], first[order]])
    new = np.concatenate(([True], (groups[:, 1:] != groups[:, :-1]).any(axis=0)))[: len(order)]
    starts = np.flatnonzero(new)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    beyond = order[rank >= cap]
    counted = beyond[records.category[beyond] >= 0] if protocol.cap != PER_IMAGE else beyond
    keep = np.ones(len(order), bool)
    keep[beyond] = False
    keep &= records.category >= 0
    dropped = (len(counted), len(np.unique(records.image[counted]))) if len(counted) else None
    return np.flatnonzero(keep), dropped


class _Overlap:
    """IoU of detections and instances; masks by pycocotools, which is safe once every run was checked."""

    def __init__(
        self, records: InstanceRecords, kept: Array, truth: InstanceTruth, known: Array, protocol: InstanceProtocol
    ) -> None:
        from pycocotools.mask import iou

        self._iou = iou
        self._records, self._kept, self._truth, self._known = records, kept, truth, known
        self._boxes = protocol.boxes
        self._sizes = truth.images.sizes.tolist()
        self._image, self._crowd = truth.image.tolist(), truth.crowd.astype(np.uint8).tolist()

    def __call__(self, detections: Array, instances: Array) -> Array:
        mine = self._kept[detections].tolist()
        theirs = self._known[instances].tolist()
        crowd = [self._crowd[place] for place in theirs]
        if self._boxes:
            pair: Tuple[Any, Any] = (self._records.boxes[mine], self._truth.boxes[theirs])
        else:
            size = self._sizes[self._image[theirs[0]]]
            pair = (
                [{"size": size, "counts": self._records.masks[place]} for place in mine],
                [{"size": size, "counts": self._truth.masks[place]} for place in theirs],
            )
        ious: Array = np.asarray(self._iou(*pair, crowd))
        return ious
