"""Refused truths of salient objects, by the whole sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import png
from tests.families.refusals import Refusal, refuse

MAP = png(np.array([[0, 255], [0, 255]], np.uint8))
UPLOAD = {"a.png": MAP}
REFUSED: dict[str, Refusal] = {
    "no maps": ("sod", {"a.txt": b""}, UPLOAD, "truth: has no PNG"),
    "0 and 1": ("sod", {"a.png": png(np.array([[0, 1], [0, 1]], np.uint8))}, UPLOAD, "a.png: cannot be read (holds 0 and 1; objects must be 255)"),
    "data sets of one name": ("sod", {"x/GT/a.png": MAP, "y/x/GT/a.png": MAP}, UPLOAD, "truth: has several data sets with the same name: x, y/x"),
    "two masks of an image": ("sod", {"GT/a.png": MAP, "masks/a.png": MAP}, UPLOAD, "truth: has several masks for one image: GT/a.png, masks/a.png"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_sentence(name: str, tmp_path: Path) -> None:
    protocol, truth, upload, sentence = REFUSED[name]
    assert refuse(tmp_path, protocol, truth, upload) == sentence


def test_a_data_set_of_another_name_is_refused(tmp_path: Path) -> None:
    assert refuse(tmp_path, "sod", {"x/a.png": MAP}, UPLOAD, subset="test") == "truth: has no PNG in a folder test"
