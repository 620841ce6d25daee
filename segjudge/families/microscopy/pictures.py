"""Images of cells as pictures: those of the truth, and predicted ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.families.microscopy.files import MicroscopySubmission
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap, sum_by_key
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, sample_rows_and_columns


class MicroscopyPainter(UnitPainter):
    """Paints images, each with the cells of both sides."""

    open_submission = MicroscopySubmission
    _submission: MicroscopySubmission | None

    def look(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            pixels = frame.read()
            truth = pixels.image
            prediction = np.zeros_like(truth)
            if self._submission is not None:
                labels = self._submission.read(unit.name, frame.size, Problems())
                prediction = prediction if labels is None else labels
            pairs = backend().count_label_pairs(pixels, LabelMap(prediction))
            own, predicted = (
                _make_side(noun, *sum_by_key(labels, pairs.pixels))
                for noun, labels in (("cell", pairs.truth), ("prediction", pairs.prediction))
            )
            shared = np.zeros((len(own.keys), len(predicted.keys)))
            both = (pairs.truth > 0) & (pairs.prediction > 0)
            rows, columns = (
                np.searchsorted(side.keys, labels[both])
                for side, labels in ((own, pairs.truth), (predicted, pairs.prediction))
            )
            shared[rows, columns] = pairs.pixels[both]
            maps = None
            if index in drawn:
                chosen = sample_rows_and_columns(frame.size, drawn[index])
                maps = np.stack([_draw(truth, own, chosen), _draw(prediction, predicted, chosen)])
            yield SeenFrame(own, predicted, shared, np.zeros(len(predicted.keys), bool), maps)


def _make_side(noun: str, labels: Array, areas: Array) -> Side:
    cells = labels[labels > 0].tolist()
    names = [f"{noun} {label}" for label in cells]
    return Side(cells, names, areas[labels > 0], np.zeros(len(cells), np.int64), np.ones(len(cells), bool))


def _draw(labels: Array, side: Side, chosen: tuple[Array, Array]) -> Array:
    """Return for some rows and columns which cell is where, from 1."""
    values = labels[chosen[0][:, None], chosen[1]]
    image: Array = np.where(values > 0, np.searchsorted(side.keys, values) + 1, 0).astype(np.uint16)
    return image
