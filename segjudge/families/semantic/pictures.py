"""Pictures of class maps: the classes of each frame and their pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.semantic.engine import (
    AnySubmission,
    class_indices,
    describe_classes,
    open_maps,
)
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, sample_rows_and_columns
from segjudge.families.base.segments import judge_classes


class SemanticPainter(UnitPainter):
    """A painter of videos' classes, each one segment of a frame."""

    dense = True
    segment = "region"
    by_pixel = True

    open_submission = staticmethod(open_maps)
    _submission: AnySubmission | None

    def __init__(self, results: str, truth: UnitTruth, rules: ScoringRules) -> None:
        super().__init__(results, truth, rules)
        self._classes = self._protocol.classes
        self._protocol = describe_classes(self._protocol, truth.facts)

    def class_names(self) -> Sequence[str]:
        return [self._protocol.name_class(label) for label in self._protocol.labels[: self._classes]]

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            pixels = frame.read()
            truth = pixels.image
            prediction = None
            if self._submission is not None:
                prediction = self._submission.read(unit.name, frame, truth, Problems())
            yield self._see_frame(truth, prediction, drawn.get(index))

    def _see_frame(self, truth: Array, prediction: Array | None, size: Size | None) -> SeenFrame:
        table = np.zeros((self._classes, self._classes))
        if prediction is None:
            own_classes = class_indices(truth, self._protocol).reshape(-1)
            counts = np.bincount(own_classes, minlength=self._classes)[: self._classes]
            table[np.arange(self._classes), np.arange(self._classes)] = counts
            sides = [np.flatnonzero(counts), np.zeros(0, np.int64)]
        else:
            pairs = backend().count_label_pairs(LabelMap(truth), LabelMap(prediction))
            rows, columns = (class_indices(side, self._protocol) for side in (pairs.truth, pairs.prediction))
            inside = (rows < self._classes) & (columns < self._classes)
            np.add.at(table, (rows[inside], columns[inside]), pairs.pixels[inside])
            sides = [np.flatnonzero(table.sum(axis=1)), np.flatnonzero(table.sum(axis=0))]
        shared = table[np.ix_(sides[0], sides[1])]
        areas = table.sum(axis=1)[sides[0]], table.sum(axis=0)[sides[1]]
        truth_side, predicted = (
            Side(
                side.tolist(),
                [self._protocol.name_class(self._protocol.labels[index]) for index in side.tolist()],
                area,
                side,
                np.zeros(len(side), bool),
            )
            for side, area in zip(sides, areas, strict=True)
        )
        maps = None
        if size is not None:
            blank = np.full(truth.shape, self._protocol.labels[-1] + 1) if prediction is None else prediction
            maps = np.stack(
                [self._index_map(side, labels, size) for side, labels in zip(sides, (truth, blank), strict=True)]
            )
        excused = np.zeros(len(sides[1]), bool)
        return SeenFrame(
            truth_side, predicted, shared, excused, maps, judge_classes(shared, areas, (sides[0], sides[1]))
        )

    def _index_map(self, classes: Array, labels: Array, size: Size) -> Array:
        rows, columns = sample_rows_and_columns(labels.shape, size)
        numbers = np.zeros(self._classes + 1, np.uint16)
        numbers[classes] = np.arange(1, len(classes) + 1)
        image: Array = numbers.take(class_indices(labels[rows[:, None], columns], self._protocol))
        return image
