"""Static code upload, for participants: write the submission in one step and wait until the platform has read it.

The platform looks every few minutes. It may read a half-written file, or fail a container that ended before it looked.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from segjudge.masks.run_lengths import encode_labels

#: The folder that the platform watches, the files that it accepts, and the file that it then writes.
FOLDER_VARIABLE, _DEFAULT_FOLDER = "SUBMISSION_PATH", "/submission"
SUBMISSION_NAMES = ("submission.csv", "submission.json")
TAKEN_FILE = "completed.txt"
#: The folder of the frames: mounted by the platform, or named by the variable in an arena.
DATASET_VARIABLE, _DEFAULT_DATASET = "SEGJUDGE_DATASET", "/dataset"
#: The platform checks every 300 seconds and may be late; then it ends the pod in any case.
_PATIENCE = 660.0


class _ObjectMask(TypedDict):
    """A mask as COCO's tools write it."""

    size: list[int]
    counts: str


#: Object -> its mask in each frame, None if invisible.
SequenceRuns = dict[str, list[_ObjectMask | None]]


def dataset() -> str:
    """Return the folder of the data."""
    return os.environ.get(DATASET_VARIABLE) or _DEFAULT_DATASET


def sequence_of(masks: Iterable[NDArray[np.uint8]]) -> SequenceRuns:
    """Return one sequence of a submission, object → run lengths of each frame, from label images."""
    by_object: SequenceRuns = {}
    count = 0
    for mask in masks:
        for label, counts in encode_labels(mask).items():
            runs = by_object.setdefault(str(label), [])
            runs += [None] * (count - len(runs))
            runs.append({"size": list(mask.shape), "counts": counts})
        count += 1
    return {label: runs + [None] * (count - len(runs)) for label, runs in by_object.items()} or {"1": [None] * count}


def write_submission(document: Mapping[str, object] | list[object], patience: float = _PATIENCE) -> bool:
    """Write `submission.json`, wait for the platform, and return whether it took the file."""
    folder = os.environ.get(FOLDER_VARIABLE) or _DEFAULT_FOLDER
    whole = os.path.join(folder, SUBMISSION_NAMES[1])
    partial = f"{whole}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, whole)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if os.path.exists(os.path.join(folder, TAKEN_FILE)):
            return True
        time.sleep(min(1.0, patience / 100))
    return False
