"""The scoring of cells: each metric is computed per sequence, then averaged over sequences.

For each sequence it counts matches in frames, the operations that correct the graph of tracks, overlaps with outlines,
and, for lineages, complete tracks, fractions of tracks, divisions, cell cycles and associations of tracks.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_segments
from ...files.problems import Flaw, HostError, Problems, name_list
from ...masks.backend import backend
from ...masks.overlaps import LabelMap, LabelPairs, sum_by_label, sum_label_pairs
from ...masks.stack import Array
from ...values.arithmetic import add
from ..base.family import Values, mean_of_all
from ..base.units import Shapes, TruthFrame, Unit, UnitAccumulator, UnitCounts, unit_engine
from .files import BEGIN, END, LABEL, PARENT, CellSubmission, judge_frame, name_labels, read_truth, subtract_labels
from .protocols import TOLERANCES, CellProtocol

#: The columns of `graph`: operations on vertices and edges, and the truth's numbers of both.
NS, FN, FP, ED, EA, EC, _MARKERS, _EDGES = range(8)
#: The columns of `cells`: outlined cells, matched ones, and the sum of their IoU.
OUTLINED, MATCHED, IOU = range(3)


class FrameMatches(NamedTuple):
    """The cells of a frame: the labels of both sides, and the prediction that covers most of each true cell."""

    truth: Array
    prediction: Array
    #: For each label of the truth, the matching label (0 for none), and their IoU.
    partner: Array
    iou: Array


def match_cells(pairs: LabelPairs) -> FrameMatches:
    """Match the cells of a frame by the pixels that pairs of labels share."""
    true, areas, rows = sum_by_label(pairs.truth, pairs.pixels)
    predicted, sizes, columns = sum_by_label(pairs.prediction, pairs.pixels)
    covering = (2 * pairs.pixels > areas[rows]) & (pairs.truth > 0) & (pairs.prediction > 0)
    rows, columns, shared = rows[covering], columns[covering], pairs.pixels[covering]
    partner, ious = np.zeros(len(true), np.int64), np.zeros(len(true))
    partner[rows] = predicted[columns]
    ious[rows] = shared / (areas[rows] + sizes[columns] - shared)
    cells = true > 0
    return FrameMatches(true[cells], predicted[predicted > 0], partner[cells], ious[cells])


def _count(unit: Unit, submission: CellSubmission) -> UnitCounts:
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
    """Return the tables of a sequence, given the members of its frames ("" for none), unless it has problems."""
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
            problems.add(flaw.as_problem(member))
            continue
        found_cells = match_cells(backend().count_label_pairs(frame.read(), LabelMap(prediction)))
        unlisted = subtract_labels(found_cells.truth, truth_tracks[:, LABEL])
        if len(unlisted):
            raise HostError(f"{unit.name}_GT: man_track.txt lacks labels of frame {index}: {name_labels(unlisted)}")
        if tracks is not None:
            for mismatch in judge_frame(found_cells.prediction, index, tracks):
                problems.add(mismatch.as_problem(member))
        matches.append(found_cells)
        if index in outlines and not problems.count:
            of_frame = _measure_outlines(outlines[index], prediction, frame.size[0] // unit.facts["slices"])
            cells += of_frame * (len(outlines[index]) if protocol.as_script else 1)
    if problems.count or tracks is None:
        return {}
    followed = _FollowedCells.join_frames(matches, truth_tracks, tracks)
    return {
        "graph": _count_operations(matches, truth_tracks, tracks),
        "cells": cells,
        **_count_lineages(followed, as_script=protocol.as_script),
    }


def _measure_outlines(outlines: List[TruthFrame], prediction: Array, height: int) -> Array:
    """Return the numbers of outlined and matched cells of a frame, and their IoU sum, over all its slices."""
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
    """The graph of cells, by rising frame and label, and their links."""

    #: The start of each frame's cells, and their labels.
    starts: Array
    labels: Array
    #: From cell, to cell, and whether the edge leads from a parent to its child.
    edges: Array


def _link(frames: List[Array], tracks: Array) -> _Graph:
    """Link each cell to itself in the next frame, and each parent's last cell to its children's first ones."""
    starts = np.cumsum([0, *map(len, frames)])
    edges: List[Array] = [np.zeros((0, 3), np.int64)]
    for index, (labels, following) in enumerate(zip(frames, frames[1:])):
        _, sources, targets = np.intersect1d(labels, following, assume_unique=True, return_indices=True)
        edges.append(
            np.stack([sources + starts[index], targets + starts[index + 1], np.zeros(len(sources), np.int64)], axis=1)
        )
    rows = {row[LABEL]: row for row in tracks.tolist()}
    children = [row for row in rows.values() if row[PARENT] > 0]
    parents = [(rows[row[PARENT]][END], row[PARENT], row[BEGIN], row[LABEL]) for row in children]
    edge_ends = [(_find_cell(frames, starts, *end[:2]), _find_cell(frames, starts, *end[2:]), 1) for end in parents]
    edges.append(np.array([edge for edge in edge_ends if min(edge) >= 0], np.int64).reshape(-1, 3))
    return _Graph(starts, np.concatenate([np.zeros(0, np.int64), *frames]), np.concatenate(edges))


def _find_cell(frames: List[Array], starts: Array, frame: int, label: int) -> int:
    """Return the index of a cell; -1 if the frame lacks the label."""
    labels = frames[frame]
    row = int(np.searchsorted(labels, label))
    return int(starts[frame]) + row if row < len(labels) and labels[row] == label else -1


def _count_operations(matches: List[FrameMatches], truth_tracks: Array, tracks: Array) -> Array:
    """Return the number of corrections that turn the predicted graph of tracks into the truth's."""
    true_links = _link([frame.truth for frame in matches], truth_tracks)
    predicted = _link([frame.prediction for frame in matches], tracks)
    partner = np.full(len(true_links.labels), -1)
    for index, frame in enumerate(matches):
        matched = np.flatnonzero(frame.partner)
        columns = np.searchsorted(frame.prediction, frame.partner[matched])
        partner[true_links.starts[index] + matched] = predicted.starts[index] + columns
    matched = np.flatnonzero(partner >= 0)
    match_counts = np.bincount(partner[matched], minlength=len(predicted.labels))
    #: For each predicted cell, the true cell that it matches exclusively.
    meant_cells = np.full(len(predicted.labels), -1)
    meant_cells[partner[matched]] = matched
    meant_cells[match_counts != 1] = -1
    edges = predicted.edges[(meant_cells[predicted.edges[:, :2]] >= 0).all(axis=1)]
    total = max(len(true_links.labels), 1)
    keys, own_keys = (
        cell_pairs[:, 0] * total + cell_pairs[:, 1] for cell_pairs in (meant_cells[edges[:, :2]], true_links.edges)
    )
    _, own_places, predicted_places = np.intersect1d(own_keys, keys, return_indices=True)
    return np.array(
        [
            np.maximum(match_counts - 1, 0).sum(),
            np.count_nonzero(partner < 0),
            np.count_nonzero(match_counts == 0),
            len(keys) - len(own_places),
            len(own_keys) - len(own_places),
            np.count_nonzero(true_links.edges[own_places, 2] != edges[predicted_places, 2]),
            len(true_links.labels),
            len(true_links.edges),
        ],
        np.int64,
    )


# ── tracks and their lineages ───────────────────────────────────────────────

#: The columns of `tracks`: complete ones, the truth's, predicted ones, the sum of their fractions, detected ones.
_COMPLETE, _IN_TRUTH, _PREDICTED, _FRACTIONS, _FOUND = range(5)
#: The columns of `divisions`, a row for each tolerance.
_HITS, _SURPLUS, _MISSED = range(3)
#: The columns of `cycles`: whether the largest difference of the lengths' distributions is known, and 1 minus that
#: difference.
_KNOWN, _CCA = range(2)
#: The columns of `association`: sums over matches of HOTA's and CHOTA's shares, and all cells, matched or not.
_HOTA, _CHOTA, _CELLS = range(3)


class _FollowedCells(NamedTuple):
    """The matching label of each true cell in each frame, and the unmatched cells."""

    truth_tracks: Array
    tracks: Array
    #: Frames, labels of the truth, and labels that match them (0: none).
    frames: Array
    truth: Array
    prediction: Array
    #: Whether the label matches nothing else in the frame.
    alone: Array
    #: The labels of predicted cells that match nothing, once per frame.
    surplus: Array

    @classmethod
    def join_frames(cls, matches: List[FrameMatches], truth_tracks: Array, tracks: Array) -> _FollowedCells:
        """Combine the matches of all frames."""
        columns: List[List[Array]] = [[np.zeros(0, np.int64)] for _ in range(5)]
        for frame, (truth, predicted, partner, _) in enumerate(matches):
            labels, places, counts = np.unique(partner, return_inverse=True, return_counts=True)
            of_frame = (np.full(len(truth), frame), truth, partner, counts[places] if len(labels) else partner)
            for column, values in zip(columns, (*of_frame, subtract_labels(predicted, partner))):
                column.append(values)
        frames, truth, partner, counts, surplus = map(np.concatenate, columns)
        return cls(truth_tracks, tracks, frames, truth, partner, (counts == 1) & (partner > 0), surplus)


def _count_lineages(cells: _FollowedCells, *, as_script: bool) -> Dict[str, Array]:
    """Return the tables of a sequence that need tracks and their parents."""
    followers = _list_followers(cells)
    return {
        "tracks": _count_tracks(cells, followers, as_script=as_script),
        "divisions": np.array([_count_divisions(cells, frames) for frames in TOLERANCES], np.int64),
        "cycles": _compare_cycles(cells.truth_tracks, cells.tracks),
        "association": _associate(cells, as_script=as_script),
    }


def _list_followers(cells: _FollowedCells) -> Dict[int, Array]:
    """Return for each true track the label that follows it throughout; 0 without one."""
    labels = np.where(cells.alone, cells.prediction, 0)
    order = np.lexsort((cells.frames, cells.truth))
    tracks, starts = np.unique(cells.truth[order], return_index=True)
    return dict(zip(tracks.tolist(), np.split(labels[order], starts[1:]) if len(tracks) else []))


def _count_tracks(cells: _FollowedCells, followers: Dict[int, Array], *, as_script: bool) -> Array:
    rows = {row[LABEL]: row for row in cells.tracks.tolist()}
    complete = 0
    shares: Dict[int, Dict[int, float]] = {}
    for label, begin, end, _ in cells.truth_tracks.tolist():
        labels = followers.get(label, np.zeros(0, np.int64))
        if len(labels) and labels[0] and (labels == labels[0]).all():
            complete += rows[int(labels[0])][BEGIN : END + 1] == [begin, end]
        starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1])) if len(labels) else labels
        for start, length in zip(starts.tolist(), np.diff(np.append(starts, len(labels))).tolist()):
            if labels[start]:
                of_label = shares.setdefault(int(labels[start]), {})
                of_label[label] = max(of_label.get(label, 0), length / (end - begin + 1))
    fractions: Dict[int, float] = {}
    for of_label in (shares[label] for label in sorted(shares)):
        for label in sorted(of_label):
            if as_script and fractions.get(label) == 1:
                continue
            fractions[label] = max(fractions.get(label, 0), of_label[label])
            if as_script and of_label[label] == 1:
                break
    total = add(list(fractions.values()))
    return np.array([complete, len(cells.truth_tracks), len(cells.tracks), total, len(fractions)], float)


# ── divisions ───────────────────────────────────────────────────────────────


def _list_divisions(tracks: Array) -> Dict[int, Tuple[int, List[int]]]:
    """Return the dividing tracks: their last frames and their children."""
    children: Dict[int, List[int]] = {}
    for row in tracks[tracks[:, PARENT] > 0].tolist():
        children.setdefault(row[PARENT], []).append(row[LABEL])
    last_frames = dict(zip(tracks[:, LABEL].tolist(), tracks[:, END].tolist()))
    return {
        label: (last_frames[label], daughters) for label, daughters in sorted(children.items()) if len(daughters) > 1
    }


def _count_divisions(cells: _FollowedCells, tolerance: int) -> List[int]:
    """Return the numbers of divisions found within a tolerance of frames, surplus and missed."""
    truth, predicted = _list_divisions(cells.truth_tracks), _list_divisions(cells.tracks)
    hits = 0
    if truth and predicted:
        starts = np.searchsorted(
            cells.frames, np.arange(max(end for end, _ in [*truth.values(), *predicted.values()]) + 3)
        )
        for label, (end, children) in predicted.items():
            for true_label, (own_end, own_children) in truth.items():
                if abs(own_end - end) <= tolerance and len(children) == len(own_children):
                    early, late = sorted((own_end, end))
                    of_parent, of_children = (slice(*starts[frame : frame + 2]) for frame in (early, late + 1))
                    hits += _is_division(cells, (true_label, label), (own_children, children), (of_parent, of_children))
    return [hits, max(0, len(predicted) - hits), max(0, len(truth) - hits)]


def _is_division(
    cells: _FollowedCells, parents: Tuple[int, int], children: Tuple[List[int], List[int]], frames: Tuple[slice, slice]
) -> bool:
    """Return whether parents (of truth and prediction) match in one frame, and children in another."""
    matched = cells.prediction[frames[0]][cells.truth[frames[0]] == parents[0]]
    if matched.tolist() != [parents[1]]:
        return False
    followers = cells.prediction[frames[1]]
    of_children = np.isin(followers, children[1])
    return bool(
        np.isin(children[1], followers).all() and np.isin(cells.truth[frames[1]][of_children], children[0]).all()
    )


def _compare_cycles(truth: Array, predicted: Array) -> Array:
    """Return whether the truth has complete cell cycles, and how similar the distributions of their lengths are."""
    lengths = []
    for tracks in (truth, predicted):
        dividing = list(_list_divisions(tracks))
        whole = np.isin(tracks[:, LABEL], dividing) & np.isin(tracks[:, PARENT], dividing)
        lengths.append(tracks[whole, END] - tracks[whole, BEGIN])
    if not all(map(len, lengths)):
        return np.array([len(lengths[0]) > 0, 0], float)
    longest = max(int(side.max()) for side in lengths) + 1
    shares = [np.cumsum(np.bincount(side, minlength=longest) / len(side)) for side in lengths]
    return np.array([1, 1 - np.abs(shares[0] - shares[1]).max()])


# ── association ─────────────────────────────────────────────────────────────


class _Forest(NamedTuple):
    """The forest of tracks, each followed by its descendants; an only child is joined to its parent."""

    #: The place of each label, by label.
    places: Array
    #: The last frame of the descendants of each track.
    ends: Array

    def sum_lineages(self, counts: Array) -> Array:
        """Return for each place the counts of its ancestors, itself and its descendants."""
        sums = np.append(0, np.cumsum(counts))
        below = sums[self.ends] - sums[:-1]
        left_behind = np.bincount(self.ends, counts, len(counts) + 1)[:-1] if len(counts) else counts
        joined: Array = below + np.cumsum(counts - left_behind) - counts
        return joined


def _grow(tracks: Array, *, as_script: bool) -> _Forest:
    """Join each only child to its parent, and sort tracks so that descendants follow ancestors."""
    rows = tracks.tolist()
    only, counts = np.unique(tracks[tracks[:, PARENT] > 0, PARENT], return_counts=True)
    single = set(only[counts == 1].tolist())
    root: Dict[int, int] = {}
    above: Dict[int, int] = {}
    for label, _, _, parent in sorted(rows, key=lambda row: row[BEGIN]):
        root[label] = root[parent] if parent in single else label
        if root[label] == label:
            above[label] = root.get(parent, 0)
    if as_script:  # the first line of a joined track states its parent
        for label, _, _, parent in reversed(rows):
            above[root[label]] = root.get(parent, 0)
    below: Dict[int, List[int]] = {}
    for label in sorted(above):
        below.setdefault(above[label] if above[label] != label else 0, []).append(label)
    order: Dict[int, int] = {}
    ends: List[int] = []
    open_tracks = list(reversed(below.get(0, [])))
    while open_tracks:
        label = open_tracks.pop()
        order[label] = len(order)
        ends.append(len(order))
        open_tracks += reversed(below.get(label, []))
    for label in reversed(list(order)):
        position = order[label]
        for child in below.get(label, []):
            ends[position] = max(ends[position], ends[order[child]])
    places = np.zeros(int(tracks[:, LABEL].max(initial=0)) + 1, np.int64)
    for label, ancestor in root.items():
        places[label] = order[ancestor]
    return _Forest(places, np.array(ends, np.int64))


def _associate(cells: _FollowedCells, *, as_script: bool) -> Array:
    """Return the sums over matches of the matching share of tracks and of lineages."""
    truth, predicted = (_grow(tracks, as_script=as_script) for tracks in (cells.truth_tracks, cells.tracks))
    matched = cells.prediction > 0
    rows, columns = truth.places[cells.truth[matched]], predicted.places[cells.prediction[matched]]
    width = len(predicted.ends)
    keys, counts = np.unique(rows * max(width, 1) + columns, return_counts=True)
    rows, columns = keys // max(width, 1), keys % max(width, 1)
    missed = np.bincount(truth.places[cells.truth[~matched]], minlength=len(truth.ends))
    surplus = np.bincount(predicted.places[cells.surplus], minlength=width)
    of_rows = np.bincount(rows, counts, len(truth.ends)) + missed
    of_columns = np.bincount(columns, counts, width) + surplus
    shares = counts / (of_rows[rows] + of_columns[columns] - counts)
    hota = add(counts * shares)
    chota, of_lineages = 0.0, (truth.sum_lineages(of_rows), predicted.sum_lineages(of_columns))
    lines, starts = np.unique(rows, return_index=True)
    for line, start, stop in zip(lines.tolist(), starts.tolist(), [*starts[1:].tolist(), len(rows)]):
        family = truth.sum_lineages(np.eye(1, len(truth.ends), line)[0]) > 0
        entries = family[rows]
        sums = predicted.sum_lineages(np.bincount(columns[entries], counts[entries], width))[columns[start:stop]]
        whole = of_lineages[0][line] + of_lineages[1][columns[start:stop]] - sums
        chota += add(counts[start:stop] * sums / whole)
    return np.array([hota, chota, int(counts.sum() + missed.sum() + surplus.sum())], float)


# ── scores ──────────────────────────────────────────────────────────────────

#: The cost of each operation on the graph, by column of `graph`.
WEIGHTS = {NS: 5.0, FN: 10.0, FP: 1.0, ED: 1.0, EA: 1.5, EC: 1.0}
_VERTICES, _LINKS = (NS, FN, FP), (ED, EA, EC)
#: The minimum denominator of F1, which is then 0 without precision and recall.
_LEAST = 1e-4


def _measure_graph(graph: Array, *operations: int) -> Optional[float]:
    """Return the share of cost that repairing the graph saves over creating it; None for an empty truth."""
    anew = add([WEIGHTS[lack] * graph[total] for lack, total in ((FN, _MARKERS), (EA, _EDGES)) if lack in operations])
    cost = add([WEIGHTS[operation] * graph[operation] for operation in operations])
    return float(1 - min(cost, anew) / anew) if anew else None


def measure_sequence(tables: Dict[str, Array], protocol: CellProtocol) -> Values:
    """Return the metrics of a sequence by name; undefined ones are None."""
    graph, cells, tracks = tables["graph"], tables["cells"], tables["tracks"]
    true_tracks = tracks[_IN_TRUTH]
    metrics: Values = {
        "SEG": float(cells[IOU] / cells[OUTLINED]) if cells[OUTLINED] else None,
        "DET": _measure_graph(graph, *_VERTICES),
        "TRA": _measure_graph(graph, *_VERTICES, *_LINKS),
        "LNK": _measure_graph(graph, *_LINKS),
        "CT": float(2 * tracks[_COMPLETE] / max(true_tracks + tracks[_PREDICTED], 1)) if true_tracks else None,
        "TF": float(tracks[_FRACTIONS] / max(tracks[_FOUND], 1)) if true_tracks else None,
        "TF-all": float(tracks[_FRACTIONS] / true_tracks) if true_tracks else None,
        "CCA": float(tables["cycles"][_CCA]) if tables["cycles"][_KNOWN] else None,
    }
    metrics["OP_CSB"] = mean_of_all([metrics["DET"], metrics["SEG"]])
    metrics["OP_CTB"] = mean_of_all([metrics["SEG"], metrics["TRA"]])
    for frames, divisions in zip(TOLERANCES, tables["divisions"]):
        branching = _measure_divisions(divisions, protocol)
        defined = [value for value in (metrics["CT"], metrics["TF"], branching, metrics["CCA"]) if value is not None]
        metrics[f"BC({frames})"], metrics[f"BIO({frames})"] = branching, mean_of_all(defined)
        metrics[f"OP_CLB({frames})"] = mean_of_all([metrics["LNK"], metrics[f"BIO({frames})"]])
    association = tables["association"]
    for metric, column in (("HOTA", _HOTA), ("CHOTA", _CHOTA)):
        metrics[metric] = float(np.sqrt(association[column] / association[_CELLS])) if association[_CELLS] else None
    return {metric: metrics[metric] for metric in protocol.metrics}


def _measure_divisions(divisions: Array, protocol: CellProtocol) -> Optional[float]:
    """Return the F1 of divisions; without divisions on both sides None, or 0 as in the script."""
    hits, surplus, missed = (int(divisions[column]) for column in (_HITS, _SURPLUS, _MISSED))
    if not hits + surplus + missed and not protocol.as_script:
        return None
    precision, recall = hits / max(hits + surplus, 1), hits / max(hits + missed, 1)
    return 2 * precision * recall / max(precision + recall, _LEAST)


def _compute_metrics(accumulator: UnitAccumulator[CellProtocol]) -> Values:
    """Return the means over the sequences for which a value is defined."""
    rows = [measure_sequence(unit.tables, accumulator.protocol) for unit in accumulator.complete_counts()]
    return {
        metric: mean_of_all([row[metric] for row in rows if row[metric] is not None])
        for metric in accumulator.protocol.metrics
    }


def _tables(accumulator: UnitAccumulator[CellProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per sequence with its metrics and the operations that repair its graph."""
    operations = {"NS": NS, "FN": FN, "FP": FP, "ED": ED, "EA": EA, "EC": EC}
    rows = []
    for unit in accumulator.complete_counts():
        graph = unit.tables["graph"]
        counts = {name: int(graph[column]) for name, column in operations.items()}
        rows.append({"name": unit.name, **measure_sequence(unit.tables, accumulator.protocol), **counts})
    return {"videos": rows}


def _shapes(_protocol: CellProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of a sequence's tables."""
    return {
        "graph": (_EDGES + 1,),
        "cells": (IOU + 1,),
        "tracks": (_FOUND + 1,),
        "divisions": (len(TOLERANCES), _MISSED + 1),
        "cycles": (_CCA + 1,),
        "association": (_CELLS + 1,),
    }


def _note_undefined(accumulator: UnitAccumulator[CellProtocol]) -> List[str]:
    """Return a note about the sequences without LNK."""
    without = [unit.name for unit in accumulator.complete_counts() if not unit.tables["graph"][_EDGES]]
    return (
        [f"LNK is undefined, because no cell of the truth appears in two frames: {name_list(without)}"]
        if without
        else []
    )


def _examine(submission: CellSubmission) -> Examination:
    """Return a submission as the doctor examines it: some frames, along z, y and x if any sequence has slices."""
    units = submission.truth.units
    are_volumes = any(unit.facts["slices"] > 1 for unit in units)

    def sample(number: int) -> List[Sample]:
        unit, problems = units[number], Problems()
        frames, slices = unit.load()[: unit.cost], unit.facts["slices"]
        _, members = submission.open_sequence(unit, problems)
        if problems:
            return []
        chosen = choose_frames(len(frames))
        truth, prediction = [], []
        for frame in chosen:
            height, width = frames[frame].size
            shape = (slices, height // slices, width) if are_volumes else (height, width)
            labels = frames[frame].read()
            truth.append(labels.labels_of(labels.numbers).reshape(shape))
            prediction.append(submission.read(members[frame], (height // slices, width), slices).reshape(shape))
        return [Sample(number, unit.name, truth, prediction, chosen, len(frames))]

    traits = {"places", "frames", "units", "masks", "segments", "voxels" if are_volumes else "pictures"}
    return Examination(
        submission.truth.item_names, sample, frozenset(traits), submission.noun, "cells",
        fit=fit_segments, agreement="the mean IoU of true cells",
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    CellSubmission,
    _count,
    _compute_metrics,
    _tables,
    _shapes,
    facts={},
    notes=_note_undefined,
    examine=_examine,
)
