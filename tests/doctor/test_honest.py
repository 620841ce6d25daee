"""The doctor is silent on honest results, however weak: none of more than 300 sets of predictions raises a line."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from segjudge.evaluation_script.doctor.diagnosis import diagnose
from tests.doctor.scenes import KINDS, WEAKNESSES, change_each, draw_truth, examine, weaken


@pytest.mark.parametrize("how", WEAKNESSES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_weak_method_is_not_suspected(kind: str, how: str) -> None:
    for seed in range(7 if sys.version_info >= (3, 10) else 1):  # the same numpy code runs on the worker
        draw = np.random.default_rng([seed, len(how), len(kind)])
        truth = draw_truth(kind, draw)
        assert diagnose(examine(kind, truth, weaken(kind, truth, how, draw))) == [], seed


@pytest.mark.parametrize("kind", KINDS)
def test_right_results_and_boxes_one_pixel_later_say_nothing(kind: str) -> None:
    truth = draw_truth(kind, np.random.default_rng(4))
    prediction = [[frame * 255 for frame in frames] for frames in truth] if kind == "greys" else truth
    if kind == "boxes":
        prediction = change_each(truth, lambda boxes: boxes._replace(places=np.add(boxes.places, [1, 0, 0, 0])))
    assert diagnose(examine(kind, truth, prediction)) == []
