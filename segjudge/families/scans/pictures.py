"""Pictures of scans: the classes or segments of their points, from above and as range images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.scans.files import ScanSubmission
from segjudge.evaluation_script.files.problems import Problems, quantity
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.pictures import SeenFrame, UnitPainter

from .causes import find_names, name_points, place_classes, see_classes, see_segments
from .points import PICTURE, ScanPoints, index_points, shade_points

_LAYOUT = "Above: the scan from above, forwards to the right. Below: its range image, forwards in the middle."


class ScanPainter(UnitPainter):
    """A painter of the points of scans."""

    dense = True
    outlined = False
    open_submission = ScanSubmission
    _submission: ScanSubmission | None

    def __init__(self, results: str, truth: UnitTruth, rules: ScoringRules, points: ScanPoints) -> None:
        super().__init__(results, truth, rules)
        self._points = points
        self.by_pixel = not self._protocol.panoptic
        self.segment = "segment" if self._protocol.panoptic else "region"
        #: The reasons why requested scans have no picture.
        self._absences: dict[str, str] = {}

    def class_names(self) -> Sequence[str]:
        names: list[str] = self._protocol.class_names
        return names

    def measure_picture(self, unit: Unit, frame: TruthFrame) -> Size:
        absence = self._points.explain_absence(unit.name, frame.size[1])
        if absence:
            self._absences[unit.name] = absence
        return (0, 0) if absence else PICTURE

    def make_picture(self, unit: Unit) -> bytes:
        points = self._points.read(unit.name)
        return shade_points(points, index_points(points, PICTURE))

    def note_picture(self) -> str:
        absences = list(self._absences.values())
        if not absences:
            return _LAYOUT
        return f"{_LAYOUT} {quantity(len(absences), 'scan')} without a picture: {absences[0]}."

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            pixels = frame.read()
            truth = pixels.labels_of(pixels.numbers.reshape(-1))
            prediction = None
            if self._submission is not None:
                prediction = self._submission.read(unit.name, frame.size[1], Problems())
            # Without a prediction, use a label that has no class.
            values = np.zeros(len(truth), np.uint32) if prediction is None else prediction
            places = index_points(self._points.read(unit.name), drawn[index]) if index in drawn else None
            yield self._see_scan(truth, values, places)

    def _see_scan(self, truth: Array, prediction: Array, places: Array | None) -> SeenFrame:
        protocol = self._protocol
        see, name = (see_segments, name_points) if protocol.panoptic else (see_classes, place_classes)
        true, predicted, points = backend().pair_values(LabelMap(truth.reshape(1, -1)).numbers, prediction)
        seen: SeenFrame = see(true, predicted, points, protocol)
        if places is None:
            return seen
        scored = place_classes(truth, protocol) < len(protocol.class_names)
        maps = []
        for side, values in ((seen.truth, truth), (seen.prediction, prediction)):
            indices = find_names(name(values, protocol), np.array(side.keys, np.int64)) + 1
            maps.append(np.append(0, np.where(scored, indices, 0)).astype(np.uint16)[places])
        return seen._replace(maps=np.stack(maps))
