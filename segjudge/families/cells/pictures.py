"""Pictures of cell sequences: true markers and predicted cells, volumes from above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.cells.engine import FrameMatches, match_cells
from segjudge.evaluation_script.families.cells.files import CellSubmission
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Size
from segjudge.families.base.pictures import SeenFrame, UnitPainter, index_labels, share_of_labels, side_of_labels
from segjudge.families.base.segments import MERGED, MISSED, RIGHT, SURPLUS, JudgedSegments

_Truth = TypeVar("_Truth", bound=SplitTruth)


def show_markers(truth: _Truth) -> _Truth:
    """Return a truth with only the tracked frames, at the size of one slice."""
    if not isinstance(truth, UnitTruth):
        return truth

    def show(unit: Unit) -> Unit:
        def load() -> list[TruthFrame]:
            frames = unit.load()[: unit.cost]
            return [replace(frame, size=(frame.size[0] // unit.facts["slices"], frame.size[1])) for frame in frames]

        return replace(unit, load=load)

    return replace(truth, units=[show(unit) for unit in truth.units])


class CellPainter(UnitPainter):
    """A painter of cells, each with the label of its track."""

    follows = True
    segment = "cell"

    open_submission = CellSubmission
    _submission: CellSubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        members = self._submission.open_sequence(unit, Problems())[1] if self._submission else []
        for index, frame in enumerate(frames):
            pixels = frame.read()
            truth = pixels.image
            prediction = np.zeros(truth.shape, np.uint16)
            if self._submission is not None:
                prediction = self._submission.read(members[index], frame.size, unit.facts["slices"])
            pairs = backend().count_label_pairs(LabelMap(truth), LabelMap(prediction))
            matches = match_cells(pairs)
            maps = None
            if index in drawn:
                # A volume is seen from above: the highest labels.
                sides = ((labels.reshape(-1, *frame.size).max(axis=0) for labels in (truth, prediction)), matches[:2])
                maps = np.stack([
                    index_labels(LabelMap(labels), cells.tolist(), drawn[index])
                    for labels, cells in zip(*sides, strict=True)
                ])  # fmt: skip
            yield SeenFrame(
                side_of_labels("cell", pairs.truth, pairs.pixels),
                side_of_labels("track", pairs.prediction, pairs.pixels),
                share_of_labels(matches.truth.tolist(), matches.prediction.tolist(), pairs),
                np.zeros(len(matches.prediction), bool),
                maps,
                _judge(matches),
            )


def _judge(matches: FrameMatches) -> JudgedSegments:
    """Classify cells as the score does: a prediction matches a cell if it covers more than half."""
    matched = np.flatnonzero(matches.partner)
    columns = np.searchsorted(matches.prediction, matches.partner[matched])
    match_counts = np.bincount(columns, minlength=len(matches.prediction))
    truth, taken_for = np.full(len(matches.truth), MISSED), np.full(len(matches.truth), -1)
    truth[matched], taken_for[matched] = np.where(match_counts[columns] > 1, MERGED, RIGHT), columns
    partner = np.full(len(matches.prediction), -1)
    partner[columns[::-1]] = matched[::-1]
    prediction = np.select([match_counts > 1, match_counts == 1], [MERGED, RIGHT], SURPLUS)
    return JudgedSegments(truth, prediction, partner, taken_for)
