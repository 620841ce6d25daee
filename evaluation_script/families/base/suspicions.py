"""Suspicions: warnings about submissions that seem to follow another convention; they reject nothing.

These follow from the counts of all units; `readings` has those that need a second count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, List, Sequence, Tuple

import numpy as np

from ...files import inflect, name_list, quantity
from ...masks.overlaps import best_assignment
from ...masks.stack import Array
from ...values.arithmetic import add

if TYPE_CHECKING:
    pass

# ── labels ──────────────────────────────────────────────────────────────────

#: Labels seem to use another coding if more than this share of pixels would be correct, and less than that share of
#: these is.
_WOULD_BE_RIGHT, _RIGHT = 0.5, 0.4
#: The minimum share of the pixels for a label to count as evidence of a coding, the minimum number of such labels, and
#: the minimum of Cohen's kappa with that coding.
_LEAST, _FEWEST, _EXPLAINED = 0.01, 2, 0.2
_CHECK = "check the numbers of the classes"


def is_better(right: float, would_be_right: float, total: float) -> bool:
    """Return whether another reading would match so many more items that it was probably meant."""
    return right < _RIGHT * would_be_right and would_be_right > _WOULD_BE_RIGHT * total


def _explains(table: Array, rows: Array, columns: Array, total: int) -> bool:
    """Return whether pairs of a true and a predicted label explain most pixels, and far more than by chance."""
    explained, counted = float(table[rows, columns].sum()), max(1, int(table.sum()))
    by_chance = add(table.sum(axis=1)[rows] / counted * table.sum(axis=0)[columns]) / counted * total
    is_above_chance = explained > by_chance + _EXPLAINED * (total - by_chance)
    return is_better(float(np.trace(table)), explained, total) and is_above_chance


def _are_evidence(table: Array, rows: Array, columns: Array, stay: Array, total: int) -> Array:
    """Return which pairs of a true and a predicted label are evidence of another coding.

    A rare pair is none, nor is a predicted label that mostly stands for itself.
    """
    tells: Array = (rows != columns) & (table[rows, columns] >= _LEAST * total) & ~stay[columns]
    return tells


def _find_meant(table: Array) -> Array:
    """Return which labels mostly stand for themselves."""
    meant: Array = (table.argmax(axis=1) == np.arange(len(table))) & table.any(axis=1)
    return meant


def _match_codings(table: Array, stay: Array, total: int) -> Tuple[Array, Array, int]:
    """Return true labels and the predicted ones that stand for them, the most frequent first, and the pixels that all
    pairs explain; empty if these are few.
    """
    rows, columns = best_assignment(table)
    pixels, tells = table[rows, columns], _are_evidence(table, rows, columns, stay, total)
    order = np.argsort(-pixels, kind="stable")
    order = order[tells[order]]
    explained = len(order) >= _FEWEST and _explains(table, rows, columns, total)
    order = order if explained else order[:0]
    return rows[order], columns[order], int(pixels.sum())


def judge_exchanged_classes(
    shared: Array, true: Array, ids: Sequence[int], agree: str, nouns: str = "pixels"
) -> List[str]:
    """Return a suspicion if classes stand for each other, given the pixels of each true class, those in which it (rows)
    agrees with each predicted one, and what this means.
    """
    rare = np.arange(len(true)) != int(true.argmax())  # which may have the right class all the same
    for scope, chosen in ((" outside the most frequent class", rare), ("", np.ones(len(true), bool))):
        cells, total = np.where(chosen[:, None], shared, 0), int(true[chosen].sum())
        rows, columns, corrected = _match_codings(cells, _find_meant(shared), total)
        if len(rows):
            pairs = zip(rows.tolist(), columns.tolist())
            examples = name_list([f"{ids[column]} for {ids[row]}" for row, column in pairs])
            shares = f"{100 * corrected / total:.0f} % of the {nouns}{scope}"
            gain = f"corrected, {shares} would {agree}, not {100 * int(np.trace(cells)) / total:.0f} %"
            return [f"classes look exchanged, such as {examples}: {gain}. Write the ids of the truth"]
    return []


# ── matches ─────────────────────────────────────────────────────────────────

#: The minimum number of objects, and the share of matches below which almost none match.
_MANY, _NEARLY_NONE = 100, 0.01


def is_nearly_none(hits: float, total: float) -> bool:
    """Return whether hits are absent or very rare."""
    return not hits or (total >= _MANY and hits < _NEARLY_NONE * total)


def judge_matches(noun: str, in_truth: int, in_prediction: int, hits: int) -> List[str]:
    """Return warnings about segments, instances or masks, given their numbers and the matches."""
    if not in_truth or not is_nearly_none(hits, in_truth):
        return []
    if not in_prediction:
        return [f"there is no {noun} of any class that counts: {_CHECK}"]
    few = f"only {hits:,} of {in_truth:,} {noun}s of the truth" if hits else f"not one {noun}"
    matched = f"{few} {'were' if hits else 'was'} matched with one of {'their' if hits else 'its'} class"
    return [f"{matched}: {_CHECK}, and of the images"]


def judge_one_class(noun: str, in_truth: Array, in_prediction: Array) -> List[str]:
    """Return a warning if all segments, instances or masks, numbered by class, have the same class."""
    classes, predicted = int(np.count_nonzero(in_truth)), int(in_prediction.sum())
    if classes < _FEWEST or predicted < _FEWEST_OF_ONE or np.count_nonzero(in_prediction) != 1:
        return []
    return [_describe_one_class(f"{predicted:,} {noun}", classes)]


def _describe_one_class(noun: str, classes: int) -> str:
    return f"all {noun}s have the same class, though the truth has {classes:,}: {_CHECK}"


#: The minimum number of predictions that suggest that their class is always the same.
_FEWEST_OF_ONE = 5
#: Masks cover everything if they contain this share of the objects' pixels, and have at least this many times as many
#: pixels in total.
_NEARLY_ALL, _TIMES_AS_LARGE = 0.99, 4


def judge_cover(nouns: str, in_truth: float, in_prediction: float, shared: float) -> List[str]:
    """Return suspicions about masks that cover nearly all pixels of objects, and many more."""
    if not in_truth or shared < _NEARLY_ALL * in_truth or in_prediction < _TIMES_AS_LARGE * in_truth:
        return []
    larger = f"{nouns} cover the objects and {in_prediction / in_truth:,.0f} times as many pixels in all"
    return [f"{larger}: check the threshold, and that the background is 0"]


#: The minimum number of units with truth that have no prediction, and their minimum share.
_FEWEST_BLANK, _BLANK = 3, 1 / 3


def judge_blank(noun: str, names: Sequence[str], flags: Tuple[Array, Array], truth: str, prediction: str) -> List[str]:
    """Return a suspicion if many units with truth, but not all, lack a prediction; both have a flag for each unit."""
    has_truth, is_blank = flags
    total = int(np.count_nonzero(has_truth))
    blank = [names[number] for number in np.flatnonzero(has_truth & is_blank).tolist()]
    if len(blank) < max(_FEWEST_BLANK, _BLANK * total) or len(blank) == total:
        return []
    scope = f"{quantity(len(blank), noun, total)} with {truth} {inflect(len(blank), 'has', 'have')} {prediction}"
    return [f"{scope}: {name_list(blank)}. Check that the results of the whole split were written"]


# ── scores of detections ────────────────────────────────────────────────────


#: The tolerance for confidences outside 0 to 1.
_ROUNDING = 1e-6


class ScoreRange:
    """Counts of scores inside 0 to 1, and the range of all scores."""

    def __init__(self) -> None:
        self.count = self.outside = 0
        self._least, self._most = math.inf, -math.inf

    def add(self, scores: Any) -> None:
        """Record finite scores."""
        values = np.asarray(scores, np.float64)
        if values.size:
            self.count += values.size
            self.outside += int(np.count_nonzero((values < -_ROUNDING) | (values > 1 + _ROUNDING)))
            self._least, self._most = min(self._least, float(values.min())), max(self._most, float(values.max()))

    def join(self, scores: ScoreRange) -> None:
        """Add the counts of another range."""
        self.count, self.outside = self.count + scores.count, self.outside + scores.outside
        self._least, self._most = min(self._least, scores._least), max(self._most, scores._most)

    def judge(self) -> List[str]:
        """Return warnings about the range of scores."""
        if not self.outside:
            return []
        lie = "lies" if self.outside == 1 else "lie"
        outside = (
            f"{quantity(self.outside, 'score', self.count)} {lie} outside of 0 to 1, as {self._guess_reading()} do"
        )
        return [f"{outside} (all lie from {self._least:g} to {self._most:g}): write confidences from 0 to 1"]

    def _guess_reading(self) -> str:
        is_percent = self._least >= 0 and self._most <= 100 and 2 * self.outside > self.count and self._most > 10
        return "percentages" if is_percent else "logits"
