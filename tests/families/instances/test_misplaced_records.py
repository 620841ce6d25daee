"""Records that are mirrored, scaled, repeated, incomplete or of other images are named; poor records are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.masks import run_lengths
from segjudge.evaluation_script.masks.backend import backend
from tests.published import rle

HEIGHT, WIDTH, IMAGES = 120, 160, 12


def draw_boxes() -> list[tuple[int, Any]]:
    """Return the image and the box of two instances in each image."""
    random = np.random.default_rng(5)
    starts, sides = random.integers(2, (100, 66), (2 * IMAGES, 2)), random.integers(10, 50, (2 * IMAGES, 2))
    return [(number // 2, [*start, *side]) for number, (start, side) in enumerate(zip(starts.tolist(), sides.tolist()))]


def draw(box: Any) -> Any:
    x, y, width, height = map(round, box)
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[max(y, 0) : y + height, max(x, 0) : x + width] = True
    return mask


def points_of(box: Any) -> list[float]:
    x, y, width, height = box
    return [x, y, 2, x + width, y, 2, x, y + height, 2, x + width, y + height, 2]


FORMS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "coco": lambda box: {"segmentation": rle(draw(box))},
    "coco-box": lambda box: {"bbox": box},
    "coco-keypoints": lambda box: {"keypoints": points_of(box)},
}


def write_truth(path: Path) -> Path:
    points = {"keypoints": list("abcd"), "skeleton": [], "sigmas": [0.1] * 4}
    categories = [{"id": number, "name": f"c{number}", **points} for number in (1, 2)]
    annotations = [
        {"id": number + 1, "image_id": image, "category_id": 1 + number % 2, "bbox": box, "area": box[2] * box[3],
         "iscrowd": 0, "segmentation": rle(draw(box)), "keypoints": points_of(box), "num_keypoints": 4}
        for number, (image, box) in enumerate(draw_boxes())
    ]  # fmt: skip
    images = [{"id": image, "height": HEIGHT, "width": WIDTH} for image in range(IMAGES)]
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    return path


def said(records: list[dict[str, Any]], protocol: str, folder: Path) -> list[str]:
    results = folder / "results.json"
    results.write_text(json.dumps(records))
    lines = score(results, write_truth(folder / "truth.json"), protocol).warnings
    return [line for line in lines if "nothing to average" not in line]


def make_records(protocol: str, change: Callable[[int, Any], tuple[int, Any]]) -> list[dict[str, Any]]:
    changed = [change(image, box) for image, box in draw_boxes()]
    return [
        {"image_id": image, "category_id": 1 + number % 2, "score": 0.9 - number / 100, **FORMS[protocol](box)}
        for number, (image, box) in enumerate(changed)
    ]


PLACES: dict[str, Callable[[int, Any], tuple[int, Any]]] = {
    "look mirrored, with left and right exchanged": lambda i, b: (i, [WIDTH - b[0] - b[2], *b[1:]]),
    "look upside down": lambda i, b: (i, [b[0], HEIGHT - b[1] - b[3], *b[2:]]),
    "look rotated by 180 degrees": lambda i, b: (i, [WIDTH - b[0] - b[2], HEIGHT - b[1] - b[3], *b[2:]]),
    "look as if x and y were exchanged": lambda i, b: (i, [b[1], b[0], b[3], b[2]]),
    "look as if width and height were exchanged": lambda i, b: (i, [b[0], b[1], b[3], b[2]]),
    "look as if their images had been padded to squares": lambda i, b: (
        i,
        [b[0], 0.75 * b[1] + (WIDTH - HEIGHT) / 2 * HEIGHT / WIDTH, b[2], 0.75 * b[3]],
    ),
    "padded to squares at one side": lambda i, b: (i, [b[0], 0.75 * b[1], b[2], 0.75 * b[3]]),
    "look as if in images of half the size": lambda i, b: (i, [side / 2 for side in b]),
    "look as if each belonged to the image before its own": lambda i, b: ((i + 1) % IMAGES, b),
    "look as if each belonged to the image after its own": lambda i, b: ((i - 1) % IMAGES, b),
}
MOVED = "look moved by about 5 pixels along x and -4 along y: corrected, the "
POOR: dict[str, Callable[[int, Any], tuple[int, Any]]] = {
    "right": lambda i, b: (i, b),
    "too small": lambda i, b: (i, [b[0] + b[2] // 4, b[1], b[2] // 2, b[3]]),
    "displaced": lambda i, b: (i, [b[0] + b[2] // 2, *b[1:]]),
}


@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize("slip", PLACES)
def test_misplaced_records_are_named(slip: str, protocol: str, tmp_path: Path) -> None:
    lines = said(make_records(protocol, PLACES[slip]), protocol, tmp_path)
    assert any(slip in line and " of 24 instances tried would be found instead of " in line for line in lines)


@pytest.mark.parametrize("protocol", FORMS)
def test_records_that_are_all_moved_alike_are_named(protocol: str, tmp_path: Path) -> None:
    lines = said(make_records(protocol, lambda i, b: (i, [b[0] + 5, b[1] - 4, *b[2:]])), protocol, tmp_path)
    assert any(MOVED in line and " instances tried would lie at most half as far " in line for line in lines)
    random = np.random.default_rng(6)
    records = make_records(
        protocol, lambda i, b: (i, [*(np.array(b[:2]) + random.integers(-5, 6, 2)).tolist(), *b[2:]])
    )
    assert not [line for line in said(records, protocol, tmp_path) if "moved" in line]


@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize("method", POOR)
def test_poor_records_are_not_suspected(method: str, protocol: str, tmp_path: Path) -> None:
    assert not [
        line for line in said(make_records(protocol, POOR[method]), protocol, tmp_path) if "matched" not in line
    ]


def test_right_points_are_not_suspected_though_boxes_are_larger(tmp_path: Path) -> None:
    path = write_truth(tmp_path / "truth.json")
    truth = json.loads(path.read_text())
    for number, annotation in enumerate(truth["annotations"]):
        x, y, width, height = box = [5 * number, 30 + number % 5, 30, 24]
        padded = [x, y * WIDTH / HEIGHT - (WIDTH - HEIGHT) / 2, width, height * WIDTH / HEIGHT]
        annotation.update(keypoints=points_of(box), bbox=padded, num_keypoints=4)
    path.write_text(json.dumps(truth))
    keys = ("image_id", "category_id", "keypoints")
    records = [{"score": 0.5, **{key: annotation[key] for key in keys}} for annotation in truth["annotations"]]
    (tmp_path / "results.json").write_text(json.dumps(records))
    lines = score(tmp_path / "results.json", path, "coco-keypoints").warnings
    assert not [line for line in lines if "nothing to average" not in line]


@pytest.mark.parametrize("protocol", FORMS)
def test_repeated_missing_and_unclassified_records_are_named(protocol: str, tmp_path: Path) -> None:
    right = make_records(protocol, POOR["right"])
    for records, message in (
        (right + right, "24 of 48 detections have the image, category and score of another: send each once"),
        (right[:16], "4 of 12 images with instances have no detection: check that the results are of the whole split"),
        ([{**record, "category_id": 1} for record in right], "all 24 detections have the same class, though the truth"),
    ):
        (line,) = said(records, protocol, tmp_path)
        assert message in line
    assert said(right[:18], protocol, tmp_path) == []
    missed = make_records(protocol, lambda i, b: (i, [*b[:2], 1, 1]))
    lines = said(missed + missed, protocol, tmp_path)
    assert any(
        "24 of 48 detections have the image, category and score of another: send each once" in line for line in lines
    )
    assert not any("send each once" in line for line in said(missed, protocol, tmp_path))


@pytest.mark.parametrize("protocol", FORMS)
def test_records_of_one_score_are_named_if_some_are_wrong(protocol: str, tmp_path: Path) -> None:
    right = make_records(protocol, POOR["right"])
    half = [{**right[number], **FORMS[protocol]([1, 1, 9, 9])} if number % 2 else right[number] for number in range(24)]
    alike = [[{**record, "score": 0.9} for record in records] for records in (right, half, right + right)]
    (line,) = said(alike[1], protocol, tmp_path)
    assert "all 24 detections have the score 0.9, which ranks none: write the confidence of each" in line
    assert said(alike[0], protocol, tmp_path) == said(half, protocol, tmp_path) == []
    content = {"coco": "mask", "coco-box": "box", "coco-keypoints": "keypoints"}[protocol]
    lines = said(alike[2], protocol, tmp_path)
    assert f"48 of 48 detections tried have the image, category, score and {content} of another: send" in lines[0]
    assert "all 48 detections have the score 0.9" in lines[1]


@pytest.mark.parametrize("boxed", [False, True])
def test_masks_along_rows_are_named(boxed: bool, tmp_path: Path) -> None:
    """Also if a right box lies beside each mask."""
    records = make_records("coco", POOR["right"])
    for record, (_, box) in zip(records, draw_boxes(), strict=True):
        mask = draw(box).reshape(WIDTH, HEIGHT).T
        record.update({"segmentation": rle(mask), **({"bbox": box} if boxed else {})})
    lines = said(records, "coco", tmp_path)
    message = "masks look encoded row by row: corrected, 24 of 24 instances tried would be found instead of "
    assert any(message in line and line.endswith("np.asfortranarray(mask), column by column") for line in lines)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_points_with_exchanged_sides_are_named(share: float, tmp_path: Path) -> None:
    records = make_records("coco-keypoints", POOR["right"])
    for record in records[: int(share * len(records))]:
        points = record["keypoints"]
        record["keypoints"] = [*points[3:6], *points[:3], *points[9:], *points[6:9]]
    truth = write_truth(tmp_path / "truth.json")
    names = ["left_top", "right_top", "left_bottom", "right_bottom"]
    truth.write_text(truth.read_text().replace(json.dumps(list("abcd")), json.dumps(names)))
    (tmp_path / "results.json").write_text(json.dumps(records))
    lines = score(tmp_path / "results.json", truth, "coco-keypoints").warnings
    message = "left and right were exchanged: corrected, the points of 24 of 24 instances tried would lie at most half"
    assert any(message in line for line in lines) is (share == 1)


@pytest.mark.parametrize("protocol", ["coco-box", "coco-keypoints"])
def test_places_left_of_an_image_are_outside_in_any_order(protocol: str, tmp_path: Path) -> None:
    records = make_records(protocol, PLACES["look as if in images of half the size"])
    for record in records:
        record["bbox" if protocol == "coco-box" else "keypoints"][:2] = [-9, 5]
    assert not [line for line in said(records, protocol, tmp_path) if "lie inside" in line]


@pytest.mark.parametrize("far", [0, 1])
def test_fractions_of_the_image_are_named_though_few_lie_outside(far: int, tmp_path: Path) -> None:
    records = 2 * make_records("coco-keypoints", lambda i, b: (i, [side / HEIGHT for side in b]))
    records[0] = {**records[0], "keypoints": [*([5.5, 0.5, 2] if far else [0.5, 0.5, 2]), *records[0]["keypoints"][3:]]}
    reach = "of 192 keypoints only 1 reaches" if far else "no keypoint reaches"
    (line,) = [line for line in said(records, "coco-keypoints", tmp_path) if "fractions" in line]
    assert f"{reach} beyond 1.5 pixels, as if coordinates were fractions of the image size: write x, y" in line


def test_boxes_for_larger_images_are_named(tmp_path: Path) -> None:
    lines = said(make_records("coco-box", lambda i, b: (i, [1.6 * side for side in b])), "coco-box", tmp_path)
    assert "of 24 boxes reach beyond their images: write [x, y, width, height] in pixels of the image" in lines[0]


@pytest.mark.parametrize("size", [(HEIGHT, WIDTH), (1, HEIGHT * WIDTH), (HEIGHT * WIDTH, 1), (7, 3)])
def test_boxes_around_noise_are_the_same_by_both_backends(size: tuple[int, int]) -> None:
    random = np.random.default_rng(6)
    shares = [0, 1, *([0.00005, 0.001, 0.3] * 8)]
    masks = [np.asfortranarray(random.random(size) < share, np.uint8) for share in shares]
    texts, sizes = [rle(mask)["counts"] for mask in masks], np.array([size] * len(masks))
    assert (
        backend().mask_boxes(run_lengths.pack_texts(texts), sizes).tolist()
        == run_lengths.boxes_of(texts, sizes).tolist()
    )


def test_boxes_around_run_lengths_are_those_of_their_pixels() -> None:
    boxes = [[0, 0, 160, 120], [3, 5, 1, 7], [0, 0, 0, 0], [10, 100, 20, 20], [159, 119, 1, 1]]
    random = np.random.default_rng(5)
    masks = [draw(box) for box in boxes]
    masks += [(random.random((HEIGHT, WIDTH)) < share).astype(np.uint8) for share in (0, 0.0001, 0.001, 0.5, 1)]
    texts = [rle(mask)["counts"] for mask in masks]
    found = run_lengths.boxes_of(["", *texts], np.array([(HEIGHT, WIDTH)] * (len(texts) + 1)))
    assert found[1 : len(boxes) + 1].tolist() == boxes
    for box, mask in zip(found.tolist(), [np.zeros((HEIGHT, WIDTH)), *masks], strict=True):
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        ends = [columns[0], rows[0], np.ptp(columns) + 1, np.ptp(rows) + 1] if len(rows) else [0] * 4
        assert box == ends


@pytest.mark.parametrize("places", ["a quarter", "none", "noise", "right"])
def test_keypoints_that_match_none_are_named_only_where_nobody_is(places: str, tmp_path: Path) -> None:
    """Keypoints of a poor method match nobody either, but lie at the places of people."""
    random = np.random.default_rng(6)
    records = make_records("coco-keypoints", POOR["right"])
    for record in records:
        x, y, flags = np.array(record["keypoints"], float).reshape(-1, 3).T
        size = np.ptp(x) * random.normal(0, 0.3, 8)
        changes = {"a quarter": (x / 4, y / 4), "none": (x * 0, y * 0), "noise": (x + size[:4], y + size[4:])}
        record["keypoints"] = np.stack((*changes.get(places, (x, y)), flags), axis=1).ravel().tolist()
    truth = write_truth(tmp_path / "truth.json")
    (tmp_path / "results.json").write_text(json.dumps(records))
    scores = score(tmp_path / "results.json", truth, "coco-keypoints")
    (report,) = scores.reports
    assert (report.values["AP"] > 0.5) is (places == "right")
    message = "keypoints lie at the place of (none|only .) of 24 instances tried, and almost none were matched: check"
    assert any(re.search(message, line) for line in scores.warnings) is (places in {"a quarter", "none"})
    assert not any("check the numbers of the classes" in line for line in scores.warnings)
