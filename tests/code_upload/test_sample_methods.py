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

#: Method → J of both objects in each frame, the means and the mean squares of their layers at the end, and how often
#: each frame that is left in its bank was asked, with its share of the answers. Libraries round differently on other
#: processors: J may differ by one of the 92 pixels of an object.
METHODS: dict[str, tuple[Any, Any, Any, Any]] = {
    "repeats": (
        agent.Method,
        [[1.0, 1.0], [0.7, 1.0], [0.48, 1.0], [0.31, 1.0], [0.31, 1.0], [0.48, 1.0], [0.7, 1.0], [1.0, 1.0]],
        [],
        [],
    ),
    "flow": (
        optical_flow.OpticalFlow,
        [[1.0, 1.0], [0.94, 1.0], [0.94, 1.0], [0.94, 1.0], [0.94, 1.0], [0.93, 1.0], [0.94, 1.0], [0.92, 1.0]],
        [(0.1825, 0.1642), (0.264, 0.2558)],
        [],
    ),
    "memory": (
        memory.Memory,
        [[1.0, 1.0], [0.96, 1.0], [0.98, 0.98], [0.97, 0.96], [0.96, 0.95], [0.97, 0.97], [0.97, 1.0], [0.97, 1.0]],
        [(0.1903, 0.1528), (0.2655, 0.2391)],
        [(7, 2.56), (6, 1.672), (5, 1.189), (4, 0.777), (1, 0.18), (0, 0.0)],
    ),
    "all frames": (
        lambda frame, mask: memory.Memory(frame, mask, 0),
        [[1.0, 1.0], [0.96, 1.0], [0.98, 0.98], [0.97, 0.96], [0.96, 0.95], [0.97, 0.97], [0.97, 1.0], [0.97, 1.0]],
        [(0.1905, 0.1528), (0.2659, 0.239)],
        [(7, 2.539), (6, 1.651), (5, 1.171), (4, 0.759), (3, 0.445), (2, 0.279), (1, 0.157), (0, 0.0)],
    ),
    "three frames": (
        lambda frame, mask: memory.Memory(frame, mask, 3),
        [[1.0, 1.0], [0.96, 1.0], [0.98, 0.98], [0.97, 0.96], [0.96, 0.95], [0.98, 0.96], [0.96, 1.0], [0.97, 1.0]],
        [(0.1907, 0.1522), (0.267, 0.2412)],
        [(7, 3.099), (1, 0.333), (0, 0.0)],
    ),
}
#: Of a picture the features of its first cell, that below it and the last one; the means and deviations of all.
CELLS = [
    [0.979, 3.018, 0.602, 1.052, 2.627, 1.001, 0.031, 0.0, 0.0],
    [1.066, 2.912, 0.662, 1.093, 2.49, 1.143, 0.055, 0.06, 0.0],
    [3.355, 1.806, 2.076, 3.027, 1.947, 2.181, 0.104, 0.54, 0.589],
]
SPREAD = [
    [1.9724, 2.0722, 1.9499, 1.9711, 2.0724, 1.9495, 0.136, 0.27, 0.2943],
    [0.7466, 0.6256, 0.6662, 0.6059, 0.4914, 0.3472, 0.0744, 0.1723, 0.1732],
]


@pytest.mark.parametrize("name", METHODS)
def test_a_sample_method_finds_its_golden_numbers(name: str, tmp_path: Path) -> None:
    make, *expected = METHODS[name]
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
    layers = getattr(method._flow if isinstance(method, memory.Memory) else method, "layers", {}).values()
    bank = [(each.asked, each.use) for each in getattr(method, "_bank", [])]
    now = values.tolist(), [(layer.mean(), (layer**2).mean()) for layer in layers], bank
    for numbers, noted, tolerance in zip(now, expected, (0.016, 0.003, 0.02), strict=True):
        assert np.allclose(numbers, noted, rtol=0, atol=tolerance), np.round(numbers, 4).tolist()


def test_cells_are_told_apart_by_colour_texture_and_place() -> None:
    rows, columns = np.mgrid[:12, :64]
    frame = np.stack([columns * 3, rows * 20, np.where((rows // 3 + columns // 8) % 2, 40, 200)], axis=2)
    keys, grid = memory._features(frame.astype(np.uint8))
    assert grid == (10, 53)
    assert np.allclose([keys[0], keys[53], keys[-1]], CELLS, rtol=0, atol=0.02), np.round(keys[[0, 53, -1]], 3).tolist()
    assert np.allclose([keys.mean(0), keys.std(0)], SPREAD, rtol=0, atol=0.005), np.round(
        [keys.mean(0), keys.std(0)], 4
    )
    assert memory._features(np.zeros((1, 400, 3), np.uint8))[1] == (1, 53)


def test_a_frame_of_the_bank_is_worth_its_use_and_how_seldom_it_was_asked() -> None:
    frames = [memory._BankFrame(np.zeros((1, 1)), {}) for _ in range(3)]
    for share in (0.5, 0.25):
        frames[0].note_answers(share)
    frames[1].note_answers(0.5)
    assert [frame.worth(7) for frame in frames] == pytest.approx([0.52795, 0.71630, 0.21630], abs=1e-5)


def test_where_there_is_no_object_the_flow_finds_none() -> None:
    frames, mask = np.random.default_rng(1).integers(0, 255, (2, 30, 40, 3), np.uint8), np.zeros((30, 40), np.uint8)
    results = optical_flow.OpticalFlow(frames[0], mask).segment(frames[1], mask)
    assert (results.shape, results.dtype, results.any()) == ((30, 40), np.uint8, False)
