"""The track of video semantic segmentation: mIoU from one confusion matrix, and the consistency of labels over time.

Consistency compares neither side with the other: in a window of n frames it is the share of the pixels whose
truth does not change where the prediction does not change either.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from ...files.archive import open_files, unreadable
from ...files.limits import ArchiveLimits
from ...files.problems import Flaw, HostError, Problems, SubmissionError
from ...masks import png
from ...masks.overlaps import SHIFT, LabelMap, overlaps_of, summed
from ...masks.stack import Array
from ..base import codings
from ..base.truth import TruthNames
from ..base.units import (
    HOST_LIMITS,
    PictureFiles,
    Shapes,
    TruthFrame,
    Unit,
    UnitAccumulator,
    UnitCounts,
    UnitSubmission,
    UnitTruth,
    png_frame,
    unit_engine,
)
from .protocols import SemanticProtocol

SEND = "Send one zip with a folder of PNGs for each video, whose pixels are numbers of classes"
#: Frames that did not change are counted up to here.
MOST_STEPS = 255


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read VSPW as published (`val.txt`, `data/VIDEO/mask/FRAME.png`), or a folder of PNGs for each video."""
    try:
        files = open_files(path, HOST_LIMITS)
        videos: Dict[str, List[str]] = {}
        for name in sorted(files.sizes):
            parts = name.split("/")
            if name.endswith(".png") and len(parts) > 1:
                videos.setdefault(parts[-3] if parts[-2] == "mask" and len(parts) > 2 else parts[-2], []).append(name)
        lists = [name for name in files.sizes if name.rpartition("/")[2] == f"{subset or 'val'}.txt"]
        lines = files.read(lists[0]).decode().splitlines() if lists else list(videos)
        own = TruthNames(videos).own
        chosen = [own(name) for line in lines for name in ([line] if own(line) in videos else line.split())]
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise unreadable(path, error, "cannot be read") from None
    unknown = [video for video in chosen if video not in videos]
    if unknown or not chosen:
        raise HostError(f"{path}: has no frames of {', '.join(unknown[:3]) or 'any video'}")

    def unit(video: str) -> Unit:
        members = videos[video]
        return Unit(video, len(members), lambda: [png_frame(files, one, [], png.read_labels) for one in members])

    return UnitTruth(SemanticProtocol.track, "vspw", {}, [unit(video) for video in chosen])


class SemanticSubmission(UnitSubmission):
    """The videos of a submission: `VIDEO/FRAME.png`, under any other folders."""

    noun = "video"

    def __init__(self, path: str, truth: UnitTruth, protocol: SemanticProtocol, limits: ArchiveLimits) -> None:
        super().__init__(path, truth, limits, SEND)
        self.protocol, self._pictures = protocol, PictureFiles(self.files)
        self._videos = set(map(self.truth_names.own, self._pictures.folders()))

    def names(self) -> AbstractSet[str]:
        return self._videos

    def read(self, video: str, frame: TruthFrame, truth: Array, problems: Problems) -> Optional[Array]:
        """Return the labels of a frame; None where there is a problem with it."""
        where = f"{video}, frame {frame.name}"
        try:
            where = self._pictures.find(f"{frame.name}.png", video)
            png.check_length(self.files.sizes[where], frame.size)
            labels = png.read_labels(self.files.read(where), frame.size)
            check_labels(labels, truth, self.protocol)
        except Flaw as flaw:
            problems.add(flaw.at(where))
            return None
        return labels


def check_labels(labels: Array, truth: Array, protocol: SemanticProtocol) -> None:
    """Raise a Flaw where labels that are no classes lie on pixels that are scored."""
    wrong = (labels >= protocol.classes) & (truth < protocol.classes)
    if labels.max() >= protocol.classes and wrong.any():
        found = f"holds the label {int(labels[wrong].max())} where the truth is not void"
        raise Flaw(found, f"Write labels from 0 to {protocol.classes - 1}")


class _Steps:
    """For how many frames each pixel has kept its label, up to a few hundred."""

    def __init__(self) -> None:
        self._before: Array = np.zeros((0, 0), np.uint8)
        self.kept = self._before

    def add(self, labels: Array) -> None:
        """Go on to the next frame."""
        if labels.shape != self._before.shape:
            self.kept = np.ones(labels.shape, np.uint8)
        else:
            self.kept -= (self.kept == MOST_STEPS).view(np.uint8)  # a tenth of the time of np.minimum
            self.kept *= (labels == self._before).view(np.uint8)
            self.kept += np.uint8(1)
        self._before = labels


def count(unit: Unit, submission: SemanticSubmission) -> UnitCounts:
    """Count a video."""
    problems, frames = Problems(), unit.load()

    def maps() -> Iterator[Tuple[Array, Array]]:
        for frame in frames:
            truth = frame.read()
            labels = truth.numbers
            if truth.labels is not None:
                labels = truth.labels.astype(np.min_scalar_type(int(truth.labels.max())))[labels]
            prediction = submission.read(unit.name, frame, labels, problems)
            if prediction is not None:
                yield labels, prediction

    tables = counted_maps(maps(), len(frames), submission.protocol)
    return UnitCounts(unit.name, {} if problems else tables, problems.first, problems.count)


def counted_maps(maps: Iterable[Tuple[Array, Array]], frames: int, protocol: SemanticProtocol) -> Dict[str, Array]:
    """Return the tables of a video of so many frames: labels of the truth, and of the prediction."""
    real, sent = _Steps(), _Steps()
    cells: List[Array] = [np.zeros((2, 0), np.int64)]
    windows: Dict[int, List[List[int]]] = {length: [] for length in protocol.windows}
    for place, (labels, prediction) in enumerate(maps):
        pairs = overlaps_of(LabelMap(labels), LabelMap(prediction))
        cells.append(
            np.stack(((pairs.truth << SHIFT) | pairs.prediction, pairs.pixels))[:, pairs.truth < protocol.classes]
        )
        real.add(labels)
        sent.add(prediction)
        if place == frames - 1 and protocol.without_last:
            break
        for length, found in windows.items():
            if place >= length - 1:
                same = real.kept >= length
                found.append([int(np.count_nonzero(one)) for one in (same & (sent.kept >= length), same)])
    tables = {f"VC{length}": np.array(found, np.int64).reshape(-1, 2) for length, found in windows.items()}
    return {"cells": np.stack(summed(*np.concatenate(cells, axis=1))), **tables}


def _confusion(accumulator: UnitAccumulator[SemanticProtocol]) -> Array:
    """Return how many pixels have which class in the truth (rows) and in the prediction (columns)."""
    keys, pixels = np.concatenate([counts.tables["cells"] for counts in accumulator.complete()], axis=1)
    classes = accumulator.protocol.classes
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (keys >> SHIFT, keys & ((1 << SHIFT) - 1)), pixels)
    return table


def values(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, Optional[float]]:
    """Return the benchmark's metrics of all videos."""
    table = _confusion(accumulator)
    hits, rows = np.diagonal(table), table.sum(1)
    seen = rows > 0
    ious = hits[seen] / (rows + table.sum(0) - hits)[seen]
    found: Dict[str, Optional[float]] = {"mIoU": float(ious.mean()) if seen.any() else None}
    for length in accumulator.protocol.windows:
        both, same = np.concatenate([counts.tables[f"VC{length}"] for counts in accumulator.complete()]).T
        found[f"VC{length}"] = float((both[same > 0] / same[same > 0]).mean()) if same.any() else None
    if not seen.any():
        return {**found, "Acc": None, "Acc_class": None, "fwIoU": None}
    found["Acc"] = float(hits.sum() / rows.sum())
    found["Acc_class"] = float((hits[seen] / rows[seen]).mean())
    found["fwIoU"] = float((rows[seen] / rows.sum() * ious).sum())
    return found


def tables(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each class that the truth or the prediction has."""
    table = _confusion(accumulator)
    union = table.sum(0) + table.sum(1) - np.diagonal(table)
    return {
        "categories": [
            {"id": label, "name": str(label), "IoU": float(table[label, label] / union[label])}
            for label in np.flatnonzero(union).tolist()
        ]
    }


def shapes(protocol: SemanticProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in a video."""
    return {"cells": (2, "n"), **{f"VC{length}": (str(length), 2) for length in protocol.windows}}


def oddities(accumulator: UnitAccumulator[SemanticProtocol]) -> List[str]:
    """Return what is odd about the labels of all videos."""
    return codings.of_pixels(_confusion(accumulator))


ENGINE = unit_engine(read_truth, SemanticSubmission, count, values, tables, shapes, oddities)
