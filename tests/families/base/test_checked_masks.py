"""One mask in memory, as an array or as run lengths, becomes checked run lengths with its area and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.files import SubmissionError
from segjudge.families.base.memory import read_checked_mask

FLAGS = np.array([[0, 1, 1], [0, 1, 0]], bool)
#: The same mask as run lengths, column by column: two background pixels, three of the object, one of the background.
COUNTS = "231"


@pytest.mark.parametrize(
    "mask",
    [
        FLAGS,
        FLAGS[None],
        np.asfortranarray(FLAGS),
        FLAGS * np.uint8(255),
        FLAGS * np.int16(-1),
        FLAGS * np.uint64(1 << 40),
        {"size": [2, 3], "counts": COUNTS},
        {"size": [2, 3], "counts": COUNTS.encode()},
        {"size": [2, 3], "counts": [2, 3, 1]},
    ],
    ids=[
        "array",
        "one of a stack",
        "column by column",
        "bytes",
        "negative",
        "large",
        "text",
        "text as bytes",
        "numbers",
    ],
)
def test_every_form_of_a_mask_is_the_same_mask(mask: Any) -> None:
    assert read_checked_mask(mask, "image 7", "a mask") == (COUNTS, 3, (2, 3))


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ({"size": [2, 3], "counts": "23"}, "image 7: has counts that add up to 5, not to the 6 pixels of the frame"),
        ({"size": [2, 3]}, "image 7: has counts that are neither text nor a list"),
        ({"counts": COUNTS}, "image 7: is not a mask ('size'). Give a mask"),
        (np.array([[0, 1, 2]]), "image 7: holds more than two values. Give the mask of one object as booleans"),
    ],
    ids=["short", "no counts", "no size", "labels"],
)
def test_what_is_no_mask_is_named_by_its_place(mask: Any, sentence: str) -> None:
    with pytest.raises(SubmissionError) as caught:
        read_checked_mask(mask, "image 7", "Give a mask")
    assert sentence in str(caught.value)
