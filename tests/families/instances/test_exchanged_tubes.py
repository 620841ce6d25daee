"""Records of videos under the category or video of others are named; those of weak trackers are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.families.instances.test_orders import VIDEOS, write

Records = list[dict[str, Any]]


def turn(key: str, order: dict[int, int]) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        for record in records:
            record[key] = order.get(record[key], record[key])

    return change


def confuse(records: Records) -> None:
    """Give records categories at random."""
    generator = np.random.default_rng(4)
    for record in records:
        record["category_id"] = int(generator.integers(1, 3))


def stop(records: Records) -> None:
    """Give all frames the mask of the last one."""
    for record in records:
        record["segmentations"] = record["segmentations"][-1:] * len(record["segmentations"])


def say(change: Callable[[Records], None], folder: Path) -> list[str]:
    truth, results = write(folder, lambda tube: tube)
    records = json.loads(results.read_text())
    change(records)
    results.write_text(json.dumps(records))
    lines = score(results, truth, "ovis").warnings
    assert score(results, truth, "ovis", jobs=2).warnings == lines
    return [line.partition(": ")[2] for line in lines if "exchanged" in line]


NEXT = {video: video % VIDEOS + 1 for video in range(1, VIDEOS + 1)}


@pytest.mark.parametrize(
    ("key", "order", "slip"),
    [
        ("category_id", {1: 2, 2: 1}, "categories look exchanged, such as 2 for 1, 1 for 2: with the truth's ids 12 "),
        ("video_id", {2: 5, 5: 2}, "records look exchanged among videos, those of 5 fit 2, those of 2 fit 5: "),
        ("video_id", NEXT, "records look exchanged among videos, those of 2 fit 1, those of 3 fit 2, "),
    ],
)
def test_exchanged_records_are_named(key: str, order: dict[int, int], slip: str, tmp_path: Path) -> None:
    (line,) = say(turn(key, order), tmp_path)
    assert line.startswith(slip)
    assert line.endswith(("Write the ids of the truth", ". Check video_id"))


@pytest.mark.parametrize("change", [lambda records: None, confuse, stop])
def test_poor_records_are_not_suspected(change: Callable[[Records], None], tmp_path: Path) -> None:
    assert say(change, tmp_path) == []
