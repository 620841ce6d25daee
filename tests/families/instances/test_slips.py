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
from tests.report.known_scenes import OBJECTS, SIZE, Video
from tests.report.test_known_faults import BENCHMARKS

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
    "look upside down": lambda i, b: (i, [b[0], HEIGHT - b[1], b[2], -b[3]]),
    "look rotated by 180 degrees": lambda i, b: (i, [WIDTH - b[0], HEIGHT - b[1], -b[2], -b[3]]),
    "padded to squares: ": lambda i, b: (i, [b[0], 0.75 * b[1] + (WIDTH - HEIGHT) / 2 * 0.75, b[2], 0.75 * b[3]]),
    "padded to squares at one side": lambda i, b: (i, [b[0], 0.75 * b[1], b[2], 0.75 * b[3]]),
    "look half as wide and high, in the upper left": lambda i, b: (i, [side / 2 for side in b]),
    "look moved by 15 along x and -12 along y": lambda i, b: (i, [b[0] + 15, b[1] - 12, *b[2:]]),
    "each looks as if it belonged to the image before its own": lambda i, b: ((i + 1) % IMAGES, b),
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


# ── videos ──────────────────────────────────────────────────────────────────

Tube = list[Any]


def draw_tube(generator: np.random.Generator) -> Tube:
    """Return the masks of an object that moves."""
    (y, x), (down, across) = generator.integers(4, 24, 2), generator.integers(6, 14, 2)
    speed = generator.choice([-2, -1, 1, 2], 2)
    masks = []
    for frame in range(FRAMES):
        mask = np.zeros((48, 64), np.uint8)
        top, left = y + frame * speed[0] // 2, x + frame * speed[1]
        mask[max(0, top) : max(0, top + down), max(0, left) : max(0, left + across)] = 1
        masks.append(mask)
    return masks


def roughen(tube: Tube, seed: int) -> Tube:
    generator = np.random.default_rng(seed)
    return [np.where(generator.random(mask.shape) < 0.05, 0, mask).astype(np.uint8) for mask in tube]


def say_of_videos(folder: Path, change: Callable[[Tube], Tube], protocol: str, **ids: dict[int, int]) -> list[str]:
    """Write a truth and records, with other ids of videos or categories, and return the slips."""
    generator = np.random.default_rng(3)
    document: dict[str, Any] = {
        "videos": [{"id": video, "height": 48, "width": 64, "length": FRAMES} for video in range(1, VIDEOS + 1)],
        "categories": [{"id": number, "name": f"c{number}"} for number in (1, 2)],
    }
    annotations: list[dict[str, Any]] = []
    records = []
    for video in range(1, VIDEOS + 1):
        for category in (1, 2):
            tube, number = draw_tube(generator), len(annotations) + 1
            fields = {"video_id": video, "category_id": category}
            masks = [rle(mask) if mask.any() else None for mask in tube]
            areas = [int(mask.sum()) for mask in tube]
            annotations.append({"id": number, "iscrowd": 0, "segmentations": masks, "areas": areas, **fields})
            sent = [rle(mask) if mask.any() else None for mask in roughen(change(tube), number)]
            written = {key: ids.get(key, {}).get(value, value) for key, value in fields.items()}
            records.append({**written, "score": 0.9 - number / 100, "segmentations": sent})
    (folder / "truth.json").write_text(json.dumps({**document, "annotations": annotations}))
    (folder / "results.json").write_text(json.dumps(records))
    return list_slips(folder / "results.json", folder / "truth.json", protocol)


NEXT = {video: video % VIDEOS + 1 for video in range(1, VIDEOS + 1)}


@pytest.mark.parametrize(
    ("key", "order", "slip"),
    [
        ("category_id", {1: 2, 2: 1}, "category ids look exchanged, such as 2 for 1, 1 for 2"),
        ("video_id", {2: 4, 4: 2}, "masks: some look exchanged, those of 2 fit 4, those of 4 fit 2"),
        ("video_id", NEXT, "each looks as if it belonged to the video before its own"),
    ],
)
def test_exchanged_videos_and_categories_are_named(key: str, order: dict[int, int], slip: str, tmp_path: Path) -> None:
    (line,) = say_of_videos(tmp_path, list, "ovis", **{key: order})
    assert slip in line


# ── mask files ──────────────────────────────────────────────────────────────


def say_of_files(folder: Path, change: Callable[[Any], Any]) -> list[str]:
    """Write images of rectangles without any symmetry, and changed ones as mask files; return the slips."""
    random = np.random.default_rng(3)
    world = []
    for image in range(9):
        labels = np.zeros((1, *SIZE), np.int64)
        for number in range(1, OBJECTS + 1):
            row, column = (number - 1) % 2, (number - 1) // 2
            top, left = 45 * row + random.integers(2, 30), 40 * column + random.integers(2, 12)
            labels[0, top : top + random.integers(6, 18), left : left + random.integers(8, 24)] = number
        world.append(Video(f"scene{image:02d}", labels, {number: 1 + number % 3 for number in range(1, OBJECTS + 1)}))
    (folder / "truth").mkdir()
    truth = BENCHMARKS["cityscapes-instance"].publish(world, folder / "truth")
    for video in world:
        video.labels[0] = change(video.labels[0])
    (folder / "results.zip").write_bytes(BENCHMARKS["cityscapes-instance"].send(world))
    return [line for line in list_slips(folder / "results.zip", truth, "cityscapes-instance") if " look " in line]


def ragged(labels: Any) -> Any:
    random = np.random.default_rng(int(labels.sum()))
    return np.where(random.random(labels.shape) < 0.5, labels, np.roll(labels, 2, 1))


@pytest.mark.parametrize(
    ("slip", "change"),
    [
        ("masks look moved by 5 along x and 4 along y", lambda labels: np.roll(labels, (4, 5), (0, 1))),
        ("masks look mirrored, with left and right exchanged", lambda labels: labels[:, ::-1]),
        ("masks look upside down", lambda labels: labels[::-1]),
        ("category ids look exchanged, such as ", lambda labels: np.array([0, 2, 3, 1, 5, 6, 4])[labels]),
        ("", ragged),
        ("", lambda labels: np.where(labels, labels, np.roll(labels, (3, 3), (0, 1)))),
    ],
)
def test_misplaced_files_are_named_and_inexact_ones_are_not(
    slip: str, change: Callable[[Any], Any], tmp_path: Path
) -> None:
    assert [slip in line for line in say_of_files(tmp_path, change)] == [True] * bool(slip)
