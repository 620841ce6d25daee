"""Pictures of tracks: the objects and tracks of a frame, and their overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import Rows, TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.tracking.counting import masks_of
from segjudge.evaluation_script.families.tracking.files import CATEGORY, IGNORED, MASK, TRACK_ID, TracksSubmission
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.run_lengths import Masks
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, paint_masks, share_of_masks

#: A prediction is ignored if more than this share of it lies in ignored regions.
_MOST_IGNORED = 0.5


class TracksPainter(UnitPainter):
    """A painter of sequences of masks with track numbers."""

    follows, threshold = True, "α"
    edge_weight, one_to_one = 2.0, True

    open_submission = TracksSubmission
    _submission: TracksSubmission | None

    def __init__(self, results: str, truth: UnitTruth, rules: ScoringRules) -> None:
        super().__init__(results, truth, rules)
        self._classes = {number: name for name, number in self._protocol.classes or truth.facts["classes"]}
        self._numbers = {number: index for index, number in enumerate(self._classes)}

    def class_names(self) -> Sequence[str]:
        return list(self._classes.values())

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        predictions: Sequence[Rows] = [[] for _ in frames]
        if self._submission is not None:
            frames = self._submission.size_frames(unit.name, list(frames))
            predictions, _ = self._submission.masks(unit.name, frames, Problems())
        for index, (frame, rows) in enumerate(zip(frames, predictions, strict=True)):
            true_rows = [row for row in frame.rows if row[CATEGORY] in self._classes]
            ignored = [row for row in frame.rows if row[CATEGORY] == IGNORED]
            predicted = [row for row in rows if row[CATEGORY] in self._classes]
            truth, prediction = masks_of([frame], [true_rows]), masks_of([frame], [predicted])
            excused = self._flag_excused(unit, true_rows, predicted)
            if ignored and predicted:
                inside = share_of_masks(masks_of([frame], [ignored]), prediction).sum(axis=0)
                excused |= inside / np.maximum(prediction.area, 1) > _MOST_IGNORED
            maps = None
            if index in drawn:
                maps = np.stack(
                    [
                        paint_masks([row[MASK] for row in side], frame.size, drawn[index])
                        for side in (true_rows, predicted)
                    ]
                )
            yield SeenFrame(
                self._make_side(true_rows, truth, ""),
                self._make_side(predicted, prediction, "track "),
                share_of_masks(truth, prediction),
                excused,
                maps,
            )

    def _flag_excused(self, unit: Unit, true_rows: Rows, predicted: Rows) -> Array:
        """Return flags of unmatched predictions that BURST ignores, because the frame may contain their category."""
        if not self._protocol.burst:
            return np.zeros(len(predicted), bool)
        present = {row[CATEGORY] for row in true_rows}
        lacking = set(unit.facts["neg"]) | present
        return np.array([not true_rows or row[CATEGORY] not in lacking for row in predicted], bool)

    def _make_side(self, rows: Rows, masks: Masks, kind: str) -> Side:
        names = [f"{kind or self._classes[row[CATEGORY]]} {row[TRACK_ID]}".replace("  ", " ") for row in rows]
        classes = np.array([self._numbers[row[CATEGORY]] for row in rows], np.int64)
        return Side([row[TRACK_ID] for row in rows], names, masks.area, classes, np.ones(len(rows), bool))
