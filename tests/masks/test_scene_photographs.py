"""Photographs of synthetic scenes: cut-outs that move over a fixed ground."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import features

from segjudge.masks.demo import Scene, first_scenes
from segjudge.masks.photographs import photograph, photograph_frames, photograph_images

pytestmark = pytest.mark.skipif(not features.check("webp"), reason="THIS PILLOW READS NO WEBP")
FIRST, LATER = 0, 11


def is_near(video: Scene, frame: int, grow: float) -> np.ndarray:
    """Return the pixels of a photograph that show an object grown by this distance."""
    wide: np.ndarray = np.kron(video.labels(frame, grow), np.ones((2, 2), np.uint8)) > 0
    return wide


@pytest.mark.parametrize("video", first_scenes(), ids=lambda video: video.name)
def test_objects_cast_shadows_on_a_ground_that_stays(video: Scene) -> None:
    shades: list[float] = []
    for frame, second in ((FIRST, LATER), (LATER, FIRST)):
        shown, empty = (photograph(video, number).astype(int) for number in (frame, second))
        bare = ~is_near(video, second, 8)
        ground = bare & ~is_near(video, frame, 8)
        assert ground.mean() > 0.1
        assert (shown[ground] == empty[ground]).all()
        covered = bare & is_near(video, frame, -2)
        assert covered.any()
        assert (shown[covered] != empty[covered]).any(axis=1).mean() > 0.9
        beside = bare & ~ground & ~is_near(video, frame, 1)
        changed = (shown[beside] != empty[beside]).any(axis=1)
        shades.extend((shown[beside][changed] / np.maximum(empty[beside][changed], 1)).ravel())
    assert np.median(shades) == pytest.approx(0.55, abs=0.02)


def test_images_are_some_of_the_frames() -> None:
    frames = [data for _, data in photograph_frames()]
    images = list(photograph_images().values())
    assert len(images) < len(frames)
    assert set(images) <= set(frames)
    assert len(set(frames)) == len(frames)
