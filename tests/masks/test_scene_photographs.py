"""Photographs of synthetic scenes: cut-outs that move over a fixed ground."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import features

from segjudge.masks import photographs
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


@pytest.mark.parametrize("video", first_scenes(), ids=lambda video: video.name)
def test_the_middle_of_an_object_shows_the_middle_of_its_cut_out(video: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ramp = np.linspace(0, 1, 200, dtype=np.float32)
    slope = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None], np.float32(0.5)), axis=-1)
    photographs._ground.cache_clear()
    monkeypatch.setattr(photographs, "_load", lambda name: slope)
    shown = photograph(video, LATER)
    photographs._ground.cache_clear()
    rows, columns = (grid / 2 for grid in np.ogrid[: shown.shape[0], : shown.shape[1]])
    across, along = video.shapes[-1].place(rows, columns, LATER)  # nothing is before the last one
    row, column = np.unravel_index((across**2 + along**2).argmin(), shown.shape[:2])
    assert shown[row, column] == pytest.approx([0.5 * 1.1 * 255] * 3, abs=12)
    right, left = (shown[abs(across - side) + abs(along) < 0.1][:, 0].mean() for side in (0.7, -0.7))
    assert right > left + 100


def test_images_are_some_of_the_frames() -> None:
    frames = [data for _, data in photograph_frames()]
    images = list(photograph_images().values())
    assert len(images) < len(frames)
    assert set(images) <= set(frames)
    assert len(set(frames)) == len(frames)
