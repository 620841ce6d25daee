"""The numbers of grey maps, with every term written out as their papers define it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.saliency.counting import E_CURVE, F_CURVE, S, count_map
from segjudge.evaluation_script.families.saliency.protocols import SALIENCY_PROTOCOLS
from tests.families.unit_counts import close

pytestmark = pytest.mark.usefixtures("without_kernel")

#: An object in a corner, and a map in fifths of white: three of four pixels are bright, and two outside.
TRUTH = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
FIFTHS = [[4, 5, 3, 0], [5, 2, 0, 0], [0, 0, 0, 0], [0, 3, 0, 0]]


def counted(truth: Any, fifths: Any, protocol: str = "sod") -> tuple[dict[str, float], Any]:
    """Return an image's row, by name, and its curves."""
    values = (np.array(fifths) * 51).astype(np.uint8)
    tables = count_map(7, np.array(truth, bool), values, SALIENCY_PROTOCOLS[protocol])
    names = ("group", "truth", "map", "shared", "S", "E_adp", "F_adp", "wF", "MAE")
    return dict(zip(names, tables["image"].tolist())), tables["curves"]


def alike(prediction: list[float], truth: list[int]) -> float:
    """Return the structural similarity of a corner."""
    (spread, common), (_, own_spread) = np.cov(prediction, truth).tolist()
    mean, own_mean = sum(prediction) / len(prediction), sum(truth) / len(truth)
    return 4 * mean * own_mean * common / ((mean**2 + own_mean**2) * (spread + own_spread))


def agreement(true: int, false: int, missed: int, left: int) -> float:
    """Return the sum over pixels of the agreement of deviations from the means."""
    pixels = true + false + missed + left
    mean, own_mean = (true + false) / pixels, (true + missed) / pixels
    total = 0.0
    for count, results, f_measure in ((true, 1, 1), (false, 1, 0), (missed, 0, 1), (left, 0, 0)):
        item, two = results - mean, f_measure - own_mean
        total += count * (2 * item * two / (item**2 + two**2) + 1) ** 2 / 4
    return total


def test_s_is_half_within_sides_and_half_in_corners() -> None:
    row, _ = counted(TRUTH, FIFTHS)
    # the object's 0.8, 1, 1, 0.4, and how far the background's 0.6, 0.6 and ten zeros are from white
    inside = 2 * 0.8 / (0.8**2 + 1 + math.sqrt((0.2**2 + 0.2**2 + 0.4**2) / 3))
    mean = 10.8 / 12
    spread = (10 * (1 - mean) ** 2 + 2 * (0.4 - mean) ** 2) / 11
    within = 4 / 16 * inside + 12 / 16 * 2 * mean / (mean**2 + 1 + math.sqrt(spread))
    # the centre, at one half, is rounded to even: the corner of one pixel has no spread, and so is alike
    corners = 1 / 16 + 3 / 16 * alike([1, 0.6, 0], [1, 0, 0]) + 3 / 16 * alike([1, 0, 0], [1, 0, 0])
    corners += 9 / 16 * alike([0.4, 0, 0, 0, 0, 0, 0.6, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0])
    assert row["S"] == close((within + corners) / 2)


@pytest.mark.parametrize(
    ("truth", "fifths", "expected"),
    [
        # without a side it is how bright or dark the map is
        ([[0, 0], [0, 0]], [[1, 1], [1, 2]], 0.75),
        ([[1, 1], [1, 1]], [[1, 1], [1, 2]], 0.25),
        # an even corner is alike where that of the truth is even too, whatever it holds
        ([[1, 0, 0, 0]], [[0, 0, 0, 0]], (3 / 4 + 1 / 4 + 3 / 4) / 2),
        ([[1, 1, 0, 1]], [[0, 0, 0, 0]], (1 / 4 + 2 / 4) / 2),
        # an inverted map would be below zero
        ([[0, 0, 0, 1, 1, 1, 0, 0, 0, 0]], [[5, 5, 5, 0, 0, 0, 5, 5, 5, 5]], 0),
    ],
)
def test_s_of_sides_and_corners_that_are_even(truth: Any, fifths: Any, expected: float) -> None:
    assert counted(truth, fifths)[0]["S"] == close(expected)


def test_an_even_corner_is_alike_but_for_the_script_where_its_mean_misses_the_last_digit() -> None:
    levels = np.arange(256) / 255
    missed = [value for value in range(1, 255) if np.full((1, 6), levels[value]).mean() != levels[value]]
    exact = [value for value in range(1, 255) if value not in missed]
    truth = np.zeros((2, 8), bool)
    truth[0, :3] = True
    for value, lost in ((missed[0], 6 / 16 / 2), (exact[0], 0.0)):
        # the corner on the lower right has this value alone, and the truth nothing
        values = np.array([[0, 255, 200, 90, 80, 70, 60, 50], [0, 0, *[value] * 6]], np.uint8)
        safe, script = (
            count_map(0, truth, values, SALIENCY_PROTOCOLS[protocol])["image"][S]
            for protocol in ("sod", "sod-official")
        )
        assert safe - script == close(lost)


def test_e_and_f_are_of_what_is_found_at_each_threshold() -> None:
    row, curves = counted(TRUTH, FIFTHS)
    # twice the mean of 4.4 / 16 is 0.55: three pixels are right, two wrong
    assert row["E_adp"] == close(agreement(3, 2, 1, 10) / 16)
    assert row["F_adp"] == close(1.3 * 3 / 5 * 3 / 4 / (0.3 * 3 / 5 + 3 / 4))
    for value, counts in ((255, (2, 0, 2, 12)), (180, (3, 0, 1, 12)), (120, (3, 2, 1, 10)), (80, (4, 2, 0, 10))):
        precision, recall = counts[0] / (counts[0] + counts[1]), counts[0] / 4
        assert curves[F_CURVE][255 - value] == close(1.3 * precision * recall / (0.3 * precision + recall)), value
        assert curves[E_CURVE][255 - value] == close(agreement(*counts) / 16), value
    assert curves[F_CURVE][255] == close(1.3 * 4 / 16 / (0.3 * 4 / 16 + 1))
    script, of_script = counted(TRUTH, FIFTHS, "sod-official")
    assert script["E_adp"] == close(agreement(3, 2, 1, 10) / 15)
    assert of_script[E_CURVE][255 - 120] == close(agreement(3, 2, 1, 10) / 15)


@pytest.mark.parametrize(("side", "share"), [(0, 3 / 4), (1, 1 / 4)])
def test_e_without_a_side_is_the_share_that_is_right(side: int, share: float) -> None:
    row, curves = counted(np.full((2, 2), side), [[0, 0], [1, 5]])
    assert (row["E_adp"], curves[E_CURVE][0]) == (close(share), close(share))
    assert curves[E_CURVE][255 - 40] == close(1 / 2)


def test_areas_are_above_the_middle_and_mae_is_a_mean_over_pixels() -> None:
    row, _ = counted(TRUTH, FIFTHS)
    assert [row[name] for name in ("group", "truth", "map", "shared")] == [7, 4, 5, 3]
    assert row["MAE"] == close((0.2 + 0.6 + 0.6 + 0.6) / 16)
    middle = np.array([[128, 129, 129]], np.uint8)
    image = count_map(0, np.array([[True, True, False]]), middle, SALIENCY_PROTOCOLS["sod"])["image"]
    assert image[:4].tolist() == [0, 2, 2, 1]


def test_the_script_stretches_a_map_from_its_darkest_to_its_brightest() -> None:
    row, _ = counted([[1, 0, 0, 0]], [[4, 1, 1, 2]], "sod-official")
    assert row["MAE"] == close((0 + 0 + 0 + 1 / 3) / 4)
    assert counted([[1, 0]], [[4, 4]], "sod-official")[0]["MAE"] == close((0.2 + 0.8) / 2)
    assert counted([[1, 0, 0, 0]], [[4, 1, 1, 2]])[0]["MAE"] == close((0.2 + 0.2 + 0.2 + 0.4) / 4)


def test_weighted_f_shares_errors_inside_and_weighs_those_outside_by_distance() -> None:
    row, _ = counted([[0, 1, 0, 0, 0, 0]], [[1, 4, 0, 0, 0, 2]])
    weights = [math.exp(-(step**2) / 50) for step in range(4)]
    zero, item, two, three = (weight / (2 * sum(weights) - weights[0]) for weight in weights)
    # outside the image nothing is wrong: of seven rows one counts, of seven columns those from one before to three
    # behind
    inside = 0.2 * zero * (item + zero + item + two + three)
    outside = 0.2 * (2 - 0.5 ** (1 / 5)) + 0.4 * (2 - 0.5 ** (4 / 5))
    precision, recall = (1 - inside) / (1 - inside + outside), 1 - inside
    assert row["wF"] == close(2 * precision * recall / (precision + recall))
    assert counted([[0, 0]], [[0, 5]])[0]["wF"] == 0
    assert counted([[0, 1]], [[5, 5]])[0]["wF"] == close(2 / (2 + 2 - 0.5 ** (1 / 5)))
