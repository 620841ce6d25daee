"""Pictures of referring images: a sample's target and the answered mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.families.referring.engine import count_pixels
from segjudge.evaluation_script.families.referring.submission import ReferringSubmission
from segjudge.evaluation_script.masks.stack import Size
from segjudge.families.base.pictures import SeenFrame, UnitPainter, paint_mask, side_of_one


class ReferringPainter(UnitPainter):
    """A painter of samples; ignored pixels have no colour."""

    open_submission = ReferringSubmission
    _submission: ReferringSubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            ((target, area, ignored),) = frame.rows
            answer, answered, shared = "", 0, 0
            if self._submission is not None:
                text, pixels, is_withdrawn = self._submission.answer(unit.name)
                if pixels and not is_withdrawn:
                    answer, (_, answered, shared) = text, count_pixels(frame, text, pixels)
            maps = None
            if index in drawn:
                maps = np.zeros((2, *drawn[index]), np.uint16)
                for image, text in zip(maps, (target if area else "", answer if answered else ""), strict=True):
                    if text:
                        paint_mask(image, text, frame.size, 1)
                    if text and ignored:
                        paint_mask(image, ignored, frame.size, 0)
            truth_side, predicted = side_of_one("target", area), side_of_one("answer", answered)
            overlap = np.full((len(truth_side.keys), len(predicted.keys)), float(shared))
            yield SeenFrame(truth_side, predicted, overlap, np.zeros(len(predicted.keys), bool), maps)
