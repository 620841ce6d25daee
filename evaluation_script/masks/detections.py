"""Detections: their record table, their matching with instances, and the resulting precision.

Matching is the greedy loop of the COCO API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from .stack import Array


def order_by_score(score: Array, group: Array) -> Array:
    """Return the order by rising group, then by falling score; ties keep their order."""
    order: Array = np.lexsort((-score, group))
    return order


class OverlappingPairs(NamedTuple):
    """Pairs of a detection and an instance, by detection, and their IoU."""

    prediction: Array
    truth: Array
    iou: Array

    def select(self, flags: Array) -> OverlappingPairs:
        """Return some of the pairs."""
        return OverlappingPairs(self.prediction[flags], self.truth[flags], self.iou[flags])


class Candidates(NamedTuple):
    """The input of matching: detections and instances by threshold and range of areas."""

    pairs: OverlappingPairs
    thresholds: Array
    #: Flags (ranges, detections): detections whose own area lies outside the range.
    outside: Array
    #: Flags (ranges, instances): ignored instances.
    ignored: Array
    #: Instances that any number of detections may match, and instances that none may match.
    crowd: Array
    unmatchable: Array


def match(candidates: Candidates) -> Tuple[Array, Array]:
    """Return words of bits per detection: where it is matched, and where it is ignored.

    The words have a bit for each threshold and range of areas.
    """
    ignored = np.repeat(candidates.outside[:, None], len(candidates.thresholds), axis=1)
    matched = np.zeros_like(ignored)
    overlapping: Dict[int, List[Tuple[int, float]]] = {}
    for detection, instance, iou in zip(*(column.tolist() for column in candidates.pairs)):
        overlapping.setdefault(detection, []).append((instance, iou))
    crowd, unmatchable = candidates.crowd.tolist(), candidates.unmatchable.tolist()
    for area, does_not_count in enumerate(candidates.ignored.tolist()):
        for row, threshold in enumerate(candidates.thresholds.tolist()):
            matched_instances = set()
            for detection, instances in overlapping.items():
                free = [pair for pair in instances if crowd[pair[0]] or pair[0] not in matched_instances]
                best = _find_best([pair for pair in free if not does_not_count[pair[0]]], threshold)
                if best < 0:
                    best = _find_best([pair for pair in free if does_not_count[pair[0]]], threshold)
                if best >= 0:
                    matched_instances.add(best)
                    matched[area, row, detection] = not unmatchable[best]
                    # Ignored if its instance is ignored; otherwise it counts regardless of its own area.
                    stays = unmatchable[best] and ignored[area, row, detection]
                    ignored[area, row, detection] = does_not_count[best] or stays
    return _pack_bits(matched), _pack_bits(ignored)


def _find_best(pairs: List[Tuple[int, float]], least: float) -> int:
    """Return the last of the best-overlapping instances, or -1."""
    best = -1
    for instance, iou in pairs:
        if iou >= least:
            best, least = instance, iou
    return best


def _pack_bits(flags: Array) -> Array:
    """Return flags (ranges of areas, thresholds, detections) as a word for each detection."""
    rows = flags.reshape(flags.shape[0] * flags.shape[1], flags.shape[2])
    octets = np.zeros((rows.shape[1], 8), np.uint8)
    bits = np.packbits(rows, axis=0, bitorder="little").T
    octets[:, : bits.shape[1]] = bits
    words: Array = octets.view("<u8").reshape(-1)
    return words


class TrueSets(NamedTuple):
    """Annotated sets of keypoints, with the data that their similarity needs."""

    #: x and y (annotations, points, 2), whether each is marked, and the sigmas (annotations, points).
    points: Array
    marked: Array
    sigmas: Array
    area: Array
    #: Left, top, width and height.
    boxes: Array


class RankedBits(NamedTuple):
    """The detections of one category by falling score: bit words, ranks within images, and images."""

    true: Array
    counted: Array
    rank: Array
    image: Array
    #: The score at each recall, if requested.
    score: Optional[Array] = None

    def select(self, chosen: Union[Array, slice]) -> RankedBits:
        """Return some of the detections."""
        score = None if self.score is None else self.score[chosen]
        return RankedBits(self.true[chosen], self.counted[chosen], self.rank[chosen], self.image[chosen], score)

    def flags(self, area: int, thresholds: int) -> Tuple[Array, Array]:
        """Return the flags (thresholds, detections) of one range: which are correct, and which count."""
        shifts = np.arange(area * thresholds, (area + 1) * thresholds, dtype=np.uint64)[:, None]
        true, counted = ((bits >> shifts) & np.uint64(1) != 0 for bits in (self.true, self.counted))
        return true, counted


class CurveTask(NamedTuple):
    """The curves to draw: of each category in ranges of areas up to caps, leaving out each group of detections."""

    #: The detections of all categories, one category after the other, and where each begins and the last ends.
    ranked: RankedBits
    bounds: Array
    #: The group of each detection; one that is not among the groups of `counts` is never left out.
    group: Array
    #: For each curve, the index of a range of areas, the cap, and the row of the results.
    limits: List[Tuple[int, int, int]]
    thresholds: int
    #: The number of instances (categories, ranges of areas, groups) without each group.
    counts: Array
    #: The number of true detections that each recall requires (numbers of instances, recalls), and the index there of
    #: each of the counts.
    needed: Array
    which: Array
    #: Whether precision is averaged over recalls.
    averaged: bool = False


class CurveTables(NamedTuple):
    """The results of curves by row, category, group and threshold; values without instances stay as they were."""

    #: For each recall or averaged, and the recall reached.
    precision: Array
    recall: Array
    #: The score that reaches each recall, if the detections have scores.
    scores: Optional[Array] = None


def draw_curves(task: CurveTask, category: int, tables: CurveTables) -> None:
    """Enter the curves of a category into the tables."""
    members = slice(task.bounds[category], task.bounds[category + 1])
    ranked, group = task.ranked.select(members), task.group[members]
    for area, cap, row in task.limits:
        counts = task.counts[category, area]
        for number in np.flatnonzero(counts > 0).tolist():
            detections = ranked.select((ranked.rank < cap) & (group != number))
            needed = task.needed[task.which[category, area, number]]
            precision, right, scores = read_precision(detections, area, task.thresholds, needed)
            if len(needed):
                tables.precision[row, category, number] = precision.mean(axis=1) if task.averaged else precision
            if tables.scores is not None:
                tables.scores[row, category, number] = scores
            tables.recall[row, category, number] = right / counts[number]


def read_precision(ranked: RankedBits, area: int, thresholds: int, needed: Array) -> Tuple[Array, Array, Array]:
    """Return precision and scores (thresholds, recalls) of one category in a range of areas, with the number correct.

    `needed` gives the number of true detections that each recall requires. Without scores of detections, scores are 0.
    """
    true, counted = ranked.flags(area, thresholds)
    precision, scores = np.zeros((2, thresholds, len(needed)))
    for row in range(thresholds):
        hits = np.flatnonzero(true[row])  # where precision peaks
        exact = np.arange(1, len(hits) + 1) / (np.cumsum(counted[row])[hits] + np.spacing(1))
        envelope = np.maximum.accumulate(exact[::-1])[::-1]
        reached = needed[needed <= len(hits)]
        precision[row, : len(reached)] = envelope[reached - 1]
        if ranked.score is not None:
            scores[row, : len(reached)] = ranked.score[hits[reached - 1]]
    return precision, true.sum(axis=1), scores


#: The kinds of a record's `bbox`: absent, null or an empty list, four numbers, anything else.
BOXES = NO_BOX, EMPTY_BOX, WHOLE_BOX, OTHER_BOX = range(4)
#: The shape of each record to read: a mask, the masks of a video's frames, a box, keypoints, or a truth's annotation.
SHAPES = MASK, FRAMES, BOX, POINTS, ANNOTATION = range(5)
#: Bits of an annotation's keys, besides the mandatory ones.
HAS_AREA, HAS_MASK, HAS_BOX, HAS_CROWD, HAS_MARKED, HAS_POINTS = (1 << bit for bit in (2, 3, 4, 6, 7, 8))


@dataclass(frozen=True, eq=False, repr=False)
class Rings:
    """The rings of polygon masks, one after the other."""

    #: x and y, alternating.
    numbers: Array
    #: The start of each ring's numbers, and the final end; for each mask, the start of its rings.
    ends: Array
    masks: Array

    def __len__(self) -> int:
        return len(self.masks) - 1


@dataclass(frozen=True, eq=False, repr=False)
class RecordTable:
    """Records of the usual form at the start of some text, read without the JSON parser, one row each."""

    #: The bytes up to the beginning of the next record.
    end: int
    #: Ids of images or videos, and of categories.
    image: Array
    category: Array
    score: Array
    #: Height and width of each mask.
    sizes: Array
    #: The start and end of each mask's text in `masks`; in videos, of its rows of `frames`.
    bounds: Array
    #: A key of `run_lengths.FAULTS` or 0, and the number of pixels, for each mask.
    fault: Array
    area: Array
    masks: bytes
    #: The kind of the `bbox`, a key of BOXES, and its sides, which are numbers if it is complete.
    boxed: Array
    boxes: Array
    #: In videos, a row per frame: height, width (-1: no mask) and the end of the frame's text. In annotations, which
    #: have areas instead of scores: the id, whether it is a crowd, its num_keypoints, and the bits of its keys.
    frames: Optional[Array] = None
    #: The rows with polygons, which have no text, and their polygons.
    outlined: Optional[Array] = None
    rings: Optional[Rings] = None
    #: The numbers of keypoints: x, y and flag of each.
    points: Optional[Array] = None

    def __len__(self) -> int:
        return len(self.image)
