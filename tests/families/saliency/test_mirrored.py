"""A verdict reports mirrored maps, unless only a single object shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.report.known_faults import spoil
from tests.report.test_known_faults import find_cause, make_worlds, score, score_worlds


def test_mirrored_maps_are_named(tmp_path: Path) -> None:
    assert (
        find_cause(score("sod-official", ["mirrored"], tmp_path, 11)) == "Left and right are exchanged in all 6 images."
    )


def test_a_single_object_on_the_other_side_may_be_a_mistake_if_its_shape_differs(tmp_path: Path) -> None:
    world, random = make_worlds("sod-official", 11)
    mirrored = spoil(world, ["mirrored"], random, least=True)
    cause = find_cause(score_worlds("sod-official", world, spoil(mirrored, ["dilated"], random), tmp_path))
    assert "1 of 6 objects is missed" in cause
    assert "exchanged" not in cause


@pytest.mark.parametrize(("step", "is_flipped"), [(-5, False), (5, False), (0, True)])
def test_maps_that_are_moved_are_not_upside_down(step: int, is_flipped: bool, tmp_path: Path) -> None:
    """Symmetric objects that are moved fit better if their map is mirrored, which turns the step round."""
    world, random = make_worlds("sod-official", 11)
    for video in world:
        middle = 25 if is_flipped else 47.5 - step / 2, random.integers(30, 90)
        down, across = np.mgrid[: video.labels.shape[1], : video.labels.shape[2]]
        video.labels[:] = ((down - middle[0]) / 10) ** 2 + ((across - middle[1]) / 14) ** 2 <= 1
    predicted = [video.copy() for video in world]
    for video in predicted:
        video.labels[:] = video.labels[:, ::-1] if is_flipped else np.roll(video.labels, step, 1)
    lines = score_worlds("sod-official", world, predicted, tmp_path).warnings
    assert ["look upside down" in line for line in lines] == [is_flipped]
    assert is_flipped or "maps look moved by " in lines[0]
