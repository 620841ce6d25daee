"""A phase of instance masks: match detections with the truth, within the cap, and sum up."""

from __future__ import annotations

from ctypes import CDLL
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple, Union

import numpy as np

from . import kernel, kernel_runs
from .archive_limits import ArchiveLimits
from .errors import SubmissionError, counted, verb
from .instance_matching import Detections, Group, Instances, Overlap, rank_in_group
from .instance_precision import (
    Averages,
    Curves,
    MatchedDetections,
    averages,
    category_averages,
    joined_curves,
    reported_pairs,
)
from .instance_protocols import PER_IMAGE, InstanceProtocol
from .instance_records import InstanceRecords, read_records
from .instance_truth import InstanceTruth
from .masks import Array
from .parallel import map_in_processes

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE

#: Standard errors redraw the images so often, and only where that costs little: this many curves in all.
RESAMPLES = 40
MOST_CURVES = 8_000
#: Images and categories whose masks the kernel compares at once.
GROUPS_AT_ONCE = 512


@dataclass(frozen=True)
class InstanceScore:
    """What a submission scored on one dataset."""

    values: Averages
    #: A row for each category of the truth.
    categories: List[Dict[str, Union[str, float, None]]]
    #: A standard error for each value, or nothing.
    errors: Averages
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
    caps, images = protocol.detections, len(truth.images.ids)
    pairs = reported_pairs(caps)
    matching = None
    if images > 1 and len(truth.categories) * len(pairs) * RESAMPLES <= MOST_CURVES:
        matching, warnings = matched(records, truth, protocol)
        curves = matching.curves(pairs)
    else:
        curves, warnings = _curves_of_shares(records, truth, protocol, jobs)
    if strict and warnings:
        raise SubmissionError(f"your file: {'; '.join(warnings)}. This is scored strictly. Send only what is scored.")
    rows = [
        {"id": category.id, "name": category.name, **category_averages(curves, index)}
        for index, category in enumerate(truth.categories)
    ]
    errors = _standard_errors(matching, caps, images) if matching else {}
    return InstanceScore(averages(curves, caps), rows, errors, warnings)


def _curves_of_shares(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, jobs: int
) -> Tuple[Curves, List[str]]:
    """Match and draw the curves by several processes, each for its share of the categories."""
    shares = _shares(records.category, len(truth.categories), jobs)

    def curves_of(number: int) -> Tuple[Curves, List[str]]:
        matching, warnings = matched(records, truth, protocol, shares[number])
        return matching.curves(reported_pairs(protocol.detections)), warnings

    parts = map_in_processes(curves_of, len(shares), jobs)
    return joined_curves([curves for curves, _ in parts]), parts[0][1]


def _shares(category: Array, categories: int, jobs: int) -> List[Array]:
    """Deal the categories out to processes, the most frequent ones first, so that each has as much to do."""
    frequent = np.argsort(-np.bincount(category[category >= 0], minlength=categories), kind="stable")
    shares = np.zeros((max(jobs, 1), categories), bool)
    for index, number in enumerate(frequent.tolist()):
        turn, seat = divmod(index, len(shares))
        shares[seat if turn % 2 == 0 else len(shares) - 1 - seat, number] = True
    return list(shares)


def matched(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, share: Optional[Array] = None
) -> Tuple[MatchedDetections, List[str]]:
    """Match the records within the cap with the truth, of a share of the categories or of all; return warnings too."""
    kept, dropped = _within_cap(records, protocol)
    known = np.flatnonzero(truth.category >= 0)
    if share is not None:
        kept = kept[share[records.category[kept]]]
        known = known[share[truth.category[known]]]
    detections = Detections(records.image[kept], records.category[kept], records.area[kept], records.score[kept])
    extent = truth.boxes[:, 2] * truth.boxes[:, 3] if protocol.boxes else truth.pixels
    instances = Instances(
        truth.image[known],
        truth.category[known],
        truth.area[known],
        extent[known],
        truth.crowd[known],
        (truth.ids[known] == 0) & protocol.id_zero_quirk,
    )
    overlap = _overlap(records, kept, truth, known, protocol)
    matching = MatchedDetections(instances, detections, len(truth.categories), protocol.detections, overlap)
    warnings = list(records.warnings)
    if len(dropped):
        where = counted(len(np.unique(records.image[dropped])), "image")
        were = verb(len(dropped), "was", "were")
        warnings.append(f"{counted(len(dropped), 'record')} beyond {protocol.detections[-1]} in {where} {were} dropped")
    return matching, warnings


def _standard_errors(matching: MatchedDetections, caps: Tuple[int, int, int], images: int) -> Averages:
    """Return the spread of each value when images are drawn anew, always from the same seed."""
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(RESAMPLES):
        weight = np.bincount(generator.integers(0, images, images), minlength=images).astype(float)
        draws.append(averages(matching.curves(reported_pairs(caps), weight), caps))
    table = {name: np.array([draw[name] for draw in draws], float) for name in draws[0]}
    return {name: float(column.std(ddof=1)) for name, column in table.items() if not np.isnan(column).any()}


def _within_cap(records: InstanceRecords, protocol: InstanceProtocol) -> Tuple[Array, Array]:
    """Return the indices of the records that count, and of those that the cap drops."""
    of_image = protocol.cap == PER_IMAGE
    group = records.image if of_image else records.category
    order = np.lexsort((-records.score, records.image, group))
    beyond = order[rank_in_group(records.image[order], group[order]) >= protocol.detections[-1]]
    known = records.category >= 0
    keep = known.copy()
    keep[beyond] = False
    return np.flatnonzero(keep), beyond if of_image else beyond[known[beyond]]


def _overlap(
    records: InstanceRecords, kept: Array, truth: InstanceTruth, known: Array, protocol: InstanceProtocol
) -> Overlap:
    """Return how to compute IoU: by the kernel, or by pycocotools, which is safe once every run was checked."""
    crowd = truth.crowd.astype(np.uint8).tolist()

    def by_kernel(library: CDLL, groups: List[Group]) -> Array:
        sent = [[records.masks[index] for index in kept[detections].tolist()] for detections, _ in groups]
        indices = [known[instances].tolist() for _, instances in groups]
        real = [[truth.masks[index] for index in members] for members in indices]
        crowds = [[crowd[index] for index in members] for members in indices]
        return kernel_runs.overlaps(kernel_runs.Groups(sent, real, crowds), library)

    def by_pycocotools(groups: List[Group]) -> Array:
        ((detections, instances),) = groups
        sent, real = kept[detections].tolist(), known[instances].tolist()
        crowds = [crowd[index] for index in real]
        if protocol.boxes:
            ious = iou(records.boxes[sent], truth.boxes[real], crowds)
        else:
            size = truth.images.sizes[truth.image[real[0]]].tolist()
            ious = iou(_encoded(records.masks, sent, size), _encoded(truth.masks, real, size), crowds)
        return np.asarray(ious).reshape(-1)

    library = None if protocol.boxes else kernel.library()
    if library is not None:
        return partial(_in_batches, partial(by_kernel, library), GROUPS_AT_ONCE)
    from pycocotools.mask import iou

    return partial(_in_batches, by_pycocotools, 1)


def _in_batches(overlap: Overlap, most: int, groups: List[Group]) -> Array:
    """Return the overlaps of all groups, of which so many are looked at together."""
    parts = [overlap(groups[start : start + most]) for start in range(0, len(groups), most)]
    return np.concatenate([np.zeros(0), *parts])


def _encoded(masks: List[str], indices: List[int], size: List[int]) -> List[_EncodedRLE]:
    return [{"size": size, "counts": masks[index]} for index in indices]
