"""Slips of panoptic submissions that `SLIPS` cannot express: two protocols at once, and ids that no truth has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import SubmissionError, score
from tests.families.codings import TRUTH, list_warnings
from tests.families.slips import BGR
from tests.families.test_suspicions import publish, write

CATEGORIES = [{"id": number, "name": str(number), "isthing": number < 3} for number in range(1, 6)]


def test_segments_without_a_match_are_named() -> None:
    ids = np.where(TRUTH == 255, 0, TRUTH + 1)
    segments = {number: number for number in range(1, 6)} | {6: 5}
    second = {number: category % 5 + 1 for number, category in segments.items()}
    truth, right, wrong = ([(frame, item) for frame in ids] for item in (segments, segments, second))
    for protocol in ("coco-panoptic", "vipseg"):
        assert list_warnings(right, truth, protocol, categories=CATEGORIES) == []
        (line,) = list_warnings(wrong, truth, protocol, categories=CATEGORIES)
        assert (
            line
            == "not one segment was matched with one of its class: check the numbers of the classes, and of the images"
        )


def test_ids_of_exchanged_channels_are_refused_with_the_cause(tmp_path: Path) -> None:
    truth, data = publish("coco-panoptic", tmp_path)
    with pytest.raises(SubmissionError, match="With red and blue swapped, both agree: save the PNGs as RGB"):
        score(write(tmp_path, BGR(data)), truth, "coco-panoptic")


@pytest.mark.parametrize(("sent", "named"), [([1, 1, 1], True), ([1, 1, 2], False), ([1, 2, 3], False)])
def test_a_number_that_most_objects_of_a_frame_share_is_named(sent: list[int], *, named: bool) -> None:
    cars = np.full((2, 9), 13), np.repeat([[1, 2, 3]], 3).reshape(1, 9).repeat(2, axis=0)
    shared = cars[0], np.repeat([sent], 3).reshape(1, 9).repeat(2, axis=0)
    lines = list_warnings([shared] * 3, [cars] * 3, "kitti-step")
    expected = "numbers that several objects have in one frame lower AQ by 0.67: give each object a number of its own"
    assert lines == [expected] * named
