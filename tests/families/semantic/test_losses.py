"""The losses of units and classes: sums that equal the loss of mean IoU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.masks.overlaps import SHIFT
from tests.families.losses import count_tables, losses_of


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
