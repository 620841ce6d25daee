"""The counts and metrics of video phrases: cgF1 by tubes, pHOTA by frames, AP by scores."""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy as np

from ...files import Flaw
from ...masks.backend import backend
from ...masks.detections import Candidates, OverlappingPairs
from ...masks.overlaps import Pairs
from ...masks.run_lengths import Masks
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.units import Unit, UnitAccumulator, UnitCounts
from ..tracking.counting import (
    ALPHAS,
    HOTA_FIELDS,
    ComparedFrame,
    average_precisions,
    count_hota,
    flag_unmatched,
    measure_hota,
    pair_up,
)
from .counting import COLUMNS, PREDICTIONS, THRESHOLDS, count_answer
from .protocols import LEAST_SCORE, PhraseProtocol
from .teta import COLUMNS as TETA_COLUMNS
from .teta import count_teta, measure_teta
from .videos import Tracks, VideoPhraseSubmission, truth_tracks

#: A prediction without a match is ignored if this share of it lies on a crowd.
_ON_CROWD = 0.5
#: The maximum number of tracks of a pair that AP compares, by score.
_MOST_RANKED = 100
#: The IoU required for a match: slightly below 1, as in COCO's API.
_REACHED = np.minimum(THRESHOLDS, 1 - 1e-10)
#: The columns of a ranked track: its phrase, its score, two words with a bit for each threshold (matched, not counted),
#: and its video, which orders tracks of equal scores.
CATEGORY, SCORE, MATCHED, IGNORED, VIDEO = range(5)
RANKED_COLUMNS = 5
#: The maximum number of tracks and objects in a video for the script's TETA, which compares all pairs.
_MOST_IN_VIDEO = 2_000


def count_video(unit: Unit, submission: VideoPhraseSubmission) -> UnitCounts:
    """Count a pair."""
    frames, crowds = unit.load(), np.array(unit.facts["crowds"], bool)
    predictions, scores = submission.tracks(unit.name, unit.facts["size"])
    truth, official = truth_tracks(frames, len(crowds)), submission.protocol.official
    tables = count_tracks(truth, crowds, predictions, scores, len(frames), official=official)
    tables["phrase"][0] = tables["tracks"][:, CATEGORY] = unit.facts["category"]
    if official:
        try:
            _add_video(tables, unit, submission)
        except Flaw as flaw:
            return UnitCounts(unit.name, {}, [flaw.as_problem(f"video {unit.facts['video']}")], 1)
    tables["tracks"][:, VIDEO] = unit.facts["video"]
    return UnitCounts(unit.name, tables)


def _add_video(tables: Dict[str, Array], unit: Unit, submission: VideoPhraseSubmission) -> None:
    """Add the script's counts per video to its first pair: unasked phrases, and TETA."""
    units, strays = submission.list_video(unit)
    size, frames = unit.facts["size"], unit.facts["frames"]
    answers, nothing = [], truth_tracks([], 0)
    for name, category in strays:
        tracks, scores = submission.tracks(name, size)
        counted = count_tracks(nothing, np.zeros(0, bool), tracks, scores, frames, official=True)
        counted["tracks"][:, CATEGORY] = category
        answers.append(counted["pair"])
        tables["hota"] += counted["hota"]
        tables["tracks"] = np.concatenate([tables["tracks"], counted["tracks"]])
    tables["others"] = np.array(answers, np.int64).reshape(-1, COLUMNS)
    tables["teta"] = np.zeros((0, TETA_COLUMNS))
    if not units or unit.facts["hidden"]:
        return
    objects = [
        (
            truth_tracks(pair.load(), len(pair.facts["crowds"])),
            np.array(pair.facts["numbers"], np.int64),
            pair.facts["category"],
        )
        for pair in units
    ]
    answered = [*((pair.name, pair.facts["category"]) for pair in units), *strays]
    sides = [
        (*_pick_counted(*submission.tracks(name, size), submission.track_numbers(name)), category)
        for name, category in answered
    ]
    total = sum(tracks.count for tracks, _, _ in sides)
    if total > _MOST_IN_VIDEO:
        raise Flaw(f"has {total:,} tracks with a score of at least 0.5; the limit is {_MOST_IN_VIDEO:,}", "Send fewer")
    tables["teta"] = count_teta(objects, sides, submission.phrases, frames)


def _pick_counted(tracks: Tracks, scores: Array, numbers: Array) -> Tuple[Tracks, Array]:
    """Return the counted tracks and their numbers."""
    counts = scores >= LEAST_SCORE
    index, flags = np.cumsum(counts) - 1, counts[tracks.track]
    masks = Masks(tracks.masks.texts.take(flags), tracks.masks.area[flags], tracks.masks.sizes[flags])
    picked = Tracks(int(counts.sum()), tracks.frame[flags], index[tracks.track[flags]], masks, tracks.shown[flags])
    return picked, numbers[counts]


def count_tracks(
    truth: Tracks, crowds: Array, predictions: Tracks, scores: Array, frames: int, *, official: bool = False
) -> Dict[str, Array]:
    """Return the tables of a pair, without its phrase; tracks without pixels count only for the script."""
    pairs, shares, shared = _overlap(truth, predictions, frames)
    together = np.zeros((predictions.count, truth.count))
    np.add.at(together, (predictions.track[pairs.prediction], truth.track[pairs.truth]), shared)
    areas, sizes = (np.bincount(side.track, side.masks.area, side.count)[:, None] for side in (truth, predictions))
    excuses = crowds & (not official)
    joint_areas = np.where(excuses, sizes, sizes + areas.T - together)
    visible, has_pixels = ((side[:, 0] > 0) | official for side in (areas, sizes))
    ious, flags = np.where(joint_areas > 0, together / np.maximum(joint_areas, 1), 1.0), crowds[visible]
    ious, ranks, asked = ious[has_pixels][:, visible], scores[has_pixels], ~flags | (not official)
    row = count_answer(
        [(int(crowd), "", int(area)) for crowd, area in zip(flags[asked], areas[visible, 0][asked])],
        ious[ranks >= LEAST_SCORE][:, asked],
        official=official,
    )
    counted = scores > LEAST_SCORE if official else scores >= LEAST_SCORE
    compared = _compare_frames(truth, excuses, predictions, counted, (pairs, shares, shared))
    return {
        "pair": np.array(row, np.int64),
        "hota": count_hota(compared),
        "phrase": np.array([0, np.count_nonzero(~flags)]),
        "tracks": _rank_tracks(ious, flags, ranks),
    }


def _overlap(truth: Tracks, predictions: Tracks, frames: int) -> Tuple[Pairs, Array, Array]:
    """Return the pairs of masks in the same frame, their IoU and their shared pixels."""
    pairs = pair_up(*(np.bincount(side.frame, minlength=frames) for side in (predictions, truth)))
    nobody = np.zeros(len(truth.masks.area), bool)
    shares = backend().mask_overlaps(pairs, predictions.masks, truth.masks, nobody)
    areas = predictions.masks.area[pairs.prediction] + truth.masks.area[pairs.truth]
    return pairs, shares, np.rint(shares * areas / (1 + shares))


def _compare_frames(
    truth: Tracks, crowds: Array, predictions: Tracks, counted: Array, overlap: Tuple[Pairs, Array, Array]
) -> List[ComparedFrame]:
    """Return the masks that HOTA compares: objects except crowds, and predictions not on a crowd."""
    (pairs, shares, shared), compared = overlap, []
    bounds = [np.searchsorted(side.frame, np.arange(len(pairs.bounds))) for side in (predictions, truth)]
    for frame, (start, stop) in enumerate(zip(pairs.bounds.tolist(), pairs.bounds[1:].tolist())):
        (low, high), (first_object, end) = (side[frame : frame + 2].tolist() for side in bounds)
        tracks, objects = predictions.track[low:high], truth.track[first_object:end]
        usable, plain = counted[tracks] & predictions.shown[low:high], ~crowds[objects]
        if not usable.any() and not plain.any():
            continue
        shape = (high - low, end - first_object)
        similarity = shares[start:stop].reshape(shape)[usable][:, plain].T
        if not plain.all():
            on_crowds = shared[start:stop].reshape(shape)[usable][:, ~plain].max(axis=1)
            excused = on_crowds >= _ON_CROWD * predictions.masks.area[low:high][usable]
            remaining = ~(excused & flag_unmatched(similarity, 0.0))
            similarity, tracks = similarity[:, remaining], tracks[usable][remaining]
        else:
            tracks = tracks[usable]
        compared.append(ComparedFrame(objects[plain], tracks, similarity))
    return compared


def _rank_tracks(ious: Array, crowds: Array, scores: Array) -> Array:
    """Return the tracks that AP uses, by falling score, matched as COCO's API does."""
    order = np.argsort(-scores, kind="stable")[:_MOST_RANKED]
    table = ious[order]
    close = np.nonzero(table >= _REACHED[0])
    matched, ignored = backend().match(
        Candidates(
            OverlappingPairs(close[0], close[1], table[close]),
            _REACHED,
            np.zeros((1, len(order)), bool),
            crowds[None],
            crowds,
            np.zeros(len(crowds), bool),
        )
    )
    rows = np.zeros((len(order), RANKED_COLUMNS))
    rows[:, SCORE], rows[:, MATCHED], rows[:, IGNORED] = scores[order], matched, ignored
    return rows


def measure_tracks(accumulator: UnitAccumulator[PhraseProtocol]) -> Values:
    """Return pHOTA and its parts, and AP over all pairs and by phrase."""
    units = [counts.tables for counts in accumulator.complete_counts()]
    hota = measure_hota(sum((tables["hota"] for tables in units), np.zeros((len(HOTA_FIELDS), len(ALPHAS)))))
    values: Values = {f"p{name}": mean(hota[name]) for name in ("HOTA", "DetA", "AssA")}
    tracks = np.concatenate([np.zeros((0, RANKED_COLUMNS)), *(tables["tracks"] for tables in units)])
    if accumulator.protocol.official:  # the script lists unlisted pairs among the others
        tracks = tracks[np.lexsort((tracks[:, CATEGORY], tracks[:, VIDEO]))]
    phrases = np.array([tables["phrase"] for tables in units])
    whole = _precision_of(tracks, int(phrases[:, 1].sum()))
    values["phrase_AP"], values["phrase_AP@0.5"], values["phrase_AP@0.75"] = (
        (mean(whole), float(whole[0]), float(whole[5])) if len(whole) else (None, None, None)
    )
    by_phrase: List[Array] = []
    for category in sorted(set(phrases[:, 0].tolist())):
        objects = int(phrases[phrases[:, 0] == category, 1].sum())
        by_phrase.append(_precision_of(tracks[tracks[:, CATEGORY] == category], objects))
    means = [mean(precision) for precision in by_phrase if len(precision)]
    values["mAP"] = mean(means) if means else None
    return {**values, **_measure_teta(units)} if accumulator.protocol.official else values


def _measure_teta(units: List[Dict[str, Array]]) -> Values:
    """Return TETA and its parts; None if no track counts, where the script stops."""
    answers = np.concatenate([np.concatenate([tables["pair"][None], tables["others"]]) for tables in units])
    rows = np.concatenate([tables["teta"] for tables in units])
    if not answers[:, PREDICTIONS].any() or not len(rows):
        return dict.fromkeys(("TETA", "LocA", "AssocA", "ClsA"))
    return measure_teta(rows)


def _precision_of(tracks: Array, objects: int) -> Array:
    """Return AP at each threshold; None without objects."""
    if not objects:
        return np.zeros(0)
    if not len(tracks):
        return np.zeros(len(THRESHOLDS))
    return average_precisions(tracks[:, SCORE], tracks[:, MATCHED], tracks[:, IGNORED], objects)
