"""Names of videos and frames in memory: numbers of any type, text in any Unicode form, and their order."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge import SubmissionError, UsageError
from segjudge.families.base.memory import (
    SamplesInMemory,
    UnitsInMemory,
    common_size,
    frame_name,
    number_frames,
    refuse_label_map,
    sort_by_number,
    text_name,
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (7, "7"), (7.0, "7"), (np.float32(7), "7"), (np.int64(7), "7"), (0.5, "0.5"), (1e-9, "0.000000001"),
        (-2.0, "-2"), (1e20, "100000000000000000000"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"),
        ("7.0", "7.0"), ("e\u0301", "\u00e9"), (None, "None"), (True, "True"),
    ],
)  # fmt: skip
def test_a_name_is_text(name: object, text: str) -> None:
    assert text_name(name) == text


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (None, ""), (0, "00000"), (3.0, "00003"), ("3", "00003"), ("00003", "00003"), (99_999, "99999"),
        (100_000, "100000"), (-1, "-0001"), (1.5, "1.5"), ("12345", "12345"), ("1.50", "1.50"), ("0000003", "0000003"), ("000003", "000003"), ("a3", "a3"), ("", ""),
    ],
)  # fmt: skip
def test_a_number_of_a_frame_is_named_as_in_files(frame: object, name: str) -> None:
    assert frame_name(frame) == name


@pytest.mark.parametrize("frame", [math.inf, -math.inf, math.nan, np.float64("nan")])
def test_a_frame_that_is_no_number_is_refused(frame: Any) -> None:
    with pytest.raises(UsageError, match=f"the frame {frame} is not the number of a frame"):
        frame_name(frame)


def test_numbers_are_sorted_by_value_before_other_names() -> None:
    assert sort_by_number(["b", "10", "9", "a", "9.5", "-3", "09"]) == ["-3", "09", "9", "9.5", "10", "a", "b"]


def test_frames_are_numbered_from_zero() -> None:
    frames = np.arange(6).reshape(3, 2)
    for masks in (frames, memoryview(frames), list(frames)):
        assert [(number, list(frame)) for number, frame in number_frames(masks, "video")] == [
            (0, [0, 1]), (1, [2, 3]), (2, [4, 5]),
        ]  # fmt: skip
    with pytest.raises(SubmissionError, match="video: is of int. Give a list or an array of frames"):
        number_frames(5, "video")


def test_label_maps_are_refused_where_objects_are_due() -> None:
    refuse_label_map([{"masks": []}], "mine", "lists")
    refuse_label_map(SimpleNamespace(shape=(2, 2)), "mine", "lists")
    refuse_label_map(SimpleNamespace(dtype=int), "mine", "lists")
    with pytest.raises(UsageError, match="mine does not score maps of labels: give lists, of the truth and of the pre"):
        refuse_label_map(np.zeros((2, 2)), "mine", "lists")


class Videos(UnitsInMemory):
    """Videos whose masks no test reads."""

    def count(self, *_: Any) -> Any:
        raise AssertionError("no masks are counted here")

    check = tables = count


class Images(SamplesInMemory):
    """Images whose masks no test reads."""

    count = Videos.count


@pytest.mark.parametrize(
    ("masks", "names", "frames"),
    [
        (["one", "two"], ["video"], [(0, "one"), (1, "two")]),
        ({"a": ["one"], 7.0: ["two"]}, ["a", "7"], [("a", ["one"]), (7.0, ["two"])]),
    ],
)
def test_a_list_is_one_video_and_a_mapping_names_videos(masks: Any, names: list[str], frames: Any) -> None:
    videos = Videos.__new__(Videos)
    assert list(videos.sequences_of(masks, "truth")) == names
    if isinstance(masks, list):
        assert videos.frames_of(masks, "truth") == frames
        with pytest.raises(SubmissionError, match="^truth of video: is of int. Give a list or an array of frames.$"):
            videos.frames_of(5, "truth of video")


def test_a_list_of_images_is_numbered_and_an_image_is_counted_as_a_whole() -> None:
    images = Images.__new__(Images)
    assert images.sequences_of(["one", "two"], "truth") == {"0": "one", "1": "two"}
    assert images.frames_of("one", "truth") == [(None, "one")]
    with pytest.raises(SubmissionError, match="^truth: is of int. Give a list or an array of frames.$"):
        images.sequences_of(5, "truth")
    twice = "^truth: has 7 twice, once as text and once as another type. Give each name once.$"
    with pytest.raises(SubmissionError, match=twice):
        images.sequences_of({"7": "one", 7: "two"}, "truth")


@pytest.mark.parametrize(
    ("sizes", "size"), [([], None), ([(2, 3)], (2, 3)), ([(2, 3), (2, 3)], (2, 3))], ids=["none", "one", "equal"]
)
def test_masks_of_a_frame_have_a_common_size(sizes: list[tuple[int, int]], size: tuple[int, int] | None) -> None:
    assert common_size(sizes, "masks", "frame 3") == size


def test_masks_of_different_sizes_are_refused_with_width_and_height() -> None:
    sentence = "^frame 3: has masks of 3x2 and 5x4. Give truth and prediction of the same size.$"
    with pytest.raises(SubmissionError, match=sentence):
        common_size([(2, 3), (4, 5), (2, 3)], "masks", "frame 3")
