"""Refused truths and results of instances, by the whole sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.families.refusals import Refusal, refuse

WHOLE = {"size": [4, 8], "counts": [0, 32]}
THING = {
    "id": 1, "image_id": 1, "category_id": 1, "segmentation": WHOLE, "area": 32, "iscrowd": 0, "bbox": [0, 0, 8, 4],
}  # fmt: skip
BODY = {**THING, "id": 2, "keypoints": [1, 1, 2], "num_keypoints": 1}
RECORD = {"image_id": 1, "category_id": 1, "segmentation": WHOLE, "score": 0.5}
#: An outline that crosses its image 60,000 times.
ZIGZAG = [side for corner in range(60_000) for side in (corner % 2 * 8, corner % 3 * 2)]


def truth(*annotations: dict[str, Any]) -> dict[str, bytes]:
    categories = [{"id": 1, "name": "cat", "keypoints": ["nose"]}]
    images = [{"id": 1, "height": 4, "width": 8}]
    return {"t.json": json.dumps({"images": images, "categories": categories, "annotations": annotations}).encode()}


def upload(*records: dict[str, Any]) -> dict[str, bytes]:
    return {"r.json": json.dumps(records).encode()}


LONG_SCORE = {"r.json": upload(RECORD)["r.json"].replace(b"0.5", b"9" * 5000)}
REFUSED: dict[str, Refusal] = {
    "keypoints of some annotations": ("coco-keypoints", truth(THING, BODY), upload(), "the truth of val has annotations without keypoints: 1. Use the keypoint annotation file"),
    "a number of thousands of digits": ("coco", truth(THING), LONG_SCORE, "r.json: holds a number that cannot be read: it has thousands of digits. Write plain numbers."),
    "an endless outline": ("coco", truth(THING), upload({**RECORD, "segmentation": [ZIGZAG]}), "record 0 (image 1): has a polygon whose outline is 540,000 pixels long; the limit is 250,000. Write masks as run lengths."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_sentence(name: str, tmp_path: Path) -> None:
    protocol, files, results, sentence = REFUSED[name]
    assert refuse(tmp_path, protocol, files, results, "t.json") == sentence
