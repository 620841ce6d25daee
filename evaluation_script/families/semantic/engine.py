"""How video semantic segmentation is scored: mIoU from one confusion matrix, and the consistency of labels over time.

Consistency compares neither side with the other: in a window of n frames it is the share of the pixels whose
truth does not change where the prediction does not change either.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import ArchiveLimits
from ...files.problems import Flaw, HostError, Problems, SubmissionError
from ...masks.backend import backend
from ...masks.overlaps import SHIFT, LabelMap, sum_by_key
from ...masks.stack import Array
from ..base.reports import judge_pixels
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
_MOST_STEPS = 255


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
        own = TruthNames(videos).respell
        chosen = [own(name) for line in lines for name in ([line] if own(line) in videos else line.split())]
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None
    unknown = [video for video in chosen if video not in videos]
    if unknown or not chosen:
        raise HostError(f"{path}: has no frames of {', '.join(unknown[:3]) or 'any video'}")

    def unit(video: str) -> Unit:
        members = videos[video]
        return Unit(
            video, len(members), lambda: [png_frame(files, member, [], backend().read_labels) for member in members]
        )

    return UnitTruth(SemanticProtocol.family, "vspw", {}, [unit(video) for video in chosen])


class SemanticSubmission(UnitSubmission):
    """The videos of a submission: `VIDEO/FRAME.png`, under any other folders."""

    noun = "video"

    def __init__(self, path: str, truth: UnitTruth, protocol: SemanticProtocol, limits: ArchiveLimits) -> None:
        super().__init__(path, truth, limits, SEND)
        self.protocol, self._pictures = protocol, PictureFiles(self.files)
        self._videos = set(map(self.truth_names.respell, self._pictures.folders()))

    def names(self) -> AbstractSet[str]:
        return self._videos

    def read(self, video: str, frame: TruthFrame, truth: Array, problems: Problems) -> Optional[Array]:
        """Return the labels of a frame; None where there is a problem with it."""
        subject = f"{video}, frame {frame.name}"
        try:
            subject = self._pictures.find(f"{frame.name}.png", video)
            labels = backend().read_member(self.files, subject, frame.size)
            check_labels(labels, truth, self.protocol)
        except Flaw as flaw:
            problems.add(flaw.at(subject))
            return None
        return labels


def check_labels(labels: Array, truth: Array, protocol: SemanticProtocol) -> None:
    """Raise a Flaw where labels that are no classes lie on pixels that are scored."""
    wrong = (labels >= protocol.classes) & (truth < protocol.classes)
    if labels.max() >= protocol.classes and wrong.any():
        problem = f"holds the label {int(labels[wrong].max())} where the truth is not void"
        raise Flaw(problem, f"Write labels from 0 to {protocol.classes - 1}")


class _LabelAges:
    """For how many frames each pixel has kept its label, up to a few hundred."""

    def __init__(self) -> None:
        self._before: Array = np.zeros((0, 0), np.uint8)
        self.ages = self._before

    def add(self, labels: Array) -> None:
        """Go on to the next frame."""
        if labels.shape != self._before.shape:
            self.ages = np.ones(labels.shape, np.uint8)
        else:
            self.ages -= (self.ages == _MOST_STEPS).view(np.uint8)  # a tenth of the time of np.minimum
            self.ages *= (labels == self._before).view(np.uint8)
            self.ages += np.uint8(1)
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

    tables = count_maps(maps(), len(frames), submission.protocol)
    return UnitCounts(unit.name, {} if problems else tables, problems.first, problems.count)


def count_maps(maps: Iterable[Tuple[Array, Array]], frames: int, protocol: SemanticProtocol) -> Dict[str, Array]:
    """Return the tables of a video of so many frames: labels of the truth, and of the prediction."""
    truth_ages, prediction_ages = _LabelAges(), _LabelAges()
    cells: List[Array] = [np.zeros((2, 0), np.int64)]
    windows: Dict[int, List[List[int]]] = {length: [] for length in protocol.windows}
    for index, (labels, prediction) in enumerate(maps):
        pairs = backend().count_label_pairs(LabelMap(labels), LabelMap(prediction))
        cells.append(np.stack((pairs.keys, pairs.pixels))[:, pairs.truth < protocol.classes])
        truth_ages.add(labels)
        prediction_ages.add(prediction)
        if index == frames - 1 and protocol.without_last:
            break
        for length, counts in windows.items():
            if index >= length - 1:
                unchanged = truth_ages.ages >= length
                in_both = unchanged & (prediction_ages.ages >= length)
                counts.append([int(np.count_nonzero(in_both)), int(np.count_nonzero(unchanged))])
    tables = {f"VC{length}": np.array(counts, np.int64).reshape(-1, 2) for length, counts in windows.items()}
    return {"cells": np.stack(sum_by_key(*np.concatenate(cells, axis=1))), **tables}


def _sum_confusion(accumulator: UnitAccumulator[SemanticProtocol]) -> Array:
    """Return how many pixels have which class in the truth (rows) and in the prediction (columns)."""
    keys, pixels = np.concatenate([counts.tables["cells"] for counts in accumulator.complete_counts()], axis=1)
    classes = accumulator.protocol.classes
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (keys >> SHIFT, keys & ((1 << SHIFT) - 1)), pixels)
    return table


def values(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, Optional[float]]:
    """Return the benchmark's metrics of all videos."""
    table = _sum_confusion(accumulator)
    hits, rows = np.diagonal(table), table.sum(1)
    present = rows > 0
    ious = hits[present] / (rows + table.sum(0) - hits)[present]
    metrics: Dict[str, Optional[float]] = {"mIoU": float(ious.mean()) if present.any() else None}
    for length in accumulator.protocol.windows:
        in_both, in_truth = np.concatenate([counts.tables[f"VC{length}"] for counts in accumulator.complete_counts()]).T
        shares = in_both[in_truth > 0] / in_truth[in_truth > 0]
        metrics[f"VC{length}"] = float(shares.mean()) if shares.size else None
    if not present.any():
        return {**metrics, "Acc": None, "Acc_class": None, "fwIoU": None}
    metrics["Acc"] = float(hits.sum() / rows.sum())
    metrics["Acc_class"] = float((hits[present] / rows[present]).mean())
    metrics["fwIoU"] = float((rows[present] / rows.sum() * ious).sum())
    return metrics


def tables(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each class that the truth or the prediction has; one that the truth lacks has no IoU."""
    table = _sum_confusion(accumulator)
    pixels = table.sum(1)
    union = table.sum(0) + pixels - np.diagonal(table)
    return {
        "categories": [
            {
                "id": label,
                "name": str(label),
                "IoU": float(table[label, label] / union[label]) if pixels[label] else None,
            }
            for label in np.flatnonzero(union).tolist()
        ]
    }


def shapes(protocol: SemanticProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in a video."""
    return {"cells": (2, "n"), **{f"VC{length}": (str(length), 2) for length in protocol.windows}}


def oddities(accumulator: UnitAccumulator[SemanticProtocol]) -> List[str]:
    """Return what is odd about the labels of all videos."""
    return judge_pixels(_sum_confusion(accumulator))


ENGINE = unit_engine(read_truth, SemanticSubmission, count, values, tables, shapes, oddities, facts={})
