"""A page's masks, read from its bytes, equal the added ones: at their size, with overlaps."""

from __future__ import annotations

import numpy as np
import pytest

from segjudge.evaluation_script.masks.stream import WIDTHS, MaskStream, bytes_in_page, width_for
from tests.builders import stack_of
from tests.streams import read_stream


@pytest.mark.parametrize(
    ("height", "width", "across"), [(30, 300, 480), (4, 40_000, 40_000), (60, 80, 40), (33, 70, 20)]
)
def test_a_stream_holds_each_pixel_in_the_middle_of_its_own(height: int, width: int, across: int) -> None:
    draw = np.random.default_rng(1)
    frames = 3
    masks = {name: np.zeros((frames, height, width), bool) for name in ("a", "b")}
    for name, block in masks.items():
        for mask in block:
            top, left = draw.integers(0, height // 2), draw.integers(0, width // 2)
            mask[top : top + height // 2, left : left + width // 2] = True
        if name == "b":
            block[-1] = False
    stream = MaskStream(["a", "b"], (height, width), across)
    stacks = {name: stack_of(*block) for name, block in masks.items()}
    stream.add(stacks, frames, (height, width))
    about, labels = read_stream(stream.pack({"frames": frames}))
    size = (max(1, round(height * min(across, width) / width)), min(across, width))
    assert (about["frames"], tuple(about["size"])) == (frames, size)
    rows, columns = (((2 * np.arange(count) + 1) * whole // (2 * count)) for count, whole in zip(size, (height, width)))
    for index, name in enumerate(masks):
        shown = np.isin(labels, [label for label, group in enumerate(about["groups"]) if index in group])
        assert np.array_equal(shown, masks[name][:, rows][:, :, columns])
    assert about["groups"][0] == []
    assert [0, 1] in about["groups"] or [1, 0] in about["groups"]


def test_a_stream_with_more_runs_than_its_limit_is_bare() -> None:
    mask = np.indices((8, 8)).sum(axis=0) % 2 == 0
    for limit, runs in ((57, 57), (56, 0)):  # two rows share a run at each of seven borders
        stream = MaskStream(["a"], (8, 8), 8, limit)
        stream.add({"a": stack_of(mask)}, 1, (8, 8))
        assert read_stream(stream.pack({}))[0]["runs"] == runs
    assert read_stream(stream.pack({}, bare=True))[0] == {"size": [8, 8], "groups": [[]], "runs": 0}


def test_objects_that_are_nowhere_or_not_asked_for_are_passed_over_and_those_that_meet_are_a_group() -> None:
    masks = {name: np.zeros((2, 1, 70), bool) for name in "zabcd"}
    for name, columns in (("z", slice(0, 70)), ("b", slice(0, 4)), ("c", slice(2, 66)), ("d", slice(66, 69))):
        masks[name][0, 0, columns] = True
    stacks = {name: stack_of(*block) for name, block in masks.items()}
    stream = MaskStream(["a", "b", "c", "d"], (1, 70), 99, 6)
    for _ in range(2):
        stream.add(stacks, 2, (1, 70))
    about, labels = read_stream(stream.pack({"first": "ä"}))
    assert about == {"first": "ä", "size": [1, 70], "groups": [[]], "runs": 0}, "twice are more runs than the limit"
    assert not len(labels)
    stream = MaskStream(["a", "b", "c", "d"], (1, 70), 99, 6)
    stream.add(stacks, 2, (1, 70))
    about, labels = read_stream(stream.pack({}))
    assert (about["groups"], about["runs"]) == ([[], [1], [2], [1, 2], [3]], 6)
    assert labels.tolist() == [[[1, 1, 3, 3, *[2] * 62, 4, 4, 4, 0]], [[0] * 70]]


def test_masks_are_as_wide_as_a_page_has_room_for() -> None:
    assert [width_for(10, 1, budget, pictures=False) for budget in (0, 5000, 6500, 9000, 10**9)] == [
        WIDTHS[-1], WIDTHS[-1], WIDTHS[-2], WIDTHS[-3], WIDTHS[0],
    ]  # fmt: skip
    assert width_for(10, 1, 6500, pictures=True) == WIDTHS[-1]
    assert bytes_in_page([b"", b"1", b"123", b"1234"]) == 0 + 4 + 4 + 8
