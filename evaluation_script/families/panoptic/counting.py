"""The counts of one image or video: matched segments by category and window, and the tubes of STQ.

Pixels are read once: each frame becomes a table of overlapping id pairs; windows of frames and whole videos are sums of
these tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ...files.problems import Flaw, Problems
from ...masks.backend import backend
from ...masks.overlaps import SHIFT, LabelMap, LabelPairs, reach_of, sum_by_key, sum_by_label, sum_label_pairs
from ...masks.stack import Array, places_of
from ...values.arithmetic import add
from ..base.units import TruthFrame, Unit, UnitCounts
from .files import AnySubmission, PredictedFrame, is_unnumbered
from .protocols import PanopticProtocol

#: The value of pixels inside a segment; no segment has this id.
_INNER = 1 << 24
#: The width of a boundary as a fraction of the diagonal.
_BOUNDARY_RATIO = 0.02
#: The maximum number of pairs of segments in a video without windows.
_MOST_PAIRS = 2_000_000
#: Fields of the counts of a category.
IOU, MATCHED, SURPLUS, MISSED = range(4)
#: The loss of AQ, by column: no track; pixels of a track outside all objects; frames with another track or object;
#: within a frame, other tracks of the object and other objects of the track.
UNASSOCIATED = ("missing", "surplus", "swapped", "split", "merged")
#: A track covers an object in a frame if it has this share of the object's tracked pixels.
_LEAST_SHARE = 0.1
#: Columns of segments; the last one has their order in the list.
ID, CATEGORY, CROWD, AREA, ORDER = range(5)


class _Overlaps(NamedTuple):
    """The pixels that tubes of truth and prediction share, by frame; a negative number stands for no tube."""

    truth: Array
    prediction: Array
    pixels: Array
    frames: Array


@dataclass(frozen=True)
class FrameTable:
    """The pixel counts of a frame, or of a window of frames."""

    #: One row per segment, by id.
    truth: Array
    prediction: Array
    pairs: LabelPairs
    #: The pairs of boundaries, if the protocol compares them.
    boundaries: Optional[LabelPairs] = None


def _keep_boundaries(pixels: LabelMap) -> LabelMap:
    """Return a map in which the interior of each segment has its own label."""
    labels = pixels.numbers if pixels.labels is None else pixels.labels.astype(np.uint32)[pixels.numbers]
    reach = reach_of(labels.shape[0], labels.shape[1], _BOUNDARY_RATIO)
    return LabelMap(backend().keep_boundaries(labels, reach, _INNER))


def count(unit: Unit, submission: AnySubmission) -> UnitCounts:
    """Count an image or a video."""
    problems, frames = Problems(), unit.load()
    predictions = submission.frames(unit.name, frames, problems)

    def tables() -> Iterator[FrameTable]:
        for frame, prediction in zip(frames, predictions):
            if prediction is None:
                continue
            try:
                pixels = submission.read(prediction, frame.size)
                table = count_frame(frame, prediction, pixels, boundary=submission.protocol.boundary)
            except Flaw as flaw:
                problems.add(flaw.as_problem(prediction.member))
            if not problems:
                yield table

    counts: Dict[str, Array] = {}
    try:
        counts = count_frames(tables(), submission.protocol, submission.things)
    except Flaw as flaw:
        problems.add(flaw.as_problem(unit.name))
    return UnitCounts(unit.name, {} if problems else counts, problems.first, problems.count)


def count_frames(frames: Iterable[FrameTable], protocol: PanopticProtocol, things: List[bool]) -> Dict[str, Array]:
    """Return the tables of an image or of the frames of a video."""
    counts = np.zeros((len(protocol.windows), len(things), 4))
    tables: List[FrameTable] = []
    pairs = 0
    for frame in frames:
        tables.append(frame)
        pairs += len(frame.pairs.pixels)
        if not protocol.windows and pairs > _MOST_PAIRS:
            tables = [_join_frames(tables)]
            pairs = len(tables[0].pairs.pixels)
            if pairs > _MOST_PAIRS // 2:
                fault = f"has more than {_MOST_PAIRS // 2:,} pairs of overlapping segments in total"
                raise Flaw(fault, "Give an object the same number in all frames")
        for row, length in enumerate(protocol.windows):
            if len(tables) >= length:
                counts[row] += _count_segments(_join_frames(tables[-length:]), len(things))
    tubes = _measure_tubes(tables, things, protocol) if protocol.video and tables else {}
    return {"quality": counts, **tubes}


def count_frame(frame: TruthFrame, listed: PredictedFrame, pixels: Array, *, boundary: bool) -> FrameTable:
    """Count a frame; raises a Flaw if its pixels contradict the list of segments."""
    truth, prediction = frame.read(), LabelMap(pixels)
    pairs = backend().count_label_pairs(truth, prediction)
    true_rows, rows = listed.list_segments(frame, pairs)
    boundaries = None
    if boundary:
        boundaries = backend().count_label_pairs(_keep_boundaries(truth), _keep_boundaries(prediction))
    return FrameTable(_tabulate_segments(true_rows), _tabulate_segments(rows), pairs, boundaries)


def _tabulate_segments(rows: Union[Array, Sequence[Sequence[float]]]) -> Array:
    """Return rows of id, category, crowd and area as a table by id; repeated ids add up their areas."""
    table = np.array(rows, np.float64).reshape(-1, 4)
    ids, first_rows, segment_indices = np.unique(table[:, ID], return_index=True, return_inverse=True)
    joined = np.column_stack((table[first_rows], first_rows))
    joined[:, AREA] = np.bincount(segment_indices, table[:, AREA], len(ids))
    return joined


def _join_frames(frames: List[FrameTable]) -> FrameTable:
    """Return the table of a window: the category of a segment is that of its first frame."""
    if len(frames) == 1:
        return frames[0]
    sides = []
    for tables in ([frame.truth for frame in frames], [frame.prediction for frame in frames]):
        listed = [table[np.argsort(table[:, ORDER]), :ORDER] for table in tables]
        sides.append(_tabulate_segments(np.concatenate(listed)))
    columns = [(frame.pairs.truth, frame.pairs.prediction, frame.pairs.pixels) for frame in frames]
    return FrameTable(sides[0], sides[1], sum_label_pairs(*map(np.concatenate, zip(*columns))))


def _count_segments(table: FrameTable, categories: int) -> Array:
    """Return the sum of IoUs, matched, surplus and missed segments of each category."""
    truth, prediction, pairs = table.truth, table.prediction, table.pairs
    truth_rows, predicted_rows = places_of(truth[:, ID], pairs.truth), places_of(prediction[:, ID], pairs.prediction)
    crowd, category, predicted_category = (
        truth[:, CROWD] == 1,
        truth[:, CATEGORY].astype(int),
        prediction[:, CATEGORY].astype(int),
    )
    ious = _compute_ious(truth, prediction, pairs, (truth_rows, predicted_rows))
    if table.boundaries is not None:
        ious = np.minimum(ious, _boundary_ious(pairs, table.boundaries))
    has_both = (truth_rows >= 0) & (predicted_rows >= 0)
    match = np.flatnonzero(has_both & (ious > 0.5))
    match = match[
        ~crowd[truth_rows[match]] & (category[truth_rows[match]] == predicted_category[predicted_rows[match]])
    ]
    missed, surplus = ~crowd, np.ones(len(prediction), bool)
    missed[truth_rows[match]] = surplus[predicted_rows[match]] = False
    # Of a category's crowds, only the last listed one counts.
    crowd_of = np.full(categories, -1)
    crowds = np.flatnonzero(crowd)
    crowds = crowds[np.argsort(truth[crowds, ORDER])]
    crowd_of[category[crowds]] = crowds
    excused = (pairs.truth == 0) & (predicted_rows >= 0)
    excused[has_both] |= crowd_of[predicted_category[predicted_rows[has_both]]] == truth_rows[has_both]
    surplus &= np.bincount(predicted_rows[excused], pairs.pixels[excused], len(prediction)) / prediction[:, AREA] <= 0.5
    counts = np.zeros((categories, 4))
    counts[:, IOU] = np.bincount(category[truth_rows[match]], ious[match], categories)
    counts[:, MATCHED] = np.bincount(category[truth_rows[match]], minlength=categories)
    counts[:, SURPLUS] = np.bincount(predicted_category[surplus], minlength=categories)
    counts[:, MISSED] = np.bincount(category[missed], minlength=categories)
    return counts


def _compute_ious(truth: Array, prediction: Array, pairs: LabelPairs, rows: Tuple[Array, Array]) -> Array:
    """Return the IoU of each pair without void, given the rows of both segments; 0 if a side is not a segment or the
    areas are impossible.
    """
    truth_rows, predicted_rows = rows
    inside = (pairs.truth == 0) & (predicted_rows >= 0)
    void = np.bincount(predicted_rows[inside], pairs.pixels[inside], len(prediction))
    ious = np.zeros(len(pairs.pixels))
    both = np.flatnonzero((truth_rows >= 0) & (predicted_rows >= 0))
    pixels = pairs.pixels[both]
    union = truth[truth_rows[both], AREA] + prediction[predicted_rows[both], AREA] - pixels - void[predicted_rows[both]]
    ious[both] = np.divide(pixels, union, out=np.zeros(len(both)), where=union > 0)
    return ious


def _boundary_ious(pairs: LabelPairs, boundaries: LabelPairs) -> Array:
    """Return the IoU of the boundaries of each pair."""
    sides = []
    for ids in (boundaries.truth, boundaries.prediction):
        unique, areas = sum_by_key(ids, boundaries.pixels)
        sides.append(np.column_stack((unique, areas, areas, areas))[(unique != 0) & (unique != _INNER)])
    segments = places_of(sides[0][:, ID], boundaries.truth), places_of(sides[1][:, ID], boundaries.prediction)
    ious = _compute_ious(sides[0], sides[1], boundaries, segments)
    rows = places_of(boundaries.keys, pairs.keys)
    return np.where(rows >= 0, ious[rows], 0.0)


def _measure_tubes(frames: List[FrameTable], things: List[bool], protocol: PanopticProtocol) -> Dict[str, Array]:
    """Return STQ's confusion matrix of a whole video, and the quality of its tubes."""
    void, is_thing = len(things), np.array([*things, False])
    listed = [frame.truth for frame in frames if len(frame.truth)]
    first_id = int(listed[0][listed[0][:, ORDER].argmin(), ID]) if listed and protocol.first_is_crowd else -1
    truth_ids, predicted_ids, pixels = (
        np.concatenate(column)
        for column in zip(*((frame.pairs.truth, frame.pairs.prediction, frame.pairs.pixels) for frame in frames))
    )
    truth_categories = np.concatenate([_find_categories(frame.truth, frame.pairs.truth, void) for frame in frames])
    predicted_categories = np.concatenate(
        [_find_categories(frame.prediction, frame.pairs.prediction, void) for frame in frames]
    )
    crowd_ids = is_unnumbered(truth_ids) if protocol.classes else truth_ids == first_id
    scored, crowd = truth_categories != void, is_thing[truth_categories] & crowd_ids
    cells = sum_by_key((truth_categories * (void + 1) + predicted_categories)[scored], pixels[scored])
    truth = np.where(is_thing[truth_categories] & ~crowd, truth_categories << SHIFT | truth_ids, -1)
    prediction = np.where(is_thing[predicted_categories] & ~crowd, predicted_categories << SHIFT | predicted_ids, -1)
    numbers = np.repeat(np.arange(len(frames)), [len(frame.pairs.pixels) for frame in frames])
    return {"cells": np.stack(cells), **_associate_tubes(_Overlaps(truth, prediction, pixels, numbers), void)}


def _find_categories(segments: Array, ids: Array, void: int) -> Array:
    """Return the category of each id; void for ids without a segment."""
    return np.append(segments[:, CATEGORY], void).astype(np.int64)[places_of(segments[:, ID], ids)]


def sum_confusion(videos: Iterable[UnitCounts], void: int) -> Array:
    """Return the confusion matrix: true categories (rows), predicted ones (columns), void last."""
    confusion = np.zeros((void + 1) * (void + 1), np.int64)
    for counts in videos:
        cells, pixels = counts.tables["cells"]
        confusion[cells] += pixels
    return confusion.reshape(void + 1, void + 1)


def union_of(confusion: Array, protocol: PanopticProtocol) -> Array:
    """Return the number of pixels of each category on either side; 0 for absent ones."""
    union: Array = confusion.sum(0) + confusion.sum(1) - np.diagonal(confusion)
    union[-1] *= protocol.void_is_class
    return union


def _associate_tubes(overlaps: _Overlaps, categories: int) -> Dict[str, Array]:
    """Return the sum of the qualities of all tubes and their number, and what they lack by category and kind."""
    truth, prediction, pixels = overlaps.truth, overlaps.prediction, overlaps.pixels
    tubes, areas, rows = sum_by_label(truth, np.where(truth >= 0, pixels, 0))
    predicted_tubes, predicted_areas, columns = sum_by_label(prediction, np.where(prediction >= 0, pixels, 0))
    overlap = (truth >= 0) & (prediction >= 0)
    parts = _Overlaps(
        rows[overlap],
        columns[overlap],
        pixels[overlap],
        overlaps.frames[overlap],
    )
    pair_keys = parts.truth * len(predicted_tubes) + parts.prediction
    keys, shared = sum_by_key(pair_keys, parts.pixels)
    tube, predicted_tube = keys // max(1, len(predicted_tubes)), keys % max(1, len(predicted_tubes))
    union = areas[tube] + predicted_areas[predicted_tube] - shared
    quality = shared * (shared / union) / areas[tube]
    # Each unshared pixel of a pair's union costs the same.
    cost = shared / areas[tube] / union
    covered = np.bincount(tube, shared, len(tubes))
    surplus = predicted_areas - np.bincount(predicted_tube, shared, len(predicted_tubes))
    split, merged = _join_in_frames(parts, np.searchsorted(keys, pair_keys), len(keys))
    outside = surplus[predicted_tube]
    elsewhere = covered[tube] - shared + predicted_areas[predicted_tube] - shared - outside
    lacks = areas[tube] - covered[tube], outside, elsewhere - split - merged, split, merged
    of_tubes = np.stack([np.bincount(tube, row * cost, len(tubes)) for row in lacks], axis=1).astype(np.float64)
    of_tubes[:, 0] += (areas - covered) / np.maximum(areas, 1)
    is_object = tubes >= 0
    category = tubes[is_object] >> SHIFT
    unassociated = np.zeros((categories, len(UNASSOCIATED)))
    np.add.at(unassociated, category, of_tubes[is_object])
    return {"association": np.array([add(quality), np.count_nonzero(is_object)]), "unassociated": unassociated}


def _join_in_frames(parts: _Overlaps, pairs: Array, count: int) -> Tuple[Array, Array]:
    """Return, by pair, the object's pixels in other tracks and the track's on other objects, in their common frames.

    A frame is common if the track covers enough of the object there. A pair without common frames is an inexact edge:
    all its frames count.
    """
    sides = []
    for numbers in (parts.truth, parts.prediction):
        keys = parts.frames * (int(numbers.max(initial=0)) + 1) + numbers
        frames, sums = sum_by_key(keys, parts.pixels)
        sides.append(sums[np.searchsorted(frames, keys)])
    together = parts.pixels >= _LEAST_SHARE * sides[0]
    together |= ~np.bincount(pairs, together, count).astype(bool)[pairs]
    split, merged = (np.bincount(pairs, (side - parts.pixels) * together, count) for side in sides)
    return split, merged
