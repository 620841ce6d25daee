"""Scores of updates in memory that arrived in parts, compared with those of files."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from segjudge import FrameAccumulator

CATEGORIES = [{"id": 1, "name": "x", "isthing": 1}]


def refuse_state(protocol: str, frame: str, data: bytes) -> None:
    """Test that impossible counts give no scores."""
    accumulator = FrameAccumulator(protocol, categories=CATEGORIES)
    accumulator.load_state_dict({"protocol": protocol, "frames": {"dog": {frame: data}}})
    with pytest.raises(ValueError, match=f"do not give scores of {protocol} .* did not come from state_dict"):
        accumulator.compute()


def of_parts(protocol: str, updates: list[tuple[Any, ...]], parts: int = 3, **options: Any) -> Any:
    """Return the scores of updates in any order, some repeated, to several accumulators."""
    draw = np.random.default_rng(parts)
    some = [FrameAccumulator(protocol, **options) for _ in range(parts)]
    places = [*range(len(updates)), *draw.integers(0, len(updates), 3).tolist()]
    for place in draw.permutation(places).tolist():
        some[int(draw.integers(parts))].update(*updates[place])
    whole = FrameAccumulator(protocol, **options)
    for place in draw.permutation(parts).tolist():
        loaded = FrameAccumulator(protocol, **options)
        loaded.load_state_dict(pickle.loads(pickle.dumps(some[place].state_dict())))
        whole.merge(loaded)
    return whole.compute()


def same(actual: Any, expected: Any, *, order: bool = True) -> None:
    """Test that scores are equal to the last bit, or nearly if the order of units differs; the doctor reads files."""
    (mine,), (second,) = actual.metrics.values(), expected.metrics.values()
    assert mine == (second if order else pytest.approx(second, abs=1e-12))
    of_files = {line for report in expected.reports for line in report.slips}
    warnings = [line.partition(": ")[2] for line in expected.warnings if "a bbox beside" not in line]
    assert [line.partition(": ")[2] for line in actual.warnings] == [line for line in warnings if line not in of_files]
    for name, rows in expected.tables.items():
        for table, two in zip(actual.tables[name], rows, strict=True):
            assert {**table, "split": ""} == ({**two, "split": ""} if order else pytest.approx({**two, "split": ""}))


def frames_of(names: list[str], updates: list[tuple[Any, ...]]) -> dict[str, list[str]]:
    """Return the frames of each video, in this order of the videos."""
    return {name: [frame for video, frame, *_ in updates if video == name] for name in names}
