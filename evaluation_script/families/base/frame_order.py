"""The order of a video's frames: whether predictions fit the frames before, after or in reverse better than their own.

Only samples at which the truth differs between two frames tell them apart. Each such sample of a prediction is right in
one of both frames, or in neither. Masks of a method that lags or stands still fit many frames, and count for none.
"""

from __future__ import annotations

from typing import Dict, Tuple

import numpy as np

from ...masks.stack import Array

#: The steps from a frame to the true one that its prediction may show, by the name of the reading.
_STEPS = {"before": -1, "after": 1}
REVERSED = "reversed"
#: The minimum number of telling samples, and the minimum ratio of those that are right in the other frame.
_FEWEST_SAMPLES, _TIMES_AS_MANY = 20, 3.0
#: The share of right and wrong samples that tell own frames from other ones, by reading.
OrderScores = Dict[str, Tuple[float, float]]
#: The label of samples that do not count.
VOID = -1


def is_telling(truth: Array, predicted: Array) -> bool:
    """Return whether enough samples of the prediction are right in one of two frames that follow each other."""
    return sum(_count_right(predicted[1:], truth[1:], truth[:-1])) >= _FEWEST_SAMPLES


def compare_orders(truth: Array, predicted: Array) -> OrderScores:
    """Return for each order that explains the prediction the shares of telling samples that are right as submitted and
    in that order.

    Both sides have labels of the same samples in each frame: (frames, samples).
    """
    scores = {}
    frames = len(truth)
    middle = np.arange(2, frames - 2)
    for name, step in _STEPS.items() if len(middle) else ():
        right, displaced = _count_right(predicted[middle], truth[middle], truth[middle + step])
        distant, near = _count_right(predicted[middle], truth[middle + 2 * step], truth[middle + step])
        if _is_displaced(right, displaced, _FEWEST_SAMPLES) and _is_displaced(distant, near):
            scores[name] = right / (right + displaced), displaced / (right + displaced)
    right, displaced = _count_right(predicted, truth, truth[::-1])
    if frames > 2 and _is_displaced(right, displaced, _FEWEST_SAMPLES):
        halves = [slice(0, frames // 2), slice(frames - frames // 2, frames)]
        # Masks that stand still fit the reverse of one half.
        if all(_is_displaced(*_count_right(predicted[half], truth[half], truth[::-1][half])) for half in halves):
            scores[REVERSED] = right / (right + displaced), displaced / (right + displaced)
    return scores


def _count_right(predicted: Array, truth: Array, displaced: Array) -> Tuple[int, int]:
    """Return how many of the samples that differ between two true frames have the label of each."""
    differs = (truth != displaced) & (truth != VOID) & (displaced != VOID)
    return int(np.count_nonzero(differs & (predicted == truth))), int(
        np.count_nonzero(differs & (predicted == displaced))
    )


def _is_displaced(right: int, displaced: int, fewest: int = 1) -> bool:
    return right + displaced >= fewest and displaced >= _TIMES_AS_MANY * right
