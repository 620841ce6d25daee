"""Between what `evaluate()` returns and what the REST API takes."""

from __future__ import annotations

import math
from typing import Any

#: The three shapes: `[{split: {metric: value}}]`, and what the API wants of it.
Accuracies = list[dict[str, Any]]


class ShapeError(Exception):
    """The server would refuse a result."""


def for_rest(result: list[dict[str, dict[str, float]]]) -> Accuracies:
    """`evaluate()`'s result as the REST API's list."""
    return [
        {"split": split, "show_to_participant": True, "accuracies": dict(values)}
        for entry in result
        for split, values in entry.items()
    ]


def judged(accuracies: Any, labels: dict[str, list[str]]) -> Accuracies:
    """The list, when the server would take it: known splits and labels, and finite plain numbers."""
    if not isinstance(accuracies, list):
        raise ShapeError("the result is no list of splits")
    for entry in accuracies:
        split = entry.get("split") if isinstance(entry, dict) else None
        if split not in labels or not isinstance(entry.get("accuracies"), dict):
            raise ShapeError(f"the result names the split {split!r}; the phase has {', '.join(labels)}")
        for name, value in entry["accuracies"].items():
            if name not in labels[split]:
                raise ShapeError(f"{split}: {name!r} is no label of its leaderboard")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ShapeError(f"{split}: {name} is {value!r}, no finite number")
    return accuracies
