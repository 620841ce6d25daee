"""Slips of detections are named in images, videos and mask files; weak results of any kind are not suspected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.published import rle

HEIGHT, WIDTH, IMAGES = 120, 160, 12
FRAMES, VIDEOS = 12, 6
Box = list[float]
#: Changes the image and the box of a record.
Change = Callable[[int, Box], tuple[int, Box]]


def list_slips(results: Path, truth: Path, protocol: str) -> list[str]:
    """Return the warnings about slips."""
    return [line for line in score(results, truth, protocol).warnings if "nothing to average" not in line]


# ── images ──────────────────────────────────────────────────────────────────


def draw_boxes() -> list[tuple[int, Box]]:
    """Return the image and the box of two instances in each image."""
    random = np.random.default_rng(5)
    starts, sides = random.integers(2, (100, 66), (2 * IMAGES, 2)), random.integers(10, 50, (2 * IMAGES, 2))
    return [(number // 2, [*start, *side]) for number, (start, side) in enumerate(zip(starts.tolist(), sides.tolist()))]


def upright(box: Box) -> Box:
    """Return a box whose sides are positive."""
    x, y, width, height = box
    return [min(x, x + width), min(y, y + height), abs(width), abs(height)]


def draw(box: Box) -> Any:
    x, y, width, height = map(round, upright(box))
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)] = True
    return mask


def points_of(box: Box) -> list[float]:
    x, y, width, height = box
    places = [(x, y), (x + width, y), (x, y + height), (x + width, y + height), (x + width / 4, y)]
    return [number for place in places for number in (*place, 2)]


FORMS: dict[str, Callable[[Box], dict[str, Any]]] = {
    "coco": lambda box: {"segmentation": rle(draw(box))},
    "coco-box": lambda box: {"bbox": upright(box)},
    "coco-keypoints": lambda box: {"keypoints": points_of(box)},
}
NAMES = ["left_a", "right_a", "left_b", "right_b", "nose"]


def write_truth(path: Path, ids: tuple[int, ...] = (1, 2)) -> Path:
    points = {"keypoints": NAMES, "skeleton": [], "sigmas": [0.1] * len(NAMES)}
    annotations = [
        {"id": number + 1, "image_id": image, "category_id": ids[number % len(ids)], "bbox": box,
         "area": box[2] * box[3], "iscrowd": 0, "segmentation": rle(draw(box)), "keypoints": points_of(box),
         "num_keypoints": len(NAMES)}
        for number, (image, box) in enumerate(draw_boxes())
    ]  # fmt: skip
    images = [{"id": image, "height": HEIGHT, "width": WIDTH} for image in range(IMAGES)]
    categories = [{"id": number, "name": f"c{number}", **points} for number in ids]
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    return path


def make_records(protocol: str, change: Change, ids: tuple[int, ...] = (1, 2)) -> list[dict[str, Any]]:
    return [
        {"image_id": image, "category_id": ids[number % len(ids)], "score": 0.9 - number / 100, **FORMS[protocol](box)}
        for number, (image, box) in enumerate(change(image, box) for image, box in draw_boxes())
    ]


def say(records: list[dict[str, Any]], protocol: str, folder: Path, ids: tuple[int, ...] = (1, 2)) -> list[str]:
    (folder / "results.json").write_text(json.dumps(records))
    return list_slips(folder / "results.json", write_truth(folder / "truth.json", ids), protocol)


PLACES: dict[str, Change] = {
    "look mirrored, with left and right exchanged": lambda i, b: (i, [WIDTH - b[0], b[1], -b[2], b[3]]),
    "padded to squares at one side": lambda i, b: (i, [b[0], 0.75 * b[1], b[2], 0.75 * b[3]]),
    "look moved by 15 along x and -12 along y": lambda i, b: (i, [b[0] + 15, b[1] - 12, *b[2:]]),
    "each looks as if it belonged to the image after its own": lambda i, b: ((i - 1) % IMAGES, b),
    "nothing in the ": lambda i, _: (i, [158, 118, 1, 1]),
}


@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize("slip", PLACES)
def test_misplaced_records_are_named(slip: str, protocol: str, tmp_path: Path) -> None:
    (line,) = say(make_records(protocol, PLACES[slip]), protocol, tmp_path)
    assert slip in line
    assert line.isascii()


def jitter(image: int, box: Box) -> tuple[int, Box]:
    step = np.random.default_rng([image, int(box[0])]).integers(-9, 10, 2)
    return image, [*(np.array(box[:2]) + step).tolist(), *box[2:]]


WEAK: dict[str, Change] = {
    "right": lambda i, b: (i, b),
    "too small": lambda i, b: (i, [b[0] + b[2] // 4, b[1], b[2] // 2, b[3]]),
    "displaced": lambda i, b: (i, [b[0] + b[2] // 2, *b[1:]]),
    "grown": lambda i, b: (i, [b[0] - 6, b[1] - 6, b[2] + 12, b[3] + 12]),
    "jittered": jitter,
}


@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize("method", WEAK)
def test_weak_records_are_not_suspected(method: str, protocol: str, tmp_path: Path) -> None:
    assert say(make_records(protocol, WEAK[method]), protocol, tmp_path) == []


@pytest.mark.parametrize("protocol", ["coco", "coco-box"])
@pytest.mark.parametrize(
    ("ids", "written", "slip"),
    [
        ((1, 2, 3), (2, 3, 4), "category ids look 1 too high"),
        ((1, 2, 3), (0, 1, 2), "category ids look 1 too low"),
        ((0, 1, 2), (1, 2, 3), "category ids look 1 too high"),
        ((1, 2, 3), (3, 1, 2), "category ids look exchanged, such as 3 for 1, 1 for 2"),
        ((2, 5, 3, 9), (1, 3, 2, 4), "category ids look like training ids from 1"),
        ((3, 7, 5), (3, 7, 5), ""),
    ],
)
def test_categories_of_another_coding_are_named(
    ids: tuple[int, ...], written: tuple[int, ...], slip: str, protocol: str, tmp_path: Path
) -> None:
    lines = say(make_records(protocol, WEAK["right"], written), protocol, tmp_path, ids)
    assert [slip in line for line in lines if "the truth lacks" not in line] == [True] * bool(slip)


def test_the_order_of_boxes_points_and_pixels_is_named(tmp_path: Path) -> None:
    right = {protocol: make_records(protocol, WEAK["right"]) for protocol in FORMS}
    for record, (_, box) in zip(right["coco"], draw_boxes(), strict=True):
        record["segmentation"] = rle(draw(box).reshape(WIDTH, HEIGHT).T)
    for record in right["coco-keypoints"]:
        record["keypoints"] = np.reshape(record["keypoints"], (-1, 3))[[1, 0, 3, 2, 4]].ravel().tolist()
    for record in right["coco-box"]:
        record["bbox"] = [record["bbox"][k] for k in (1, 0, 3, 2)]
    for (protocol, records), message in zip(
        right.items(), ("as if written row by row", "like [y, x, height", "left and right were exchanged"), strict=True
    ):
        (line,) = say(records, protocol, tmp_path)
        assert message in line


@pytest.mark.parametrize("protocol", FORMS)
def test_repeated_missing_and_unranked_records_are_named(protocol: str, tmp_path: Path) -> None:
    right = make_records(protocol, WEAK["right"])
    half = [{**right[number], **FORMS[protocol]([1, 1, 9, 9])} if number % 2 else right[number] for number in range(24)]
    for records, message in (
        (right + right, "24 of 48 detections have the image, category and score of another: send each once"),
        (right[:16], "4 of 12 images with instances have no detection: check that the results are of the whole split"),
        ([{**record, "score": 0.9} for record in half], "all 24 detections have the score 0.9, which ranks none"),
    ):
        assert [message in line for line in say(records, protocol, tmp_path)] == [True]
    assert say([{**record, "score": 0.9} for record in right], protocol, tmp_path) == []
    assert say(right[:18], protocol, tmp_path) == say(half, protocol, tmp_path) == []
