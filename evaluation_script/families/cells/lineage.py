"""Tracks and their lineages: complete tracks, fractions of tracks, divisions, cell cycles, and how tracks associate."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from ...masks.stack import Array
from .files import BEGIN, END, LABEL, PARENT
from .protocols import TOLERANCES

#: The columns of `tracks`: complete ones, the truth's, predicted ones, the sum of their fractions, found ones.
COMPLETE, IN_TRUTH, PREDICTED, FRACTIONS, FOUND = range(5)
#: The columns of `divisions`, a row for each tolerance.
HITS, SURPLUS, MISSED = range(3)
#: The columns of `cycles`: the largest difference of the lengths' distributions is known, and what it lacks to 1.
KNOWN, CCA = range(2)
#: The columns of `association`: sums over matches of HOTA's and CHOTA's shares, and all cells, matched or not.
HOTA, CHOTA, CELLS = range(3)


class FollowedCells(NamedTuple):
    """Each cell of the truth in each frame with the label that matches it, and cells that match nothing."""

    truth_tracks: Array
    tracks: Array
    #: Frames, labels of the truth, and labels that match them (0: none).
    frames: Array
    truth: Array
    prediction: Array
    #: Whether the label matches nothing else in the frame.
    alone: Array
    #: The labels of predicted cells that match nothing, once for each frame.
    surplus: Array

    @classmethod
    def of_frames(
        cls, matches: Sequence[Tuple[Array, Array, Array]], truth_tracks: Array, tracks: Array
    ) -> FollowedCells:
        """Put the matches of all frames together: labels of the truth, predicted ones, partners of the former."""
        columns: List[List[Array]] = [[np.zeros(0, np.int64)] for _ in range(5)]
        for frame, (truth, predicted, partner) in enumerate(matches):
            labels, places, counts = np.unique(partner, return_inverse=True, return_counts=True)
            of_frame = (np.full(len(truth), frame), truth, partner, counts[places] if len(labels) else partner)
            for column, values in zip(columns, (*of_frame, np.setdiff1d(predicted, partner))):
                column.append(values)
        frames, truth, partner, counts, surplus = map(np.concatenate, columns)
        return cls(truth_tracks, tracks, frames, truth, partner, (counts == 1) & (partner > 0), surplus)


def count_lineages(cells: FollowedCells, *, as_script: bool) -> Dict[str, Array]:
    """Return the tables of a sequence that ask for tracks and their parents."""
    followers = _list_followers(cells)
    return {
        "tracks": _count_tracks(cells, followers, as_script=as_script),
        "divisions": np.array([_count_divisions(cells, frames) for frames in TOLERANCES], np.int64),
        "cycles": _compare_cycles(cells.truth_tracks, cells.tracks),
        "association": _associate(cells, as_script=as_script),
    }


# ── tracks ──────────────────────────────────────────────────────────────────


def _list_followers(cells: FollowedCells) -> Dict[int, Array]:
    """Return of each track of the truth the label that follows it alone in each of its frames; 0 for none."""
    labels = np.where(cells.alone, cells.prediction, 0)
    order = np.lexsort((cells.frames, cells.truth))
    tracks, starts = np.unique(cells.truth[order], return_index=True)
    return dict(zip(tracks.tolist(), np.split(labels[order], starts[1:]) if len(tracks) else []))


def _count_tracks(cells: FollowedCells, followers: Dict[int, Array], *, as_script: bool) -> Array:
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
    total = float(np.sum(list(fractions.values())))
    return np.array([complete, len(cells.truth_tracks), len(cells.tracks), total, len(fractions)], float)


# ── divisions ───────────────────────────────────────────────────────────────


def _list_divisions(tracks: Array) -> Dict[int, Tuple[int, List[int]]]:
    """Return the tracks that divide: when they end, and their children."""
    children: Dict[int, List[int]] = {}
    for row in tracks[tracks[:, PARENT] > 0].tolist():
        children.setdefault(row[PARENT], []).append(row[LABEL])
    ends = dict(zip(tracks[:, LABEL].tolist(), tracks[:, END].tolist()))
    return {label: (ends[label], own) for label, own in sorted(children.items()) if len(own) > 1}


def _count_divisions(cells: FollowedCells, tolerance: int) -> List[int]:
    """Return how many divisions are found so many frames early or late, and how many are surplus or missed."""
    truth, predicted = _list_divisions(cells.truth_tracks), _list_divisions(cells.tracks)
    hits = 0
    if truth and predicted:
        starts = np.searchsorted(
            cells.frames, np.arange(max(end for end, _ in [*truth.values(), *predicted.values()]) + 3)
        )
        for label, (end, children) in predicted.items():
            for own, (own_end, own_children) in truth.items():
                if abs(own_end - end) <= tolerance and len(children) == len(own_children):
                    early, late = sorted((own_end, end))
                    of_parent, of_children = (slice(*starts[frame : frame + 2]) for frame in (early, late + 1))
                    hits += _is_division(cells, (own, label), (own_children, children), (of_parent, of_children))
    return [hits, max(0, len(predicted) - hits), max(0, len(truth) - hits)]


def _is_division(
    cells: FollowedCells, parents: Tuple[int, int], children: Tuple[List[int], List[int]], frames: Tuple[slice, slice]
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
    """Return whether the truth has tracks between two divisions, and how alike their lengths are distributed."""
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
    """Tracks without single children, each with its descendants right behind it."""

    #: The place of each label, by label.
    places: Array
    #: Where the descendants of the track at a place end.
    ends: Array

    def sum_lineages(self, counts: Array) -> Array:
        """Return for each place the counts of its ancestors, itself and its descendants."""
        sums = np.append(0, np.cumsum(counts))
        below = sums[self.ends] - sums[:-1]
        left_behind = np.bincount(self.ends, counts, len(counts) + 1)[:-1] if len(counts) else counts
        joined: Array = below + np.cumsum(counts - left_behind) - counts
        return joined


def _grow(tracks: Array, *, as_script: bool) -> _Forest:
    """Join each only child with its parent, and put descendants behind their ancestors."""
    rows = tracks.tolist()
    only, counts = np.unique(tracks[tracks[:, PARENT] > 0, PARENT], return_counts=True)
    single = set(only[counts == 1].tolist())
    root: Dict[int, int] = {}
    above: Dict[int, int] = {}
    for label, _, _, parent in sorted(rows, key=lambda row: row[BEGIN]):
        root[label] = root[parent] if parent in single else label
        if root[label] == label:
            above[label] = root.get(parent, 0)
    if as_script:  # the first line of a joined track says its parent
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


def _associate(cells: FollowedCells, *, as_script: bool) -> Array:
    """Return the sums over matches of the share of their tracks, and of their lineages, that match."""
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
    hota = float((counts * shares).sum())
    chota, of_lineages = 0.0, (truth.sum_lineages(of_rows), predicted.sum_lineages(of_columns))
    lines, starts = np.unique(rows, return_index=True)
    for line, start, stop in zip(lines.tolist(), starts.tolist(), [*starts[1:].tolist(), len(rows)]):
        family = truth.sum_lineages(np.eye(1, len(truth.ends), line)[0]) > 0
        entries = family[rows]
        sums = predicted.sum_lineages(np.bincount(columns[entries], counts[entries], width))[columns[start:stop]]
        whole = of_lineages[0][line] + of_lineages[1][columns[start:stop]] - sums
        chota += float((counts[start:stop] * sums / whole).sum())
    return np.array([hota, chota, int(counts.sum() + missed.sum() + surplus.sum())], float)
