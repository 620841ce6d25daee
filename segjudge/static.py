"""For static code upload: put the submission in place in one step, and stay until the platform has taken it.

The platform looks every few minutes, takes a half-written file for a whole one, and may call a container failed that
ended before it looked.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from segjudge.masks.run_lengths import encoded

#: Where the platform looks, and what it writes when it has looked.
FOLDER, DEFAULT_FOLDER = "SUBMISSION_PATH", "/submission"
NAMES = ("submission.csv", "submission.json")
TAKEN = "completed.txt"
#: Where the pictures are: mounted there by the platform, elsewhere in an arena.
DATASET, DEFAULT_DATASET = "SEGJUDGE_DATASET", "/dataset"
#: The platform looks every 300 seconds and may be late; then it ends the pod anyhow.
PATIENCE = 660.0


def dataset() -> str:
    """The folder of the data."""
    return os.environ.get(DATASET) or DEFAULT_DATASET


def sequence_of(masks: Iterable[Any]) -> dict[str, list[Any]]:
    """The form that a submission has for one sequence: object → run lengths of each frame, from label images."""
    found: dict[str, list[Any]] = {}
    count = 0
    for mask in masks:
        for one, counts in encoded(mask).items():
            runs = found.setdefault(str(one), [])
            runs += [None] * (count - len(runs))
            runs.append({"size": list(mask.shape), "counts": counts})
        count += 1
    return {one: runs + [None] * (count - len(runs)) for one, runs in found.items()} or {"1": [None] * count}


def write_submission(document: Mapping[str, Any] | list[Any], patience: float = PATIENCE) -> bool:
    """Put `submission.json` in place and wait for the platform; whether it came."""
    folder = os.environ.get(FOLDER) or DEFAULT_FOLDER
    whole = os.path.join(folder, NAMES[1])
    partial = f"{whole}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, whole)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if os.path.exists(os.path.join(folder, TAKEN)):
            return True
        time.sleep(min(1.0, patience / 100))
    return False
