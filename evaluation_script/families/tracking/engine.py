"""The scoring of tracks on masks: HOTA, CLEAR, identity, and BURST's AP, over all sequences."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Dict, List, Tuple

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_segments, paint
from ...masks.stack import Array, Size
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.suspicions import ScoreRange
from ..base.units import Rows, Shapes, TruthFrame, UnitAccumulator, unit_engine
from .counting import ALPHAS, CLEAR_FIELDS, HOTA_FIELDS, TRACK_THRESHOLDS, average_precisions, count, measure_hota
from .files import CATEGORY, IGNORED, MASK, SCORE, TRACK_ID, TracksSubmission, read_truth
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
    }
    return {**table_shapes, "objects": ("n",), "tracks": ("t", 4)} if protocol.burst else table_shapes


def _judge_scores(accumulator: UnitAccumulator[TracksProtocol]) -> List[str]:
    """Return a warning about confidences of tracks outside of 0 to 1, which AP only orders."""
    scores = ScoreRange()
    if accumulator.protocol.burst:
        scores.add(np.concatenate([counts.tables["tracks"][:, 1] for counts in accumulator.complete_counts()]))
    return scores.judge()


# ── the doctor ──────────────────────────────────────────────────────────────


def _examine(submission: TracksSubmission) -> Examination:
    """Return a submission as the doctor examines it: by categories, or by track ids where these belong to the truth."""
    units, protocol = submission.truth.units, submission.protocol

    @lru_cache(maxsize=None)
    def read(number: int) -> Tuple[int, List[int], List[Tuple[TruthFrame, Rows]]]:
        """Return the number of frames of a sequence, and the positions, truth and masks of some."""
        frames = submission.size_frames(units[number].name, units[number].load())
        rows, chosen = submission.read_rows(units[number].name, frames), choose_frames(len(frames))
        return (
            len(frames),
            chosen,
            [(frames[position], _choose_masks(frames[position], rows[position])) for position in chosen],
        )

    def sample(column: int, offset: int, number: int) -> List[Sample]:
        count, chosen, frames = read(number)

        def draw(rows: Rows, size: Size) -> Array:
            is_void = [row[CATEGORY] == IGNORED and not protocol.burst for row in rows]
            return paint([(-1 if void else offset + row[column], row[MASK]) for row, void in zip(rows, is_void)], size)

        truth = [draw(frame.rows, frame.size) for frame, _ in frames]
        prediction = [np.maximum(draw(rows, frame.size), 0) for frame, rows in frames]
        is_empty = not any((labels > 0).any() for labels in truth)
        return [] if is_empty else [Sample(number, units[number].name, truth, prediction, chosen, count)]

    by_tracks = Examination(
        submission.truth.item_names, partial(sample, TRACK_ID, 1), frozenset({"tracks"}), "sequence", fit=fit_segments,
        agreement="the mean IoU of tracks",
    )  # fmt: skip
    column, labels, otherwise = (
        (TRACK_ID, "track ids", None) if protocol.exemplar else (CATEGORY, "category ids", by_tracks)
    )
    traits = frozenset({"pictures", "places", "frames", "units", "masks", "labels", "runs"})
    return Examination(
        submission.truth.item_names, partial(sample, column, 0), traits, "sequence", labels=labels, otherwise=otherwise
    )


def _choose_masks(frame: TruthFrame, rows: Rows) -> Rows:
    """Return the masks of a frame; of those with scores the best ones, as many as there are objects."""
    has_scores = any(len(row) > SCORE for row in rows)
    return sorted(rows, key=lambda row: -row[SCORE])[: len(frame.rows)] if has_scores else rows


ENGINE = unit_engine(
    read_truth, TracksSubmission, count, values, tables, _shapes, _judge_scores, _FACTS, {"tracks"}, examine=_examine,
)  # fmt: skip
