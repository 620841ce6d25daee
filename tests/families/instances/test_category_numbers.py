"""Categories that are numbered otherwise than in the truth are named next to the scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score, score_arrays
from tests.families.codings import TRUTH, list_warnings
from tests.published import rle


@pytest.mark.parametrize(
    ("ids", "change", "message"),
    [
        ([1, 2, 3, 4], lambda label: label + 1, "categories look as if 1 was added to each: with the truth's ids 30 of 30"),
        ([1, 2, 3, 4], lambda label: label - 1, "categories look as if 1 was subtracted from each: with the truth's ids 30 of 30"),
        ([2, 5, 9, 14, 3], [2, 3, 5, 9, 14].index, "as if they were numbered from 0"),
        ([2, 5, 9, 14, 3], lambda label: [2, 3, 5, 9, 14].index(label) + 1, "as if they were numbered from 1"),
        ([1, 2, 3, 4], lambda label: label, ""),
        ([1, 2, 3, 4], lambda _: 3, ""),
    ],
)  # fmt: skip
def test_categories_that_are_numbered_otherwise_are_named(ids: list[int], change: Any, message: str) -> None:
    mask = np.zeros((1, 8, 8), bool)
    mask[0, 2:5, 2:5] = True
    labels = [ids[k % len(ids)] for k in range(40)]
    truth = [{"labels": [label], "masks": mask} for label in labels]
    results = [{"labels": [change(label)], "masks": mask, "scores": [0.5]} for label in labels]
    lines = score_arrays(
        results, truth, "coco", categories=[{"id": label, "name": str(label)} for label in ids]
    ).warnings
    assert any("categories" in line for line in lines) == bool(message)
    assert message in "".join(lines)


def test_detections_without_a_match_are_named() -> None:
    masks = TRUTH[:2] == 1
    truth = [{"labels": [3, 7], "masks": masks}]
    assert list_warnings([{"labels": [3, 3], "masks": masks, "scores": [0.5, 0.4]}], truth, "coco") == []
    assert list_warnings([{"labels": [2, 8], "masks": masks, "scores": [0.5, 0.4]}], truth, "coco") == [
        "not one detection was matched with one of its class: check the numbers of the classes, and of the images"
    ]
    assert not any(
        "match" in line for line in list_warnings([{"labels": [], "masks": masks[:0], "scores": []}], truth, "coco")
    )


def test_numbers_that_the_truth_skips_are_explained(tmp_path: Path) -> None:
    ids, mask = [1, 3, 7], np.zeros((8, 8), np.uint8)
    mask[2:5, 2:5] = 1
    rows = [{"image_id": image, "category_id": image % 3, "segmentation": rle(mask)} for image in range(1, 34)]
    images = [{"id": image, "height": 8, "width": 8} for image in range(1, 34)]
    truth = {
        "images": images,
        "categories": [{"id": number, "name": str(number)} for number in ids],
        "annotations": [
            {**row, "id": number, "category_id": ids[row["category_id"]], "iscrowd": 0, "area": 9, "bbox": [2, 2, 3, 3]}
            for number, row in enumerate(rows, 1)
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    for numbers, count in (([1, 2, 3], 1), ([0, 1, 2], 1), (ids, 0), ([1, 2, 7], 0)):
        records = [{**row, "category_id": numbers[row["category_id"]], "score": 0.5} for row in rows]
        (tmp_path / "results.json").write_text(json.dumps(records))
        lines = score(tmp_path / "results.json", tmp_path / "truth.json", "coco").warnings
        assert [
            " of 33 records have a category that the truth lacks and were ignored. Its ids have gaps (1, 3, 7): "
            "write them, not the order of the classes" in line
            for line in lines
        ].count(True) == count
