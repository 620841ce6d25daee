"""Pictures of panoptic segments in each frame, on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.panoptic.counting import AREA, CATEGORY, CROWD, ID
from segjudge.evaluation_script.families.panoptic.files import (
    AnySubmission,
    PredictedFrame,
    blank_frame,
    open_submission,
)
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap, sum_by_key
from segjudge.evaluation_script.masks.stack import Array, Size, places_of
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, index_labels, share_of_labels

#: A prediction is ignored if more than this share of it lies on unlabelled pixels.
_HALF = 0.5


class PanopticPainter(UnitPainter):
    """A painter of images and video frames whose segments have identities."""

    dense = True
    segment = "segment"
    edge_weight, one_to_one = 2.0, True

    open_submission = staticmethod(open_submission)
    _submission: AnySubmission | None

    def __init__(self, results: str, truth: UnitTruth, rules: ScoringRules) -> None:
        super().__init__(results, truth, rules)
        self._categories = truth.facts["categories"]
        self._blank = blank_frame(self._protocol, [bool(is_thing) for *_, is_thing in self._categories])
        self.follows = self._protocol.video
        self._ordinals: dict[tuple[int, int, int], int] = {}

    def class_names(self) -> Sequence[str]:
        return [name for _, name, _ in self._categories]

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        self._ordinals = {}
        predictions: Sequence[PredictedFrame | None] = [None] * len(frames)
        if self._submission is not None:
            predictions = self._submission.frames(unit.name, list(frames), Problems())
        for index, (frame, prediction) in enumerate(zip(frames, predictions, strict=True)):
            yield self._see_frame(frame, prediction, drawn.get(index))

    def _see_frame(self, frame: TruthFrame, listed: PredictedFrame | None, size: Size | None) -> SeenFrame:
        truth, prediction = frame.read(), LabelMap(np.zeros(frame.size, np.uint8))
        if self._submission is not None and listed is not None:
            prediction = LabelMap(self._submission.read(listed, frame.size))
        pairs = backend().count_label_pairs(truth, prediction)
        listed_rows, predicted_rows = (listed or self._blank).list_segments(frame, pairs)
        rows = np.array(listed_rows, np.float64).reshape(-1, 4)
        ids, areas = sum_by_key(pairs.prediction, pairs.pixels)
        predicted, predicted_categories = np.array(predicted_rows, np.int64).reshape(-1, 4)[:, [ID, CATEGORY]].T
        void = ~np.isin(pairs.truth, rows[rows[:, CROWD] == 0, ID])
        outside = np.bincount(places_of(ids, pairs.prediction[void]), pairs.pixels[void], len(ids))[ids != 0]
        ids_of_truth, own_categories, own_areas = rows[rows[:, CROWD] == 0][:, [ID, CATEGORY, AREA]].T.astype(np.int64)
        truth_side = self._make_side(0, ids_of_truth, own_categories, own_areas)
        predicted_side = self._make_side(1, predicted, predicted_categories, areas[ids != 0] - outside)
        excused = outside / np.maximum(areas[ids != 0], 1) > _HALF
        shared = share_of_labels(truth_side.keys, predicted_side.keys, pairs)
        maps = None
        if size is not None:
            maps = np.stack(
                [index_labels(truth, truth_side.keys, size), index_labels(prediction, predicted_side.keys, size)]
            )
        return SeenFrame(truth_side, predicted_side, shared, excused, maps)

    def _make_side(self, side: int, ids: Array, categories: Array, areas: Array) -> Side:
        things = np.array([bool(self._categories[category][2]) for category in categories.tolist()], bool)
        names = [
            self._name_segment(side, number, category, is_thing=is_thing)
            for number, category, is_thing in zip(ids.tolist(), categories.tolist(), things.tolist(), strict=True)
        ]
        return Side(ids.tolist(), names, areas, categories, things)

    def _name_segment(self, side: int, number: int, category: int, *, is_thing: bool) -> str:
        """Return a segment's name: its category, numbered if there are several."""
        name = str(self._categories[category][1])
        if not is_thing:
            return name
        key = (side, category, number)
        if key not in self._ordinals:
            self._ordinals[key] = 1 + sum(named[:2] == key[:2] for named in self._ordinals)
        return f"{name} {self._ordinals[key]}"
