"""A phase of instance masks: match detections with the truth, within the cap, and sum up."""

from __future__ import annotations

from ctypes import CDLL
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, List, Tuple

import numpy as np

from . import kernel, kernel_runs
from .archive_limits import ArchiveLimits
from .instance_accumulator import InstanceAccumulator, InstanceScore
from .instance_counts import DETECTION, IMAGE, InstanceCounts, decoded, packed_bits, truth_rows
from .instance_matching import Detections, Group, Instances, Overlap, match, rank_in_group
from .instance_protocols import PER_IMAGE, InstanceProtocol
from .instance_records import InstanceRecords, read_records
from .instance_truth import InstanceTruth
from .masks import Array
from .parallel import WHOLE, Part, results_of_processes
from .phase import ScoringRules

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE

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
    kept, beyond = _within_cap(block)
    known = block.real[truth.category[block.real] >= 0]
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
    matches = match(instances, detections, protocol.detections[-1], _overlap(block, kept, known))
    images = np.zeros(len(block.images), IMAGE)
    images["image"] = block.images
    images["dropped"] = np.bincount(records.image[beyond], minlength=len(truth.images.ids))[block.images]
    found = np.zeros(len(matches.order), DETECTION)
    found["image"], found["category"] = detections.image[matches.order], detections.category[matches.order]
    found["rank"], found["score"] = matches.rank, detections.score[matches.order]
    found["matched"], found["ignored"] = packed_bits(matches.matched), packed_bits(matches.ignored)
    counted = [~ignored for ignored in instances.ignored()]
    return InstanceCounts(images, truth_rows(instances.image, instances.category, counted), found)


def _within_cap(block: _Block) -> Tuple[Array, Array]:
    """Return the indices of the records that count, and of those that the cap drops."""
    records, of_image = block.records, block.protocol.cap == PER_IMAGE
    image, category, score = records.image[block.sent], records.category[block.sent], records.score[block.sent]
    group = image if of_image else category
    order = np.lexsort((-score, image, group))
    beyond = order[rank_in_group(image[order], group[order]) >= block.protocol.detections[-1]]
    known = category >= 0
    keep = known.copy()
    keep[beyond] = False
    return block.sent[keep], block.sent[beyond if of_image else beyond[known[beyond]]]


def _overlap(block: _Block, kept: Array, known: Array) -> Overlap:
    """Return how to compute IoU: by the kernel, or by pycocotools, which is safe once every run was checked."""
    records, truth, protocol = block.records, block.truth, block.protocol
    crowd = truth.crowd.astype(np.uint8).tolist()

    def by_kernel(library: CDLL, groups: List[Group]) -> Array:
        sent = [[records.masks[index] for index in kept[detections].tolist()] for detections, _ in groups]
        indices = [known[instances].tolist() for _, instances in groups]
        real = [[truth.masks[index] for index in members] for members in indices]
        crowds = [[crowd[index] for index in members] for members in indices]
        return kernel_runs.overlaps(kernel_runs.Groups(sent, real, crowds), library)

    def by_pycocotools(groups: List[Group]) -> Array:
        return np.concatenate([np.zeros(0), *(of_group(*group) for group in groups)])

    def of_group(detections: Array, instances: Array) -> Array:
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
        return partial(by_kernel, library)
    from pycocotools.mask import iou

    return by_pycocotools


def _encoded(masks: List[str], indices: List[int], size: List[int]) -> List[_EncodedRLE]:
    return [{"size": size, "counts": masks[index]} for index in indices]
