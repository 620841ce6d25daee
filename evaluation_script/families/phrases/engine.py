"""The scoring of phrases: how well objects are found, times how well their presence is predicted."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_flags, paint
from ...files import ArchiveLimits
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values, mean_of_all
from ..base.unit_counts import stack_tables
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, UnitTruth, unit_engine
from ..tracking.counting import ALPHAS, HOTA_FIELDS
from . import counting
from .counting import EPSILON, count_image, f1_of
from .files import PhraseSubmission, read_truth
from .protocols import LEAST_SCORE, PhraseProtocol
from .teta import COLUMNS as TETA_COLUMNS
from .tubes import RANKED_COLUMNS, count_video, measure_tracks
from .videos import MASK, VideoPhraseSubmission

#: The thresholds shown in addition to the mean over all, by index.
_SHOWN = {"": slice(None), "@0.5": slice(0, 1), "@0.75": slice(5, 6)}
#: The first columns of a subset's row.
_COLUMNS = ("name", "pairs", "cgF1", "pmF1", "IL_MCC", "cgF1@0.5", "cgF1@0.75", "precision", "recall")


class _Sums(NamedTuple):
    """The sums over the pairs of a subset."""

    pairs: int
    #: The number of pairs with each answer, with objects in the counted annotation, and that any annotator sees with
    #: objects, or without.
    answers: Sequence[int]
    with_objects: int
    seen: int
    absent: int
    objects: int
    #: Matched objects, surplus predictions, and those of pairs with objects that are answered, by threshold.
    hits: Array
    surplus: Array
    own_surplus: Array


def _tabulate_units(units: Sequence[UnitCounts], subsets: int) -> Array:
    """Return the sums of each subset over units."""
    return _tabulate_pairs(_list_pairs(units), subsets)


def _tabulate_pairs(pairs: Array, subsets: int) -> Array:
    """Return the sums of each subset, one after the other as in `_Sums`, from the columns of pairs."""
    sums = np.zeros((subsets, 9 + 3 * len(counting.THRESHOLDS)), np.int64)
    for index, row in enumerate(sums):
        rows = pairs[pairs[:, counting.SUBSET] == index]
        answers = rows[:, counting.ANSWER]
        row[0], row[1:5] = len(rows), np.bincount(answers, minlength=4)
        row[5:8] = [np.count_nonzero(rows[:, column]) for column in (counting.OBJECTS, counting.SEEN, counting.ABSENT)]
        row[8] = rows[:, counting.OBJECTS].sum()
        right = rows[answers == counting.RIGHT]
        sides = ((rows, counting.FOUND), (rows, counting.SURPLUS), (right, counting.SURPLUS))
        row[9:] = np.concatenate([side[:, columns].sum(axis=0) for side, columns in sides])
    return sums


def _list_pairs(units: Sequence[UnitCounts]) -> Array:
    """Return the columns of all pairs, also of those that only SA-Co's script counts."""
    if not units:
        return np.zeros((0, counting.COLUMNS), np.int64)
    pairs, has_strays = stack_tables(units, "pair"), "others" in units[0].tables
    return np.concatenate([pairs, *(counts.tables["others"] for counts in units)]) if has_strays else pairs


def _sum_by_subset(accumulator: UnitAccumulator[PhraseProtocol]) -> List[_Sums]:
    """Return the sums of each subset."""
    has_strays, subsets = accumulator.protocol.videos, len(accumulator.facts["subsets"])
    tabulate = partial(_tabulate_units if has_strays else _tabulate_pairs, subsets=subsets)
    return [
        _Sums(int(row[0]), row[1:5].tolist(), *row[5:9].tolist(), *row[9:].reshape(3, -1))
        for row in accumulator.add_up("pairs", tabulate, "" if has_strays else "pair")
    ]


def _measure_pairs(accumulator: UnitAccumulator[PhraseProtocol]) -> List[Optional[Array]]:
    """Return for each subset the mean F1 of its pairs with objects, by threshold; None without any."""
    official, videos = accumulator.protocol.official, accumulator.protocol.videos
    pairs = _list_pairs(accumulator.complete_counts()) if videos else accumulator.stack("pair")
    means: List[Optional[Array]] = []
    for index, sums in enumerate(_sum_by_subset(accumulator)):
        rows = pairs[(pairs[:, counting.SUBSET] == index) & (pairs[:, counting.ANSWER] == counting.RIGHT)]
        missed = rows[:, [counting.OBJECTS]] - rows[:, counting.FOUND]
        local = f1_of(rows[:, counting.FOUND], rows[:, counting.SURPLUS], missed, official=official)
        number = len(rows) if official else sums.with_objects
        means.append(local[rows[:, counting.OBJECTS] > 0].sum(axis=0) / number if number else None)
    return means


def _measure(sums: _Sums, mean_f1: Optional[Array] = None, *, official: bool) -> Values:
    """Return the metrics of a subset, each also at thresholds 0.5 and 0.75; `mean_f1` is that of its pairs."""
    hits, surplus, own_surplus, missed = sums.hits, sums.surplus, sums.own_surplus, sums.objects - sums.hits
    metrics: Dict[str, Optional[Array]] = {
        "positive_micro_F1": f1_of(hits, own_surplus, missed, official=official),
        "positive_macro_F1": mean_f1,
        "precision": _share(hits, surplus, official=official),
        "positive_micro_precision": _share(hits, own_surplus, official=official),
        "recall": _share(hits, missed, official=official),
        "F1": f1_of(hits, surplus, missed, official=official),
    }
    if not official and not sums.objects:
        metrics = dict.fromkeys(metrics)
    image_level = _measure_presence(sums, official=official)
    mcc = image_level["IL_MCC"]
    micro = metrics["positive_micro_F1"]
    metrics["cgF1"] = None if micro is None or mcc is None else micro * mcc
    values: Values = {
        f"{name}{ending}": None if value is None else mean(value[indices])
        for ending, indices in _SHOWN.items()
        for name, value in metrics.items()
    }
    return {"cgF1": values["cgF1"], "pmF1": values["positive_micro_F1"], **image_level, **values}


def _share(hits: Array, errors: Array, *, official: bool) -> Array:
    return hits / (hits + errors + EPSILON) if official else hits / np.maximum(hits + errors, 1)


def _measure_presence(sums: _Sums, *, official: bool) -> Values:
    """Return how well the presence of objects is predicted; None if the truth's answers are all equal."""
    answers = (counting.RIGHT, counting.WRONG, counting.SILENT, counting.REJECTED)
    right, wrong, silent, rejected = (float(sums.answers[answer]) for answer in answers)
    epsilon = 1e-6 if official else 0.0

    def share(hits: float, errors: float) -> Optional[float]:
        return hits / (hits + errors + epsilon) if hits + errors + epsilon else None

    precision, recall = share(right, wrong), share(right, silent)
    product = (right + wrong) * (right + silent) * (rejected + wrong) * (rejected + silent)
    mcc: Optional[float] = (
        (right * rejected - wrong * silent) / (math.sqrt(product) + epsilon) if product or official else 0.0
    )
    if not official and not (sums.seen and sums.absent):
        mcc = None
    f1 = None
    if precision is not None and recall is not None:
        total = precision + recall + epsilon
        f1 = 2 * precision * recall / total if total else 0.0
    return {
        "IL_MCC": mcc, "IL_precision": precision, "IL_recall": recall, "IL_F1": f1, "IL_FPR": share(wrong, rejected),
    }  # fmt: skip


def _compute_metrics(accumulator: UnitAccumulator[PhraseProtocol]) -> Values:
    """Return the benchmark's metrics: means over the subsets; videos form one subset."""
    protocol = accumulator.protocol
    by_subset = [_measure(sums, official=protocol.official) for sums in _sum_by_subset(accumulator)]
    tracks = measure_tracks(accumulator) if protocol.videos else {}
    return {
        metric: tracks[metric] if metric in tracks else mean_of_all([metrics[metric] for metrics in by_subset])
        for metric in protocol.metrics
    }


def _tables(accumulator: UnitAccumulator[PhraseProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per subset, and one with all numbers of SA-Co's script."""
    protocol = accumulator.protocol
    tracks = measure_tracks(accumulator) if protocol.videos else {}
    subsets = zip(accumulator.facts["subsets"], _sum_by_subset(accumulator), _measure_pairs(accumulator))
    rows: List[Dict[str, Any]] = [
        {"name": name, "pairs": sums.pairs, **_measure(sums, mean_f1, official=protocol.official), **tracks}
        for (name,), sums, mean_f1 in subsets
    ]
    columns = dict.fromkeys([*_COLUMNS, *accumulator.protocol.metrics])
    return {"subsets": [{key: row[key] for key in columns} for row in rows], "details": rows}


def _shapes(protocol: PhraseProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of a pair's tables."""
    pair: Shapes = {"pair": (counting.COLUMNS,)}
    if not protocol.videos:
        return pair
    video: Shapes = {**pair, "hota": (len(HOTA_FIELDS), len(ALPHAS)), "phrase": (2,), "tracks": ("n", RANKED_COLUMNS)}
    return {**video, "others": ("o", counting.COLUMNS), "teta": ("v", TETA_COLUMNS)} if protocol.official else video


AnySubmission = Union[PhraseSubmission, VideoPhraseSubmission]


def _open_submission(path: str, truth: UnitTruth, protocol: PhraseProtocol, limits: ArchiveLimits) -> AnySubmission:
    """Open the predictions for pictures, or the tracks for videos."""
    return (VideoPhraseSubmission if protocol.videos else PhraseSubmission)(path, truth, protocol, limits)


def _count_unit(unit: Unit, submission: AnySubmission) -> UnitCounts:
    """Count a pair."""
    return (
        count_video(unit, submission)
        if isinstance(submission, VideoPhraseSubmission)
        else count_image(unit, submission)
    )


def _judge_scores(accumulator: UnitAccumulator[PhraseProtocol]) -> List[str]:
    """Return a warning if no score is high enough to count."""
    objects, predictions = accumulator.stack("pair")[:, [counting.OBJECTS, counting.PREDICTIONS]].sum(axis=0).tolist()
    return [f"no prediction counts: only scores of at least {LEAST_SCORE} do"] if objects and not predictions else []


def _examine(submission: AnySubmission) -> Examination:
    """Return a submission as the doctor examines it: the masks of pairs with objects and predictions, united."""
    units = [unit for unit in submission.truth.units if unit.cost > unit.facts.get("frames", 1)]
    videos = submission.protocol.videos

    def sample(number: int) -> List[Sample]:
        unit, frames = units[number], units[number].load()
        chosen, masks = choose_frames(len(frames)), submission.list_masks(units[number].name)
        rows = [frames[position].rows if videos else next(filter(None, frames[position].rows)) for position in chosen]
        truth = [paint([(1, row[MASK]) for row in of_frame], frames[0].size) for of_frame in rows]
        prediction = [
            paint([(1, text) for frame, text in masks if frame == position], frames[0].size) for position in chosen
        ]
        has_masks = masks and any(labels.any() for labels in truth)
        return [Sample(number, unit.name, truth, prediction, chosen, len(frames))] if has_masks else []

    traits = {"pictures", "places", "units", "masks", "binary", "runs", "questions"} | ({"frames"} if videos else set())
    return Examination([unit.name for unit in units], sample, frozenset(traits), "pair", labels="ids", fit=fit_flags)


ENGINE = unit_engine(
    read_truth,
    _open_submission,
    _count_unit,
    _compute_metrics,
    _tables,
    _shapes,
    _judge_scores,
    facts={"subsets": (str,), "listed": (int, int)},
    signed=("phrase", "tracks", "teta"),
    examine=_examine,
)
