"""Detections matched with instances as the COCO API matches them, for many images at once.

Scores depend only on the resulting counts. Their bytes are the format that processes exchange and that parts hold
(`docs/scale.md`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.detections import Candidates, OverlappingPairs, TrueSets
from ...masks.overlaps import PairGroups, Pairs, smaller_of_both
from ...masks.run_lengths import Masks
from ...masks.stack import Array, places_of
from .keypoints import similarities
from .protocols import AREAS, OCCLUSIONS, PER_IMAGE, THRESHOLDS, InstanceProtocol
from .records import rank_in_group
from .submission import InstanceRecords
from .truth import InstanceTruth

#: The IoU required for a match: slightly below 1, as in the original.
_REACHED = np.minimum(np.array(THRESHOLDS), 1 - 1e-10)
_RANGES = np.array(list(AREAS.values()), float)
#: Records that are matched at once; they take half the memory of matching.
_RECORDS_AT_ONCE = 1 << 16
#: The number of blocks of images per process, so that all processes end at about the same time.
_BLOCKS_OF_PROCESS = 4
#: Index of an image, and the number of its records beyond the cap.
IMAGE = np.dtype([("image", "<u4"), ("dropped", "<u4")])
#: Indices of image and category, and the number of counted instances in each range of areas.
TRUTH = np.dtype([("image", "<u4"), ("category", "<u4"), ("counted", "<u4", (4,))])
#: Indices of image and category, the rank among their detections, the score, and two words with a bit for each range of
#: areas and threshold (ten per range): matched, and not counted.
DETECTION = np.dtype(
    [
        ("image", "<u4"), ("category", "<u4"), ("rank", "<u4"), ("score", "<f8"), ("matched", "<u8"),
        ("ignored", "<u8"),
    ]
)  # fmt: skip
_TABLES = (IMAGE, TRUTH, DETECTION)
#: The columns that identify and order the rows of each table.
_KEYS: Tuple[Tuple[str, ...], ...] = (("image",), ("image", "category"), ("image", "category", "rank"))


class InstanceCounts(NamedTuple):
    """The matches in some images, as tables sorted by image, category and rank."""

    images: Array
    truth: Array
    detections: Array

    @property
    def tables(self) -> Tuple[Array, Array, Array]:
        """Return the three tables."""
        return self.images, self.truth, self.detections

    def select_images(self, images: Array) -> InstanceCounts:
        """Return the counts of some images, given by rising indices."""
        return InstanceCounts(*(table[places_of(images, table["image"]) >= 0] for table in self.tables))

    def blocks(self, images: int) -> Dict[str, InstanceCounts]:
        """Return the counts in blocks of consecutive images, by block number."""
        numbers = np.unique(self.images["image"] // images).tolist()
        parts = {}
        for number in numbers:
            bounds = [
                np.searchsorted(table["image"], [number * images, (number + 1) * images]).tolist()
                for table in self.tables
            ]
            cut = (table[start:stop] for table, (start, stop) in zip(self.tables, bounds))
            parts[str(number)] = InstanceCounts(*cut)
        return parts

    def encode(self) -> bytes:
        """Return the bytes that `decode_counts` reads."""
        lengths = struct.pack("<III", *map(len, self.tables))
        return lengths + b"".join(table.tobytes() for table in self.tables)


def merge_counts(parts: Sequence[InstanceCounts]) -> InstanceCounts:
    """Return the counts of different images merged into one."""
    tables = []
    for number, kind in enumerate(_TABLES):
        if len(parts) == 1:
            table = parts[0].tables[number]
        else:
            raw = f"V{kind.itemsize}"  # numpy copies rows field by field otherwise, which takes ten times as long
            rows = [counts.tables[number].view(raw) for counts in parts]
            table = np.concatenate([np.zeros(0, raw), *rows]).view(kind)
        image = table["image"]
        rising = bool((image[1:] >= image[:-1]).all())
        tables.append(table if rising else table[np.argsort(image, kind="stable")])
    return InstanceCounts(*tables)


def decode_counts(data: bytes) -> InstanceCounts:
    """Return the counts that `encode` wrote; raises ValueError for malformed bytes."""
    head = struct.calcsize("<III")
    if len(data) < head:
        raise ValueError("has no header")
    lengths = struct.unpack_from("<III", data)
    sizes = [count * kind.itemsize for count, kind in zip(lengths, _TABLES)]
    if sum(sizes) != len(data) - head:
        raise ValueError(f"has {len(data) - head} bytes of tables, not {sum(sizes)}")
    starts = [head + sum(sizes[:number]) for number in range(len(sizes))]
    tables = [np.frombuffer(data, kind, count, start) for kind, count, start in zip(_TABLES, lengths, starts)]
    for table, keys in zip(tables, _KEYS):
        if not _is_rising(table, keys):
            raise ValueError("has rows out of order")
        if (places_of(tables[0]["image"], table["image"]) < 0).any():
            raise ValueError("has rows for images that it does not hold")
    if not np.isfinite(tables[2]["score"]).all():
        raise ValueError("has scores that are not finite")
    return InstanceCounts(*tables)


def _is_rising(table: Array, keys: Sequence[str]) -> bool:
    """Return whether the keys of the rows are strictly rising."""
    undecided = np.ones(max(len(table) - 1, 0), bool)
    for key in keys:
        before, after = table[key][:-1], table[key][1:]
        if (undecided & (before > after)).any():
            return False
        undecided &= before == after
    return not undecided.any()


class ImageBlock(NamedTuple):
    """Some images, and the indices of their records and annotations."""

    images: Array
    records: InstanceRecords
    record_indices: Array
    truth: InstanceTruth
    annotation_indices: Array
    protocol: InstanceProtocol
    #: The pixels of each record (rows) inside each annotation, if the records have no masks.
    inside: Optional[Array] = None
    #: The IoU required for a match, ten rising numbers.
    reached: Array = _REACHED


def cut_into_blocks(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, images: Array, jobs: int
) -> List[ImageBlock]:
    """Return these images, given by rising indices, in blocks with similar numbers of records."""
    costs = np.bincount(records.image, minlength=len(truth.images.ids))
    blocks = _cut_images(images, costs[images], jobs)
    records_of_blocks, annotations_of_blocks = (
        _indices_by_block(image, blocks, len(costs)) for image in (records.image, truth.image)
    )
    return [
        ImageBlock(block_images, records, record_indices, truth, annotation_indices, protocol)
        for block_images, record_indices, annotation_indices in zip(blocks, records_of_blocks, annotations_of_blocks)
    ]


def _cut_images(images: Array, costs: Array, jobs: int) -> List[Array]:
    """Return images in blocks with similar numbers of records, a few for each process."""
    total = int(costs.sum())
    count = max(-(-total // _RECORDS_AT_ONCE), _BLOCKS_OF_PROCESS * jobs if jobs > 1 else 1)
    numbers = (np.cumsum(costs) - costs) * count // max(total, 1)
    return np.split(images, np.flatnonzero(np.diff(numbers)) + 1)


def _indices_by_block(image: Array, blocks: List[Array], images: int) -> List[Array]:
    """Return the indices of each block's entries, in order."""
    block_of = np.full(images, len(blocks))
    for number, block in enumerate(blocks):
        block_of[block] = number
    order = np.argsort(block_of[image], kind="stable")
    bounds = np.searchsorted(block_of[image][order], np.arange(len(blocks) + 1))
    return [order[start:stop] for start, stop in zip(bounds, bounds[1:])]


def match_block(block: ImageBlock) -> InstanceCounts:
    """Match the records within the cap with the truth."""
    truth, protocol, count = block.truth, block.protocol, len(block.truth.categories)
    annotations = _annotations_of(block)
    records, rank, dropped = _apply_cap(block, annotations)
    instances, detections = _select_instances(block, annotations), _select_detections(block, records, rank)
    rows = np.zeros(len(records), DETECTION)
    rows["image"], rows["category"], rows["rank"] = detections.image, detections.category, rank
    rows["score"] = block.records.score[records]
    images = np.zeros(len(block.images), IMAGE)
    images["image"], images["dropped"] = block.images, dropped
    if protocol.streets:
        return InstanceCounts(images, _judge_streets(block, records, annotations, rows), rows)
    overlap = _once(_overlap(block, records, annotations, float(block.reached[0])))
    truth_table = _fill_in_matches(rows, instances, detections, overlap)
    if protocol.occlusion:  # the categories again, with other ranges
        occlusion_rows = rows.copy()
        occlusion_rows["category"] += count
        hidden = replace(
            instances, area=truth.occlusion[annotations], ranges=np.array(list(OCCLUSIONS.values()), float)
        )
        shown = detections._replace(area=np.full(len(records), np.nan))
        counted = _fill_in_matches(occlusion_rows, hidden, shown, overlap)
        counted["category"] += count
        rows, truth_table = (
            table[np.lexsort((table["category"], table["image"]))]
            for table in map(np.concatenate, ((rows, occlusion_rows), (truth_table, counted)))
        )
    return InstanceCounts(images, truth_table, rows)


def _judge_streets(block: ImageBlock, records: Array, annotations: Array, rows: Array) -> Array:
    """Match records as Cityscapes does; return the number of instances that count."""
    from .cityscapes import SharedPixels, StreetInstances, judge  # other benchmarks do not need it

    truth, images, protocol = block.truth, block.records.image[records], block.protocol
    voids = block.annotation_indices[truth.category[block.annotation_indices] < 0]
    if protocol.street_quirks:
        voids = voids[truth.crowd[voids]]
    voids = voids[np.argsort(truth.image[voids], kind="stable")]
    own_pairs, void_pairs = (
        _pair_neighbours(rows_key, truth_key)
        for rows_key, truth_key in (
            (
                images * len(truth.categories) + block.records.category[records],
                truth.image[annotations] * len(truth.categories) + truth.category[annotations],
            ),
            (images, truth.image[voids]),
        )
    )
    street, void = (
        _count_shared(block, records, entries, pairs)
        for entries, pairs in ((annotations, own_pairs), (voids, void_pairs))
    )
    pixels = block.records.pixels[records]
    on_void = np.bincount(void_pairs.prediction, void, len(records))
    instances = StreetInstances(
        truth.pixels[annotations],
        truth.crowd[annotations],
        None if truth.distances is None else truth.distances[annotations],
    )
    rows["matched"], rows["ignored"] = judge(
        SharedPixels(own_pairs.prediction, own_pairs.truth, street),
        instances,
        (pixels, on_void, block.records.score[records]),
        counts_groups_twice=protocol.street_quirks,
    )
    return _truth_rows(truth.image[annotations], truth.category[annotations], instances.flag_ignored())


def _pair_neighbours(predictions: Array, truths: Array) -> Pairs:
    """Return all pairs with the same key; both inputs are sorted by key."""
    low, high = (np.searchsorted(truths, predictions, side=side) for side in ("left", "right"))
    prediction = np.repeat(np.arange(len(predictions)), high - low)
    truth = np.arange(len(prediction)) + np.repeat(low - (np.cumsum(high - low) - (high - low)), high - low)
    starts = np.flatnonzero(np.append(True, predictions[1:] != predictions[:-1])[: len(predictions)])
    return Pairs(prediction, truth, np.searchsorted(prediction, np.append(starts, len(predictions))))


def _count_shared(block: ImageBlock, records: Array, annotations: Array, pairs: Pairs) -> Array:
    """Return the number of shared pixels of each pair of masks."""
    if block.inside is not None:
        columns = places_of(block.annotation_indices, annotations)
        return block.inside[records[pairs.prediction], columns[pairs.truth]]
    sizes, truth, pixels = block.truth.images.sizes, block.truth, block.records.pixels[records]
    predicted = Masks(block.records.masks.take(records), pixels, sizes[block.records.image[records]])
    annotated = Masks(truth.masks.take(annotations), truth.pixels[annotations], sizes[truth.image[annotations]])
    shares = backend().mask_overlaps(pairs, predicted, annotated, np.ones(len(annotations), bool))
    shared: Array = np.rint(shares * pixels[pairs.prediction]).astype(np.int64)
    return shared


def _fill_in_matches(rows: Array, instances: Instances, detections: Detections, overlap: _Overlap) -> Array:
    """Enter the matches; return the number of instances that count."""
    rows["matched"], rows["ignored"] = match(instances, detections, overlap)
    return _truth_rows(instances.image, instances.category, instances.flag_ignored())


class ClosePairs(NamedTuple):
    """Records within the cap by image and falling score, annotations, and the pairs of both that overlap."""

    records: Array
    annotations: Array
    #: By index in `records` and `annotations`, regardless of category.
    pairs: OverlappingPairs
    #: The records that are ignored unless they are matched.
    excused: Array


def find_close_pairs(block: ImageBlock, threshold: float) -> ClosePairs:
    """Return the pairs of an image with at least this IoU; with crowds, the share of the record inside."""
    annotations, image = _annotations_of(block), block.records.image
    records = np.sort(_apply_cap(block, annotations)[0])
    records = records[backend().order_by_score(block.records.score[records], image[records])]
    detections = _select_detections(block, records, rank_in_group(image[records]))
    instances = replace(_select_instances(block, annotations), category=np.zeros(len(annotations), np.int64))
    pairs = _similar_pairs(instances, detections._replace(category=np.zeros(len(records), np.int64)), threshold)
    iou = _overlap(block, records, annotations, threshold)(pairs)
    close = OverlappingPairs(pairs.prediction, pairs.truth, iou).select(iou >= threshold)
    excused = np.zeros(len(records), bool) if detections.excused is None else detections.excused
    return ClosePairs(records, annotations, close, excused)


def _annotations_of(block: ImageBlock) -> Array:
    """Return the annotations that exist for the protocol, by image and category."""
    truth, annotations = block.truth, block.annotation_indices[block.truth.category[block.annotation_indices] >= 0]
    if block.protocol.federated:
        annotations = annotations[truth.area[annotations] > 0]
    return annotations[np.lexsort((truth.category[annotations], truth.image[annotations]))]


def _select_instances(block: ImageBlock, annotations: Array) -> Instances:
    truth, protocol = block.truth, block.protocol
    if truth.keypoints is not None and protocol.keypoints:
        counted = truth.keypoints.count[annotations] > 0
        return Instances(
            truth.image[annotations],
            truth.category[annotations],
            np.where(counted, truth.area[annotations], np.inf),  # outside all ranges: ignored
            np.ones(len(annotations)),
            truth.crowd[annotations],
            (truth.ids[annotations] == 0) & protocol.id_zero_quirk,
            np.array(protocol.areas, float),
            block.reached,
        )
    return Instances(
        truth.image[annotations],
        truth.category[annotations],
        truth.area[annotations],
        (truth.boxes[annotations, 2] * truth.boxes[annotations, 3]) if protocol.boxes else truth.pixels[annotations],
        truth.crowd[annotations] & protocol.crowds,
        (truth.ids[annotations] == 0) & protocol.id_zero_quirk,
        np.array(protocol.areas, float),
        block.reached,
    )


def _select_detections(block: ImageBlock, indices: Array, rank: Array) -> Detections:
    records, truth, protocol = block.records, block.truth, block.protocol
    extent = np.ones(len(indices)) if protocol.keypoints else records.pixels[indices]
    detections = Detections(records.image[indices], records.category[indices], rank, records.area[indices], extent)
    if not protocol.federated:
        return detections
    pairs = detections.image * len(truth.categories) + detections.category
    return detections._replace(excused=np.isin(pairs, truth.coverage.inexhaustive))


def _apply_cap(block: ImageBlock, annotations: Array) -> Tuple[Array, Array, Array]:
    """Return counted records by image, category and falling score, their ranks, and the number dropped by image."""
    records, cap, indices = block.records, block.protocol.detections[-1], block.record_indices
    image, category = records.image, records.category
    beyond = indices[:0]
    if block.protocol.cap == PER_IMAGE:
        crowded = indices[np.bincount(image[indices], minlength=1)[image[indices]] > cap]
        order = crowded[backend().order_by_score(records.score[crowded], image[crowded])]
        beyond = order[rank_in_group(image[order]) >= cap]
        indices = indices[~np.isin(indices, beyond)] if len(beyond) else indices
    indices = indices[category[indices] >= 0]
    if block.protocol.federated:
        indices = indices[_is_looked_for(block, indices, annotations)]
    group = image[indices] * len(block.truth.categories) + category[indices]
    order = backend().order_by_score(records.score[indices], group)
    indices, rank = indices[order], rank_in_group(group[order])
    beyond = np.append(beyond, indices[rank >= cap])
    dropped = records.dropped + np.bincount(image[beyond], minlength=len(records.dropped))
    return indices[rank < cap], rank[rank < cap], dropped[block.images]


def _is_looked_for(block: ImageBlock, indices: Array, annotations: Array) -> Array:
    """Return which records count: non-empty masks of a category listed as present or absent in their image."""
    records, truth, count = block.records, block.truth, len(block.truth.categories)
    pairs = records.image[indices] * count + records.category[indices]
    positive = truth.image[annotations] * count + truth.category[annotations]
    flags: Array = records.area[indices] > 0
    negative = truth.coverage.negative
    return flags if negative is None else flags & (np.isin(pairs, positive) | np.isin(pairs, negative))


def _overlap(block: ImageBlock, indices: Array, annotations: Array, least: float) -> _Overlap:
    """Return how to compute the IoU of these records and instances; OKS below the least are 0."""
    records, truth, sizes, protocol = block.records, block.truth, block.truth.images.sizes, block.protocol
    if protocol.keypoints and truth.keypoints is not None:
        keypoints, predicted_points = truth.keypoints, records.points[indices]
        true_sets = TrueSets(
            keypoints.points[annotations], keypoints.marked[annotations],
            keypoints.sigmas[truth.category[annotations]], truth.area[annotations], truth.boxes[annotations],
        )  # fmt: skip
        return lambda pairs: similarities(pairs, predicted_points, true_sets, least)
    crowd = truth.crowd[annotations] & protocol.crowds & (not protocol.tubes)
    if protocol.boxes:
        return lambda pairs: backend().box_overlaps(pairs, records.boxes[indices], truth.boxes[annotations], crowd)
    predicted = Masks(
        records.masks.take(indices), records.pixels[indices], sizes[records.image[indices]], protocol.tubes
    )
    annotated = Masks(
        truth.masks.take(annotations), truth.pixels[annotations], sizes[truth.image[annotations]], protocol.tubes
    )
    if not protocol.boundary:
        return lambda pairs: backend().mask_overlaps(pairs, predicted, annotated, crowd)

    def overlap(pairs: Pairs) -> Array:
        ious = backend().mask_overlaps(pairs, predicted, annotated, crowd)
        wanted = (ious >= block.reached[0]) & ~crowd[pairs.truth]
        return smaller_of_both(pairs, predicted, annotated, ious, wanted, protocol.boundary)

    return overlap


def _once(overlap: _Overlap) -> _Overlap:
    """Return a function that computes the IoU of the same pairs once."""
    computed: List[Array] = []

    def look(pairs: Pairs) -> Array:
        if not computed:
            computed.append(overlap(pairs))
        return computed[0]

    return look


@dataclass(frozen=True)
class Instances:
    """The truth by image and category, one entry per instance, with the data that matching needs."""

    image: Array
    category: Array
    #: The annotated area, which decides between small, medium and large.
    area: Array
    #: The compared size: pixels of the mask or of the box. Equal for all keypoints, since it does not limit their OKS.
    extent: Array
    crowd: Array
    #: Never matched, as annotations with the id 0 in the original.
    unmatchable: Array
    #: Both ends included.
    ranges: Array = field(default_factory=lambda: _RANGES)
    #: The IoU required for a match, ten rising numbers.
    reached: Array = field(default_factory=lambda: _REACHED)

    def flag_ignored(self) -> Array:
        """Return for each range of areas the ignored instances."""
        return np.array([self.crowd | (self.area < low) | (self.area > high) for low, high in self.ranges])


class Detections(NamedTuple):
    """The detections of a submission, by image, category and falling score."""

    image: Array
    category: Array
    #: The rank among the detections of the same image and category.
    rank: Array
    #: The area, which decides between small, medium and large; NaN is in every range.
    area: Array
    #: The compared size: pixels of the mask or of the box.
    extent: Array
    #: The instances that are ignored unless they are matched.
    excused: Optional[Array] = None


#: The IoU of each pair.
_Overlap = Callable[[Pairs], Array]


def match(truth: Instances, detections: Detections, overlap: _Overlap) -> Tuple[Array, Array]:
    """Return a word per detection, with a bit for each range of areas and threshold.

    The first word has a bit where the detection matches an instance, the second where it is ignored.
    """
    pairs = _similar_pairs(truth, detections, float(truth.reached[0]))
    ious = overlap(pairs)
    enough = ious >= truth.reached[0]
    close = OverlappingPairs(pairs.prediction[enough], pairs.truth[enough], ious[enough])
    outside = np.array([(detections.area < low) | (detections.area > high) for low, high in truth.ranges])
    if detections.excused is not None:
        outside |= detections.excused
    ignored = truth.flag_ignored()
    return backend().match(Candidates(close, truth.reached, outside, ignored, truth.crowd, truth.unmatchable))


def _similar_pairs(truth: Instances, detections: Detections, least: float) -> Pairs:
    """Return the pairs of one image and category whose IoU may reach a bound, group by group."""
    categories = int(max(truth.category.max(initial=0), detections.category.max(initial=0))) + 1
    keys = truth.image * categories + truth.category
    starts = np.flatnonzero(detections.rank == 0)
    wanted = detections.image[starts] * categories + detections.category[starts]
    low, high = (np.searchsorted(keys, wanted, side=side) for side in ("left", "right"))
    groups = PairGroups(np.append(starts, len(detections.rank)), low, high)
    return backend().similar_pairs(groups, detections.extent, truth.extent, truth.crowd, least)


def _truth_rows(image: Array, category: Array, ignored: Array) -> Array:
    """Return the number of counted instances per image and category, in each range of areas."""
    changes = np.append(True, (image[1:] != image[:-1]) | (category[1:] != category[:-1]))
    starts = np.flatnonzero(changes[: len(image)])
    rows = np.zeros(len(starts), TRUTH)
    rows["image"], rows["category"] = image[starts], category[starts]
    rows["counted"] = np.add.reduceat((~ignored).T.astype(np.int64), starts, axis=0)
    return rows
