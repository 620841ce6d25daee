"""Label maps of six classes, and the warnings about predictions of other codings."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge import score_arrays

#: Classes 0 to 5, each in a seventh of the map, and void.
TRUTH = np.repeat(np.array([0, 1, 2, 3, 4, 5, 255], np.uint8), 10)[None, None].repeat(8, 1).repeat(9, 0)


def list_warnings(prediction: Any, truth: Any = TRUTH, protocol: str = "semantic", **options: Any) -> list[str]:
    """Return the warnings of masks in memory, but not those of means without values."""
    lines = score_arrays(prediction, truth, protocol, **options).warnings
    return [line.removeprefix("all: ") for line in lines if "nothing to average" not in line]
