"""The order of a video's frames: whether predictions fit the frames before, after or in reverse better than their own.

Only samples at which the truth differs between two frames tell them apart. Each such sample of a prediction is right in
one of both frames, or in neither. Masks of a method that lags or stands still fit many frames, and count for none.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.overlaps import LabelMap
from ...masks.run_lengths import pack_texts
from ...masks.stack import Array, Size
from .readings import Reading, list_neighbours, switch

#: The steps from a frame to the true one that its prediction may show, by the name of the reading.
_STEPS = {"before": -1, "after": 1}
REVERSED = "reversed"
#: The sentence on frames in reverse order.
REVERSED_SLIP = "the order of frames looks reversed"
#: The minimum number of telling samples, and the minimum ratio of those that are right in the other frame.
_FEWEST_SAMPLES, _TIMES_AS_MANY = 20, 3.0
#: The share of right and wrong samples that tell own frames from other ones, by reading.
OrderScores = Dict[str, Tuple[float, float]]
#: The number of samples of a map and of a frame with masks, and the maximum number of such frames and their masks.
_SAMPLES, _SAMPLES_OF_MASKS, _MOST_FRAMES, _MOST_MASKS = 600, 400, 40, 800
#: The number of frames with masks after which no more are compared if they fit, and the ratio that shows it.
_GLANCE, _CLEARLY = 6, 2.0


def read_orders(
    noun: str, subject: str = "each of the maps", remedy: str = "Check the order and the names of maps"
) -> List[Reading]:
    """Return the readings of another order of frames, which are compared while a video is counted."""
    neighbours = list_neighbours(subject, "frame", remedy, lambda _step, submission: submission, 0.5, 1.0)
    backwards = Reading(REVERSED, REVERSED_SLIP, remedy, noun, lambda submission: submission)
    return [
        replace(reading, noun=noun, least=0.5, times=1.0, metric=_METRIC, compares_frames=True)
        for reading in (*neighbours, backwards)
    ]


_METRIC = "the share of right pixels where both frames differ"


class FrameSamples:
    """Samples of all maps of a video, truth and prediction."""

    def __init__(self) -> None:
        self._truth: List[Array] = []
        self._predicted: List[Array] = []
        #: How many equally long runs of frames that follow each other were sampled.
        self._runs = 1

    def watch(self, unit: Any, submission: Any) -> Tuple[Any, Any]:
        """Return a unit and a submission whose reading stores samples here."""

        def load() -> Any:
            return [replace(frame, read=partial(self._read_truth, frame.read)) for frame in unit.load()]

        def read(*arguments: Any) -> Any:
            labels = submission.read(*arguments)
            if labels is not None:
                self._predicted.append(_take_samples(labels))
            return labels

        watched = switch("samples", value=self)(submission)
        return replace(unit, load=load), switch("read", value=read)(watched)

    def _read_truth(self, read: Callable[[], LabelMap]) -> LabelMap:
        labels = read()
        samples = _take_samples(labels.numbers)
        self._truth.append(samples if labels.labels is None else labels.labels[samples])
        return labels

    def add_masks(self, truth: List[List[str]], predicted: List[List[str]], size: Size) -> None:
        """Store samples of the masks of all frames: whether a point of the box around the truth's lies in any mask."""
        chosen = _choose_ends([sum(map(len, sides)) for sides in zip(truth, predicted)])
        truth, predicted = ([frames[index] for index in chosen] for frames in (truth, predicted))
        texts = [text for frame in truth for text in frame if text]
        if not texts:
            return
        boxes = backend().mask_boxes(pack_texts(texts), np.array([size] * len(texts)))
        x, y = boxes[:, :2].min(axis=0).tolist()
        width, height = ((boxes[:, :2] + boxes[:, 2:]).max(axis=0) - (x, y)).tolist()
        step = max(1, math.isqrt(width * height // _SAMPLES_OF_MASKS))
        columns, rows = np.arange(x, x + width, step), np.arange(y, y + height, step)
        places = (columns[:, None] * size[0] + rows).reshape(-1)
        pixels = size[0] * size[1]
        for start, stop in ((0, _GLANCE), (_GLANCE, _MOST_FRAMES)):
            for frames, samples in ((truth, self._truth), (predicted, self._predicted)):
                samples += [_draw_samples(masks, places, pixels) for masks in frames[start:stop]]
            if self._fits():
                return
        self._runs = 1 + (chosen[-1] >= len(chosen))

    def _fits(self) -> bool:
        """Return whether the masks fit their own frames much better than those beside them."""
        truth, predicted = np.stack(self._truth), np.stack(self._predicted)
        counts = [
            _count_right(predicted[1:], truth[1:], truth[:-1]),
            _count_right(predicted[:-1], truth[:-1], truth[1:]),
        ]
        return all(right >= _FEWEST_SAMPLES and right > _CLEARLY * displaced for right, displaced in counts)

    def compare(self) -> OrderScores:
        """Return the scores of the orders that explain the maps."""
        if len({sample.shape for sample in (*self._truth, *self._predicted)}) != 1:
            return {}
        if len(self._truth) != len(self._predicted):
            return {}
        truth, predicted = (np.stack(samples).astype(np.int64) for samples in (self._truth, self._predicted))
        backwards = _compare_reverse(truth, _translate(predicted, truth[::-1]))
        return {**_compare_steps(truth, _translate(predicted, truth), self._runs), **backwards}


def _choose_ends(masks: List[int]) -> List[int]:
    """Return as many frames at the start as at the end of a video as may be compared, given their numbers of masks."""
    frames, total = len(masks), sum(masks)
    if frames <= _MOST_FRAMES and total <= _MOST_MASKS:
        return list(range(frames))
    half = min(_MOST_FRAMES, frames) // 2
    costs = np.cumsum(np.array(masks[:half]) + masks[: -half - 1 : -1])
    count = int(np.searchsorted(costs, _MOST_MASKS, side="right"))
    return [*range(count), *range(frames - count, frames)]


def _draw_samples(texts: List[str], places: Array, pixels: int) -> Array:
    """Return whether any mask of a frame covers each place, as a row."""
    texts = [text for text in texts if text]
    return backend().cover_places(texts, places, pixels).astype(np.int64)


def _take_samples(labels: Array) -> Array:
    step = max(1, math.isqrt(labels.size // _SAMPLES))
    samples: Array = labels[::step, ::step].reshape(-1).copy()
    return samples


def _translate(predicted: Array, truth: Array) -> Array:
    """Return predicted labels as the true ones with which each shares most samples."""
    (names, codes), (true_names, true_codes) = (np.unique(side, return_inverse=True) for side in (predicted, truth))
    pairs, counts = np.unique(codes.reshape(-1) * len(true_names) + true_codes.reshape(-1), return_counts=True)
    order = np.argsort(counts, kind="stable")
    meanings = np.zeros(len(names), np.int64)
    meanings[pairs[order] // len(true_names)] = pairs[order] % len(true_names)  # the last one of each stays
    translated: Array = true_names[meanings][codes].reshape(predicted.shape)
    return translated


def is_telling(truth: Array, predicted: Array) -> bool:
    """Return whether enough samples of the prediction are right in one of two frames that follow each other, without
    the first and last ones, which other orders lack.
    """
    return sum(_count_right(predicted[2:-2], truth[2:-2], truth[1:-3])) >= _FEWEST_SAMPLES


def compare_orders(truth: Array, predicted: Array) -> OrderScores:
    """Return for each order that explains the prediction the shares of telling samples that are right as submitted and
    in that order.

    Both sides have labels of the same samples in each frame: (frames, samples).
    """
    return {**_compare_steps(truth, predicted), **_compare_reverse(truth, predicted)}


def _compare_steps(truth: Array, predicted: Array, runs: int = 1) -> OrderScores:
    scores = {}
    length = len(truth) // runs
    middle = np.concatenate([np.arange(run * length + 2, (run + 1) * length - 2) for run in range(runs)])
    for name, step in _STEPS.items() if len(middle) else ():
        right, displaced = _count_right(predicted[middle], truth[middle], truth[middle + step])
        distant, near = _count_right(predicted[middle], truth[middle + 2 * step], truth[middle + step])
        if _is_displaced(right, displaced, _FEWEST_SAMPLES) and _is_displaced(distant, near):
            scores[name] = right / (right + displaced), displaced / (right + displaced)
    return scores


def _compare_reverse(truth: Array, predicted: Array) -> OrderScores:
    frames = len(truth)
    right, displaced = _count_right(predicted, truth, truth[::-1])
    if frames < 3 or not _is_displaced(right, displaced, _FEWEST_SAMPLES):
        return {}
    halves = [slice(0, frames // 2), slice(frames - frames // 2, frames)]
    # Masks that stand still fit the reverse of one half.
    if not all(_is_displaced(*_count_right(predicted[half], truth[half], truth[::-1][half])) for half in halves):
        return {}
    return {REVERSED: (right / (right + displaced), displaced / (right + displaced))}


def _count_right(predicted: Array, truth: Array, displaced: Array) -> Tuple[int, int]:
    """Return how many of the samples that differ between two true frames have the label of each."""
    differs = truth != displaced
    return int(np.count_nonzero(differs & (predicted == truth))), int(
        np.count_nonzero(differs & (predicted == displaced))
    )


def _is_displaced(right: int, displaced: int, fewest: int = 1) -> bool:
    return right + displaced >= fewest and displaced >= _TIMES_AS_MANY * right
