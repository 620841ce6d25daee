"""Categories that stand for each other are named; confused ones are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.category_suspicions import _describe, judge_exchanged_categories
from segjudge.evaluation_script.families.instances.records import Examples
from segjudge.evaluation_script.masks.stack import Array

#: The ids of categories, with gaps.
IDS = np.array([1, 2, 4, 7, 9])


def say(predicted: Callable[[Array], Array], seed: int = 0, count: int = 24, error: float = 2.0) -> list[str]:
    """Return what is said of boxes with predicted categories, by the index of the truth's."""
    random = np.random.default_rng(seed)
    boxes = np.concatenate((random.uniform(0, 400, (count, 2)), random.uniform(40, 90, (count, 2))), axis=1)
    image, category = np.arange(count) // 3, random.integers(0, len(IDS), count)
    moved = boxes + random.normal(0, error, boxes.shape)
    scores = random.uniform(0.1, 1, count)
    return judge_exchanged_categories(
        Examples(image, boxes, category=category), IDS, image, predicted(category), scores, moved
    )


@pytest.mark.parametrize(
    ("order", "slip"),
    [
        ([1, 0, 2, 3, 4], ""),  # most are right
        ([1, 0, 3, 2, 4], "categories look exchanged, such as 2 for 1, 1 for 2, 7 for 4"),
        ([4, 3, 1, 0, 2], "categories look exchanged, such as 9 for 1, 7 for 2, 2 for 4"),
        ([0, 1, 2, 3, 4], ""),
        ([-1, 0, 1, 2, 3], "categories look exchanged, such as 1 for 2, 2 for 4, 4 for 7"),  # the truth lacks the first
    ],
)
def test_exchanged_categories_are_named(order: list[int], slip: str) -> None:
    lines = say(lambda category: np.array(order)[category], seed=3)
    assert len(lines) == bool(slip)
    assert all(slip in line and line.endswith("Write the ids of the truth") for line in lines)


@pytest.mark.parametrize(
    ("ids", "order", "slip"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 3], "1 was added to each"),
        ([1, 2, 3, 4], [0, 0, 1, 2], "1 was subtracted from each"),
        ([3, 5, 0, 1], [2, 3, 0, 1], "they were numbered from 0"),
    ],
)
def test_common_numberings_have_their_names(ids: list[int], order: list[int], slip: str) -> None:
    numbers = np.arange(len(ids))
    moved = numbers[np.array(order) != numbers]
    assert _describe(np.array(ids), moved[:2], np.array(order)[moved[:2]]) == f"as if {slip}"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_poor_categories_are_not_suspected(share: float) -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        error = float(random.choice([1.0, 10.0, 40.0]))

        def confuse(category: Array) -> Array:
            confused = random.integers(0, len(IDS), len(category))  # noqa: B023
            return np.where(random.random(len(category)) < share, confused, category)  # noqa: B023

        assert say(confuse, seed, error=error) == []


def test_few_instances_prove_nothing() -> None:
    order = np.array([4, 3, 1, 0, 2])
    assert say(lambda category: order[category], count=9) == []
