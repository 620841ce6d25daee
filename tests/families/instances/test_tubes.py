"""Masks of frames as one wide mask."""

from __future__ import annotations

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.records import join_frames
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.run_lengths import pack_texts
from tests.builders import run_length_text

pytestmark = pytest.mark.usefixtures("without_kernel")


def test_masks_of_frames_are_one_wide_mask() -> None:
    rng = np.random.default_rng(4)
    frames = [rng.random((3, 4)) < share for share in (0.5, 0.0, 1.0, 0.4, 0.6, 0.5, 1.0)]
    shown = np.array([True, False, True, True, True, True, True])
    frames[5][:] = False
    tube = np.array([0, 0, 0, 2, 2, 2, 2])
    texts = pack_texts([run_length_text(frame) for frame, flag in zip(frames, shown) if flag])
    results = join_frames(texts, shown, tube, np.full(7, 12), 4)
    for index in range(4):
        parts = [frame for frame, its in zip(frames, tube) if its == index]
        runs = rle.runs_of(results.masks[index], 12 * len(parts)) if parts else np.zeros(0, int)
        flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
        assert flat.tolist() == [flag for part in parts for flag in part.ravel(order="F").tolist()]
        areas = [int(part.sum()) for part in parts if part.any()]
        assert results.pixels[index] == sum(areas)
        assert results.mean_area[index] == (np.mean(areas) if areas else 0)
    with pytest.raises(ValueError):  # without a message, because the caller finds the mask
        join_frames(texts, shown, tube, np.full(7, 13), 4)
