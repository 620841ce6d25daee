"""The sample methods of agents score the noted values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.interactive.dataset import Davis
from segjudge.interactive.masks import batched_jaccard
from tests.interactive.scene import write_root

from .agents import agent, memory, optical_flow

#: Method → J of both objects in each frame. Libraries round differently on other processors: J may differ by one of the
#: 92 pixels of an object.
METHODS: dict[str, tuple[Any, Any]] = {
    "repeats": (agent.Method, [[1.0, 1.0], [0.7, 1.0], [0.48, 1.0], [0.31, 1.0], [0.31, 1.0], [0.48, 1.0], [0.7, 1.0], [1.0, 1.0]]),
    "flow": (optical_flow.OpticalFlow, [[1.0, 1.0], [0.94, 1.0], [0.94, 1.0], [0.94, 1.0], [0.94, 1.0], [0.93, 1.0], [0.94, 1.0], [0.92, 1.0]]),
    "memory": (memory.Memory, [[1.0, 1.0], [0.96, 1.0], [0.98, 0.98], [0.97, 0.96], [0.96, 0.95], [0.97, 0.97], [0.97, 1.0], [0.97, 1.0]]),
    "three frames": (
        lambda frame, mask: memory.Memory(frame, mask, 3),
        [[1.0, 1.0], [0.96, 1.0], [0.98, 0.98], [0.97, 0.96], [0.96, 0.95], [0.98, 0.96], [0.96, 1.0], [0.97, 1.0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_sample_method_finds_its_golden_numbers(name: str, tmp_path: Path) -> None:
    make, expected = METHODS[name]
    write_root(tmp_path)
    opened, strip = Davis(str(tmp_path)), (slice(None), slice(14, 22))
    frames, truth = opened.load_images("duo")[strip], opened.load_annotations("duo", np.uint8)[strip]
    truth = np.where(truth == 255, np.uint8(0), truth)
    method, results = make(frames[0], truth[0].copy()), []
    for number in range(8):
        frame = number if number < 4 else 7 - number
        new_objects = (
            truth[0] if number == 0 else np.where(truth[2] == 2, 2, 0) if number == 6 else np.zeros_like(truth[0])
        )
        results.append(method.segment(frames[frame], new_objects).copy())
    values = batched_jaccard(truth[[0, 1, 2, 3, 3, 2, 1, 0]], np.stack(results), False, 2)
    assert np.allclose(values, expected, rtol=0, atol=0.016), np.round(values, 4).tolist()
