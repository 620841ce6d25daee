"""What agents, environments and hosts say to each other stays what was noted; and what the sample methods find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.code_upload_challenge_evaluation.agent.agent import Method
from segjudge.code_upload_challenge_evaluation.agent.memory import Memory
from segjudge.code_upload_challenge_evaluation.agent.optical_flow import OpticalFlow
from segjudge.interactive.dataset import Davis
from segjudge.interactive.masks import batched_jaccard
from tests.interactive.tale import Tale, write_root

from .calls import FILE, PARTS, write_part

NOTED = {text.partition("\n")[0]: text for text in FILE.read_text(encoding="utf-8").split("═══ ")}
#: Method → J of both objects in each frame, as far as libraries round alike on other machines.
METHODS: dict[str, tuple[Any, list[list[float]]]] = {
    "repeats": (
        Method,
        [[1.0, 1.0], [0.78, 1.0], [0.62, 1.0], [0.48, 1.0], [0.48, 1.0], [0.62, 1.0], [0.78, 1.0], [1.0, 1.0]],
    ),
    "flow": (
        OpticalFlow,
        [[1.0, 1.0], [0.98, 1.0], [0.97, 1.0], [0.97, 0.99], [0.97, 0.98], [0.97, 1.0], [0.97, 1.0], [0.98, 1.0]],
    ),
    "memory": (
        Memory,
        [[1.0, 1.0], [0.99, 1.0], [0.98, 0.98], [0.98, 0.96], [0.97, 0.95], [0.97, 0.96], [0.97, 1.0], [0.97, 1.0]],
    ),
    "all frames": (
        lambda frame, mask: Memory(frame, mask, 0),
        [[1.0, 1.0], [0.99, 1.0], [0.98, 0.98], [0.98, 0.96], [0.97, 0.95], [0.97, 0.96], [0.97, 1.0], [0.97, 1.0]],
    ),
    "three frames": (
        lambda frame, mask: Memory(frame, mask, 3),
        [[1.0, 1.0], [0.99, 1.0], [0.98, 0.98], [0.98, 0.96], [0.97, 0.95], [0.96, 0.96], [0.96, 1.0], [0.97, 1.0]],
    ),
}

#: Method → how often each frame that is left in its bank was asked.
BANKS = {"memory": [7, 6, 5, 4, 1, 0], "all frames": [7, 6, 5, 4, 3, 2, 1, 0], "three frames": [7, 1, 0]}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_calls_are_answered_as_the_golden_text_has_it(part: Callable[[Tale], None]) -> None:
    text = write_part(part).removeprefix("═══ ")
    assert text == NOTED[text.partition("\n")[0]], "`python -m tests.code_upload.calls` notes what is meant"


@pytest.mark.parametrize("name", METHODS)
def test_a_sample_method_finds_its_golden_numbers(name: str, tmp_path: Path) -> None:
    make, expected = METHODS[name]
    write_root(tmp_path)
    opened = Davis(str(tmp_path))
    frames, truth = opened.load_images("duo"), np.where(opened.load_annotations("duo", np.uint8) == 255, 0, 1)
    truth = (opened.load_annotations("duo", np.uint8) * truth).astype(np.uint8)
    method, found = make(frames[0], truth[0].copy()), []
    for number in range(8):
        frame = number if number < 4 else 7 - number
        new_objects = (
            truth[0] if number == 0 else np.where(truth[2] == 2, 2, 0) if number == 6 else np.zeros_like(truth[0])
        )
        found.append(method.segment(frames[frame], new_objects).copy())
    asked = [each.asked for each in getattr(method, "_bank", [])]
    assert asked == BANKS.get(name, [])
    values = batched_jaccard(truth[[0, 1, 2, 3, 3, 2, 1, 0]], np.stack(found), False, 2)
    assert np.allclose(values, expected, atol=0.01)


def test_where_there_is_no_object_the_flow_finds_none() -> None:
    frames, mask = np.random.default_rng(1).integers(0, 255, (2, 30, 40, 3), np.uint8), np.zeros((30, 40), np.uint8)
    found = OpticalFlow(frames[0], mask).segment(frames[1], mask)
    assert (found.shape, found.dtype, found.any()) == ((30, 40), np.uint8, False)
