"""Whether labels look like those of another coding: shifted, numbered otherwise, or unknown to the truth.

What is said here is a guess, so nobody is refused for it.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

import numpy as np

from ...files.problems import name_list
from ...masks.overlaps import best_assignment
from ...masks.stack import Array

#: Labels are those of another coding where fewer pixels than this share are right, and more than this share would be.
RIGHT, WOULD_BE_RIGHT = 0.25, 0.5
#: A label tells nothing about the coding below this share of the pixels; one alone tells nothing at all.
LEAST, FEWEST = 0.01, 2
CHECK = "check the numbers of the classes"


def judge_pixels(table: Array) -> List[str]:
    """Return what is odd about labels, of a table of pixels by the truth's label (rows) and the predicted one."""
    total = int(table.sum())
    if not total:
        return []
    if np.trace(table) < RIGHT * total:
        shift = _shift(table, total)
        if shift is not None:
            return [f"labels look as if {abs(shift)} was {'added to' if shift > 0 else 'taken from'} each: {CHECK}"]
        pairs = _numbered_otherwise(table, total)
        if pairs:
            examples = name_list([f"{sent} for {real}" for real, sent in pairs])
            return [f"labels look like those of another coding, such as {examples}: {CHECK}"]
    unknown = np.where(table.sum(axis=1) == 0, table.sum(axis=0), 0)
    if unknown.sum() <= WOULD_BE_RIGHT * total:
        return []
    labels = np.argsort(-unknown, kind="stable")[: np.count_nonzero(unknown)]
    examples = name_list(list(map(str, labels.tolist())))
    share = f"{100 * unknown.sum() / total:.0f} % of the pixels that count"
    return [f"{share} have labels that the truth has nowhere ({examples}): {CHECK}"]


def _shift(table: Array, total: int) -> Optional[int]:
    """Return what was added to each label, where that explains most of them."""
    count = len(table)
    rows, columns = np.nonzero(table)
    sums = np.bincount(columns - rows + count, table[rows, columns], 2 * count)
    shift = int(sums.argmax()) - count
    telling = np.count_nonzero(np.diagonal(table, shift) >= LEAST * total)
    return shift if sums.max() > WOULD_BE_RIGHT * total and telling >= FEWEST else None


def _numbered_otherwise(table: Array, total: int) -> List[Tuple[int, int]]:
    """Return labels of the truth and what stands for each, the most frequent first, where that explains most pixels."""
    rows, columns = best_assignment(table)
    pixels = table[rows, columns]
    order = [place for place in np.argsort(-pixels, kind="stable").tolist() if pixels[place] >= LEAST * total]
    explained = pixels.sum() > WOULD_BE_RIGHT * total and len(order) >= FEWEST
    return [(int(rows[place]), int(columns[place])) for place in order] if explained else []


def judge_matches(noun: str, real: int, sent: int, hits: int) -> List[str]:
    """Return what is odd where there are so many segments, instances or masks on both sides, and so many matches."""
    if not real or hits:
        return []
    if not sent:
        return [f"there is no {noun} of any class that counts: {CHECK}"]
    return [f"not one {noun} was matched with one of its class: {CHECK}, and of the images"]
