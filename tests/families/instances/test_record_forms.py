"""Boxes in another order are named by their notation; correct boxes of poor detectors are not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.records import _check_id
from segjudge.evaluation_script.families.instances.suspicions import RecordForm
from segjudge.evaluation_script.files.problems import Flaw

HEIGHT, WIDTH = 480, 640


def draw_boxes(seed: int) -> Any:
    """Return correct boxes: starts anywhere, sides up to the end of the image."""
    random = np.random.default_rng(seed)
    starts = random.random((200, 2)) * (WIDTH - 9, HEIGHT - 9)
    return np.hstack([starts, 3 + random.random((200, 2)) * ((WIDTH, HEIGHT) - starts - 3)])


def judge(boxes: Any) -> list[str]:
    form, half = RecordForm(), len(boxes) // 2
    for part in (boxes[:half], boxes[half:]):
        added = RecordForm()
        sizes = np.array([[HEIGHT, WIDTH]])
        added.add(Mock(points=None, boxes=part, image=np.zeros(len(part), int)), Mock(sizes=sizes))
        form.join(added)
    return form.judge(points=False)


ORDERS: dict[str, Any] = {
    "[x1, y1, x2, y2]": lambda boxes: np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
    "[center x, center y, width, height]": lambda boxes: np.hstack([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]]),
    "[y, x, height, width]": lambda boxes: boxes[:, [1, 0, 3, 2]],
}
POOR: dict[str, Any] = {
    "right": lambda boxes: boxes,
    "too large": lambda boxes: boxes + np.array([-4, -4, 8, 8]),
    "displaced": lambda boxes: boxes + np.array([30, 0, 0, 0]),
    "whole images": lambda boxes: np.tile([0, 0, WIDTH, HEIGHT], (len(boxes), 1)),
    "beyond the images": lambda boxes: np.tile([0, 0, WIDTH + 9, HEIGHT + 9], (len(boxes), 1)),
    "at one corner": lambda boxes: boxes * [1e-3, 1e-3, 1, 1],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_boxes_is_named(order: str, seed: int) -> None:
    (line,) = judge(ORDERS[order](draw_boxes(seed)))
    assert f"of 200 boxes reach beyond their images, and read as {order} 200 lie inside: write [x, y, width" in line


@pytest.mark.parametrize("method", POOR)
@pytest.mark.parametrize("seed", range(3))
def test_right_boxes_are_not_suspected(method: str, seed: int) -> None:
    assert judge(POOR[method](draw_boxes(seed))) == []


@pytest.mark.parametrize(
    ("number", "fits"), [(-(2**63), True), (-(2**63) - 1, False), (2**63 - 1, True), (2**63, False)]
)
def test_an_id_fits_64_bits_where_records_are_read_one_by_one(number: int, fits: bool) -> None:
    with nullcontext() if fits else pytest.raises(Flaw, match="which is too large for an id"):
        _check_id("image_id", number)
