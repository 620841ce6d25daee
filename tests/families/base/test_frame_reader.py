"""Masks of a frame in memory: by object or as labels, as arrays or run lengths, and sentences about anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge import SubmissionError
from segjudge.families.base.memory import FrameReader
from tests.calls import labels

SQUARE, LINE = labels("0000000 0110000 0110000") > 0, labels("0000000 0000000 0001111")


def draw(masks: Any, *, many_values: bool = False) -> dict[str, list[list[int]]]:
    """Return the pixels of each object of a frame."""
    stacks = FrameReader(many_values=many_values).read(masks, "a/1")
    return {label: stack.draw(0).astype(int).tolist() for label, stack in stacks.items()}


def test_each_object_keeps_its_pixels_and_the_background_is_none() -> None:
    stacks = FrameReader().read({"0": SQUARE, "7": SQUARE, "12": LINE, "9": None}, "a/1")
    assert list(stacks) == ["7", "12"]
    for label, mask in {"7": SQUARE, "12": LINE > 0}.items():
        assert stacks[label].size == (3, 7)
        assert np.array_equal(stacks[label].draw(0), mask)


@pytest.mark.parametrize("kind", ["uint8", "int16", "uint32", "int64", "uint64"])
def test_labels_are_objects_whatever_type_holds_them(kind: str) -> None:
    assert draw(np.array([[0, 1], [7, 7]], kind)) == {"1": [[0, 1], [0, 0]], "7": [[0, 0], [1, 1]]}


def test_booleans_are_one_object() -> None:
    assert draw(np.array([[False, True]])) == {"1": [[0, 1]]}
    assert draw(np.array([[0, (1 << 63) - 1]], np.uint64)) == {str((1 << 63) - 1): [[0, 1]]}


def test_run_lengths_and_masks_of_two_values_are_objects() -> None:
    runs = {"size": [2, 3], "counts": "231"}
    for mask in (runs, {"size": (2, 3), "counts": [2, 3, 1]}, np.array([[0, 255, 255], [0, 255, 0]], np.uint8)):
        assert draw({"4": mask}) == {"4": [[0, 1, 1], [0, 1, 0]]}
    assert draw({"4": np.array([[0, 1, 2]])}, many_values=True) == {"4": [[0, 1, 1]]}


SIZE = "Give run lengths as {'size': [height, width], 'counts': ...}"
REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (5, "a/1: has the shape (). Give each frame as (height, width)."),
    "a row": (np.zeros(3, int), "a/1: has the shape (3,). Give each frame as (height, width)."),
    "no pixels": (np.zeros((0, 3), int), "a/1: has the shape (0, 3). Give each frame as (height, width)."),
    "fractions": (np.zeros((2, 2)), "a/1: is of float64. Give labels as whole numbers, or masks as booleans."),
    "text": ("mask", "a/1: is of <U4. Give labels as whole numbers, or masks as booleans."),
    "below zero": (np.array([[0, -1]]), "a/1: has the label -1. Number the objects from 1, with 0 as background."),
    "beyond 63 bits": (np.array([[1 << 63]], np.uint64), f"a/1: has the label {1 << 63}. Number the objects from 1."),
    "hidden pixels": (np.ma.masked_equal([[0, 1]], 1), "a/1: is a masked array, which no protocol supports. Fill it, with 255 for pixels that do not count."),
    "a name twice": ({"1": SQUARE, 1: SQUARE}, "a/1: has 1 twice, once as text and once as another type. Give each name once."),
    "labels of an object": ({"3": LINE * np.arange(7)}, "a/1, object 3: holds more than two values. Give the mask of one object as booleans."),
    "an object's shape": ({"3": np.zeros((1, 2, 2), bool)}, "a/1, object 3: has the shape (1, 2, 2). Give each frame as (height, width)."),
    "no size": ({"3": {"counts": "231"}}, f"a/1, object 3: has the size None. {SIZE}."),
    "a size of fractions": ({"3": {"size": [2.0, 3], "counts": "231"}}, f"a/1, object 3: has the size [2.0, 3]. {SIZE}."),
    "three sides": ({"3": {"size": [1, 2, 3], "counts": "231"}}, f"a/1, object 3: has the size [1, 2, 3]. {SIZE}."),
    "a side of zero": ({"3": {"size": [0, 6], "counts": ""}}, "a/1, object 3: has the size [0, 6]. Give the height and width of the frame."),
    "a side below one": ({"3": {"size": [6, -1], "counts": ""}}, "a/1, object 3: has the size [6, -1]. Give the height and width of the frame."),
    "too many pixels": ({"3": {"size": [1 << 16, 1 << 15], "counts": "0"}}, "a/1, object 3: has the size [65536, 32768]. Give the height and width of the frame."),
    "counts that end early": ({"3": {"size": [2, 3], "counts": "23"}}, "a/1, object 3: has counts that add up to 5, not to the 6 pixels of the frame. Encode it with pycocotools or as it does."),
    "no counts": ({"3": {"size": [2, 3]}}, "a/1, object 3: has counts that are neither text nor a list. Encode it with pycocotools or as it does."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_by_a_sentence_with_its_place(name: str) -> None:
    masks, sentence = REFUSED[name]
    with pytest.raises(SubmissionError) as caught:
        FrameReader().read(masks, "a/1")
    assert str(caught.value) == sentence


def test_an_array_that_cannot_be_read_is_refused_with_its_reason() -> None:
    class Tensor:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("it is on a graphics card")

    with pytest.raises(SubmissionError) as caught:
        FrameReader().read(Tensor(), "a/1")
    reason = "cannot be read as an array (it is on a graphics card)"
    assert str(caught.value) == f"a/1: {reason}. Give it as an array in the CPU's memory."
