"""Suspicions about sequences whose masks have other numbers, or fit the truth of another sequence, in a few frames."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...files import Problems, name_list, quantity
from ...masks.overlaps import best_assignment
from ...masks.similarity import count_shared
from ...masks.stack import Array, Size, Stacks
from ...values import NamedTuple
from ...values.arithmetic import mean
from ..base.readings import (
    LOW_FIT,
    OVERALL_IOU,
    ReadingScores,
    choose_compared,
    describe_gain,
    find_fit,
    judge_moved,
    least_fit,
    list_around,
    list_moved,
)
from .counting import SequenceCounts, choose_objects, list_frames, read_scored_blocks
from .protocols import SequenceProtocol
from .truth import SequencePair, is_number

#: The positions of true, predicted and shared pixels among the fields of counts.
_TRUTH, _PREDICTION, _SHARED = range(3)
#: The maximum number of objects or labels of a sequence, and the number of frames, that are compared.
_MOST_OBJECTS, _FRAMES = 32, 2
#: The maximum number of sequences that are all compared with each other, which takes longer than other units.
_MOST_COMPARED = 32
_NUMBERS, _MASKS = "numbers ", "masks of "
_PAIR = re.compile(r"(\d+)>(\d+)")


class _Sample(NamedTuple):
    """The masks of a few frames of a sequence."""

    frames: List[str]
    size: Size
    objects: List[str]
    truth: Stacks
    predicted: Stacks


class SequenceSamples:
    """The masks of a few frames of all sequences, read where a sequence scores low."""

    def __init__(self, pairs: List[SequencePair], protocol: SequenceProtocol) -> None:
        self._pairs, self._protocol = pairs, protocol
        self._samples: Dict[int, Optional[_Sample]] = {}
        self._chosen = choose_compared(len(pairs), _MOST_COMPARED)

    def look(self, number: int, counts: SequenceCounts) -> ReadingScores:
        """Return the score of a low-scoring sequence with other numbers, or else as the masks of another sequence."""
        if number not in self._chosen or counts.problem_count or not counts.counts.size:
            return {}
        totals = counts.counts.sum(axis=3)
        shared = int(totals[:, :, _SHARED].sum())
        either = int((totals[:, :, _TRUTH] + totals[:, :, _PREDICTION]).sum()) - shared
        sample = self._take(number) if shared < LOW_FIT * either else None
        if sample is None:
            return {}
        before, pairs = _match(sample, sample)
        if before >= LOW_FIT:
            return self._describe_numbers(sample, pairs, shared / either, before)
        ious = {
            neighbour: _match(sample, truth)[0]
            for neighbour in list_around(number, len(self._pairs), _MOST_COMPARED)
            for truth in [self._take(neighbour)]
            if truth is not None
        }
        source = find_fit(ious, least_fit(before))
        return {} if source is None else {f"{_MASKS}{self._pairs[source][0].name}": (before, ious[source])}

    def _describe_numbers(
        self, sample: _Sample, pairs: List[Tuple[str, str]], as_sent: float, iou: float
    ) -> ReadingScores:
        """Return the score with labels that the truth lacks instead of its numbers."""
        if self._protocol.proposals or iou < least_fit(as_sent):
            return {}
        changed = [pair for pair in pairs if pair[0] != pair[1] and all(map(is_number, pair))]
        if not any(label not in sample.objects for label, _ in changed):
            return {}
        return {_NUMBERS + " ".join(f"{label}>{name}" for label, name in changed): (as_sent, iou)}

    def _take(self, number: int) -> Optional[_Sample]:
        if number not in self._samples:
            self._samples[number] = self._read(number)
        return self._samples[number]

    def _read(self, number: int) -> Optional[_Sample]:
        truth, masks = self._pairs[number]
        frames = list_frames(truth, self._protocol)[1 : 2 * _FRAMES : 2]
        if masks is None or not len(frames):
            return None
        problems, objects = Problems(), [*choose_objects(truth, self._protocol)][:_MOST_OBJECTS]
        for indices, true, predicted, empty, _ in read_scored_blocks(truth, masks, self._protocol, problems, frames):
            names = [truth.frames[frame] for frame in frames[indices]]
            # 0 is background in a map, but may name an expression with files of its own.
            labels = [label for label in predicted if label != "0" or label in objects][:_MOST_OBJECTS]
            return _Sample(names, empty.size, objects, true, {label: predicted[label] for label in labels})
        return None


def _match(predicted: _Sample, truth: _Sample) -> Tuple[float, List[Tuple[str, str]]]:
    """Return the IoU over all pixels with the best label for each object, and these pairs of labels and objects."""
    objects = [name for name in truth.objects if name in truth.truth and truth.truth[name].area.any()]
    if predicted.frames != truth.frames or predicted.size != truth.size or not (objects and predicted.predicted):
        return 0.0, []
    labels = list(predicted.predicted)
    shared: Array = np.array([
        [int(count_shared(predicted.predicted[label], truth.truth[name]).sum()) for name in objects] for label in labels
    ])  # fmt: skip
    rows, columns = best_assignment(shared)
    areas = [int(side[name].area.sum()) for side, names in ((predicted.predicted, labels), (truth.truth, objects))
             for name in names]  # fmt: skip
    hits = int(shared[rows, columns].sum())
    pairs = [(labels[row], objects[column]) for row, column in zip(rows, columns) if shared[row, column]]
    return hits / max(1, sum(areas) - hits), pairs


def judge_exchanged(names: Sequence[str], scores: Sequence[ReadingScores]) -> List[str]:
    """Return a warning if objects have other numbers than the truth's, or if masks of sequences are exchanged."""
    moved, remedy = list_moved(dict(zip(names, scores)), _MASKS), "Check which sequence each folder belongs to"
    return _judge_numbers(scores) or judge_moved(moved, "masks look exchanged among sequences", OVERALL_IOU, remedy)


def _judge_numbers(scores: Sequence[ReadingScores]) -> List[str]:
    exchanged = [(name, pair) for unit in scores for name, pair in unit.items() if name.startswith(_NUMBERS)]
    meanings: Dict[str, str] = {}
    for name, _ in exchanged:
        for label, number in _PAIR.findall(name):
            if meanings.setdefault(label, number) != number:
                return []
    if 2 * len(exchanged) <= len(scores):
        return []
    before, after = (mean(np.array(column)) for column in zip(*(pair for _, pair in exchanged)))
    labels = name_list([f"{label} for {meanings[label]}" for label in sorted(meanings, key=int)], 5)
    scope = f"(tried on {quantity(len(exchanged), 'sequence', len(scores))})"
    gain = describe_gain(OVERALL_IOU, before, after)
    return [f"object numbers look like others, {labels}: {gain} {scope}. Number objects as the truth does"]
