"""HOTA, CLEAR and identity of one sequence and category, as counts that add up over sequences.

A frame is the indices of its objects and of its predictions, and their similarities, one row for each object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import numpy as np

from ...masks.overlaps import best_assignment
from ...masks.stack import Array

EPSILON = float(np.finfo(float).eps)
#: A pair matches at these similarities; the scores are means over them.
ALPHAS = np.arange(0.05, 0.99, 0.05)
#: CLEAR and identity match from here on.
THRESHOLD = 0.5
#: What is counted at each alpha, and once.
HOTA_FIELDS = ("matched", "missed", "surplus", "AssA", "AssRe", "AssPr", "similarity")
CLEAR_FIELDS = ("matched", "missed", "surplus", "switches", "similarity", "identical")


@dataclass(frozen=True)
class ComparedFrame:
    """One frame of a sequence."""

    truth: Array
    prediction: Array
    similarity: Array


def best_pairs(quality: Array) -> Tuple[Array, Array]:
    """Return rows and columns of the assignment whose quality is largest; ties fall as in the official evaluators.

    Pairs without a quality above zero are left out where they decide nothing.
    """
    return _plain_pairs(quality) or best_assignment(quality)


def _plain_pairs(quality: Array) -> Optional[Tuple[Array, Array]]:
    """Return the pairs above zero where no two of them meet, else the best of every row or column in the same case."""
    rows, columns = (quality > 0).nonzero()
    if len(set(rows.tolist())) == len(set(columns.tolist())) == len(rows):
        return rows, columns
    for table in (quality, quality.T) if quality.size else ():
        most = table.max(1)
        rows = (most > 0).nonzero()[0]
        best = table[rows] == most[rows, None]
        columns = best.argmax(1)
        if best.sum() == len(rows) and len(set(columns.tolist())) == len(rows):
            if table is quality:
                return rows, columns
            order = columns.argsort()
            return columns[order], rows[order]
    return None


def counts_of(categories: List[List[ComparedFrame]]) -> Dict[str, Array]:
    """Return the fields of HOTA at each alpha, and those of CLEAR, of each category's frames."""
    number = len(categories)
    hota = np.array([hota_counts(frames) for frames in categories]).reshape(number, len(HOTA_FIELDS), len(ALPHAS))
    clear = np.array([clear_counts(frames) for frames in categories]).reshape(number, len(CLEAR_FIELDS))
    return {"hota": hota, "clear": clear}


def _sizes(frames: List[ComparedFrame]) -> Tuple[Array, Array]:
    """Return in how many frames each object and each prediction is."""
    truth = np.concatenate([np.zeros(0, int), *(frame.truth for frame in frames)])
    prediction = np.concatenate([np.zeros(0, int), *(frame.prediction for frame in frames)])
    return np.bincount(truth), np.bincount(prediction)


def hota_counts(frames: List[ComparedFrame]) -> Array:
    """Return the fields of HOTA (rows) at each alpha (columns)."""
    truths, predictions = _sizes(frames)
    counts = np.zeros((len(HOTA_FIELDS), len(ALPHAS)))
    pairs: Tuple[List[Array], ...] = ([np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)])
    shown = [frame for frame in frames if frame.similarity.size]
    alignment = _alignment(shown, truths, predictions)
    for frame in shown:
        rows, columns = best_pairs(alignment[frame.truth[:, None], frame.prediction] * frame.similarity)
        for column, part in zip(pairs, (frame.truth[rows], frame.prediction[columns], frame.similarity[rows, columns])):
            column.append(part)
    one, two, similarity = map(np.concatenate, pairs)
    keys, key = np.unique(one * max(1, len(predictions)) + two, return_inverse=True)
    one, two = keys // max(1, len(predictions)), keys % max(1, len(predictions))
    for place, alpha in enumerate(ALPHAS):
        hit = similarity >= alpha - EPSILON
        times = np.bincount(key[hit], minlength=len(keys))
        shared, of_truth, of_prediction = times[times > 0], truths[one[times > 0]], predictions[two[times > 0]]
        counts[:, place] = (
            hit.sum(), truths.sum() - hit.sum(), predictions.sum() - hit.sum(),
            (shared * shared / (of_truth + of_prediction - shared)).sum(),
            (shared * shared / of_truth).sum(), (shared * shared / of_prediction).sum(), similarity[hit].sum(),
        )  # fmt: skip
    return counts


def _alignment(frames: List[ComparedFrame], truths: Array, predictions: Array) -> Array:
    """Return how well each object and each prediction go together over the whole sequence."""
    together = np.zeros((len(truths), len(predictions)))
    for frame in frames:
        similarity = frame.similarity
        joint = similarity.sum(0, keepdims=True) + similarity.sum(1, keepdims=True) - similarity
        share = np.divide(similarity, joint, out=np.zeros_like(similarity), where=joint > EPSILON)
        together[frame.truth[:, None], frame.prediction] += share
    alignment: Array = together / np.maximum(truths[:, None] + predictions[None, :] - together, EPSILON)
    return alignment


def clear_counts(frames: List[ComparedFrame]) -> Array:
    """Return the fields of CLEAR, and how many pairs the best assignment of whole tracks has."""
    truths, predictions = _sizes(frames)
    last, before = np.full(len(truths), -1), np.full(len(truths), -1)
    matched, switches, similarity = 0, 0, 0.0
    together = np.zeros((len(truths), len(predictions)))
    for frame in frames:
        if not len(frame.truth) or not len(frame.prediction):
            continue
        close = frame.similarity >= THRESHOLD
        together[frame.truth[:, None], frame.prediction] += close
        same = frame.prediction[None, :] == before[frame.truth][:, None]
        quality = np.where(frame.similarity >= THRESHOLD - EPSILON, 1000 * same + frame.similarity, 0)
        rows, columns = best_pairs(quality)
        kept = quality[rows, columns] > EPSILON
        rows, columns = rows[kept], columns[kept]
        objects, numbers = frame.truth[rows], frame.prediction[columns]
        switches += int(((last[objects] >= 0) & (last[objects] != numbers)).sum())
        last[objects] = numbers
        before[:] = -1
        before[objects] = numbers
        matched += len(rows)
        similarity += float(frame.similarity[rows, columns].sum())
    identical = together[best_pairs(together)].sum() if together.size else 0
    missed, surplus = truths.sum() - matched, predictions.sum() - matched
    return np.array([matched, missed, surplus, switches, similarity, identical], float)
