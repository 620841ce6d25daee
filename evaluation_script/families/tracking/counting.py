"""What is counted in one sequence: HOTA, CLEAR and identity of each category, and the tracks of BURST's AP."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ...files.problems import Problem, Problems, printable
from ...masks import run_lengths as rle
from ...masks.kernel import Pairs, of_texts
from ...masks.overlaps import Masks, box_overlaps, encoded, mask_overlaps
from ...masks.stack import Array
from ..base.units import Rows, TruthFrame, Unit, UnitCounts
from .files import CATEGORY, IGNORED, MASK, SCORE, TRACK_ID, TracksSubmission
from .metrics import EPSILON, THRESHOLD, ComparedFrame, best_pairs, counts_of
from .protocols import TracksProtocol

#: A prediction that lies in ignored regions with more than this share is left out.
MOST_IGNORED = 0.5
#: AP is the mean over these thresholds.
TRACK_THRESHOLDS = np.arange(0.5, 0.96, 0.05)


def count(unit: Unit, submission: TracksSubmission) -> UnitCounts:
    """Count a sequence."""
    problems, frames = Problems(), unit.load()
    sent, area = submission.masks(unit.name, frames, problems)
    masks = masks_of(frames, sent, area)
    if not problems and not submission.protocol.burst:
        check_disjoint(unit.name, frames, sent, masks, problems)
    if problems:
        return UnitCounts(unit.name, {}, problems.first, problems.count)
    sequence = ComparedSequence(frames, (sent, masks), submission.protocol, unit.facts)
    return UnitCounts(unit.name, sequence.tables(submission.classes))


class ComparedSequence:
    """The masks of both sides, and how they overlap."""

    def __init__(
        self, frames: List[TruthFrame], sent: Tuple[List[Rows], Masks], protocol: TracksProtocol, facts: Dict[str, Any]
    ) -> None:
        (self._sent, masks), self._protocol, self._facts = sent, protocol, facts
        self._real = [frame.rows for frame in frames]
        others = masks_of(frames, self._real)
        pairs = self._pairs = _pairs(self._sent, self._real)
        nobody = np.zeros(len(others.area), bool)
        shares = mask_overlaps(pairs, masks, others, nobody)
        both = masks.area[pairs.sent] + others.area[pairs.real]
        #: Pixels that each pair shares.
        self._shared = np.rint(shares * both / (1 + shares))
        similarities = box_overlaps(pairs, _boxes(masks), _boxes(others), nobody) if protocol.boxes else shares
        parts = zip(_split(similarities, pairs.bounds), self._sent, self._real)
        self._similarities = [part.reshape(len(one), len(two)) for part, one, two in parts]
        #: Of both sides, the truth first: of all masks, and by frame.
        self._areas, sides = (others.area, masks.area), (self._real, self._sent)
        self._numbers, self._kinds = (
            [np.array([row[column] for rows in side for row in rows], np.int64) for side in sides]
            for column in (TRACK_ID, CATEGORY)
        )
        self._numbers_in, self._kinds_in = (
            [_by_frame(values, rows) for values, rows in zip(columns, sides)]
            for columns in (self._numbers, self._kinds)
        )
        inside = np.bincount(pairs.sent, self._shared * (self._kinds[0] == IGNORED)[pairs.real], len(masks.area))
        outside = inside / np.maximum(masks.area, 1) <= MOST_IGNORED + EPSILON
        #: Which predictions do not lie in ignored regions for the most part.
        self._outside = _by_frame(outside, self._sent)

    def tables(self, classes: List[Tuple[str, int]]) -> Dict[str, Array]:
        """Return what is counted of each of these categories that occurs."""
        seen = {kind for kinds in self._kinds for kind in kinds.tolist()}
        present = [(place, one) for place, (_, one) in enumerate(classes) if one in seen]
        compared = [self.compared(category) for _, category in present]
        tables = {"classes": np.array([place for place, _ in present], np.int64), **counts_of(compared)}
        if self._protocol.burst:
            tables["objects"] = np.array([self._tracks(0, one)[1] for _, one in present], np.int64)
            matched = [self.matched_tracks(place, one) for place, one in present]
            tables["tracks"] = np.concatenate([np.zeros((0, 4)), *matched])
        return tables

    def compared(self, category: int) -> List[ComparedFrame]:
        """Return the frames of a category, without the predictions that are left out."""
        found = []
        for at, real in enumerate(self._real):
            if self._protocol.burst and not real:
                continue  # a frame in which nothing is annotated
            one, two = ((side[at] == category).nonzero()[0] for side in self._kinds_in)
            if not len(one) and not len(two):
                continue
            similarity = self._similarities[at][two[:, None], one].T
            if not self._protocol.exemplar:
                kept = self._kept(at, two, similarity, category)
                two, similarity = two[kept], similarity[:, kept]
            found.append((self._numbers_in[0][at][one], self._numbers_in[1][at][two], similarity))
        return _relabelled(found)

    def _kept(self, at: int, members: Array, similarity: Array, category: int) -> Array:
        """Return which predictions count.

        Of those without an object, the ones that lie in ignored regions for the most part do not; in BURST those of a
        category that the frame is not known to lack do not.
        """
        if self._protocol.burst:
            absent = not len(similarity) and category not in self._facts["neg"]
            if not absent and category not in self._facts["loose"]:
                return np.ones(len(members), bool)
            return ~_unmatched(similarity, 0.0)
        kept = self._outside[at][members]
        return kept if kept.all() else kept | ~_unmatched(similarity, -10_000.0)

    def matched_tracks(self, place: int, category: int) -> Array:
        """Return a row for each predicted track: the category's index, score, bits of matches, whether it is loose."""
        (objects, count), (tracks, number) = (self._tracks(side, category) for side in (0, 1))
        if category not in self._facts["neg"] and not count:
            return np.zeros((0, 4))
        of_masks = np.argsort(tracks, kind="stable")[np.count_nonzero(tracks < 0) :]
        of_each = np.array([row[SCORE] for rows in self._sent for row in rows])[of_masks]
        bounds = np.searchsorted(tracks[of_masks], np.arange(number + 1))
        scores = np.array([part.mean() for part in _split(of_each, bounds)])
        order = np.argsort(-scores, kind="stable")
        ious = self._tube_overlaps((objects, count), (tracks, number))[order]
        rows = np.zeros((number, 4))
        rows[:, 0], rows[:, 1], rows[:, 3] = place, scores[order], category in self._facts["loose"]
        for bit, threshold in enumerate(TRACK_THRESHOLDS.tolist()):
            free = np.ones(count, bool)
            for index in range(number):
                best = _best_object(ious[index], free, threshold)
                if best >= 0:
                    free[best] = False
                    rows[index, 2] += 1 << bit
        return rows

    def _tracks(self, side: int, category: int) -> Tuple[Array, int]:
        """Return the place of each mask's track among those of a category, -1 without one, and how many there are."""
        places: Dict[int, int] = {}
        found, members = np.full(len(self._kinds[side]), -1), np.flatnonzero(self._kinds[side] == category)
        found[members] = [places.setdefault(one, len(places)) for one in self._numbers[side][members].tolist()]
        return found, len(places)

    def _tube_overlaps(self, objects: Tuple[Array, int], tracks: Tuple[Array, int]) -> Array:
        """Return the IoU of tracks (rows) and objects (columns) over all frames."""
        row, column = tracks[0][self._pairs.sent], objects[0][self._pairs.real]
        meet = (row >= 0) & (column >= 0)
        shared = np.zeros((tracks[1], objects[1]))
        np.add.at(shared, (row[meet], column[meet]), self._shared[meet])
        real, sent = (
            np.bincount(of[of >= 0], area[of >= 0], count) for (of, count), area in zip((objects, tracks), self._areas)
        )
        return shared / np.maximum(sent[:, None] + real - shared, 1)


def _relabelled(frames: List[Tuple[Array, Array, Array]]) -> List[ComparedFrame]:
    """Return the frames with the numbers of tracks as indices."""
    sides = []
    for side in (0, 1):
        numbers = [np.zeros(0, np.int64), *(frame[side] for frame in frames)]
        _, indices = np.unique(np.concatenate(numbers), return_inverse=True)
        sides.append(_split(indices, np.cumsum(list(map(len, numbers)))))
    return [ComparedFrame(one, two, frame[2]) for one, two, frame in zip(*sides, frames)]


def _unmatched(similarity: Array, apart: float) -> Array:
    """Return which predictions (columns) have no object of their own; pairs that are too far apart count as said."""
    unmatched = np.ones(similarity.shape[1], bool)
    if similarity.size:
        quality = np.where(similarity < THRESHOLD - EPSILON, apart, similarity)
        rows, columns = best_pairs(quality)
        unmatched[columns[quality[rows, columns] > EPSILON]] = False
    return unmatched


def _pairs(one: List[Rows], two: List[Rows]) -> Pairs:
    """Return the pairs of each frame, of every mask of the one side with every mask of the other."""
    bounds = [np.cumsum([0, *map(len, side)]) for side in (one, two)]
    heights, widths = (np.diff(side) for side in bounds)
    ends = np.append(0, np.cumsum(heights * widths))
    frame = np.repeat(np.arange(len(one)), np.diff(ends))
    place = np.arange(len(frame)) - ends[frame]
    return Pairs(bounds[0][frame] + place // widths[frame], bounds[1][frame] + place % widths[frame], ends)


def _by_frame(values: Array, rows: List[Rows]) -> List[Array]:
    return _split(values, np.cumsum([0, *map(len, rows)]))


def _split(values: Array, bounds: Array) -> List[Array]:
    ends = bounds.tolist()
    return [values[start:end] for start, end in zip(ends, ends[1:])]


def masks_of(frames: List[TruthFrame], rows: List[Rows], area: Optional[Array] = None) -> Masks:
    """Return the masks of all frames in one list, and their areas where they are not known yet."""
    texts = [row[MASK] for some in rows for row in some]
    each = np.array([frame.size for frame in frames], np.int64).reshape(-1, 2)
    sizes = np.repeat(each, list(map(len, rows)), axis=0)
    return Masks(of_texts(texts), rle.check_many(texts, sizes.prod(1)).area if area is None else area, sizes)


def check_disjoint(name: str, frames: List[TruthFrame], sent: List[Rows], masks: Masks, problems: Problems) -> None:
    """Report the first frame in which two predictions share pixels."""
    both = _pairs(sent, sent)
    once = both.sent < both.real
    pairs = Pairs(both.sent[once], both.real[once], np.append(0, np.cumsum(once))[both.bounds])
    shared = np.flatnonzero(mask_overlaps(pairs, masks, masks, np.zeros(len(masks.area), bool)))
    if len(shared):
        at = int(np.searchsorted(pairs.bounds, shared[0], side="right")) - 1
        numbers = [row[TRACK_ID] for rows in sent for row in rows]
        one, two = numbers[pairs.sent[shared[0]]], numbers[pairs.real[shared[0]]]
        where = f"{printable(name)}, frame {frames[at].name}"
        problems.add(Problem(where, f"tracks {one} and {two} share pixels", "Give each pixel to one track"))


def _boxes(masks: Masks) -> Array:
    """Return the boxes around masks."""
    from pycocotools.mask import toBbox

    every = encoded(masks, np.arange(len(masks.area)))
    return np.asarray(toBbox(every) if every else [], float).reshape(-1, 4)


def _best_object(ious: Array, free: Array, threshold: float) -> int:
    """Return the free object that a track overlaps most, the last of equal ones; -1 where none is close enough."""
    best, least = -1, min(threshold, 1 - 1e-10)
    for number in np.flatnonzero(free).tolist():
        if ious[number] >= least - EPSILON:
            best, least = number, float(ious[number])
    return best
