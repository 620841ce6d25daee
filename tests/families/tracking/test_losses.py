"""The losses of sequences and classes: sums that equal the loss of detection and association."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.tracking.counting import ALPHAS, HOTA_FIELDS, ComparedFrame, count_categories
from segjudge.evaluation_script.families.tracking.engine import values
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from tests.families.losses import count_tables, losses_of


def _fields(classes: list[int], **fields: list[list[float]]) -> dict[str, Any]:
    """Make the tables of a sequence: for each field and class, the value at the lowest alpha, and at all others."""
    hota = np.zeros((len(classes), len(HOTA_FIELDS), len(ALPHAS)))
    for name, rows in fields.items():
        for place, (first, rest) in enumerate(rows):
            hota[place, HOTA_FIELDS.index(name), 0], hota[place, HOTA_FIELDS.index(name), 1:] = first, rest
    return {"classes": np.array(classes, np.int64), "hota": hota}


def test_sequences_lose_their_share_of_detection_and_association() -> None:
    first = _fields(
        [0, 1],
        matched=[[8, 8], [1, 1]], missed=[[2, 2], [0, 0]], surplus=[[0, 0], [3, 3]], AssA=[[6, 6], [1, 1]],
        swapped=[[1.5, 1.5], [0, 0]], gaps=[[0.5, 0.5], [0, 0]],
    )  # fmt: skip
    second = _fields([1], matched=[[4, 4]], missed=[[2, 2]], surplus=[[0, 0]], AssA=[[1, 1]], swapped=[[3, 3]])
    for protocol, facts in (("kitti-mots", {}), ("burst", {"classes": [["a", 1], ["b", 2]]})):
        losses = losses_of("tracks", count_tables(TRACKS_PROTOCOLS[protocol], [first, second], facts))
        # Missed, surplus, inexact, swapped.  Class 0: 10 in all, class 1: 10 in all; of matches 8 and 5.
        by_unit = [[2 / 10 + 0.5 / 8, 3 / 10, 0, 1.5 / 8], [2 / 10, 0, 0, 3 / 5]]
        assert losses.by_unit == pytest.approx(np.array(by_unit) / 2)
        by_category = [[2 / 10 + 0.5 / 8, 0, 0, 1.5 / 8], [2 / 10, 3 / 10, 0, 3 / 5]]
        assert losses.by_category == pytest.approx(np.array(by_category) / 2)
    none = losses_of("tracks", count_tables(TRACKS_PROTOCOLS["mots"], []))
    assert none.totals() == {"missed": 0, "surplus": 0, "inexact": 0, "swapped": 0}


def test_a_match_that_only_small_thresholds_take_is_inexact_not_missed() -> None:
    share = (len(ALPHAS) - 1) / len(ALPHAS)
    inexact = _fields([0], matched=[[1, 0]], missed=[[0, 1]], surplus=[[0, 1]], AssA=[[1, 0]])
    totals = losses_of("tracks", count_tables(TRACKS_PROTOCOLS["mots"], [inexact])).totals()
    # DetA and AssA are both 0 at all thresholds but one.
    assert totals == pytest.approx({"missed": 0, "surplus": 0, "inexact": 2 * share, "swapped": 0})


@pytest.mark.parametrize("seed", range(8))
def test_kinds_sum_to_what_detection_and_association_lack(seed: int) -> None:
    random = np.random.default_rng(seed)
    units = []
    for _ in range(4):
        frames = []
        for _ in range(int(random.integers(1, 9))):
            truth, prediction = (random.permutation(6)[: random.integers(0, 6)] for _ in range(2))
            similarity = random.random((len(truth), len(prediction)))
            similarity *= similarity >= similarity.max(axis=1, keepdims=True, initial=0)
            frames.append(ComparedFrame(truth, prediction, similarity))
        units.append({"classes": np.zeros(1, np.int64), **count_categories([frames])})
    accumulator = count_tables(TRACKS_PROTOCOLS["mots"], units)
    losses, scores = losses_of("tracks", accumulator), values(accumulator)
    assert sum(losses.totals().values()) == pytest.approx(2 - scores["DetA"] - scores["AssA"], abs=1e-9)
    assert losses.by_category.sum(axis=0) == pytest.approx(losses.by_unit.sum(axis=0), abs=1e-12)
    assert losses.by_unit.min() >= -1e-12


def test_tracks_exchanged_between_two_objects_are_swapped_and_nothing_else() -> None:
    both, apart = np.array([0, 1]), np.eye(2)
    frames = [ComparedFrame(both, both if index < 5 else both[::-1], apart) for index in range(10)]
    tables = {"classes": np.zeros(1, np.int64), **count_categories([frames])}
    losses = losses_of("tracks", count_tables(TRACKS_PROTOCOLS["mots"], [tables]))
    # Each match shares 5 of the 15 frames that its object or its track is in.
    assert losses.totals() == pytest.approx({"missed": 0, "surplus": 0, "inexact": 0, "swapped": 2 / 3})
