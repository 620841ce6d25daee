"""TETA as SA-Co/VEval's script computes it: all phrases of a video compete for its objects."""

from __future__ import annotations

from typing import Collection, Dict, List, Sequence, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.overlaps import best_assignment
from ...masks.run_lengths import Masks, pack_texts
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..tracking.counting import ComparedFrame, align_tracks, pair_up
from .videos import Tracks

_EPSILON = float(np.finfo(float).eps)
#: The similarities at which pairs match; phrases are compared from one half.
_ALPHAS = np.arange(0, 0.99, 0.05)
_CLOSE = 10
_THRESHOLD = _ALPHAS[_CLOSE]
#: A number that no phrase has.
_NOBODY = int(np.iinfo(np.int64).min)
#: The columns of a phrase: its number; matched and missed objects, surplus tracks and association at each similarity;
#: tracks of the right phrase, of another one, and surplus ones, from one half.
_PHRASE, _LOCATED, _MISSED, _SURPLUS, _ASSOCIATED = 0, slice(1, 21), slice(21, 41), slice(41, 61), slice(61, 81)
_NAMED, _MISNAMED, _MISTAKEN = slice(81, 91), slice(91, 101), slice(101, 111)
COLUMNS = 111

#: The tracks of a pair, numbers that order the tracks of all pairs, and the phrase.
_Side = Tuple[Tracks, Array, int]


def count_teta(objects: Sequence[_Side], tracks: Sequence[_Side], scored: Collection[int], frames: int) -> Array:
    """Return the columns of a video's phrases; `scored` are the phrases with truth in any video.

    As in the script, only frames with an object of any phrase in the truth count.
    """
    (truth, asked), (predictions, answered) = _join(objects), _join(tracks)
    compared = [frame for frame in _list_frames(truth, predictions, frames) if len(frame.truth)]
    owners = _assign_objects(compared, asked)
    #: The surplus of each phrase; a later phrase may be counted or set before its turn.
    mistaken: Dict[int, Array] = {}
    rows = []
    for phrase in sorted({*asked.tolist(), *answered.tolist()}.intersection(scored)):
        row = np.zeros(COLUMNS)
        row[_PHRASE] = phrase
        _count_phrase(row, compared, owners, (asked, answered), mistaken)
        rows.append(row)
    for row in rows:
        row[_MISTAKEN] = mistaken.get(int(row[_PHRASE]), 0)
    return np.array(rows).reshape(-1, COLUMNS)


def _join(sides: Sequence[_Side]) -> Tuple[Tracks, Array]:
    """Return the tracks of all pairs in their order, and the phrase of each."""
    nothing = np.zeros(0, np.int64)
    numbers = np.concatenate([nothing, *(number for _, number, _ in sides)])
    phrases = np.concatenate([nothing, *(np.full(len(number), phrase) for _, number, phrase in sides)])
    order = np.argsort(numbers, kind="stable")
    rank = np.argsort(order, kind="stable")
    offsets = np.cumsum([0, *(len(number) for _, number, _ in sides)]).tolist()
    texts, frame, track, area, sizes = [], [nothing], [nothing], [nothing], [np.zeros((0, 2), np.int64)]
    for (tracks, _, _), offset in zip(sides, offsets):
        seen = np.flatnonzero(tracks.masks.area > 0)
        texts += [tracks.masks.texts[index] for index in seen.tolist()]
        frame.append(tracks.frame[seen])
        track.append(rank[offset + tracks.track[seen]])
        area.append(tracks.masks.area[seen])
        sizes.append(tracks.masks.sizes[seen])
    frames, places = np.concatenate(frame), np.concatenate(track)
    by_frame = np.lexsort((places, frames))
    masks = Masks(pack_texts(texts).take(by_frame), np.concatenate(area)[by_frame], np.concatenate(sizes)[by_frame])
    shown = np.ones(len(by_frame), bool)
    return Tracks(len(numbers), frames[by_frame], places[by_frame], masks, shown), phrases[order]


def _list_frames(truth: Tracks, predictions: Tracks, frames: int) -> List[ComparedFrame]:
    counts = [np.bincount(side.frame, minlength=frames) for side in (predictions, truth)]
    pairs = pair_up(counts[0], counts[1])
    shares = backend().mask_overlaps(pairs, predictions.masks, truth.masks, np.zeros(len(truth.masks.area), bool))
    frame_bounds = [np.append(0, np.cumsum(of_side)) for of_side in counts]
    compared = []
    for frame in range(frames):
        tracks, objects = (
            side.track[bounds[frame] : bounds[frame + 1]] for side, bounds in zip((predictions, truth), frame_bounds)
        )
        table = shares[pairs.bounds[frame] : pairs.bounds[frame + 1]].reshape(len(tracks), len(objects)).T
        compared.append(ComparedFrame(objects, tracks, table))
    return compared


def _assign(frames: List[ComparedFrame], objects: int, tracks: int) -> List[Tuple[Array, Array]]:
    """Return the best assignment (rows, columns) of each frame, including pairs without overlap."""
    times = [
        np.bincount(np.concatenate([np.zeros(0, np.int64), *side]), minlength=count)
        for side, count in (
            ([frame.truth for frame in frames], objects),
            ([frame.prediction for frame in frames], tracks),
        )
    ]
    alignment = align_tracks([frame for frame in frames if frame.similarity.size], times[0], times[1])
    return [
        best_assignment(alignment[frame.truth[:, None], frame.prediction] * frame.similarity)
        if frame.similarity.size
        else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        for frame in frames
    ]


def _assign_objects(frames: List[ComparedFrame], phrase_of_object: Array) -> List[Array]:
    """Return for each frame the phrase of each track's assigned object; `_NOBODY` without one."""
    tracks = max((int(frame.prediction.max(initial=-1)) for frame in frames), default=-1) + 1
    owners = []
    for frame, (rows, columns) in zip(frames, _assign(frames, len(phrase_of_object), tracks)):
        owner = np.full(len(frame.prediction), _NOBODY)
        close = frame.similarity[rows, columns] >= _THRESHOLD - _EPSILON
        owner[columns[close]] = phrase_of_object[frame.truth[rows[close]]]
        owners.append(owner)
    return owners


def _count_phrase(
    row: Array,
    frames: List[ComparedFrame],
    owners: List[Array],
    phrases: Tuple[Array, Array],
    mistaken: Dict[int, Array],
) -> None:
    """Fill in the columns of a phrase, except confusions, which other phrases add."""
    (asked, answered), phrase = phrases, int(row[_PHRASE])
    overlapping = []
    takes_part = np.zeros(len(answered), bool)
    for frame, owner in zip(frames, owners):
        phrase_similarity = frame.similarity[asked[frame.truth] == phrase]
        flags = phrase_similarity.max(axis=0, initial=0) >= _THRESHOLD - _EPSILON
        flags &= (owner == phrase) | (owner == _NOBODY)
        takes_part[frame.prediction[flags]] = True
        overlapping.append(flags)
    if not takes_part.any():
        row[_MISSED] = sum(np.count_nonzero(asked[frame.truth] == phrase) for frame in frames)
        surplus = sum(np.count_nonzero(answered[frame.prediction] == phrase) for frame in frames)
        mistaken[phrase] = np.full(len(_ALPHAS) - _CLOSE, float(surplus))
        return
    compared = []
    for frame in frames:
        rows, columns = asked[frame.truth] == phrase, takes_part[frame.prediction]
        compared.append(ComparedFrame(frame.truth[rows], frame.prediction[columns], frame.similarity[rows][:, columns]))
    own_mistakes = mistaken.setdefault(phrase, np.zeros(len(_ALPHAS) - _CLOSE))
    together = np.zeros((len(_ALPHAS), len(asked), len(answered)))
    for frame, own_frame, flags, (rows, columns) in zip(
        frames, compared, overlapping, _assign(compared, len(asked), len(answered))
    ):
        hit = own_frame.similarity[rows, columns] >= _ALPHAS[:, None] - _EPSILON
        tracks = own_frame.prediction[columns]
        together[:, own_frame.truth[rows], tracks] += hit
        row[_LOCATED] += hit.sum(axis=1)
        row[_MISSED] += len(own_frame.truth) - hit.sum(axis=1)
        row[_SURPLUS] += flags.sum() - (hit & np.isin(tracks, frame.prediction[flags])).sum(axis=1)
        close = hit[_CLOSE:]
        is_right = answered[tracks] == phrase
        row[_NAMED] += (close & is_right).sum(axis=1)
        row[_MISNAMED] += (close & ~is_right).sum(axis=1)
        for column in np.flatnonzero(~is_right).tolist():
            mistakes = mistaken.setdefault(int(answered[tracks[column]]), np.zeros(len(close)))
            mistakes += close[:, column]
        alone = frame.prediction[(answered[frame.prediction] == phrase) & ~flags]
        own_mistakes += len(alone) - (close & np.isin(tracks, alone)).sum(axis=1)
    object_times, track_times = (
        np.bincount(np.concatenate(side), minlength=count)
        for side, count in (
            ([own_frame.truth for own_frame in compared], len(asked)),
            ([own_frame.prediction for own_frame in compared], len(answered)),
        )
    )
    joint_times = np.maximum(object_times[:, None] + track_times - together, 1)
    row[_ASSOCIATED] = (together * together / joint_times).sum(axis=(1, 2))


def measure_teta(rows: Array) -> Values:
    """Return TETA and its parts, means over phrases."""
    phrases, index = np.unique(rows[:, _PHRASE], return_inverse=True)
    total = np.zeros((len(phrases), COLUMNS))
    np.add.at(total, index, rows)
    located = total[:, _LOCATED]
    named = total[:, _NAMED]
    parts = {
        "LocA": located / np.maximum(1, located + total[:, _MISSED] + total[:, _SURPLUS]),
        "AssocA": total[:, _ASSOCIATED] / np.maximum(1, located),
        "ClsA": named / np.maximum(1, named + total[:, _MISNAMED] + total[:, _MISTAKEN]),
    }
    means = {name: mean(shares) for name, shares in parts.items()}
    return {"TETA": mean(list(means.values())), **means}
