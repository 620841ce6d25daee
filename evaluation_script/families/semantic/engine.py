"""How label maps are scored: means from one confusion matrix, and in videos the consistency of labels over time.

Consistency compares neither side with the other: in a window of n frames it is the share of the pixels whose
truth does not change where the prediction does not change either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import ArchiveLimits
from ...files.problems import Flaw, HostError, Problems, SubmissionError, name_list, quantity, verb
from ...masks.backend import backend
from ...masks.overlaps import SHIFT, LabelMap, sum_by_key
from ...masks.stack import Array
from ..base.reports import judge_pixels
from ..base.truth import DEFAULT_SPLIT, AnnotationFile, TruthNames
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
from .protocols import IMAGE_LAYOUTS, IMAGES, VIDEOS, SemanticProtocol

SEND = "Send one zip with a folder of PNGs for each video, whose pixels are numbers of classes"
_SEND_IMAGES = "Send one zip with a PNG for each image, named as its truth, whose pixels are numbers of classes"
#: Folders of the split that nothing else was said of; and those that hold labels beside pictures of them.
_SPLIT_FOLDERS = {DEFAULT_SPLIT: ("val", "validation")}
_LABEL_FOLDERS = ("masks",)
#: What stands for an image that was not sent: no protocol that takes such has it as a class.
_NO_CLASS = 255
#: Frames that did not change are counted up to here.
_MOST_STEPS = 255


def read_images(path: str, subset: str = "") -> UnitTruth:
    """Read a folder with a PNG for each image, of several the one of the split."""
    try:
        files = open_files(path, HOST_LIMITS)
        names = [name for name in sorted(files.sizes) if name.endswith(".png")]
        for folders in (_SPLIT_FOLDERS.get(subset or DEFAULT_SPLIT, (subset,)), _LABEL_FOLDERS):
            names = [name for name in names if set(folders) & set(name.split("/")[:-1])] or names
        members = {name.rpartition("/")[2][: -len(".png")]: name for name in names}
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None
    if not members:
        raise HostError(f"{path}: has no PNG")
    if len(members) < len(names):
        raise HostError(f"{path}: has {len(names) - len(members)} PNGs that are named as others; name one folder")

    def unit(name: str, member: str) -> Unit:
        return Unit(name, 1, lambda: [png_frame(files, member, [], backend().read_labels)])

    return UnitTruth(SemanticProtocol.family, IMAGES, {}, [unit(*item) for item in members.items()])


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

    return UnitTruth(SemanticProtocol.family, VIDEOS, {}, [unit(video) for video in chosen])


class SemanticSubmission(UnitSubmission):
    """The videos of a submission, `VIDEO/FRAME.png`, or its images, `IMAGE.png`, under any other folders."""

    def __init__(self, path: str, truth: UnitTruth, protocol: SemanticProtocol, limits: ArchiveLimits) -> None:
        is_video = protocol.form == VIDEOS
        super().__init__(path, truth, limits, SEND if is_video else _SEND_IMAGES)
        self.noun = "video" if is_video else "image"
        self.protocol, self._pictures = protocol, PictureFiles(self.files)
        names = self._pictures.folders() if is_video else self._pictures.stems()
        self._names = set(map(self.truth_names.respell, names))
        self._missing: List[str] = []
        if protocol.takes_missing:
            self._missing = [unit.name for unit in truth.units if unit.name not in self._names]

    @property
    def notes(self) -> List[str]:
        if not self._missing:
            return super().notes
        lacking = quantity(len(self._missing), self.noun)
        were = f"{lacking} {verb(len(self._missing), 'is', 'are')} missing: {name_list(self._missing, 5)}"
        return [f"{were}. All of their pixels count as missed", *super().notes]

    def names(self) -> AbstractSet[str]:
        return self._names.union(self._missing)

    def read(self, video: str, frame: TruthFrame, truth: Array, problems: Problems) -> Optional[Array]:
        """Return the labels of a frame; None where there is a problem with it."""
        is_video = self.protocol.form == VIDEOS
        subject = f"{video}, frame {frame.name}" if is_video else video
        if video in self._missing:
            return np.full(frame.size, _NO_CLASS, np.uint8)
        try:
            subject = self._pictures.find(f"{frame.name}.png", video if is_video else "")
            labels = backend().read_member(self.files, subject, frame.size)
            check_labels(labels, truth, self.protocol)
        except Flaw as flaw:
            problems.add(flaw.at(subject))
            return None
        return labels


def check_labels(labels: Array, truth: Array, protocol: SemanticProtocol) -> None:
    """Raise a Flaw where labels that are no classes lie on pixels that are scored."""
    if labels.max() < protocol.refused_from:
        return
    wrong = labels[(labels >= protocol.refused_from) & (class_indices(truth, protocol) < protocol.classes)]
    if wrong.size:
        problem = f"holds the label {int(wrong.max())} where the truth is not void"
        raise Flaw(problem, f"Write labels from {protocol.first_class} to {protocol.refused_from - 1}")


def class_indices(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return which class each label is, by its place among them; as many as there are for what is none."""
    table = np.full(protocol.labels.stop + 1, protocol.classes)
    table[protocol.first_class : -1] = np.arange(protocol.classes)
    indices: Array = table[np.minimum(labels, protocol.labels.stop)]
    return indices


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
        has_class = class_indices(pairs.truth, protocol) < protocol.classes
        cells.append(np.stack((pairs.keys, pairs.pixels))[:, has_class])
        if not windows:
            continue
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


def sum_confusion(units: Iterable[UnitCounts], protocol: SemanticProtocol) -> Array:
    """Return how many pixels have which class in the truth (rows) and in the prediction (columns); the last is none."""
    keys, pixels = np.concatenate([counts.tables["cells"] for counts in units], axis=1)
    truth, prediction = keys >> SHIFT, keys & ((1 << SHIFT) - 1)
    if (prediction >= protocol.refused_from).any():
        raise ValueError("has counted a label that is refused")
    sides = (class_indices(side, protocol) for side in (truth, prediction))
    table = np.zeros((protocol.classes + 1,) * 2, np.int64)
    np.add.at(table, tuple(sides), pixels)
    return table


def values(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, Optional[float]]:
    """Return the benchmark's metrics of all videos."""
    protocol = accumulator.protocol
    table = sum_confusion(accumulator.complete_counts(), protocol)
    classes = protocol.averaged or protocol.classes
    rows, hits, columns = (numbers[:classes] for numbers in (table.sum(1), np.diagonal(table), table.sum(0)))
    present = rows > 0
    ious = hits[present] / (rows + columns - hits)[present]
    metrics: Dict[str, Optional[float]] = {"mIoU": float(ious.mean()) if present.any() else None}
    for length in protocol.windows:
        in_both, in_truth = np.concatenate([counts.tables[f"VC{length}"] for counts in accumulator.complete_counts()]).T
        shares = in_both[in_truth > 0] / in_truth[in_truth > 0]
        metrics[f"VC{length}"] = float(shares.mean()) if shares.size else None
    if not present.any():
        return {**metrics, **dict.fromkeys(protocol.measures)}
    accuracy, over_all = float(hits.sum() / rows.sum()), float(ious.sum() / classes)
    measures = {
        "Acc": accuracy,
        "Acc_class": float((hits[present] / rows[present]).mean()),
        "fwIoU": float((rows[present] / rows.sum() * ious).sum()),
        "Precision": float((hits[present] / np.maximum(columns[present], 1)).mean()),
        "mIoU-official": over_all,
        "Score": (over_all + accuracy) / 2,
    }
    return {**metrics, **{name: measures[name] for name in protocol.measures}}


def tables(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each class that the truth or the prediction has; one that the truth lacks has no IoU."""
    protocol = accumulator.protocol
    table = sum_confusion(accumulator.complete_counts(), protocol)
    pixels, hits = table.sum(1), np.diagonal(table)
    union = (table.sum(0) + pixels - hits)[:-1]
    return {
        "categories": [
            {
                "id": protocol.labels[index],
                "name": protocol.name_class(protocol.labels[index]) if protocol.names else str(protocol.labels[index]),
                "IoU": float(hits[index] / union[index]) if pixels[index] else None,
            }
            for index in np.flatnonzero(union).tolist()
        ]
    }


def shapes(protocol: SemanticProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in a video."""
    return {"cells": (2, "n"), **{f"VC{length}": (str(length), 2) for length in protocol.windows}}


def oddities(accumulator: UnitAccumulator[SemanticProtocol]) -> List[str]:
    """Return what is odd about the labels of all videos."""
    return judge_pixels(sum_confusion(accumulator.complete_counts(), accumulator.protocol)[:-1, :-1])


ENGINE = replace(
    unit_engine(read_truth, SemanticSubmission, count, values, tables, shapes, oddities, facts={}),
    read_published=lambda path, subset, layout: AnnotationFile(
        {subset or DEFAULT_SPLIT: (read_images if layout in IMAGE_LAYOUTS else read_truth)(path, subset)}
    ),
)
