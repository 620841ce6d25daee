"""What is counted in a sequence of cells: matches in frames, the operations that mend the graph of tracks, overlaps."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...files.problems import Flaw, HostError, Problems
from ...masks.backend import backend
from ...masks.overlaps import LabelMap, LabelPairs, sum_by_key, sum_label_pairs
from ...masks.stack import Array
from ..base.units import TruthFrame, Unit, UnitCounts
from .files import BEGIN, END, LABEL, PARENT, CellSubmission, judge_frame, name_labels
from .lineage import FollowedCells, count_lineages
from .protocols import CellProtocol

#: The columns of `graph`: operations on vertices and edges, and how many the truth has.
NS, FN, FP, ED, EA, EC, MARKERS, EDGES = range(8)
#: The columns of `cells`: outlined cells, those that are matched, and the sum of their IoU.
OUTLINED, MATCHED, IOU = range(3)


class FrameMatches(NamedTuple):
    """The cells of a frame: labels of both sides, and which prediction covers more than half of each of the truth."""

    truth: Array
    prediction: Array
    #: Of each label of the truth the one that matches it, 0 for none, and the IoU of both.
    partner: Array
    iou: Array


def match_cells(pairs: LabelPairs) -> FrameMatches:
    """Match the cells of a frame by the pixels that pairs of labels share."""
    true, areas = sum_by_key(pairs.truth, pairs.pixels)
    predicted, sizes = sum_by_key(pairs.prediction, pairs.pixels)
    rows, columns = np.searchsorted(true, pairs.truth), np.searchsorted(predicted, pairs.prediction)
    covering = (2 * pairs.pixels > areas[rows]) & (pairs.truth > 0) & (pairs.prediction > 0)
    rows, columns, shared = rows[covering], columns[covering], pairs.pixels[covering]
    partner, ious = np.zeros(len(true), np.int64), np.zeros(len(true))
    partner[rows] = predicted[columns]
    ious[rows] = shared / (areas[rows] + sizes[columns] - shared)
    cells = true > 0
    return FrameMatches(true[cells], predicted[predicted > 0], partner[cells], ious[cells])


def count(unit: Unit, submission: CellSubmission) -> UnitCounts:
    """Count a sequence."""
    problems = Problems()
    tracks, members = submission.open_sequence(unit, problems)
    slices = unit.facts["slices"]

    def read(frame: int, truth: TruthFrame) -> Array:
        height, width = truth.size
        return submission.read(members[frame], (height // slices, width), slices)

    tables = count_sequence(unit, tracks, members, read, (submission.protocol, problems))
    return UnitCounts(unit.name, {} if problems.count else tables, problems.first, problems.count)


def count_sequence(
    unit: Unit,
    tracks: Optional[Array],
    members: Sequence[str],
    read: Callable[[int, TruthFrame], Array],
    rules: Tuple[CellProtocol, Problems],
) -> Dict[str, Array]:
    """Return the tables of a sequence unless it has problems; its frames lie in these members, "" for none."""
    protocol, problems = rules
    frames, truth_tracks = unit.load(), np.array(unit.facts["tracks"], np.int64).reshape(-1, 4)
    outlines: Dict[int, List[TruthFrame]] = {}
    for frame in frames[len(members) :]:
        outlines.setdefault(frame.rows[0][0], []).append(frame)
    matches, cells = [], np.zeros(3)
    for index, (frame, member) in enumerate(zip(frames, members)):
        if not member:
            continue
        try:
            prediction = read(index, frame)
        except Flaw as flaw:
            problems.add(flaw.at(member))
            continue
        found_cells = match_cells(backend().count_label_pairs(frame.read(), LabelMap(prediction)))
        unlisted = np.setdiff1d(found_cells.truth, truth_tracks[:, LABEL])
        if len(unlisted):
            raise HostError(f"{unit.name}_GT: man_track.txt lacks labels of frame {index}: {name_labels(unlisted)}")
        if tracks is not None:
            for mismatch in judge_frame(found_cells.prediction, index, tracks):
                problems.add(mismatch.at(member))
        matches.append(found_cells)
        if index in outlines and not problems.count:
            of_frame = _measure_outlines(outlines[index], prediction, frame.size[0] // unit.facts["slices"])
            cells += of_frame * (len(outlines[index]) if protocol.as_script else 1)
    if problems.count or tracks is None:
        return {}
    followed = FollowedCells.of_frames([frame[:3] for frame in matches], truth_tracks, tracks)
    return {
        "graph": _count_operations(matches, truth_tracks, tracks),
        "cells": cells,
        **count_lineages(followed, as_script=protocol.as_script),
    }


def _measure_outlines(outlines: List[TruthFrame], prediction: Array, height: int) -> Array:
    """Return how many cells are outlined in a frame, how many are matched, and how well, all its slices together."""
    pairs = []
    for outline in outlines:
        _, cut = outline.rows[0]
        region = prediction if cut < 0 else prediction[cut * height : (cut + 1) * height]
        pairs.append(backend().count_label_pairs(outline.read(), LabelMap(np.ascontiguousarray(region))))
    if len(outlines) > 1:
        pairs = [sum_label_pairs(*(np.concatenate(column) for column in zip(*pairs)))]
    matched = match_cells(pairs[0])
    return np.array([len(matched.truth), np.count_nonzero(matched.partner), matched.iou.sum()], float)


# ── the graph of tracks ─────────────────────────────────────────────────────


class _Graph(NamedTuple):
    """Cells of frames, by rising frame and label, and which follows which."""

    #: Where the cells of each frame begin, and their labels.
    starts: Array
    labels: Array
    #: From which to which cell, and whether from a parent to its child.
    edges: Array


def _link(frames: List[Array], tracks: Array) -> _Graph:
    """Link each cell to the same one in the next frame, and the last of a parent to the first of each child."""
    starts = np.cumsum([0, *map(len, frames)])
    edges: List[Array] = [np.zeros((0, 3), np.int64)]
    for index, (labels, following) in enumerate(zip(frames, frames[1:])):
        _, sources, targets = np.intersect1d(labels, following, assume_unique=True, return_indices=True)
        edges.append(
            np.stack([sources + starts[index], targets + starts[index + 1], np.zeros(len(sources), np.int64)], axis=1)
        )
    rows = {row[LABEL]: row for row in tracks.tolist()}
    children = [row for row in rows.values() if row[PARENT] > 0]
    ends = [(rows[row[PARENT]][END], row[PARENT], row[BEGIN], row[LABEL]) for row in children]
    edge_ends = [(_place(frames, starts, *end[:2]), _place(frames, starts, *end[2:]), 1) for end in ends]
    edges.append(np.array([edge for edge in edge_ends if min(edge) >= 0], np.int64).reshape(-1, 3))
    return _Graph(starts, np.concatenate([np.zeros(0, np.int64), *frames]), np.concatenate(edges))


def _place(frames: List[Array], starts: Array, frame: int, label: int) -> int:
    """Return the index of a cell; -1 where the frame has none of this label."""
    labels = frames[frame]
    row = int(np.searchsorted(labels, label))
    return int(starts[frame]) + row if row < len(labels) and labels[row] == label else -1


def _count_operations(matches: List[FrameMatches], truth_tracks: Array, tracks: Array) -> Array:
    """Return how often the predicted graph of tracks has to be mended to be that of the truth."""
    own = _link([frame.truth for frame in matches], truth_tracks)
    predicted = _link([frame.prediction for frame in matches], tracks)
    partner = np.full(len(own.labels), -1)
    for index, frame in enumerate(matches):
        matched = np.flatnonzero(frame.partner)
        columns = np.searchsorted(frame.prediction, frame.partner[matched])
        partner[own.starts[index] + matched] = predicted.starts[index] + columns
    matched = np.flatnonzero(partner >= 0)
    match_counts = np.bincount(partner[matched], minlength=len(predicted.labels))
    #: Of each predicted cell the one of the truth, where it matches that and no other.
    meant_cells = np.full(len(predicted.labels), -1)
    meant_cells[partner[matched]] = matched
    meant_cells[match_counts != 1] = -1
    edges = predicted.edges[(meant_cells[predicted.edges[:, :2]] >= 0).all(axis=1)]
    total = max(len(own.labels), 1)
    keys, own_keys = (ends[:, 0] * total + ends[:, 1] for ends in (meant_cells[edges[:, :2]], own.edges))
    _, own_places, predicted_places = np.intersect1d(own_keys, keys, return_indices=True)
    return np.array(
        [
            np.maximum(match_counts - 1, 0).sum(),
            np.count_nonzero(partner < 0),
            np.count_nonzero(match_counts == 0),
            len(keys) - len(own_places),
            len(own_keys) - len(own_places),
            np.count_nonzero(own.edges[own_places, 2] != edges[predicted_places, 2]),
            len(own.labels),
            len(own.edges),
        ],
        np.int64,
    )
