"""Slips of panoptic submissions that `SLIPS` cannot express: two protocols at once, and ids that no truth has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge import SubmissionError, score
from tests.builders import png, written, zipped
from tests.families.slips import BGR, pictures
from tests.families.test_suspicions import publish, write


def test_ids_of_exchanged_channels_are_refused_with_the_cause(tmp_path: Path) -> None:
    truth, data = publish("coco-panoptic", tmp_path)
    with pytest.raises(SubmissionError, match="With red and blue swapped, both agree: save the PNGs as RGB"):
        score(write(tmp_path, BGR(data)), truth, "coco-panoptic")


def blend(image: Any) -> Any:
    """Return an image that was shrunk and enlarged with interpolation."""
    height, width = image.shape[:2]
    small = Image.fromarray(image).resize((width // 2, height // 2), Image.Resampling.BILINEAR)
    return np.array(small.resize((width, height), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("channels", [True, False])
def test_impossible_colours_of_blended_maps_are_no_sign_of_exchanged_channels(channels: bool, tmp_path: Path) -> None:
    """Void beside classes blends to classes that there are not."""
    image = np.zeros((40, 60, 3), np.uint8)
    image[:, 20:, 0], image[:, 40:, 0], image[:, 40:, 2] = 255, 13, 5
    truth = written(tmp_path / "truth", {"a/000000.png": png(image)})
    sent = image[..., ::-1].copy() if channels else blend(image)
    sent[..., 0] += np.uint8(20) * (channels & (sent[..., 0] > 0))
    (tmp_path / "results.zip").write_bytes(zipped({"a/000000.png": png(sent)}))
    with pytest.raises(SubmissionError, match=r"in red\. Write classes") as caught:
        score(tmp_path / "results.zip", truth, "kitti-step")
    assert ("cv2.imwrite expects BGR" in str(caught.value)) == channels
    assert ("resizing with interpolation or of JPEG: resize by nearest" in str(caught.value)) != channels


def test_ids_of_blended_colours_are_refused_with_the_cause(tmp_path: Path) -> None:
    truth, data = publish("coco-panoptic", tmp_path)
    with pytest.raises(SubmissionError, match="So many ids suggest resizing with interpolation or JPEG: resize by"):
        score(write(tmp_path, pictures(blend)(data)), truth, "coco-panoptic")
