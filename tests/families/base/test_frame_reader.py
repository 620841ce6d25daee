"""Masks of a frame in memory, by object."""

from __future__ import annotations

import numpy as np

from segjudge.families.base.memory import FrameReader
from tests.calls import labels


def test_each_object_keeps_its_pixels_and_the_background_is_none() -> None:
    square, line = labels("0000000 0110000 0110000") > 0, labels("0000000 0000000 0001111")
    stacks = FrameReader().read({"0": square, "7": square, "12": line, "9": None}, "a/1")
    assert list(stacks) == ["7", "12"]
    for label, mask in {"7": square, "12": line > 0}.items():
        assert stacks[label].size == (3, 7)
        assert np.array_equal(stacks[label].draw(0), mask)
