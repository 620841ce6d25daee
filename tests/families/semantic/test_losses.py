"""The losses of units and classes: sums that equal the loss of mean IoU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.masks.overlaps import SHIFT
from tests.data import TRACKS_DATA
from tests.families.contract import merge_rows
from tests.families.losses import count_tables, losses_of
from tests.shared import needs_shared


def test_units_lose_their_share_of_mean_iou() -> None:
    def cells(*rows: tuple[int, int, int]) -> dict[str, Any]:
        return {"cells": np.array([[real << SHIFT | sent for real, sent, _ in rows], [pixels for *_, pixels in rows]])}

    protocol = replace(SEMANTIC_PROTOCOLS["semantic"], classes=4)
    losses = losses_of(
        "semantic", count_tables(protocol, [cells((0, 0, 5), (0, 1, 3)), cells((1, 1, 4), (1, 0, 2), (1, 2, 1))])
    )
    # Unions: 10 of class 0, 10 of class 1, 1 of class 2, which the truth lacks, as class 3.
    assert losses.by_unit == pytest.approx(np.array([[3 / 10, 3 / 10], [3 / 10, 2 / 10]]) / 2)
    assert losses.by_category == pytest.approx(np.array([[3 / 10, 2 / 10], [3 / 10, 3 / 10], [0, 0]]) / 2)
    assert sum(losses.totals().values()) == pytest.approx(1 - (5 / 10 + 4 / 10) / 2)
    assert losses.by_category.shape == (3, 2)


def test_one_pixel_is_the_whole() -> None:
    cells = {"cells": np.array([[3 << SHIFT], [1]])}
    lone = losses_of("semantic", count_tables(replace(SEMANTIC_PROTOCOLS["semantic"], classes=4), [cells]))
    assert lone.totals() == {"missing": 1, "surplus": 0}


@needs_shared
def test_kinds_of_a_result_are_what_units_cost() -> None:
    truth, submission, _ = merge_rows("SHARED_LOSSES")["vspw"]
    scores = segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, "vspw")
    assert scores["mIoU"] == pytest.approx(1 - scores.kinds[["missing", "surplus"]].sum().sum())
