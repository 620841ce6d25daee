"""Which classes were taken for which: the pairs that are confused most, and a matrix of the classes with most loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from segjudge.evaluation_script.families.base.reports import Row
from segjudge.evaluation_script.masks.stack import Array
from segjudge.report.page import Section, take_rows

#: So many classes have a place in the matrix, beside `nothing`, and so many pairs in the list.
_IN_MATRIX, _MOST_PAIRS = 14, 200
#: So many pairs are in sight at once.
_ON_TOP = 5


def make_confusion(names: Sequence[str], table: Array, unit: str, about: str, missed: str = "") -> Section:
    """Show counts by classes of the truth (rows) and of the prediction (columns); the last one stands for nothing.

    `missed` is what of the truth is counted where nothing was predicted, if that is called otherwise than the rest.
    """
    wrong = table.sum(axis=0) + table.sum(axis=1) - 2 * np.diagonal(table)
    costly = np.argsort(-wrong[:-1], kind="stable")[:_IN_MATRIX]
    shown = [*costly[wrong[costly] > 0].tolist(), len(table) - 1]
    pairs = list_pairs(names, table, unit)
    in_rows = np.maximum(table.sum(axis=1), 1)
    rows = [
        (names[row], [(int(table[row, column]), float(table[row, column] / in_rows[row])) for column in shown])
        for row in shown
        if table[row].any()
    ]
    values = {
        "about": about,
        "unit": unit,
        "missed": missed or unit,
        "names": [names[column] for column in shown],
        "rows": rows,
        "left_out": int((table.any(axis=0) | table.any(axis=1)).sum()) - len(shown),
        "top": pairs[:_ON_TOP],
        "pairs": take_rows(pairs[:_MOST_PAIRS]),
    }
    return Section("confusion", "Confusion", values)


def list_pairs(names: Sequence[str], table: Array, unit: str) -> list[Row]:
    """List which classes were taken for which, most often first; the share is of all that the truth has of a class."""
    off = table.copy()
    np.fill_diagonal(off, 0)
    in_rows = table.sum(axis=1)
    rows: list[Row] = []
    for cell in np.argsort(-off, axis=None, kind="stable")[:_MOST_PAIRS].tolist():
        truth, prediction = divmod(cell, len(table))
        if not off[truth, prediction]:
            break
        share = float(off[truth, prediction] / in_rows[truth]) if truth < len(table) - 1 else None
        rows.append(
            {"truth": names[truth], "taken for": names[prediction], unit: int(off[truth, prediction]), "share": share}
        )
    return rows
