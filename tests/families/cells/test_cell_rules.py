"""The numbers of cells, counted by hand by the definitions of the Cell Tracking Challenge's papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.cells import engine
from segjudge.evaluation_script.families.cells.engine import FrameMatches
from segjudge.evaluation_script.families.cells.protocols import CELL_PROTOCOLS
from segjudge.evaluation_script.masks.overlaps import LabelPairs
from tests.families.unit_counts import close


def matches(*frames: Any) -> list[FrameMatches]:
    """Return frames of partners, label by label, with the unmatched labels."""
    results = []
    for frame in frames:
        partners, surplus = frame if isinstance(frame, tuple) else (frame, [])
        truth = np.array(sorted(partners), np.int64)
        partner = np.array([partners[label] for label in sorted(partners)], np.int64)
        prediction = np.array(sorted({*partners.values(), *surplus} - {0}), np.int64)
        results.append(FrameMatches(truth, prediction, partner, np.ones(len(truth))))
    return results


def rows(*tracks: list[int]) -> Any:
    return np.array(tracks, np.int64).reshape(-1, 4)


def lineages(frames: Any, truth: Any, sent: Any, *, as_script: bool = False) -> dict[str, Any]:
    followed = engine._FollowedCells.join_frames(matches(*frames), rows(*truth), rows(*sent))
    return engine._count_lineages(followed, as_script=as_script)


def test_a_label_matches_a_cell_of_which_it_covers_more_than_half() -> None:
    pairs = [
        (0, 0, 50), (0, 4, 2), (0, 7, 3),
        (1, 0, 4), (1, 4, 6),  # 6 of 10
        (2, 5, 5), (2, 6, 5),  # half each
        (3, 0, 1), (3, 4, 3),  # 3 of 4, by the same label
        (8, 0, 5), (8, 5, 1),  # by the background
    ]  # fmt: skip
    cells = engine.match_cells(LabelPairs(*np.array(pairs).T))
    assert (cells.truth.tolist(), cells.prediction.tolist()) == ([1, 2, 3, 8], [4, 5, 6, 7])
    assert cells.partner.tolist() == [4, 0, 4, 0]
    assert cells.iou.tolist() == [close(6 / (10 + 11 - 6)), 0, close(3 / (4 + 11 - 3)), 0]


# ── the graph of tracks ─────────────────────────────────────────────────────

STAYING, DIVIDED = [1, 0, 2, 0], [[2, 0, 1, 0], [3, 2, 2, 2], [4, 2, 2, 2]]


@pytest.mark.parametrize(
    ("frames", "truth", "sent", "operations"),
    [
        pytest.param(
            [{1: 1, 2: 2}, {1: 1, 2: 2}, {1: 1, 3: 3, 4: 4}], [STAYING, *DIVIDED], [STAYING, *DIVIDED],
            [0, 0, 0, 0, 0, 0, 7, 5], id="perfect",
        ),
        # the first label of the first frame is surplus; the links of others stay as they are
        pytest.param([({2: 2}, [1]), {2: 2}], [[2, 0, 1, 0]], [[1, 0, 0, 0], [2, 0, 1, 0]],
                     [0, 0, 1, 0, 0, 0, 2, 1], id="surplus"),
        pytest.param(  # 9 is surplus, 2 is missed, 6 is two cells, and 5 a child where the cell goes on
            [({1: 1, 2: 2}, [9]), {1: 1, 2: 0}, {1: 5, 3: 6, 4: 6}], [STAYING, *DIVIDED],
            [[1, 0, 1, 0], [2, 0, 0, 0], [9, 0, 0, 0], [5, 2, 2, 1], [6, 2, 2, 0]],
            [1, 1, 1, 0, 3, 1, 7, 5], id="each",
        ),
        pytest.param(
            [{1: 1, 2: 2}, {1: 2, 2: 1}], [[1, 0, 1, 0], [2, 0, 1, 0]], [[1, 0, 1, 0], [2, 0, 1, 0]],
            [0, 0, 0, 2, 2, 0, 4, 2], id="swapped",
        ),
        pytest.param(  # three cells of one label are split twice, and its links do not count
            [{1: 1, 2: 1, 3: 1}, {1: 1, 2: 1, 3: 1}], [[n, 0, 1, 0] for n in (1, 2, 3)], [[1, 0, 1, 0]],
            [4, 0, 0, 0, 3, 0, 6, 3], id="merged",
        ),
        pytest.param(  # a parent that is not seen in its last frame has no link, and one that ends early has one
            [{1: 1, 5: 5}, {5: 5}, {2: 2, 6: 6}], [[1, 0, 1, 0], [2, 2, 2, 1], [5, 0, 1, 0], [6, 2, 2, 5]],
            [[1, 0, 0, 0], [2, 2, 2, 1], [5, 0, 1, 0], [6, 2, 2, 5]],
            [0, 0, 0, 1, 0, 0, 5, 2], id="gap",
        ),
        pytest.param([({}, [3]), {1: 0}], [[1, 1, 1, 0]], [[3, 0, 0, 0]], [0, 1, 1, 0, 0, 0, 1, 0], id="nothing"),
    ],
)  # fmt: skip
def test_operations_that_mend_the_graph(frames: Any, truth: Any, sent: Any, operations: list[int]) -> None:
    assert engine._count_operations(matches(*frames), rows(*truth), rows(*sent)).tolist() == operations


# ── tracks ──────────────────────────────────────────────────────────────────


def test_complete_tracks_and_their_fractions() -> None:
    frames = [
        {1: 1, 2: 5, 3: 6, 4: 7, 10: 11, 12: 11},
        {1: 1, 2: 5, 3: 6, 4: 8, 10: 11, 12: 11},
        ({1: 1, 2: 5, 4: 8}, [6]),
        {1: 1, 2: 0, 4: 0},
    ]
    truth = [[1, 0, 3, 0], [2, 0, 3, 0], [3, 0, 1, 0], [4, 0, 3, 0], [10, 0, 1, 0], [12, 0, 1, 0]]
    sent = [[1, 0, 3, 0], [5, 0, 2, 0], [6, 0, 2, 0], [7, 0, 0, 0], [8, 1, 2, 0], [11, 0, 1, 0]]
    # 1 is complete; 6 goes on after 3; 7 and then 8 follow 4; 11 is two cells, and follows neither
    tracks = lineages(frames, truth, sent)["tracks"]
    assert tracks.tolist() == [1, 6, 6, close(1 + 3 / 4 + 1 + 2 / 4), 4]
    values = measured(tracks=tracks)
    assert values["CT"] == close(2 * 1 / (6 + 6))
    assert (values["TF"], values["TF-all"]) == (close(3.25 / 4), close(3.25 / 6))


# ── divisions and cycles ────────────────────────────────────────────────────

EARLY = [[1, 0, 1, 0], [2, 2, 5, 1], [3, 2, 5, 1]]


def late(frames: int) -> list[list[int]]:
    return [[1, 0, 1 + frames, 0], [5, 2 + frames, 5, 1], [6, 2 + frames, 5, 1]]


@pytest.mark.parametrize(
    ("frames", "truth", "sent", "expected"),
    [
        ([{1: 1}] * 2 + [{2: 5, 3: 6}] * 4, EARLY, late(0), [[1, 0, 0]] * 4),
        ([{1: 1}] * 2 + [{2: 1, 3: 0}] + [{2: 5, 3: 6}] * 3, EARLY, late(1), [[0, 1, 1]] + [[1, 0, 0]] * 3),
        ([{1: 1}] * 2 + [{2: 1, 3: 0}] * 3 + [{2: 5, 3: 6}], EARLY, late(3), [[0, 1, 1]] * 3 + [[1, 0, 0]]),
        # early, where the truth is late
        ([{1: 1}] * 2 + [({1: 5}, [6])] + [{5: 5, 6: 6}] * 3, late(1), [[1, 0, 1, 0], [5, 2, 5, 1], [6, 2, 5, 1]],
         [[0, 1, 1]] + [[1, 0, 0]] * 3),
        # the parent is another cell; a child is missed; a child is another's; three children for two
        ([{1: 9}, {1: 9}] + [{2: 5, 3: 6}] * 4, EARLY, [*late(0), [9, 0, 1, 0]], [[0, 1, 1]] * 4),
        ([{1: 1}] * 2 + [({2: 5, 3: 0}, [])] * 4, EARLY, late(0), [[0, 1, 1]] * 4),
        ([{1: 1}] * 2 + [{2: 5, 3: 0, 4: 6}] * 4, [*EARLY, [4, 2, 5, 0]], late(0), [[0, 1, 1]] * 4),
        ([{1: 1}] * 2 + [({2: 5, 3: 6}, [7])] * 4, EARLY, [*late(0), [7, 2, 5, 1]], [[0, 1, 1]] * 4),
        # one of two is found; a single child is no division
        ([{1: 1, 8: 8}] * 2 + [{2: 5, 3: 6, 9: 9, 10: 0}] * 4, [*EARLY, [8, 0, 1, 0], [9, 2, 5, 8], [10, 2, 5, 8]],
         [*late(0), [8, 0, 1, 0], [9, 2, 5, 8]], [[1, 0, 1]] * 4),
        ([{1: 1}] * 6, [[1, 0, 5, 0]], [[1, 0, 5, 0]], [[0, 0, 0]] * 4),
    ],
)  # fmt: skip
def test_a_division_is_found_where_parents_and_children_match(
    frames: Any, truth: Any, sent: Any, expected: list[list[int]]
) -> None:
    assert lineages(frames, truth, sent)["divisions"].tolist() == expected


# ── association ─────────────────────────────────────────────────────────────

MOTHER = [[1, 0, 1, 0], [2, 2, 3, 1], [3, 2, 3, 1]]
FLAT = [[*row[:3], 0] for row in MOTHER]


@pytest.mark.parametrize(
    ("frames", "sent", "expected"),
    [
        ([{1: 1}] * 2 + [{2: 2, 3: 3}] * 2, MOTHER, [6, 6, 6]),
        # without parents: of the mother 2 of 6 cells belong together, of each daughter 2 of 4
        ([{1: 1}] * 2 + [{2: 2, 3: 3}] * 2, FLAT, [6, 2 * 2 / 6 + 2 * 2 / 4 + 2 * 2 / 4, 6]),
        # 2 is missed once, and 3 is surplus there: each shares 1 of 2 with its track, and lineages lose as much
        ([{1: 1}] * 2 + [{2: 2, 3: 3}, ({2: 0, 3: 0}, [3])], MOTHER,
         [2 * 1 + 1 / 2 + 1 / 3, 2 * 4 / (6 + 5 - 4) + 3 / (4 + 3 - 3) + 3 / (4 + 4 - 3), 7]),
        # one label of both daughters
        ([{1: 1}] * 2 + [{2: 2, 3: 2}] * 2, [[1, 0, 1, 0], [2, 2, 3, 0]],
         [2 * 1 + 2 * 2 / 4 + 2 * 2 / 4, 2 * 2 / (6 + 2 - 2) + 2 * 2 / (4 + 4 - 2) + 2 * 2 / (4 + 4 - 2), 6]),
        ([{1: 0}] * 2 + [{2: 0, 3: 0}] * 2, [], [0, 0, 6]),
    ],
)  # fmt: skip
def test_hota_and_chota_share_matches_among_tracks_and_lineages(frames: Any, sent: Any, expected: list[float]) -> None:
    association = lineages(frames, MOTHER, sent)["association"]
    assert association.tolist() == [close(value) for value in expected]
    values = measured(association=association)
    assert values["HOTA"] == close(math.sqrt(expected[0] / expected[2]))
    assert values["CHOTA"] == close(math.sqrt(expected[1] / expected[2]))


# ── scores ──────────────────────────────────────────────────────────────────


def measured(protocol: str = "ctc", **tables: Any) -> dict[str, float | None]:
    """Return the metrics of a sequence with these tables instead of those below."""
    given = {
        "graph": np.array([0, 1, 0, 0, 0, 0, 10, 4]), "cells": np.array([4.0, 3, 2]),
        "tracks": np.array([1, 2, 2, 1.5, 2]), "divisions": np.array([[1, 1, 1]] * 4), "cycles": np.array([1, 0.25]),
        "association": np.array([2, 1, 8]),
    }  # fmt: skip
    return dict(engine.measure_sequence({**given, **tables}, CELL_PROTOCOLS[protocol]))
