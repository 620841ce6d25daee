"""Which categories are taken for which: matching across categories."""

from __future__ import annotations

import numpy as np

from segjudge.diagnosis.judged import JudgedDetections, partners
from segjudge.evaluation_script.masks import Array


def confusion(judged: JudgedDetections, least: float = -np.inf) -> Array:
    """Return how many instances (rows) were detected as which category (columns), from a score on; the last is nothing.

    By falling score each detection takes the free instance of its image that overlaps most, of equals one of its
    own category first. What lies in a crowd does not count.
    """
    nothing = len(judged.truth.categories)
    kept = judged.score >= least
    pairs = judged.pairs
    pairs = pairs.of((pairs.iou >= judged.foreground) & kept[pairs.sent] & ~judged.crowd[pairs.real])
    other = judged.category[pairs.sent] != judged.instance_category[pairs.real]
    pairs = pairs.of(np.lexsort((other, -pairs.iou, pairs.sent)))
    partner = partners(pairs, len(kept))
    table = np.zeros((nothing + 1, nothing + 1), np.int64)
    shown, free = partner >= 0, np.ones(len(judged.annotation), bool)
    free[partner[shown]] = False
    surplus, missed = kept & ~shown & ~judged.ignored, free & ~judged.crowd
    np.add.at(table, (judged.instance_category[partner[shown]], judged.category[shown]), 1)
    table[nothing, :-1] = np.bincount(judged.category[surplus], minlength=nothing)
    table[:-1, nothing] = np.bincount(judged.instance_category[missed], minlength=nothing)
    return table
