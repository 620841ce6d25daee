"""Slips of panoptic submissions that `SLIPS` cannot express: two protocols at once, and ids that no truth has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge import SubmissionError, score
from tests.builders import png, written, zipped
from tests.families.codings import TRUTH, list_warnings
from tests.families.slips import BGR, pictures
from tests.families.test_suspicions import publish, write

CATEGORIES = [{"id": number, "name": str(number), "isthing": number < 3} for number in range(1, 6)]


def test_segments_without_a_match_are_named() -> None:
    ids = np.where(TRUTH == 255, 0, TRUTH + 1)
    segments = {number: number for number in range(1, 6)} | {6: 5}
    second = {number: category % 5 + 1 for number, category in segments.items()}
    truth, right, wrong = ([(frame, item) for frame in ids] for item in (segments, segments, second))
    for protocol in ("coco-panoptic", "vipseg"):
        assert list_warnings(right, truth, protocol, categories=CATEGORIES) == []
        (line,) = list_warnings(wrong, truth, protocol, categories=CATEGORIES)
        of_images = "not one segment was matched with one of its class: check the numbers of the classes, and of the im"
        assert line.startswith("classes look exchanged, such as 2 for 1" if protocol == "vipseg" else of_images)


def test_ids_of_exchanged_channels_are_refused_with_the_cause(tmp_path: Path) -> None:
    truth, data = publish("coco-panoptic", tmp_path)
    with pytest.raises(SubmissionError, match="With red and blue swapped, both agree: save the PNGs as RGB"):
        score(write(tmp_path, BGR(data)), truth, "coco-panoptic")


@pytest.mark.parametrize(("sent", "named"), [([1, 1, 1], True), ([1, 1, 2], False), ([1, 2, 3], False)])
def test_a_number_that_most_objects_of_a_frame_share_is_named(sent: list[int], *, named: bool) -> None:
    cars = np.full((2, 9), 13), np.repeat([[1, 2, 3]], 3).reshape(1, 9).repeat(2, axis=0)
    shared = cars[0], np.repeat([sent], 3).reshape(1, 9).repeat(2, axis=0)
    lines = list_warnings([shared] * 3, [cars] * 3, "kitti-step")
    expected = "numbers that several objects have in one frame lower AQ by 0.67: give each object a number of its own"
    assert lines == [expected] * named


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


@pytest.mark.parametrize("change", ["cycle", "none", "constant", "noise", "other images"])
@pytest.mark.parametrize("protocol", ["coco-panoptic", "vipseg"])
def test_exchanged_classes_of_segments_are_named_though_the_most_frequent_is_right(protocol: str, change: str) -> None:
    """Images have no table of pixels by class, so that their sizes tell."""
    random = np.random.default_rng(8)
    frames, found = [], []
    for number in range(12):
        ids, stops = np.full((40, 60), 5), np.cumsum(random.integers(2, 9, 4) * np.array([1, 2, 1, 2]))
        for category, (start, stop) in enumerate(zip([0, *stops[:-1]], stops, strict=True), 1):
            ids[:20, start:stop] = category
        meanings = {category: category for category in range(1, 6)}
        frames.append((ids, meanings))
        if change == "cycle":
            meanings = {1: 2, 2: 3, 3: 4, 4: 1, 5: 5}
        elif change == "constant":
            meanings = dict.fromkeys(meanings, 5)
        elif change == "noise":
            meanings = dict(zip(meanings, [*random.permutation([1, 2, 3, 4]).tolist(), 5], strict=True))
        found.append((np.roll(ids, number % 3, 0), meanings))
    found = found[5:] + found[:5] if change == "other images" else found
    lines = list_warnings(found, frames, protocol, categories=CATEGORIES)
    named = [line for line in lines if line.startswith("classes look exchanged, such as ")]
    assert bool(named) is (change == "cycle"), lines
    assert all("3 for 2" in line and line.endswith(". Write the ids of the truth") for line in named)
