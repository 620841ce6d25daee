"""The scoring of tracks on masks: HOTA, CLEAR, identity, and BURST's AP, over all sequences."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ...files import inflect, name_list, quantity
from ...masks.stack import Array
from ...values.arithmetic import mean, power
from ..base.displacement import EXACT, EXACT_SHARE, Frames, judge_moved_masks
from ..base.exchanged_masks import MaskSamples, MaskSources, judge_masks
from ..base.family import Values
from ..base.frame_order import read_orders
from ..base.readings import Reading, read_rewritten_frames
from ..base.suspicions import ScoreRange, judge_exchanged_classes, judge_matches, judge_one_class
from ..base.units import Rows, Shapes, TruthFrame, UnitAccumulator, UnitComparison, UnitCounts, unit_engine
from .counting import ALPHAS, CLEAR_FIELDS, HOTA_FIELDS, TRACK_THRESHOLDS, average_precisions, count, measure_hota
from .files import CATEGORY, IGNORED, MASK, TracksSubmission, choose_compared, read_truth
from .protocols import BURST, CLEAR, COMMON, HOTA, TracksProtocol

#: The dataset's facts about all sequences, and the types in a row.
_FACTS = {"classes": (str, int), "merged": (int, int)}


def _measure_clear(counts: Array) -> Dict[str, float]:
    """Return the measures of CLEAR, and IDF1."""
    fields = dict(zip(CLEAR_FIELDS, counts.tolist()))
    objects = max(1.0, fields["matched"] + fields["missed"])
    errors = fields["surplus"] + fields["switches"]
    return {
        "sMOTSA": (fields["similarity"] - errors) / objects,
        "MOTSA": (fields["matched"] - errors) / objects,
        "MOTSP": fields["similarity"] / max(1.0, fields["matched"]),
        "IDSW": fields["switches"],
        "IDF1": 2 * fields["identical"] / max(1.0, 2 * fields["matched"] + fields["missed"] + fields["surplus"]),
    }


def _list_classes(accumulator: UnitAccumulator[TracksProtocol]) -> List[Tuple[str, int]]:
    return list(accumulator.protocol.classes) or [(name, category) for name, category in accumulator.facts["classes"]]


def _measure_categories(accumulator: UnitAccumulator[TracksProtocol]) -> List[Dict[str, float]]:
    # TrackEval adds sequences up by name, which decides the order of tracks with equal scores.
    counts_by_name = sorted(accumulator.complete_counts(), key=lambda counts: counts.name.replace("/", "-"))
    units, classes = [counts.tables for counts in counts_by_name], len(_list_classes(accumulator))

    def total(key: str, *shape: int) -> Array:
        sums = np.zeros((classes, *shape))
        for tables in units:
            sums[tables["classes"]] += tables[key]
        return sums

    hota, clear = total("hota", len(HOTA_FIELDS), len(ALPHAS)), total("clear", len(CLEAR_FIELDS))
    measures = [
        {**{name: mean(values) for name, values in measure_hota(hota_fields).items()}, **_measure_clear(clear_fields)}
        for hota_fields, clear_fields in zip(hota, clear)
    ]
    if accumulator.protocol.burst:
        tracks = np.concatenate([tables["tracks"] for tables in units])
        tracks = tracks[np.argsort(tracks[:, 0], kind="stable")]
        of_each = np.split(tracks, np.searchsorted(tracks[:, 0], np.arange(1, classes)))
        for values, objects, of_class in zip(measures, total("objects").tolist(), of_each):
            values["AP"] = _average_precision(of_class, objects)
    return measures


def _average_precision(tracks: Array, objects: float) -> float:
    """Return the mean precision over recalls and thresholds."""
    if not len(tracks) or not objects:
        return 0.0
    loose = (tracks[:, 3] > 0) * ((1 << len(TRACK_THRESHOLDS)) - 1)
    excused = loose & ~tracks[:, 2].astype(int)
    return mean(average_precisions(tracks[:, 1], tracks[:, 2], excused, objects))


def values(accumulator: UnitAccumulator[TracksProtocol]) -> Values:
    """Return the benchmark's metrics of all sequences: means over categories."""
    rows, classes = _measure_categories(accumulator), _list_classes(accumulator)
    if not accumulator.protocol.burst:
        single = (*HOTA, *CLEAR)
        means: Values = {name: mean([row[name] for row in rows]) for name in single}
        if len(classes) > 1:
            means.update({f"{name}-{label}": row[name] for (label, _), row in zip(classes, rows) for name in single})
        return means
    groups = {"": [True] * len(classes), "-common": [category in COMMON for _, category in classes]}
    groups["-uncommon"] = [not flag for flag in groups["-common"]]
    return {
        f"{name}{group}": mean([row[name] for row, flag in zip(rows, flags) if flag]) if any(flags) else None
        for group, flags in groups.items()
        for name in BURST
    }


def _measure_sequence(accumulator: UnitAccumulator[TracksProtocol]) -> Values:
    """Return HOTA over the masks of all classes, most of which a sequence lacks."""
    (counts,) = accumulator.complete_counts()
    return {"HOTA": mean(measure_hota(counts.tables["hota"].sum(axis=0))["HOTA"])}


def tables(accumulator: UnitAccumulator[TracksProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each category."""
    return {
        "categories": [
            {"id": category, "name": name, **row}
            for (name, category), row in zip(_list_classes(accumulator), _measure_categories(accumulator))
        ]
    }


def _shapes(protocol: TracksProtocol, _facts: Dict[str, Any]) -> Shapes:
    table_shapes: Shapes = {
        "classes": ("n",),
        "hota": ("n", len(HOTA_FIELDS), len(ALPHAS)),
        "clear": ("n", len(CLEAR_FIELDS)),
        "frames": (2,),
        "confused": ("c", 3),
    }
    return {**table_shapes, "objects": ("n",), "tracks": ("t", 4)} if protocol.burst else table_shapes


#: The first fields of CLEAR.
_MATCHED, _MISSED, _SURPLUS = range(3)
#: Objects seem numbered anew in each frame if at least this number and this share of matches change their track.
_FEWEST_SWITCHES, _MOST_SWITCHES = 10, 0.75
#: The minimum number of masks that tell classes apart.
_FEWEST_MASKS = 20
#: Frames seem to be missing if at least this number and this share of those with objects have no mask.
_FEWEST_EMPTY, _MOST_EMPTY = 5, 1 / 3
#: The number of sequences without a mask that are expected by chance, from which they do not seem to be missing.
_BY_CHANCE = 0.05
#: The position of the similarity of inexact masks among the alphas, and the share of such masks that show where
#: objects are, so that neither classes nor images are wrong.
_INEXACT, _MOST_INEXACT = 4, 0.5
#: The minimum number of surplus masks of the only class, as a share of the missed objects of other classes.
_SHARE_OF_OTHERS = 0.5


def _judge_classes(accumulator: UnitAccumulator[TracksProtocol]) -> List[str]:
    """Return a suspicion if classes stand for each other in sequences where few masks match one of their class."""
    none = np.zeros((0, 3), np.int64)
    of_each = [counts.tables.get("confused", none) for counts in accumulator.complete_counts()]
    rows = np.concatenate([none, *of_each])
    ids = sorted({*rows[:, :2].reshape(-1).tolist()} - {0})
    if 2 * sum(map(bool, map(len, of_each))) < len(of_each) or rows[:, 2].sum() < _FEWEST_MASKS:
        return []
    true, predicted = (np.searchsorted(ids, rows[:, column]) for column in (0, 1))
    shared, is_near = np.zeros((len(ids), len(ids)), np.int64), rows[:, 1] > 0
    np.add.at(shared, (true[is_near], predicted[is_near]), rows[is_near, 2])
    counts = np.bincount(true, rows[:, 2], len(ids)).astype(np.int64)
    return judge_exchanged_classes(shared, counts, ids, "have their class", "masks tried")


def _judge_exchange(accumulator: UnitAccumulator[TracksProtocol]) -> List[str]:
    remedy = "Check seq_name" if accumulator.protocol.burst else "Check the names of the files"
    scores = accumulator.reading_scores()
    return judge_masks(scores, "sequence", remedy) or judge_moved_masks(scores, "sequence", len(accumulator.names))


def _judge_masks(clear: Array, near: float) -> List[str]:
    """Return a suspicion about all masks, given the counts of CLEAR by class and the matches of inexact masks too."""
    objects, masks = (clear[:, _MATCHED] + clear[:, column] for column in (_MISSED, _SURPLUS))
    if near >= max(1, _MOST_INEXACT * masks.sum()):
        unmatched = []
    else:
        unmatched = judge_matches("mask", int(objects.sum()), int(masks.sum()), int(clear[:, _MATCHED].sum()))
    # A method that only finds one class has no masks of objects of others.
    missed = clear[masks == 0, _MISSED].sum()
    covers = clear[:, _SURPLUS].sum() >= _SHARE_OF_OTHERS * missed
    return unmatched or (judge_one_class("mask", objects, masks) if covers else [])


def _judge_gaps(accumulator: UnitAccumulator[TracksProtocol]) -> List[str]:
    """Return a suspicion if sequences or frames seem to be missing."""
    by_sequence = {counts.name: counts.tables["clear"].sum(axis=0) for counts in accumulator.complete_counts()}
    blank = {name for name, clear in by_sequence.items() if clear[_MISSED] and not clear[[_MATCHED, _SURPLUS]].any()}
    shown = [clear[:2] for name, clear in by_sequence.items() if name not in blank]
    matched, missed = np.sum(shown, axis=0).tolist() if shown else (0.0, 0.0)
    if not matched:
        return []
    frames = {counts.name: counts.tables["frames"].tolist() for counts in accumulator.complete_counts()}
    lacking = []
    for name in accumulator.names:
        # A method that misses many objects may miss all of a sequence that has few.
        together = math.ceil(by_sequence[name][_MISSED] / max(1, frames[name][0])) if name in blank else 0
        if together and power(missed / (matched + missed), together) * len(accumulator.names) < _BY_CHANCE:
            lacking.append(name)
    # In one of BURST's many short sequences, a tracker may find nothing.
    if lacking and (not accumulator.protocol.burst or 3 * len(lacking) >= len(accumulator.names)):
        have = inflect(len(lacking), "has", "have")
        subject = f"{quantity(len(lacking), 'sequence')} {have} no mask of a class that counts: {name_list(lacking)}"
        return [f"{subject}. Send the masks of all sequences"]
    filled, empty = np.sum([pair for name, pair in frames.items() if name not in blank], axis=0).tolist()
    if empty >= max(_FEWEST_EMPTY, _MOST_EMPTY * filled):
        return [f"{empty:,} of {filled:,} frames with objects have no mask: send the masks of all frames"]
    return []


def _suspect(accumulator: UnitAccumulator[TracksProtocol]) -> List[str]:
    by_class, near = np.zeros((len(_list_classes(accumulator)), len(CLEAR_FIELDS))), 0.0
    for counts in accumulator.complete_counts():
        by_class[counts.tables["classes"]] += counts.tables["clear"]
        near += float(counts.tables["hota"][:, 0, _INEXACT].sum())
    matched, _, _, switches = map(int, by_class.sum(axis=0)[:4])
    suspicions = _judge_classes(accumulator) or _judge_masks(by_class, near)
    suspicions += _judge_gaps(accumulator)
    if switches >= _FEWEST_SWITCHES and switches > _MOST_SWITCHES * matched:
        changes = (
            f"{switches:,} of {matched:,} matched masks have a different track number than their object had before"
        )
        suspicions.append(f"{changes}: give an object the same number in all frames")
    if accumulator.protocol.burst:
        scores = ScoreRange()
        scores.add(np.concatenate([counts.tables["tracks"][:, 1] for counts in accumulator.complete_counts()]))
        suspicions += scores.judge()
    return suspicions


#: The share of objects that match from which a sequence is not compared with others.
_MOST_MATCHED = 0.5
#: The position of the similarity of exact masks among the alphas.
_EXACT = int(np.searchsorted(ALPHAS, EXACT))


def _open_samples(submission: TracksSubmission) -> MaskSamples:
    """Return the masks of few frames of all sequences."""
    units = submission.truth.units

    def choose(frames: List[TruthFrame], rows: List[Rows]) -> Frames:
        return [
            (frame.size, [row[MASK] for row in frame_rows if row[CATEGORY] != IGNORED])
            for frame, frame_rows in zip(choose_compared(frames), rows)
            if all(frame.size)
        ]

    def load(number: int, loaded: Optional[List[TruthFrame]]) -> List[TruthFrame]:
        return submission.size_frames(units[number].name, loaded or units[number].load())

    def open_truth(number: int, loaded: Optional[List[TruthFrame]]) -> Frames:
        frames = load(number, loaded)
        return choose(frames, [frame.rows for frame in choose_compared(frames)])

    def open_prediction(number: int, loaded: Optional[List[TruthFrame]]) -> Frames:
        frames = load(number, loaded)
        return choose(frames, submission.read_few(units[number].name, frames))

    def judge_fit(counts: UnitCounts) -> bool:
        matched, missed, *_ = counts.tables["clear"].sum(axis=0)
        return bool(matched >= _MOST_MATCHED * (matched + missed))

    def are_exact(counts: UnitCounts) -> bool:
        matches = counts.tables["hota"][:, 0].sum(axis=0)
        return bool(matches[_EXACT] >= EXACT_SHARE * matches[_INEXACT])

    return MaskSamples(MaskSources(submission.truth.item_names, open_truth, open_prediction, judge_fit, are_exact))


def _list_readings(protocol: TracksProtocol) -> List[Reading]:
    """Return the other readings by which a sequence may score more; exemplars belong to the truth."""
    rewritten = [] if protocol.exemplar else read_rewritten_frames("sequence")
    return [*rewritten, *read_orders("sequence", "each mask", "Check the frame of each mask")]


ENGINE = unit_engine(
    read_truth, TracksSubmission, count, values, tables, _shapes, _suspect, _FACTS, {"tracks"},
    readings=_list_readings, measure_unit=_measure_sequence, added={"confused"},
    comparison=UnitComparison(_open_samples, _judge_exchange),
)  # fmt: skip
