"""The counts of one sequence: HOTA, CLEAR and identity per category, and tracks for BURST's AP.

Counts are summed over sequences. A compared frame has the indices of its objects and predictions, and their
similarities, one row per object.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from ...files.problems import Problem, Problems, printable
from ...masks.backend import backend
from ...masks.overlaps import Pairs, best_assignment
from ...masks.run_lengths import Masks, cut_batches, encode_masks, pack_texts
from ...masks.stack import Array
from ...values.arithmetic import add, mean
from ..base.units import Rows, TruthFrame, Unit, UnitCounts
from .files import CATEGORY, IGNORED, MASK, SCORE, TRACK_ID, TracksSubmission
from .protocols import TracksProtocol

_EPSILON = float(np.finfo(float).eps)
#: The similarities at which pairs match; scores are means over them.
ALPHAS = np.arange(0.05, 0.99, 0.05)
#: The minimum similarity of matches for CLEAR and identity metrics.
_THRESHOLD = 0.5
#: A prediction is ignored if more than this share of it lies in ignored regions.
_MOST_IGNORED = 0.5
#: The thresholds over which AP is the mean.
TRACK_THRESHOLDS = np.arange(0.5, 0.96, 0.05)
#: The recalls at which AP samples precision.
_RECALLS = np.linspace(0, 1, 101)
#: The counts per alpha, and the counts taken once. The last three explain the loss of AssA as sums over matches: frames
#: in which object or track matches another, frames in which the object matches nothing at the lowest alpha, and frames
#: in which the track matches nothing there.
HOTA_FIELDS = (
    "matched", "missed", "surplus", "AssA", "AssRe", "AssPr", "similarity", "swapped", "gaps", "excess",
)  # fmt: skip
CLEAR_FIELDS = ("matched", "missed", "surplus", "switches", "similarity", "identical")


def count(unit: Unit, submission: TracksSubmission) -> UnitCounts:
    """Count a sequence."""
    problems, frames = Problems(), submission.size_frames(unit.name, unit.load())
    predictions, area = submission.masks(unit.name, frames, problems)
    if not problems and not submission.protocol.burst:
        check_disjoint(unit.name, frames, predictions, area, problems)
    if problems:
        return UnitCounts(unit.name, {}, problems.first, problems.count)
    sequence = ComparedSequence(frames, (predictions, area), submission.protocol, unit.facts)
    return UnitCounts(unit.name, sequence.tables(submission.classes))


@dataclass(frozen=True)
class ComparedFrame:
    """One frame of a sequence."""

    truth: Array
    prediction: Array
    similarity: Array


class ComparedSequence:
    """The masks of both sides and their overlaps."""

    def __init__(
        self,
        frames: List[TruthFrame],
        predictions: Tuple[List[Rows], Array],
        protocol: TracksProtocol,
        facts: Dict[str, Any],
    ) -> None:
        (self._predictions, area), self._protocol, self._facts = predictions, protocol, facts
        self._objects = [frame.rows for frame in frames]
        true_area = measure_masks(frames, self._objects)
        pairs = self._pairs = pair_up(_lengths(self._predictions), _lengths(self._objects))
        sides = (self._objects, true_area), (self._predictions, area)
        shares, similarities = _compare_masks(frames, *sides, boxes=protocol.boxes)
        areas = area[pairs.prediction] + true_area[pairs.truth]
        #: Pixels that each pair shares.
        self._shared = np.rint(shares * areas / (1 + shares))
        parts = zip(_cut(similarities, pairs.bounds), self._predictions, self._objects)
        self._similarities = [
            table.reshape(len(predicted_rows), len(truth_rows)) for table, predicted_rows, truth_rows in parts
        ]
        #: The areas of both sides, the truth first: of all masks, and by frame.
        self._areas = true_area, area
        self._numbers, self._kinds = (
            [np.array([row[column] for rows in side for row in rows], np.int64) for side, _ in sides]
            for column in (TRACK_ID, CATEGORY)
        )
        self._numbers_in, self._kinds_in = (
            [_by_frame(values, rows) for values, (rows, _) in zip(columns, sides)]
            for columns in (self._numbers, self._kinds)
        )
        inside = np.bincount(pairs.prediction, self._shared * (self._kinds[0] == IGNORED)[pairs.truth], len(area))
        outside = inside / np.maximum(area, 1) <= _MOST_IGNORED + _EPSILON
        #: The predictions that lie mostly outside ignored regions.
        self._outside = _by_frame(outside, self._predictions)

    def tables(self, classes: List[Tuple[str, int]]) -> Dict[str, Array]:
        """Return the counts of each of these categories that occurs."""
        categories = {kind for kinds in self._kinds for kind in kinds.tolist()}
        present = [(index, category) for index, (_, category) in enumerate(classes) if category in categories]
        compared = [self.compare(category) for _, category in present]
        tables = {"classes": np.array([index for index, _ in present], np.int64), **count_categories(compared)}
        if self._protocol.burst:
            tables["objects"] = np.array([self._number_tracks(0, category)[1] for _, category in present], np.int64)
            matched = [self.match_tracks(index, category) for index, category in present]
            tables["tracks"] = np.concatenate([np.zeros((0, 4)), *matched])
        return tables

    def compare(self, category: int) -> List[ComparedFrame]:
        """Return the frames of a category without ignored predictions."""
        frames = []
        for index, truth_rows in enumerate(self._objects):
            if self._protocol.burst and not truth_rows:
                continue  # a frame without annotations
            objects, predictions = ((side[index] == category).nonzero()[0] for side in self._kinds_in)
            if not len(objects) and not len(predictions):
                continue
            similarity = self._similarities[index][predictions[:, None], objects].T
            if not self._protocol.exemplar:
                is_counted = self._flag_counted(index, predictions, similarity, category)
                predictions, similarity = predictions[is_counted], similarity[:, is_counted]
            frames.append((self._numbers_in[0][index][objects], self._numbers_in[1][index][predictions], similarity))
        return _number_afresh(frames)

    def _flag_counted(self, index: int, members: Array, similarity: Array, category: int) -> Array:
        """Return flags of the predictions that count.

        A prediction without an object is ignored if it lies mostly in ignored regions; in BURST, also if the frame may
        contain its category.
        """
        if self._protocol.burst:
            absent = not len(similarity) and category not in self._facts["neg"]
            if not absent and category not in self._facts["loose"]:
                return np.ones(len(members), bool)
            return ~flag_unmatched(similarity, 0.0)
        is_outside = self._outside[index][members]
        return is_outside if is_outside.all() else is_outside | ~flag_unmatched(similarity, -10_000.0)

    def match_tracks(self, index: int, category: int) -> Array:
        """Return a row per predicted track: category index, score, bits of matches, and whether it is unmatched."""
        (objects, count), (tracks, number) = (self._number_tracks(side, category) for side in (0, 1))
        if category not in self._facts["neg"] and not count:
            return np.zeros((0, 4))
        of_masks = np.argsort(tracks, kind="stable")[np.count_nonzero(tracks < 0) :]
        of_each = np.array([row[SCORE] for rows in self._predictions for row in rows])[of_masks]
        bounds = np.searchsorted(tracks[of_masks], np.arange(number + 1))
        scores = np.array([mean(mask_scores) for mask_scores in _cut(of_each, bounds)])
        order = np.argsort(-scores, kind="stable")
        ious = self._overlap_tubes((objects, count), (tracks, number))[order]
        rows = np.zeros((number, 4))
        rows[:, 0], rows[:, 1], rows[:, 3] = index, scores[order], category in self._facts["loose"]
        for bit, threshold in enumerate(TRACK_THRESHOLDS.tolist()):
            free = np.ones(count, bool)
            for track in range(number):
                best = _find_best_object(ious[track], free, threshold)
                if best >= 0:
                    free[best] = False
                    rows[track, 2] += 1 << bit
        return rows

    def _number_tracks(self, side: int, category: int) -> Tuple[Array, int]:
        """Return the index of each mask's track within a category (-1 for none), and the number of tracks."""
        indices: Dict[int, int] = {}
        tracks, members = np.full(len(self._kinds[side]), -1), np.flatnonzero(self._kinds[side] == category)
        tracks[members] = [indices.setdefault(number, len(indices)) for number in self._numbers[side][members].tolist()]
        return tracks, len(indices)

    def _overlap_tubes(self, objects: Tuple[Array, int], tracks: Tuple[Array, int]) -> Array:
        """Return the IoU of tracks (rows) and objects (columns) over all frames."""
        row, column = tracks[0][self._pairs.prediction], objects[0][self._pairs.truth]
        meet = (row >= 0) & (column >= 0)
        shared = np.zeros((tracks[1], objects[1]))
        np.add.at(shared, (row[meet], column[meet]), self._shared[meet])
        object_areas, track_areas = (
            np.bincount(indices[indices >= 0], area[indices >= 0], count)
            for (indices, count), area in zip((objects, tracks), self._areas)
        )
        return shared / np.maximum(track_areas[:, None] + object_areas - shared, 1)


def _number_afresh(frames: List[Tuple[Array, Array, Array]]) -> List[ComparedFrame]:
    """Return the frames with tracks renumbered as indices."""
    sides = []
    for side in (0, 1):
        numbers = [np.zeros(0, np.int64), *(frame[side] for frame in frames)]
        _, indices = np.unique(np.concatenate(numbers), return_inverse=True)
        sides.append(_cut(indices, np.cumsum(list(map(len, numbers)))))
    return [ComparedFrame(truth, prediction, frame[2]) for truth, prediction, frame in zip(*sides, frames)]


def flag_unmatched(similarity: Array, distant_value: float) -> Array:
    """Return flags of predictions (columns) without an object; for distant pairs, the given value counts."""
    is_unmatched = np.ones(similarity.shape[1], bool)
    if similarity.size:
        quality = np.where(similarity < _THRESHOLD - _EPSILON, distant_value, similarity)
        rows, columns = _find_best_pairs(quality)
        is_unmatched[columns[quality[rows, columns] > _EPSILON]] = False
    return is_unmatched


def pair_up(heights: Array, widths: Array) -> Pairs:
    """Return all pairs of masks of both sides in each frame."""
    bounds = [np.append(0, np.cumsum(counts)) for counts in (heights, widths)]
    pixel_bounds = np.append(0, np.cumsum(heights * widths))
    frame = np.repeat(np.arange(len(heights)), np.diff(pixel_bounds))
    cell = np.arange(len(frame)) - pixel_bounds[frame]
    return Pairs(bounds[0][frame] + cell // widths[frame], bounds[1][frame] + cell % widths[frame], pixel_bounds)


def _lengths(rows: List[Rows]) -> Array:
    return np.array(list(map(len, rows)), np.int64)


def _by_frame(values: Array, rows: List[Rows]) -> List[Array]:
    return _cut(values, np.cumsum([0, *map(len, rows)]))


def _cut(values: Array, bounds: Array) -> List[Array]:
    stops = bounds.tolist()
    return [values[start:end] for start, end in zip(stops, stops[1:])]


def measure_masks(frames: List[TruthFrame], rows: List[Rows]) -> Array:
    """Return the areas of the masks of all frames."""
    texts = [row[MASK] for row in chain.from_iterable(rows)]
    return backend().check_masks(texts, _list_sizes(frames, rows).prod(1)).area


def _list_sizes(frames: List[TruthFrame], rows: List[Rows]) -> Array:
    """Return the height and width of each mask."""
    return np.repeat(np.array([frame.size for frame in frames], np.int64).reshape(-1, 2), _lengths(rows), axis=0)


def masks_of(frames: List[TruthFrame], rows: List[Rows], area: Optional[Array] = None) -> Masks:
    """Return the masks of all frames in one list, with their areas computed if unknown."""
    texts = pack_texts([row[MASK] for row in chain.from_iterable(rows)])
    return Masks(texts, measure_masks(frames, rows) if area is None else area, _list_sizes(frames, rows))


#: The maximum number of characters of masks that are compared together, unless a frame has more: memory that is used
#: again costs less than new memory.
_CHARACTERS = 1 << 20


def _cut_frames(rows: List[Rows]) -> Iterator[slice]:
    """Yield ranges of consecutive frames."""
    return cut_batches(np.array([sum(len(row[MASK]) for row in frame) for frame in rows], np.int64), _CHARACTERS)


def _compare_masks(
    frames: List[TruthFrame], truth: Tuple[List[Rows], Array], predicted: Tuple[List[Rows], Array], *, boxes: bool
) -> Tuple[Array, Array]:
    """Return for each pair of `pair_up` the IoU of its masks, and its similarity: that of its boxes with `boxes`.

    Each side is the rows of all frames and the areas of their masks.
    """
    sides, nothing = (truth, predicted), np.zeros(0)
    all_bounds = [np.cumsum([0, *map(len, rows)]) for rows, _ in sides]
    # For pycocotools, a mask of runs without pixels lies beyond the image.
    are_plain = [bool(area.all()) for _, area in sides]
    shares, similarities = [nothing], [nothing]
    for block in _cut_frames(predicted[0]):
        true_masks, masks = (
            masks_of(frames[block], rows[block], area[bounds[block.start] : bounds[block.stop]])
            for (rows, area), bounds in zip(sides, all_bounds)
        )
        pairs = pair_up(_lengths(predicted[0][block]), _lengths(truth[0][block]))
        nobody = np.zeros(len(true_masks.area), bool)
        shares.append(backend().mask_overlaps(pairs, masks, true_masks, nobody))
        if boxes:
            true_boxes, predicted_boxes = (
                _measure_boxes(side, is_plain=flag) for side, flag in zip((true_masks, masks), are_plain)
            )
            similarities.append(backend().box_overlaps(pairs, predicted_boxes, true_boxes, nobody))
    joint_shares = np.concatenate(shares)
    return joint_shares, np.concatenate(similarities) if boxes else joint_shares


def _measure_boxes(masks: Masks, *, is_plain: bool) -> Array:
    """Return the boxes of masks, as pycocotools does."""
    if is_plain:
        return backend().mask_boxes(masks.texts, masks.sizes).astype(float)
    from pycocotools.mask import toBbox

    encodings = encode_masks(masks, np.arange(len(masks.area)))
    return np.asarray(toBbox(encodings) if encodings else [], float).reshape(-1, 4)


def check_disjoint(
    name: str, frames: List[TruthFrame], predictions: List[Rows], area: Array, problems: Problems
) -> None:
    """Report the first frame in which two predictions share pixels, given the areas of all masks."""
    starts = np.cumsum([0, *map(len, predictions)])
    for block in _cut_frames(predictions):
        masks = masks_of(frames[block], predictions[block], area[starts[block.start] : starts[block.stop]])
        bounds = starts[block.start : block.stop + 1] - starts[block.start]
        frame = backend().first_overlap(masks, bounds)
        if frame < len(bounds) - 1:
            break
    else:
        return
    prediction, partner = np.triu_indices(bounds[frame + 1] - bounds[frame], 1) + bounds[frame]
    pairs = Pairs(prediction, partner, np.array([0, len(partner)]))
    shares = backend().mask_overlaps(pairs, masks, masks, np.zeros(len(masks.area), bool))
    pair = int(np.flatnonzero(shares)[0])
    numbers = [row[TRACK_ID] for row in predictions[block][frame]]
    track, other_track = numbers[prediction[pair] - bounds[frame]], numbers[partner[pair] - bounds[frame]]
    subject = f"{printable(name)}, frame {frames[block][frame].name}"
    problems.add(Problem(subject, f"tracks {track} and {other_track} share pixels", "Give each pixel to one track"))


def _find_best_object(ious: Array, is_unmatched: Array, threshold: float) -> int:
    """Return the unmatched object that a track overlaps most, the last of ties; -1 if none is close enough."""
    best, least = -1, min(threshold, 1 - 1e-10)
    for number in np.flatnonzero(is_unmatched).tolist():
        if ious[number] >= least - _EPSILON:
            best, least = number, float(ious[number])
    return best


def count_categories(categories: List[List[ComparedFrame]]) -> Dict[str, Array]:
    """Return the fields of HOTA at each alpha and of CLEAR, for each category."""
    number = len(categories)
    hota = np.array([count_hota(frames) for frames in categories]).reshape(number, len(HOTA_FIELDS), len(ALPHAS))
    clear = np.array([_count_clear(frames) for frames in categories]).reshape(number, len(CLEAR_FIELDS))
    return {"hota": hota, "clear": clear}


def count_hota(frames: List[ComparedFrame]) -> Array:
    """Return the fields of HOTA (rows) at each alpha (columns)."""
    truths, predictions = _count_frames(frames)
    counts = np.zeros((len(HOTA_FIELDS), len(ALPHAS)))
    pairs: Tuple[List[Array], ...] = ([np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)])
    shown = [frame for frame in frames if frame.similarity.size]
    alignment = align_tracks(shown, truths, predictions)
    for frame in shown:
        rows, columns = _find_best_pairs(alignment[frame.truth[:, None], frame.prediction] * frame.similarity)
        for pair_column, values in zip(
            pairs, (frame.truth[rows], frame.prediction[columns], frame.similarity[rows, columns])
        ):
            pair_column.append(values)
    objects, tracks, similarity = map(np.concatenate, pairs)
    keys, key = np.unique(objects * max(1, len(predictions)) + tracks, return_inverse=True)
    pair_objects, pair_tracks = np.divmod(keys, max(1, len(predictions)))
    of_truth, of_prediction = truths[pair_objects], predictions[pair_tracks]
    truth_count, prediction_count, matched = truths.sum(), predictions.sum(), -1
    overlaps = similarity >= ALPHAS[0] - _EPSILON
    gaps = (truths - np.bincount(objects[overlaps], minlength=len(truths)))[pair_objects]
    excess = (predictions - np.bincount(tracks[overlaps], minlength=len(predictions)))[pair_tracks]
    for column, alpha in enumerate(ALPHAS):
        hit = similarity >= alpha - _EPSILON
        before, matched = matched, int(np.count_nonzero(hit))
        if matched == before:  # the same pairs, only fewer
            counts[:, column] = counts[:, column - 1]
            continue
        times = np.bincount(key[hit], minlength=len(keys))
        some = times.nonzero()[0]
        shared, truth, prediction = times[some], of_truth[some], of_prediction[some]
        share = shared / (truth + prediction - shared)
        rows, columns = pair_objects[some], pair_tracks[some]
        of_object = np.bincount(rows, shared, len(truths))[rows]
        of_track = np.bincount(columns, shared, len(predictions))[columns]
        counts[:, column] = (
            matched, truth_count - matched, prediction_count - matched,
            add(shared * shared / (truth + prediction - shared)),
            add(shared * shared / truth), add(shared * shared / prediction), add(similarity[hit]),
            add(share * (of_object + of_track - 2 * shared)), add(share * gaps[some]), add(share * excess[some]),
        )  # fmt: skip
    return counts


def measure_hota(counts: Array) -> Dict[str, Array]:
    """Return HOTA and its parts at each alpha."""
    fields = dict(zip(HOTA_FIELDS, counts))
    matched = np.maximum(1, fields["matched"])
    values = {name: fields[name] / matched for name in ("AssA", "AssRe", "AssPr")}
    values["LocA"] = np.maximum(1e-10, fields["similarity"]) / np.maximum(1e-10, fields["matched"])
    values["DetRe"] = fields["matched"] / np.maximum(1, fields["matched"] + fields["missed"])
    values["DetPr"] = fields["matched"] / np.maximum(1, fields["matched"] + fields["surplus"])
    values["DetA"] = fields["matched"] / np.maximum(1, fields["matched"] + fields["missed"] + fields["surplus"])
    values["HOTA"] = np.sqrt(values["DetA"] * values["AssA"])
    values["OWTA"] = np.sqrt(values["DetRe"] * values["AssA"])
    return values


def average_precisions(scores: Array, matched: Array, ignored: Array, objects: float) -> Array:
    """Return the mean precision over recalls at each threshold, given each track's word of match bits."""
    order = np.argsort(-scores, kind="stable")
    hits, excused = (
        (bits[order].astype(int) >> np.arange(len(TRACK_THRESHOLDS))[:, None] & 1).astype(bool)
        for bits in (matched, ignored)
    )
    right = np.cumsum(hits & ~excused, axis=1, dtype=float)
    surplus = np.cumsum(~hits & ~excused, axis=1, dtype=float)
    precision = np.zeros((len(hits), len(order) + 1))
    precision[:, :-1] = right / (surplus + right + np.spacing(1))
    envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    places = np.stack([np.searchsorted(recall, _RECALLS) for recall in right / objects])
    means: Array = np.take_along_axis(envelope, places, axis=1).mean(axis=1)
    return means


def align_tracks(frames: List[ComparedFrame], truths: Array, predictions: Array) -> Array:
    """Return the overall alignment of each object and each prediction over the sequence."""
    together = np.zeros((len(truths), len(predictions)))
    for frame in frames:
        similarity = frame.similarity
        joint = similarity.sum(0, keepdims=True) + similarity.sum(1, keepdims=True) - similarity
        share = np.divide(similarity, joint, out=np.zeros_like(similarity), where=joint > _EPSILON)
        together[frame.truth[:, None], frame.prediction] += share
    alignment: Array = together / np.maximum(truths[:, None] + predictions[None, :] - together, _EPSILON)
    return alignment


def _count_clear(frames: List[ComparedFrame]) -> Array:
    """Return the fields of CLEAR, and the pairs that the best assignment of whole tracks matches."""
    truths, predictions = _count_frames(frames)
    last, before = np.full(len(truths), -1), np.full(len(truths), -1)
    matched, switches, similarity = 0, 0, 0.0
    together = np.zeros((len(truths), len(predictions)))
    for frame in frames:
        if not len(frame.truth) or not len(frame.prediction):
            continue
        close = frame.similarity >= _THRESHOLD
        together[frame.truth[:, None], frame.prediction] += close
        continued = frame.prediction[None, :] == before[frame.truth][:, None]
        quality = np.where(frame.similarity >= _THRESHOLD - _EPSILON, 1000 * continued + frame.similarity, 0)
        rows, columns = _find_best_pairs(quality)
        close_enough = quality[rows, columns] > _EPSILON
        rows, columns = rows[close_enough], columns[close_enough]
        objects, numbers = frame.truth[rows], frame.prediction[columns]
        switches += int(((last[objects] >= 0) & (last[objects] != numbers)).sum())
        last[objects] = numbers
        before[:] = -1
        before[objects] = numbers
        matched += len(rows)
        similarity += add(frame.similarity[rows, columns])
    identical = together[_find_best_pairs(together)].sum() if together.size else 0
    missed, surplus = truths.sum() - matched, predictions.sum() - matched
    return np.array([matched, missed, surplus, switches, similarity, identical], float)


def _count_frames(frames: List[ComparedFrame]) -> Tuple[Array, Array]:
    """Return the number of frames of each object and each prediction."""
    truth = np.concatenate([np.zeros(0, int), *(frame.truth for frame in frames)])
    prediction = np.concatenate([np.zeros(0, int), *(frame.prediction for frame in frames)])
    return np.bincount(truth), np.bincount(prediction)


def _find_best_pairs(quality: Array) -> Tuple[Array, Array]:
    """Return the assignment (rows, columns) of largest quality; ties break as in the official evaluators.

    Pairs with a quality of zero are omitted if they do not change the result.
    """
    return _find_plain_pairs(quality) or best_assignment(quality)


def _find_plain_pairs(quality: Array) -> Optional[Tuple[Array, Array]]:
    """Return the positive pairs if they do not compete, else the best of each row or column if unique."""
    rows, columns = (quality > 0).nonzero()
    if len(set(rows.tolist())) == len(set(columns.tolist())) == len(rows):
        return rows, columns
    for table in (quality, quality.T) if quality.size else ():
        maxima = table.max(1)
        rows = (maxima > 0).nonzero()[0]
        best = table[rows] == maxima[rows, None]
        columns = best.argmax(1)
        if best.sum() == len(rows) and len(set(columns.tolist())) == len(rows):
            if table is quality:
                return rows, columns
            order = columns.argsort()
            return columns[order], rows[order]
    return None
