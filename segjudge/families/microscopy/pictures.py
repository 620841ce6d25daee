"""Pictures of cell images: true and predicted cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.families.microscopy.files import MicroscopySubmission
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Size
from segjudge.families.base.pictures import SeenFrame, UnitPainter, index_labels, share_of_labels, side_of_labels


class MicroscopyPainter(UnitPainter):
    """A painter of images with the cells of both sides."""

    segment, threshold = "cell", "IoU"
    edge_weight, one_to_one = 0.001, True  # AP50 counts matches regardless of exactness
    open_submission = MicroscopySubmission
    _submission: MicroscopySubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            pixels = frame.read()
            submission = self._submission
            labels = submission.read(unit.name, frame.size, Problems()) if submission else None
            prediction = LabelMap(np.zeros(frame.size, np.uint16) if labels is None else labels)
            pairs = backend().count_label_pairs(pixels, prediction)
            truth_side = side_of_labels("cell", pairs.truth, pairs.pixels)
            predicted = side_of_labels("prediction", pairs.prediction, pairs.pixels)
            shared, maps = share_of_labels(truth_side.keys, predicted.keys, pairs), None
            if index in drawn:
                sides = ((pixels, truth_side), (prediction, predicted))
                maps = np.stack([index_labels(labels, side.keys, drawn[index]) for labels, side in sides])
            yield SeenFrame(truth_side, predicted, shared, np.zeros(len(predicted.keys), bool), maps)
