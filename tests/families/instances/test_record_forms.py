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


def test_points_at_the_origin_are_absent_and_those_on_an_axis_count() -> None:
    form, point_rows = RecordForm(), np.array([[0, 0, 0, 0, 1, 0, 0, 1, 80, 20]] * 5, float)
    form._add_points(point_rows, np.array([[100, 50]] * 5))
    assert form._counts[:5].tolist() == [15, 5, 10, 0, 15]
    (line,) = form.judge(points=True)
    assert line.startswith("5 of 15 keypoints reach beyond their images, and read as y and x 15 lie inside: write x, y")


@pytest.mark.parametrize(("place", "is_outside"), [
    ((52.0, 50.0), False), ((52.01, 50.0), True), ((50.0, 102.0), False), ((50.0, 102.01), True),
    ((-2.0, 50.0), False), ((-2.01, 50.0), True), ((50.0, -2.0), False), ((50.0, -2.01), True),
])  # fmt: skip
def test_coordinates_lie_outside_beyond_two_pixels(place: tuple[float, float], is_outside: bool) -> None:
    """An image of 100 rows and 50 columns."""
    for add, row in (("_add_points", [*place]), ("_add_boxes", [*place, 0.0, 0.0])):
        form = RecordForm()
        getattr(form, add)(np.array([row]), np.array([[100, 50]]))
        assert form._counts[:2].tolist() == [1, int(is_outside)]


@pytest.mark.parametrize(("value", "is_normalized"), [(1.5, True), (1.51, False)])
def test_coordinates_up_to_one_and_a_half_may_be_shares(value: float, is_normalized: bool) -> None:
    for place in range(4):
        form, box = RecordForm(), np.full((1, 4), 0.5)
        box[0, place] = value
        form._add_boxes(box, np.array([[100, 50]]))
        assert form._counts[2] == is_normalized
