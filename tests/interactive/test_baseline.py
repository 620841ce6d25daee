"""The baseline of interactive sessions: its scores, and its steps without the drawings of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.interactive import baseline
from segjudge.interactive import dataset, masks, robot, runs, scribbles
from segjudge.interactive.mask_datasets import DrawnScribbles

from .scene import write_root

#: J of both objects in each frame, after each interaction.
J_OF_BASELINE = [
    [[0.96, 0.71], [0.95, 0.71], [0.95, 0.71], [0.95, 0.72]],
    [[0.96, 0.71], [0.95, 0.78], [0.95, 0.95], [0.94, 0.95]],
    [[0.96, 0.71], [0.94, 0.94], [0.95, 0.95], [0.94, 0.95]],
]


@pytest.mark.long
def test_the_baseline_finds_what_it_found(tmp_path: Path) -> None:
    """J of each object in each frame equals the noted value to the digits that all machines share."""
    write_root(tmp_path)
    opened = dataset.Davis(str(tmp_path))
    images: Any = runs.Frames(opened.image_paths("duo"))
    truth, method, lines = (
        opened.load_annotations("duo"),
        baseline.Baseline(),
        DrawnScribbles(opened).load_scribble("duo", 1),
    )
    values = []
    for interaction in (1, 2, 3):
        guess = method(sequence="duo", scribbles=lines, new_sequence=interaction == 1, images=images)
        assert (guess.shape, guess.dtype) == (truth.shape, np.uint8)
        values.append(masks.batched_jaccard(truth, guess, False, 2))
        drawer = robot.InteractiveScribblesRobot(0.2, clock=float)
        lines = scribbles.fuse_scribbles(lines, drawer.interact("duo", guess, truth, 2, 3 - interaction))
    with pytest.raises(ValueError, match="^duo: there are no pictures$"):
        method(sequence="duo", scribbles=lines, new_sequence=True, images=[])
    drawn = baseline.lines(sequence="duo", scribbles=lines, new_sequence=True, images=images)
    assert np.allclose(values, J_OF_BASELINE, atol=0.015)
    assert [np.bincount(frame.ravel()).tolist() for frame in drawn] == [[576, 915, 909]] * 4
