"""States of accumulators in memory: impossible ones are rejected."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from segjudge import FrameAccumulator, UsageError
from segjudge.evaluation_script.families.sequences.counting import decode_counts as decode_sequence
from tests.families.contract import examples
from tests.scoring.memory_parts import CATEGORIES


@pytest.mark.parametrize("protocol", examples("sharing"))
def test_a_state_that_is_none_is_refused(protocol: str) -> None:
    accumulator, draw = FrameAccumulator(protocol, categories=CATEGORIES), np.random.default_rng(0)
    broken = [b"", b"[]", b"{}", b"[[1,2],[],[]]", "text", None, *(draw.bytes(length) for length in range(1, 200))]
    for data in broken:
        with pytest.raises(ValueError):
            accumulator.load_state_dict({"protocol": protocol, "frames": {"dog": {"00000": data}}})
    for state in ({}, {"protocol": protocol}, {"protocol": protocol, "frames": 5}, {"protocol": "other", "frames": {}}):
        with pytest.raises(ValueError, match=f"does not belong to an accumulator of {protocol}"):
            accumulator.load_state_dict(state)


def test_counts_of_two_frames_or_of_none_are_not_those_of_one() -> None:
    accumulator = FrameAccumulator("davis2017")
    accumulator.update("dog", "00000", np.eye(4, dtype=int), np.eye(4, dtype=int))
    counts = decode_sequence(accumulator.state_dict()["frames"]["dog"]["00000"])
    none = replace(counts, rows=counts.rows[:0], counts=counts.counts[..., :0])
    for second in (none, replace(counts, frames=["00000", "00001"])):
        with pytest.raises(ValueError, match="does not hold the counts of one frame"):
            accumulator.load_state_dict({"protocol": "davis2017", "frames": {"dog": {"00000": second.encode()}}})


def test_a_track_without_masks_in_memory_says_so() -> None:
    with pytest.raises(UsageError, match="counting scores only files"):
        FrameAccumulator(SimpleNamespace(family="counting", name="counting"))
