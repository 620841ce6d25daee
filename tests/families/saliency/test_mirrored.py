"""Moved maps are not taken for mirrored ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.report.test_known_faults import make_worlds, score_worlds


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
