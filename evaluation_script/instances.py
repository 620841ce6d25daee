"""A phase of instance masks: match detections with the truth, within the cap, and sum up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

from .archive_limits import ArchiveLimits
from .instance_accumulator import InstanceAccumulator, InstanceScore
from .instance_counts import DETECTION, IMAGE, InstanceCounts, by_falling_score, decoded, truth_rows
from .instance_matching import Detections, Instances, Overlap, match, rank_in_group
from .instance_overlaps import Masks, box_overlaps, mask_overlaps
from .instance_protocols import PER_IMAGE, InstanceProtocol
from .instance_records import InstanceRecords, read_records
from .instance_truth import InstanceTruth
from .masks import Array
from .parallel import WHOLE, Part, results_of_processes
from .phase import ScoringRules

#: Records that are matched at once; half the memory of matching is theirs.
RECORDS_AT_ONCE = 1 << 16
#: Blocks of images for each process, so that all end at about the same time.
BLOCKS_OF_PROCESS = 4


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
    return counted_by(path, truth, protocol, ScoringRules(protocol, limits, strict=strict, jobs=jobs)).compute()


def counted_by(
    path: str, truth: InstanceTruth, protocol: InstanceProtocol, rules: ScoringRules, *, part: Part = WHOLE
) -> InstanceAccumulator:
    """Match a submission, or what it holds of a part of the images, by the processes that the rules allow."""
    images = np.array(part.of([1] * len(truth.images.ids)), np.int64)
    taken = None if part == WHOLE else images
    records = read_records(path, truth.images, protocol, rules.limits, jobs=rules.jobs, taken=taken)
    accumulator = InstanceAccumulator(protocol, truth.images.ids.tolist(), truth.categories, strict=rules.strict)
    accumulator.notes = records.warnings
    costs = np.bincount(records.image, minlength=len(truth.images.ids))
    blocks = _blocks(images, costs[images], rules.jobs)
    sent, real = (_by_block(image, blocks, len(costs)) for image in (records.image, truth.image))

    def work(number: int) -> bytes:
        return _matched(_Block(blocks[number], records, sent[number], truth, real[number], protocol)).encoded()

    for data in results_of_processes(work, [len(indices) for indices in sent], rules.jobs, lambda _: None):
        accumulator.update(decoded(data))
    return accumulator


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
class _Block:
    """Some images, and what was sent of them and what is there, by index."""

    images: Array
    records: InstanceRecords
    sent: Array
    truth: InstanceTruth
    real: Array
    protocol: InstanceProtocol


def _matched(block: _Block) -> InstanceCounts:
    """Match the records within the cap with the truth."""
    records, truth, protocol = block.records, block.truth, block.protocol
    kept, rank, dropped = _within_cap(block)
    known = block.real[truth.category[block.real] >= 0]
    known = known[np.lexsort((truth.category[known], truth.image[known]))]
    instances = Instances(
        truth.image[known],
        truth.category[known],
        truth.area[known],
        (truth.boxes[known, 2] * truth.boxes[known, 3]) if protocol.boxes else truth.pixels[known],
        truth.crowd[known],
        (truth.ids[known] == 0) & protocol.id_zero_quirk,
    )
    found = np.zeros(len(kept), DETECTION)
    found["image"], found["category"], found["rank"] = records.image[kept], records.category[kept], rank
    found["score"] = records.score[kept]
    detections = Detections(records.image[kept], records.category[kept], rank, records.area[kept])
    found["matched"], found["ignored"] = match(instances, detections, _overlap(block, kept, known))
    images = np.zeros(len(block.images), IMAGE)
    images["image"], images["dropped"] = block.images, dropped
    return InstanceCounts(images, truth_rows(instances.image, instances.category, instances.ignored()), found)


def _within_cap(block: _Block) -> Tuple[Array, Array, Array]:
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
    kept = kept[by_falling_score(records.score[kept], category[kept], image[kept])]
    rank = rank_in_group(image[kept], category[kept])
    beyond = np.append(beyond, kept[rank >= most])
    dropped = np.bincount(image[beyond], minlength=len(block.truth.images.ids))[block.images]
    return kept[rank < most], rank[rank < most], dropped


def _overlap(block: _Block, kept: Array, known: Array) -> Overlap:
    """Return how to compute the IoU of these records and instances."""
    records, truth, sizes = block.records, block.truth, block.truth.images.sizes
    crowd = truth.crowd[known]
    if block.protocol.boxes:
        return lambda pairs: box_overlaps(pairs, records.boxes[kept], truth.boxes[known], crowd)
    sent = Masks(records.masks.take(kept), records.area[kept], sizes[records.image[kept]])
    real = Masks(truth.masks.take(known), truth.pixels[known], sizes[truth.image[known]])
    return lambda pairs: mask_overlaps(pairs, sent, real, crowd)
