"""Pictures of grey maps: an image's object, and the pixels above the middle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.families.saliency.counting import MIDDLE
from segjudge.evaluation_script.families.saliency.engine import read_object
from segjudge.evaluation_script.families.saliency.files import SaliencySubmission
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.stack import Size
from segjudge.families.base.pictures import SeenFrame, UnitPainter, sample_rows_and_columns, side_of_one


class SaliencyPainter(UnitPainter):
    """A painter of images with at most one object per side."""

    segment = "object"
    open_submission = SaliencySubmission
    _submission: SaliencySubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            truth, prediction = read_object(frame.read()), np.zeros(frame.size, bool)
            if self._submission is not None:
                values = self._submission.read(unit.name, frame.size, Problems())
                prediction = prediction if values is None else values > MIDDLE
            maps = None
            if index in drawn:
                rows, columns = sample_rows_and_columns(frame.size, drawn[index])
                maps = np.stack([side[rows[:, None], columns] for side in (truth, prediction)]).astype(np.uint16)
            truth_side, predicted = (
                side_of_one(name, int(np.count_nonzero(side)))
                for name, side in (("object", truth), ("map", prediction))
            )
            shared = np.full((len(truth_side.keys), len(predicted.keys)), float(np.count_nonzero(truth & prediction)))
            yield SeenFrame(truth_side, predicted, shared, np.zeros(len(predicted.keys), bool), maps)
