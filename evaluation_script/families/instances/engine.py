"""A phase of instance masks: match detections with the truth, within the cap, and sum up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Tuple

import numpy as np

from ...masks.kernel_matches import Overlapping
from ...masks.kernel_runs import Pairs
from ...masks.overlaps import Masks, box_overlaps, mask_overlaps, smaller_of_both
from ...masks.stack import Array
from ...runner.parallel import WHOLE, Part, results_of_processes
from ..base.engine import Engine
from ..base.family import ScoringRules
from ..base.progress import Progress, ignore_progress
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from . import truth as instance_truth
from .accumulator import InstanceAccumulator, InstanceReport
from .counts import DETECTION, IMAGE, InstanceCounts, by_falling_score, decoded, truth_rows
from .matching import REACHED, Detections, Instances, Overlap, match, rank_in_group, similar_pairs
from .protocols import OCCLUSIONS, PER_IMAGE, InstanceProtocol
from .submission import InstanceRecords, read_records
from .truth import InstanceTruth

#: Records that are matched at once; half the memory of matching is theirs.
RECORDS_AT_ONCE = 1 << 16
#: Blocks of images for each process, so that all end at about the same time.
BLOCKS_OF_PROCESS = 4


class OpenedRecords:
    """A submission beside its truth; each part reads all records, and keeps those of its images."""

    def __init__(self, path: str, truth: InstanceTruth, protocol: InstanceProtocol, rules: ScoringRules) -> None:
        self._path, self._truth, self._protocol, self._rules = path, truth, protocol, rules

    def counted(self, part: Part = WHOLE, progress: Progress = ignore_progress) -> InstanceAccumulator:
        """Match what the submission holds of a part of the images, by the processes that the rules allow."""
        truth, protocol, rules = self._truth, self._protocol, self._rules
        progress("detections", 0, 1)
        images = np.array(part.of([1] * len(truth.images.ids)), np.int64)
        taken = None if part == WHOLE else images
        records = read_records(self._path, truth.images, protocol, rules.limits, jobs=rules.jobs, taken=taken)
        accumulator = InstanceAccumulator(protocol, truth.images.ids.tolist(), truth.categories, strict=rules.strict)
        accumulator.notes = records.warnings
        blocks = blocks_of(records, truth, protocol, images, rules.jobs)

        def work(number: int) -> bytes:
            return matched(blocks[number]).encoded()

        for data in results_of_processes(work, [len(block.sent) for block in blocks], rules.jobs, lambda _: None):
            accumulator.update(decoded(data))
        progress("", 1, 1)
        return accumulator

    def close(self) -> None:
        """Do nothing: no file is held open."""


def blocks_of(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, images: Array, jobs: int
) -> List[ImageBlock]:
    """Return these images, given by rising indices, in blocks of about as many records each."""
    costs = np.bincount(records.image, minlength=len(truth.images.ids))
    blocks = _blocks(images, costs[images], jobs)
    sent, real = (_by_block(image, blocks, len(costs)) for image in (records.image, truth.image))
    return [
        ImageBlock(indices, records, mine, truth, there, protocol) for indices, mine, there in zip(blocks, sent, real)
    ]


def _blocks(images: Array, costs: Array, jobs: int) -> List[Array]:
    """Return images in blocks of about as many records each: a few for each process, and none of too many."""
    total = int(costs.sum())
    count = max(-(-total // RECORDS_AT_ONCE), BLOCKS_OF_PROCESS * jobs if jobs > 1 else 1)
    numbers = (np.cumsum(costs) - costs) * count // max(total, 1)
    return np.split(images, np.flatnonzero(np.diff(numbers)) + 1)


def _by_block(image: Array, blocks: List[Array], images: int) -> List[Array]:
    """Return the indices of the entries that are of each block's images, in order."""
    block_of = np.full(images, len(blocks))
    for number, block in enumerate(blocks):
        block_of[block] = number
    order = np.argsort(block_of[image], kind="stable")
    bounds = np.searchsorted(block_of[image][order], np.arange(len(blocks) + 1))
    return [order[start:stop] for start, stop in zip(bounds, bounds[1:])]


@dataclass(frozen=True)
class ImageBlock:
    """Some images, and what was sent of them and what is there, by index."""

    images: Array
    records: InstanceRecords
    sent: Array
    truth: InstanceTruth
    real: Array
    protocol: InstanceProtocol


def matched(block: ImageBlock) -> InstanceCounts:
    """Match the records within the cap with the truth."""
    truth, protocol, count = block.truth, block.protocol, len(block.truth.categories)
    known = _known(block)
    kept, rank, dropped = _within_cap(block, known)
    instances, detections = _instances(block, known), _detections(block, kept, rank)
    overlap = _overlap(block, kept, known)
    found = np.zeros(len(kept), DETECTION)
    found["image"], found["category"], found["rank"] = detections.image, detections.category, rank
    found["score"] = block.records.score[kept]
    tables = [(found, _match_into(found, instances, detections, overlap))]
    if protocol.occlusion:  # categories once more, with other ranges
        again = found.copy()
        again["category"] += count
        hidden = replace(instances, area=truth.occlusion[known], ranges=np.array(list(OCCLUSIONS.values()), float))
        shown = replace(detections, area=np.full(len(kept), np.nan))
        rows = _match_into(again, hidden, shown, overlap)
        rows["category"] += count
        tables.append((again, rows))
    images = np.zeros(len(block.images), IMAGE)
    images["image"], images["dropped"] = block.images, dropped
    sent, real = (np.concatenate(table) for table in zip(*tables))
    if protocol.occlusion:
        sent, real = (table[np.lexsort((table["category"], table["image"]))] for table in (sent, real))
    return InstanceCounts(images, real, sent)


def _match_into(found: Array, instances: Instances, detections: Detections, overlap: Overlap) -> Array:
    """Fill in what was matched; return how many instances count."""
    found["matched"], found["ignored"] = match(instances, detections, overlap)
    return truth_rows(instances.image, instances.category, instances.ignored())


@dataclass(frozen=True)
class ClosePairs:
    """Records within the cap by image and falling score, annotations, and the pairs of both that overlap."""

    sent: Array
    real: Array
    #: By the places in `sent` and `real`, whatever their categories.
    pairs: Overlapping
    #: Which records count neither for nor against unless they are matched.
    excused: Array


def close_pairs(block: ImageBlock, least: float) -> ClosePairs:
    """Return the pairs of an image whose IoU is so much or more; with a crowd it is the record's share in it."""
    known, image = _known(block), block.records.image
    kept = np.sort(_within_cap(block, known)[0])
    kept = kept[by_falling_score(block.records.score[kept], image[kept])]
    detections = _detections(block, kept, rank_in_group(image[kept]))
    instances = replace(_instances(block, known), category=np.zeros(len(known), np.int64))
    pairs = similar_pairs(instances, replace(detections, category=np.zeros(len(kept), np.int64)), least)
    iou = _overlap(block, kept, known)(pairs)
    near = Overlapping(pairs.sent, pairs.real, iou).of(iou >= least)
    excused = np.zeros(len(kept), bool) if detections.excused is None else detections.excused
    return ClosePairs(kept, known, near, excused)


def _known(block: ImageBlock) -> Array:
    """Return the annotations that exist for the protocol, by image and category."""
    truth, known = block.truth, block.real[block.truth.category[block.real] >= 0]
    if block.protocol.federated:
        known = known[truth.area[known] > 0]
    return known[np.lexsort((truth.category[known], truth.image[known]))]


def _instances(block: ImageBlock, known: Array) -> Instances:
    truth, protocol = block.truth, block.protocol
    return Instances(
        truth.image[known],
        truth.category[known],
        truth.area[known],
        (truth.boxes[known, 2] * truth.boxes[known, 3]) if protocol.boxes else truth.pixels[known],
        truth.crowd[known] & protocol.crowds,
        (truth.ids[known] == 0) & protocol.id_zero_quirk,
        np.array(protocol.areas, float),
    )


def _detections(block: ImageBlock, kept: Array, rank: Array) -> Detections:
    records, truth, protocol = block.records, block.truth, block.protocol
    detections = Detections(records.image[kept], records.category[kept], rank, records.area[kept], records.pixels[kept])
    if not protocol.federated:
        return detections
    pairs = detections.image * len(truth.categories) + detections.category
    return replace(detections, excused=np.isin(pairs, truth.inexhaustive))


def _within_cap(block: ImageBlock, known: Array) -> Tuple[Array, Array, Array]:
    """Return the records that count, by image, category and falling score, their place there, and how many do not.

    The last is a number for each image: what the cap drops.
    """
    records, most, kept = block.records, block.protocol.detections[-1], block.sent
    image, category = records.image, records.category
    beyond = kept[:0]
    if block.protocol.cap == PER_IMAGE:
        crowded = kept[np.bincount(image[kept], minlength=1)[image[kept]] > most]
        order = crowded[by_falling_score(records.score[crowded], image[crowded])]
        beyond = order[rank_in_group(image[order]) >= most]
        kept = kept[~np.isin(kept, beyond)] if len(beyond) else kept
    kept = kept[category[kept] >= 0]
    if block.protocol.federated:
        kept = kept[_looked_for(block, kept, known)]
    kept = kept[by_falling_score(records.score[kept], category[kept], image[kept])]
    rank = rank_in_group(image[kept], category[kept])
    beyond = np.append(beyond, kept[rank >= most])
    dropped = np.bincount(image[beyond], minlength=len(block.truth.images.ids))[block.images]
    return kept[rank < most], rank[rank < most], dropped


def _looked_for(block: ImageBlock, kept: Array, known: Array) -> Array:
    """Return which records count: not empty, of a category that the truth has in their image or says it lacks."""
    records, truth, count = block.records, block.truth, len(block.truth.categories)
    pairs = records.image[kept] * count + records.category[kept]
    positive = truth.image[known] * count + truth.category[known]
    flags: Array = records.area[kept] > 0
    return flags if truth.negative is None else flags & (np.isin(pairs, positive) | np.isin(pairs, truth.negative))


def _overlap(block: ImageBlock, kept: Array, known: Array) -> Overlap:
    """Return how to compute the IoU of these records and instances."""
    records, truth, sizes, protocol = block.records, block.truth, block.truth.images.sizes, block.protocol
    crowd = truth.crowd[known] & protocol.crowds & (not protocol.tubes)
    if protocol.boxes:
        return lambda pairs: box_overlaps(pairs, records.boxes[kept], truth.boxes[known], crowd)
    sent = Masks(records.masks.take(kept), records.pixels[kept], sizes[records.image[kept]], protocol.tubes)
    real = Masks(truth.masks.take(known), truth.pixels[known], sizes[truth.image[known]], protocol.tubes)
    if not protocol.boundary:
        return lambda pairs: mask_overlaps(pairs, sent, real, crowd)

    def overlap(pairs: Pairs) -> Array:
        ious = mask_overlaps(pairs, sent, real, crowd)
        wanted = (ious >= REACHED[0]) & ~crowd[pairs.real]
        return smaller_of_both(pairs, sent, real, ious, wanted, protocol.boundary)

    return overlap


ENGINE = Engine(
    InstanceAccumulator,
    instance_truth.read,
    lambda path, subset, _protocol: AnnotationFile(instance_truth.read(path, subset or DEFAULT_SPLIT)),
    OpenedRecords,
    InstanceReport,
    parts_each=1,
)
