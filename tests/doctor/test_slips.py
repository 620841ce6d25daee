"""Each slip of the table is named in each kind of data that may have it, with the corrected score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.doctor import PictureBoxes
from segjudge.evaluation_script.doctor.diagnosis import diagnose
from segjudge.evaluation_script.doctor.table import SLIPS, TRAITS
from tests.doctor.scenes import SIDES, SIZE, Frames, change_each, draw_truth, examine, weaken

Slip = Callable[[Frames], Frames]
MAPS = ("masks", "binary", "classes", "segments", "greys")
PICTURES = (*MAPS, "boxes", "points")


def frames(change: Callable[[Any], Any]) -> Slip:
    return lambda units: change_each(units, change)


def flip(*axes: int) -> Slip:
    def change(frame: Any) -> Any:
        if isinstance(frame, np.ndarray):
            return np.flip(frame, axes)
        places = np.array(frame.places, float)
        for axis in axes:
            size = places[:, 3 - axis] if isinstance(frame, PictureBoxes) else 1
            places[..., 1 - axis] = SIZE[axis] - size - places[..., 1 - axis]
        return frame._replace(places=places)

    return frames(change)


def move(*steps: int) -> Slip:
    def change(frame: Any) -> Any:
        if isinstance(frame, np.ndarray):
            return np.roll(frame, steps[: frame.ndim], range(frame.ndim))
        step = [*steps[1::-1], 0, 0] if isinstance(frame, PictureBoxes) else steps[1::-1]
        return frame._replace(places=frame.places + step)

    return frames(change)


def resize(place: Callable[[Any, int, int], Any]) -> Slip:
    """Return the slip that takes each pixel from another place, given it, its side and the longest one."""

    def change(frame: Any) -> Any:
        places = [place(np.arange(side) + 0.5, side, max(SIZE)).astype(int) for side in frame.shape]
        inside = [(axis >= 0) & (axis < side) for axis, side in zip(places, frame.shape)]
        taken = frame[np.ix_(*(np.clip(axis, 0, side - 1) for axis, side in zip(places, frame.shape)))]
        return np.where(np.logical_and.outer(*inside), taken, 0)

    return frames(change)


def rewrite(change: Callable[[Any], Any]) -> Slip:
    return frames(lambda frame: frame._replace(places=change(np.array(frame.places, float))))


def recode(*labels: int) -> Slip:
    return frames(lambda frame: np.array(labels)[frame])


def as_read_by_columns(frame: Any) -> Any:
    """Return a mask that was written row by row."""
    return frame.reshape(-1).reshape(frame.shape[::-1]).T


CORNERS = ("boxes look like [x1, y1, x2, y2]", rewrite(lambda box: np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])))
#: What the line says -> the change, and the kinds of data.
CASES: list[tuple[str, Slip, tuple[str, ...]]] = [
    ("look mirrored, with left and right exchanged", flip(1), PICTURES),
    ("look upside down", flip(0), PICTURES),
    ("look rotated by 180 degrees", flip(0, 1), PICTURES),
    ("look mirrored along x", flip(2), ("voxels",)),
    ("look mirrored along x and y", flip(1, 2), ("voxels",)),
    ("look reshaped from (width, height)", frames(lambda frame: frame.T.reshape(frame.shape)), ("masks", "classes")),
    ("run lengths look as if written row by row", frames(as_read_by_columns), ("masks", "binary")),
    ("look moved by 9 along x (in pixels)", move(0, 9), ("masks", "binary", "greys")),
    ("look moved by ", move(0, 9), ("segments",)),
    ("look moved by 9 along x and -7 along y (in pixels)", move(-7, 9), ("masks", "boxes", "points")),
    ("look moved by 5 along x and 4 along y", move(0, 4, 5), ("voxels",)),
    ("padded to squares:", resize(lambda place, side, longest: (place * longest / side) - (longest - side) / 2), ("masks", "binary", "segments")),
    ("padded to squares at one side", resize(lambda place, side, longest: place * longest / side), ("masks", "binary")),
    ("half as wide and high, in the upper left corner", resize(lambda place, *_: place * 2), ("masks", "greys")),
    ("frame after its own", lambda units: [[*unit[1:], unit[-1]] for unit in units], ("masks", "segments")),
    ("frame before its own", lambda units: [[unit[0], *unit[:-1]] for unit in units], ("masks", "segments")),
    ("frame 3 places before its own", lambda units: [[*unit[:1] * 3, *unit[:-3]] for unit in units], ("masks", "segments")),
    ("frame 2 places after its own", lambda units: [[*unit[2:], *unit[-1:] * 2] for unit in units], ("masks",)),
    ("objects have other numbers in each frame", lambda units: [[np.where(frame > 0, frame + 10 * k, 0) for k, frame in enumerate(unit)] for unit in units], ("segments",)),
    ("the order of frames looks reversed", lambda units: [unit[::-1] for unit in units], ("masks", "segments")),
    ("belonged to the image after its own", lambda units: [*units[1:], units[0]], (*PICTURES, "voxels")),
    ("exchanged with the one beside it, in pairs", lambda units: [units[k ^ 1] for k in range(len(units))], MAPS),
    ("the order of images looks reversed", lambda units: units[::-1], MAPS),
    ("some look exchanged, those of u", lambda units: [units[5 * k % 14] for k in range(14)] , ("classes",)),
    ("labels look 1 too high", frames(lambda frame: frame + 1), ("masks", "classes", "voxels")),
    ("labels look 1 too low", frames(lambda frame: frame - 1), ("classes",)),
    ("labels look 1 too low", frames(lambda frame: np.maximum(frame, 1) - 1), ("masks",)),
    ("labels look exchanged, such as 2 for 1, 1 for 2", recode(0, 2, 1, 3), ("masks", "voxels")),
    ("labels look like another coding, such as", recode(0, 70, 140, 210), ("masks", "voxels")),
    ("labels look like training ids from 0", frames(lambda frame: np.array([9, 9, 9, 4, 0, 1, 5, 2, 3])[frame]), ("classes",)),
    ("look inverted, with objects black", frames(lambda frame: 1 - frame), ("binary",)),
    ("look inverted, dark on objects", frames(lambda frame: 255 - 255 * frame), ("greys",)),
    ("reached from 0 to 1, not to 255", frames(lambda frame: frame), ("greys",)),
    ("have the same value", frames(lambda frame: frame * 0 + 7), MAPS),
    ("are empty", frames(lambda frame: frame * 0), ("masks", "binary", "segments", "voxels")),
    (*CORNERS, ("boxes",)),
    ("boxes look like [center x, center y, width, height]", rewrite(lambda box: np.hstack([box[:, :2] + box[:, 2:] / 2, box[:, 2:]])), ("boxes",)),
    ("boxes look like [y, x, height, width]", rewrite(lambda box: box[:, [1, 0, 3, 2]]), ("boxes",)),
    ("boxes look like fractions", rewrite(lambda box: box / np.tile(SIZE[::-1], 2)), ("boxes",)),
    ("keypoints look like fractions", rewrite(lambda points: points / SIZE[::-1]), ("points",)),
    ("keypoints look like y and x", rewrite(lambda points: points[..., ::-1]), ("points",)),
    ("left and right were exchanged", rewrite(lambda points: points[:, SIDES]), ("points",)),
]  # fmt: skip
CLASSES = (4, 5, 7, 8, 3, 6)


@pytest.mark.parametrize(
    ("words", "change", "kind"),
    [pytest.param(words, change, kind, id=f"{words[:40]}-{kind}") for words, change, kinds in CASES for kind in kinds],
)
def test_a_slip_is_named_in_each_kind_of_data(words: str, change: Slip, kind: str) -> None:
    for seed in (1, 2):
        truth = draw_truth(kind, np.random.default_rng(seed))
        right = change_each(truth, lambda frame: frame * 255) if kind == "greys" and "0 to 1" not in words else truth
        right = truth if "dark on" in words or "same value" in words else right
        (line,) = diagnose(examine(kind, truth, change(right), classes=CLASSES if kind == "classes" else ()))
        assert words in line
        assert line.isascii()


@pytest.mark.parametrize("kind", ["masks", "binary", "segments"])
def test_a_slip_is_named_in_inexact_masks_too(kind: str) -> None:
    draw = np.random.default_rng(3)
    truth = draw_truth(kind, draw)
    (line,) = diagnose(examine(kind, truth, flip(1)(weaken(kind, truth, "ragged", draw))))
    assert "look mirrored" in line


def test_small_regions_of_large_volumes_are_seen() -> None:
    draw = np.random.default_rng(0)
    truth = [[np.zeros((90, 150, 150), np.uint8)] for _ in range(8)]
    for (volume,) in truth:
        for z, y, x in draw.integers(0, (88, 148, 70), (5, 3)):
            volume[z : z + 2, y : y + 2, x : x + 2] = 1
    (line,) = diagnose(examine("voxels", truth, flip(2)(truth)))
    assert "look mirrored along x: corrected, the IoU over all pixels would be 1.00 instead of 0.00" in line


def test_a_line_states_the_score_of_the_sample_and_the_remedy() -> None:
    truth = draw_truth("masks", np.random.default_rng(0))
    (line,) = diagnose(examine("masks", truth, flip(1)(truth)))
    start = "masks look mirrored, with left and right exchanged: corrected, the IoU over all pixels would be 1.00 instead of "
    assert line.startswith(start)
    assert line.endswith(" (tried on 12 of 14 images). Undo the flip before you save")


def test_rows_need_traits_that_are_defined() -> None:
    assert {trait for slip in SLIPS for trait in slip.traits} <= TRAITS.keys()
    assert all(slip.sentence.isascii() and slip.remedy.isascii() for slip in SLIPS)
