"""Entries that were exchanged at random among images are named; honest ones are not, however poor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.builders import png, written
from tests.families.semantic.test_image_order import make_scene

NUMBERS = [*range(12)]
MOVED = [4, 7, 0, 9, 1, 11, 2, 10, 5, 8, 6, 3]


def write_side(folder: Path, scenes: list[Any]) -> Path:
    """Write the pictures and the JSON of images in which each class has one segment."""
    entries, files = [], {}
    for number, labels in enumerate(scenes):
        name, ids, areas = f"im{number:02d}", *np.unique(labels, return_counts=True)
        files[f"{name}.png"] = png(np.stack([labels, labels * 0, labels * 0], axis=2))
        segments = [
            {"id": label, "category_id": label, "area": area, "iscrowd": 0}
            for label, area in zip(ids.tolist(), areas.tolist(), strict=True)
        ]
        entries.append({"image_id": number, "file_name": f"{name}.png", "segments_info": segments})
    categories = [{"id": label, "name": str(label), "isthing": label % 2} for label in range(1, 21)]
    document = {"images": [], "annotations": entries, "categories": categories}
    return written(folder, {**files, "panoptic.json": json.dumps(document).encode()})


def find_suspicions(scenes: list[Any], folder: Path) -> list[str]:
    truth, sent = write_side(folder / "truth", list(map(make_scene, NUMBERS))), write_side(folder / "sent", scenes)
    return [line for line in score(sent, truth, "coco-panoptic").warnings if "exchanged among" in line]


def test_entries_exchanged_at_random_are_named(tmp_path: Path) -> None:
    (line,) = find_suspicions(list(map(make_scene, MOVED)), tmp_path)
    assert "maps look exchanged among images, those of 0 fit 4, those of 1 fit 7, those of 2 fit 0 and " in line
    assert "corrected, the agreement of segments would be 1.00 instead of 0." in line


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: labels,
        lambda labels: np.where(labels % 3 == 0, 5, labels),
        lambda labels: np.full_like(labels, 1 + labels[0, 0] % 20),
        lambda labels: np.roll(labels, 17, 0),
    ],
    ids=["right", "merged", "one class each", "moved"],
)
def test_poor_entries_of_their_own_images_are_not_suspected(change: Any, tmp_path: Path) -> None:
    scenes = [change(make_scene(number)).astype(np.uint8) for number in NUMBERS]
    assert find_suspicions(scenes, tmp_path) == []
