"""Slips of labels: of another coding, exchanged, inverted, in other channels, bits or ranges, or numbered anew."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from ..files import name_list
from ..masks.stack import Array
from .fits import count_pairs
from .samples import Examination, Sample, pool_frames
from .slip import Cure, Slip, change_frames

#: The minimum share of the compared pixels for a label to tell a coding, and the maximum number of labels of a side.
_TELLING, _MOST_LABELS = 0.002, 400
#: The label of predicted labels that stand for none.
_NONE = 0xFFF0


def _match(table: Array) -> Tuple[Array, Array]:
    """Return pairs of rows and columns, chosen by their pixels, the most first; SciPy would take longer to load."""
    columns: Dict[int, int] = {}
    rows: Dict[int, int] = {}
    for cell in np.argsort(-table, axis=None, kind="stable")[: np.count_nonzero(table)].tolist():
        row, column = divmod(cell, table.shape[1])
        if row not in columns and column not in rows:
            columns[row], rows[column] = column, row
    pairs = np.array(sorted(columns.items()), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _find_coding(examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Give labels the true ones that they seem to stand for in all samples."""
    truth, prediction = pool_frames(samples)
    pairs = count_pairs(truth, [examination.keep_labels(frame) for frame in prediction])
    rows, columns = np.flatnonzero(pairs.table.any(axis=1)), np.flatnonzero(pairs.table.any(axis=0))
    if not len(rows) or max(len(rows), len(columns)) > _MOST_LABELS:
        return None
    table = pairs.table[np.ix_(rows, columns)]
    matched_rows, matched_columns = _match(table)
    shared = table[matched_rows, matched_columns]
    true, predicted = pairs.true[rows][matched_rows][shared > 0], pairs.predicted[columns][matched_columns][shared > 0]
    shared = shared[shared > 0]
    moved, total = true != predicted, int(table.sum())
    if "masks" in examination.traits:
        moved &= (true > 0) & (predicted != 0)  # only objects tell
        total -= int(table[pairs.true[rows] == 0][:, pairs.predicted[columns] == 0].sum())
    moved &= shared >= _TELLING * total
    shift = examination.label_shift
    codes = list(zip((predicted[moved] - shift).tolist(), (true[moved] - shift).tolist()))
    seen = int(np.count_nonzero(pairs.true[rows] > 0)) if "masks" in examination.traits else len(rows)
    is_one = "masks" in examination.traits and np.count_nonzero(pairs.predicted[columns] > 0) == 1 < seen
    written, meant = map(set, zip(*codes)) if codes else (set(), set())
    true_labels, labels = ({*(side - shift).tolist()} for side in (pairs.true[rows], pairs.predicted[columns]))
    are_renamed = not written & true_labels and not meant & labels
    if is_one or len(codes) < (min(2, max(1, seen - 1)) if not are_renamed else 1):
        return None
    meanings = dict(zip(predicted.tolist(), true.tolist()))
    if "masks" in examination.traits:
        meanings[0] = 0
    are_known = written <= {*true_labels, *examination.classes}
    recode, keep = _recode(meanings), examination.keep_labels

    def rewrite(frame: Any) -> Any:
        if not isinstance(frame, np.ndarray):
            return frame._replace(labels=recode(frame.labels))
        return frame - keep(_widen(frame)) + recode(keep(frame))

    predictions = [[*map(rewrite, sample.prediction)] for sample in samples]
    return Cure(predictions, _describe(examination, codes, are_known=are_known))


def _raise_labels(_examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Add 1 to the labels of objects, if nearly all of their pixels are right then; the first one is lost."""
    predictions = [
        [np.where(np.asarray(frame) > 0, _widen(frame) + 1, 0) for frame in sample.prediction] for sample in samples
    ]
    pairs = count_pairs(
        *pool_frames([sample._replace(prediction=raised) for sample, raised in zip(samples, predictions)])
    )
    labelled = pairs.table[:, pairs.predicted > 0].sum()
    right = pairs.table[(pairs.true[:, None] == pairs.predicted) & (pairs.predicted > 0)].sum()
    return Cure(predictions) if labelled and right >= _PRECISE * labelled else None


#: The minimum share of labelled pixels that are right once 1 is added.
_PRECISE = 0.7


def _widen(frame: Any) -> Array:
    """Return a map whose labels may have any value."""
    return np.asarray(frame, np.int64)


def _recode(meanings: Dict[int, int]) -> Callable[[Any], Array]:
    keys = np.array(sorted(meanings), np.int64)
    values = np.array([meanings[key] for key in keys.tolist()], np.int64)

    def recode(frame: Any) -> Array:
        labels = _widen(frame)
        places = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
        recoded: Array = np.where(keys[places] == labels, values[places], _NONE)
        return recoded

    return recode


def _describe(examination: Examination, codes: Sequence[Any], *, are_known: bool) -> str:
    """Return how labels were written, given pairs of a written label and the one that it stands for."""
    steps = [written - meant for written, meant in codes]
    usual = max(steps, key=steps.count)
    if steps.count(usual) >= _USUAL * len(steps) and (len(steps) > 1 or abs(usual) == 1):
        return f"look {abs(usual):,} too {'high' if usual > 0 else 'low'}"
    places = {label: index for index, label in enumerate(examination.classes)}
    for origin in (0, 1):
        if sum(places.get(meant, -2) + origin == written for written, meant in codes) >= _USUAL * len(codes):
            return f"look like training ids from {origin}"
    examples = name_list([f"{written} for {meant}" for written, meant in codes], 3)
    return f"look {'exchanged' if are_known else 'like another coding'}, such as {examples}"


#: The share of labels that must follow a rule for it to be named.
_USUAL = 0.8


def _exchange_channels(codes: Array) -> Array:
    """Return colours with red and blue exchanged."""
    codes = _widen(codes)
    exchanged: Array = (codes & 0xFF) << 16 | codes & 0xFF00 | codes >> 16 & 0xFF
    return exchanged


def _cut_greys(_examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Cut maps of many values at one half of their largest value."""
    values = np.unique(np.concatenate([np.unique(frame) for sample in samples for frame in sample.prediction]))
    true = np.unique(np.concatenate([np.unique(frame) for sample in samples for frame in sample.truth]))
    true, top = true[true > 0], int(values.max(initial=0))
    if len(true) != 1 or len(values) < _MANY_GREYS:
        return None
    return Cure([[(frame > top // 2) * int(true[0]) for frame in sample.prediction] for sample in samples])


#: The minimum number of values of grey maps.
_MANY_GREYS = 16


def _number_alike(_examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Give each predicted segment the number of the true one that it covers best in its frame, if most change it."""
    predictions, seen, steady = [], 0, 0
    for sample in samples:
        frames = []
        last: Dict[int, int] = {}
        for truth, prediction in zip(sample.truth, sample.prediction):
            pairs = count_pairs([truth], [prediction])
            rows, columns = np.flatnonzero(pairs.true > 0), np.flatnonzero(pairs.predicted != 0)
            table = pairs.table[np.ix_(rows, columns)]
            meanings = {0: 0}
            if table.size:
                matched_rows, matched_columns = _match(table)
                numbers = pairs.predicted[columns][matched_columns].tolist()
                objects = pairs.true[rows][matched_rows].tolist()
                meanings.update(zip(numbers, objects))
                seen += sum(item in last for item in objects)
                steady += sum(last.get(item) == number for item, number in zip(objects, numbers))
                last.update(zip(objects, numbers))
            frames.append(_recode(meanings)(prediction))
        predictions.append(frames)
    return Cure(predictions) if steady <= _KEPT * seen else None


#: The share of objects with the number that they had before, up to which objects are numbered anew in each frame.
_KEPT = 0.25


def _stretch_flags(frame: Any) -> Any:
    """Return a map of 0 and 1 in values of 0 and 255."""
    return frame * 255 if np.max(frame, initial=0) == 1 else frame


def _slip(sentence: str, remedy: str, change: Callable[[Any], Any], *traits: str) -> Slip:
    return Slip(sentence, remedy, frozenset(traits), change_frames({np.ndarray: change}))


LABEL_SLIPS = [
    Slip("{labels} {detail}", "Write the {labels} of the truth", frozenset({"labels"}), _find_coding, least=0.35),
    Slip("{labels} look 1 too low, without the first one", "Number objects from 1; 0 is background",
         frozenset({"masks", "labels"}), _raise_labels, least=0.1, times=5.0, remains=0.95),
    Slip("{content} look like grey probability maps", "Cut probabilities at 0.5 and write the labels of the truth",
         frozenset({"masks"}), _cut_greys),
    _slip("{content} look inverted, with objects black", "Write objects white, on black",
          lambda frame: (np.asarray(frame) == 0).astype(np.int64), "binary"),
    _slip("{content} look inverted, dark on objects and bright elsewhere", "Write objects bright, on black",
          lambda frame: 255 - _widen(frame), "greys"),
    _slip("values of the {content} look as if they reached from 0 to 1, not to 255", "Multiply by 255 before the cast",
          _stretch_flags, "greys"),
    _slip("red and blue look swapped", "Save RGB; cv2.imwrite expects BGR", _exchange_channels, "colours"),
    _slip("labels seem to be in the upper 16 bits", "Write the label into the lower 16 bits",
          lambda frame: _widen(frame) >> 16, "halves"),
    Slip("objects have other numbers in each frame", "Give an object the same number in all frames",
         frozenset({"tracks"}), _number_alike, times=2.0),
]  # fmt: skip
