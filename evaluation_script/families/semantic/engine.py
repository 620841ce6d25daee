"""The scoring of label maps: means from one confusion matrix, and consistency over time in videos.

Consistency does not compare the two sides. In a window of n frames it is the share of pixels with a constant true label
whose predicted label is also constant.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_classes
from ...files.archive import open_files, truth_error
from ...files.limits import HOST_LIMITS, ArchiveLimits, Files
from ...files.problems import Flaw, HostError, Problems, SubmissionError, TruthFlaw, inflect, name_list, quantity
from ...masks import png
from ...masks.backend import backend
from ...masks.files import holds_equal_channels, note_channels
from ...masks.overlaps import SHIFT, LabelMap, sum_by_key
from ...masks.stack import Array, Size
from ...values.arithmetic import add, mean
from ..base.truth import DEFAULT_SPLIT, AnnotationFile, TruthNames
from ..base.unit_counts import join_cells, units_of_cells
from ..base.units import (
    PictureFiles,
    Shapes,
    TruthFrame,
    Unit,
    UnitAccumulator,
    UnitCounts,
    UnitSubmission,
    UnitTruth,
    open_dataset,
    png_frame,
    score_samples,
    unit_engine,
)
from .protocols import CITYSCAPES, IMAGE_LAYOUTS, IMAGES, SEMANTIC_PROTOCOLS, STUFF, VIDEOS, SemanticProtocol
from .records import StuffSubmission, read_stuff

_SEND = "Send one zip with a folder of PNGs for each video, whose pixels are class numbers"
_SEND_IMAGES = "Send one zip with a PNG for each image, named as its truth, whose pixels are class numbers"
#: The folders of each split, and the folders of labels next to folders of images.
_SPLIT_FOLDERS = {DEFAULT_SPLIT: ("val", "validation")}
_LABEL_FOLDERS = ("masks",)
#: The endings of Cityscapes' maps of numbered objects, and of plain labels.
_OBJECTS_ENDING, _LABELS_ENDING = "_instanceIds.png", "_labelIds.png"
#: The label of missing images; it is no class of any protocol that accepts them.
_NO_CLASS = 255
#: The maximum of counted unchanged frames.
_MOST_STEPS = 255
#: An object's value in the truth is this times its class's label, plus its number in the image.
_NUMBERS = 1000
#: The number of labels of an 8-bit map.
_LABELS = 256
#: The bits of the labels of numbered objects.
_OBJECT_BITS = 16


# ── truths ──────────────────────────────────────────────────────────────────


def read_images(path: str, subset: str = "", form: str = IMAGES) -> UnitTruth:
    """Read a folder with one PNG per image; if there are several folders, the split's."""
    ending = ".png" if form == IMAGES else _OBJECTS_ENDING
    files = open_dataset(path)
    names = [name for name in sorted(files.sizes) if name.endswith(ending)]
    for folders in (_SPLIT_FOLDERS.get(subset or DEFAULT_SPLIT, (subset,)), _LABEL_FOLDERS):
        names = [name for name in names if set(folders) & set(name.split("/")[:-1])] or names
    members = {_name_image(name, form): name for name in names}
    if not members:
        raise HostError(f"{path}: has no PNG" if form == IMAGES else f"{path}: has no ...{ending}")
    if len(members) < len(names):
        repeated = quantity(len(names) - len(members), "PNG")
        raise HostError(f"{path}: has {repeated} with names that other PNGs have too; name one folder")

    def unit(name: str, member: str) -> Unit:
        read = backend().read_labels if form == IMAGES else partial(_read_objects, files, member)
        return Unit(name, 1, lambda: [png_frame(files, member, [], read)])

    return UnitTruth(SemanticProtocol.family, form, {}, [unit(*item) for item in members.items()])


def _name_image(member: str, form: str) -> str:
    """Return the name of an image; in Cityscapes, its city and two numbers."""
    stem = member.rpartition("/")[2][: -len(".png")]
    return stem if form == IMAGES else "_".join(stem.split("_")[:3])


def _read_objects(files: Files, member: str, data: bytes, size: Size) -> Array:
    """Return labels with object numbers; raises a Flaw if the label map beside them differs."""
    objects = backend().read_labels(data, size)
    beside = member[: -len(_OBJECTS_ENDING)] + _LABELS_ENDING
    if beside in files.sizes:
        labels = backend().read_labels(files.read(beside), size)
        if (labels != drop_numbers(objects, SEMANTIC_PROTOCOLS["cityscapes"])).any():
            raise TruthFlaw(f"does not have the classes of {beside}", "Make both from the same polygons")
    return objects


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
        spell_as_truth = TruthNames(videos).respell
        chosen = [
            spell_as_truth(name)
            for line in lines
            for name in ([line] if spell_as_truth(line) in videos else line.split())
        ]
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None
    unknown = [video for video in chosen if video not in videos]
    if unknown:
        raise HostError(f"{path}: has no frames of {', '.join(unknown[:3])}")
    if not chosen:
        raise HostError(f"{path}: has no frames of any video; put the PNGs of each video into a folder of its own")

    def unit(video: str) -> Unit:
        members = videos[video]
        return Unit(
            video, len(members), lambda: [png_frame(files, member, [], backend().read_labels) for member in members]
        )

    return UnitTruth(SemanticProtocol.family, VIDEOS, {}, [unit(video) for video in chosen])


def _read_published(path: str, subset: str, layout: str) -> UnitTruth:
    form = SEMANTIC_PROTOCOLS[layout].form if layout in IMAGE_LAYOUTS else VIDEOS
    if form in (VIDEOS, STUFF):
        return (read_truth if form == VIDEOS else read_stuff)(path, subset)
    return read_images(path, subset, form)


# ── submissions ─────────────────────────────────────────────────────────────


class _SemanticSubmission(UnitSubmission):
    """The videos of a submission, `VIDEO/FRAME.png`, or its images, `IMAGE.png`, under any other folders."""

    protocol: SemanticProtocol

    @property
    def send(self) -> str:
        return _SEND if self.protocol.form == VIDEOS else _SEND_IMAGES

    def read_upload(self) -> None:
        truth, protocol = self.truth, self.protocol
        is_video = protocol.form == VIDEOS
        self.noun, self._pictures = "video" if is_video else "image", PictureFiles(self.files, lone_unit=self.lone_unit)
        self.used_files = self._pictures.members()
        names = self._pictures.folders() if is_video else self._pictures.stems()
        #: For each image, the files whose names begin with its name, if the protocol requires no more.
        self._stems: Dict[str, List[str]] = {}
        if protocol.form == CITYSCAPES:
            images = truth.elsewhere.union(truth.item_names)
            lengths = sorted({len(name) for name in images}, reverse=True)
            for stem in names:
                starts = [stem[:length] for length in lengths if stem[:length] in images]
                self._stems.setdefault((starts or [stem])[0], []).append(stem)
            names = self._stems.keys()
        self._names = set(map(self.truth_names.respell, names))
        self._missing: List[str] = []
        if protocol.takes_missing:
            self._missing = [unit.name for unit in truth.units if unit.name not in self._names]

    @property
    def notes(self) -> List[str]:
        notes = [*note_channels(self.files, self._pictures.members(), holds_equal_channels), *super().notes]
        if not self._missing:
            return notes
        lacking = quantity(len(self._missing), self.noun)
        were = f"{lacking} {inflect(len(self._missing), 'is', 'are')} missing: {name_list(self._missing, 5)}"
        return [f"{were}. All of their pixels count as missed", *notes]

    def names(self) -> AbstractSet[str]:
        return self._names.union(self._missing)

    def read(self, video: str, frame: TruthFrame, truth: Array, problems: Problems) -> Optional[Array]:
        """Return the labels of a frame; None if it has a problem."""
        is_video = self.protocol.form == VIDEOS
        subject = f"{video}, frame {frame.name}" if is_video else video
        if video in self._missing:
            return np.full(frame.size, _NO_CLASS, np.uint8)
        try:
            stems = self._stems.get(video, [frame.name if is_video else video])
            if len(stems) > 1:
                raise Flaw(f"there are {len(stems)} PNGs: {name_list(sorted(stems), 3)}", "Send one PNG for each image")
            subject = self._pictures.find(f"{stems[0]}.png", video if is_video else "")
            labels = self._read_labels(subject, frame.size)
            check_labels(labels, truth, self.protocol)
        except Flaw as flaw:
            problems.add(flaw.as_problem(subject))
            return None
        return labels

    def _read_labels(self, name: str, size: Size) -> Array:
        """Return labels; if classes have ids, colour pictures are rejected."""
        if not self.protocol.chosen:
            return backend().read_member(self.files, name, size)
        png.check_length(self.files.sizes[name], size)
        data = self.files.read(name)
        png.refuse_colours(data, f"Write the id of its class into each pixel: {_name_ids(self.protocol)}")
        return backend().read_labels(data, size)


def check_labels(labels: Array, truth: Array, protocol: SemanticProtocol) -> None:
    """Raise a Flaw if scored pixels have labels that are not classes."""
    if labels.max() < protocol.refused_from:
        return
    wrong = labels[(labels >= protocol.refused_from) & (class_indices(truth, protocol) < protocol.classes)]
    if wrong.size:
        problem = f"holds the label {int(wrong.max())} where the truth is not void"
        remedy = f"Write labels from {protocol.first_class} to {protocol.refused_from - 1}"
        raise Flaw(problem, f"{remedy}: {_name_ids(protocol)}" if protocol.chosen else remedy)


def _name_ids(protocol: SemanticProtocol) -> str:
    """Return a sentence that distinguishes ids from train ids."""
    names = [f"{label} is {protocol.name_class(label)}" for label in protocol.labels[:2]]
    return f"{' and '.join(names)}, not 0 and 1 as among train ids"


AnySubmission = Union[_SemanticSubmission, StuffSubmission]


def open_maps(path: str, truth: UnitTruth, protocol: SemanticProtocol, limits: ArchiveLimits) -> AnySubmission:
    """Open a submission in the form of its benchmark: maps or records."""
    return (StuffSubmission if protocol.form == STUFF else _SemanticSubmission)(path, truth, protocol, limits)


# ── counts ──────────────────────────────────────────────────────────────────


def describe_classes(protocol: SemanticProtocol, facts: Mapping[str, Any]) -> SemanticProtocol:
    """Return a protocol with the truth's names and groups of classes, if the truth defines them."""
    if not protocol.grouping or protocol.groups:
        return protocol
    entries = {label: (name, group) for label, name, group in facts.get("categories", []) if label in protocol.labels}
    members: Dict[str, List[int]] = {}
    for label, (_, group) in entries.items():
        members.setdefault(group, []).append(label)
    names = [entries.get(label, (f"class {label}", ""))[0].replace(", ", " ") for label in protocol.labels]
    groups = tuple((group, tuple(labels)) for group, labels in sorted(members.items()))
    return replace(protocol, names=", ".join(names), groups=groups)


def drop_numbers(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return the classes of labels that may carry object numbers."""
    may_have_numbers = bool(protocol.sizes) and labels.itemsize > 1
    return np.where(labels < _NUMBERS, labels, labels // _NUMBERS) if may_have_numbers else labels


@lru_cache(maxsize=8)
def _tabulate_classes(labels: Sequence[int], classes: int) -> Array:
    """Return the index of the class of each label, and last of all labels beyond: the number of classes."""
    table = np.full(labels[-1] + 2, classes)
    table[np.array(labels)] = np.arange(classes)
    return table


def class_indices(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return the index of each label's class; the number of classes for other labels."""
    table = _tabulate_classes(protocol.labels, protocol.classes)
    indices: Array = table[np.minimum(drop_numbers(labels, protocol), len(table) - 1)]
    return indices


def _read_labels(frame: TruthFrame) -> Array:
    """Return the label of each pixel of a true frame."""
    truth = frame.read()
    if truth.labels is None:
        return truth.numbers
    labels: Array = truth.labels.astype(np.min_scalar_type(int(truth.labels.max())))[truth.numbers]
    return labels


def count(unit: Unit, submission: AnySubmission) -> UnitCounts:
    """Count a video."""
    problems, frames = Problems(), unit.load()

    def maps() -> Iterator[Tuple[Array, Array]]:
        for frame in frames:
            labels = _read_labels(frame)
            prediction = submission.read(unit.name, frame, labels, problems)
            if prediction is not None:
                yield labels, prediction

    tables = count_maps(maps(), len(frames), submission.protocol)
    return UnitCounts(unit.name, {} if problems else tables, problems.first, problems.count)


def count_maps(maps: Iterable[Tuple[Array, Array]], frames: int, protocol: SemanticProtocol) -> Dict[str, Array]:
    """Return the tables of a video from the labels of truth and prediction."""
    truth_ages, prediction_ages = _LabelAges(), _LabelAges()
    cells: List[Array] = []
    windows: Dict[int, List[List[int]]] = {length: [] for length in protocol.windows}
    for index, (labels, prediction) in enumerate(maps):
        pairs = backend().count_label_pairs(LabelMap(labels), LabelMap(prediction))
        has_class = class_indices(pairs.truth, protocol) < protocol.classes
        keys = pairs.keys
        if protocol.unlabelled:
            keys = keys | np.where(pairs.prediction == 0, protocol.unlabelled, 0)
        cells.append(np.array((keys[has_class], pairs.pixels[has_class])))
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
    joined = cells[0] if len(cells) == 1 else np.concatenate([np.zeros((2, 0), np.int64), *cells], axis=1)
    return {"cells": np.array(sum_by_key(*joined)), **tables}


class _LabelAges:
    """The number of frames for which each pixel has kept its label, up to a limit."""

    def __init__(self) -> None:
        self._before: Array = np.zeros((0, 0), np.uint8)
        self.ages = self._before

    def add(self, labels: Array) -> None:
        """Advance to the next frame."""
        if labels.shape != self._before.shape:
            self.ages = np.ones(labels.shape, np.uint8)
        else:
            self.ages -= (self.ages == _MOST_STEPS).view(np.uint8)  # a tenth of the time of np.minimum
            self.ages *= (labels == self._before).view(np.uint8)
            self.ages += np.uint8(1)
        self._before = labels


# ── scores ──────────────────────────────────────────────────────────────────


def split_keys(keys: Array) -> Tuple[Array, Array]:
    """Return the true and predicted labels of cells."""
    return keys >> SHIFT, keys & ((1 << SHIFT) - 1)


def sum_labels(accumulator: UnitAccumulator[SemanticProtocol]) -> Array:
    """Return the pixels by true label (rows), without object numbers, and predicted one; of true classes alone."""
    protocol = accumulator.protocol
    shape = (protocol.refused_from,) * 2
    split = partial(_split_labels, protocol=protocol)
    return accumulator.add_up_cells(split, shape)


def _split_labels(keys: Array, protocol: SemanticProtocol) -> Tuple[Array, Array]:
    """Return the true labels of cells, without object numbers, and the predicted ones."""
    truth, prediction = split_keys(keys)
    return drop_numbers(truth, protocol), prediction


def sum_confusion(accumulator: UnitAccumulator[SemanticProtocol]) -> Array:
    """Return the confusion matrix of pixels: true classes (rows), predicted ones (columns), none last."""
    table, classes = sum_labels(accumulator), accumulator.protocol.classes
    labels = np.array(accumulator.protocol.labels)
    confusion = np.zeros((classes + 1,) * 2, np.int64)
    confusion[:-1, :-1] = inner = table[np.ix_(labels, labels)]
    confusion[:-1, -1] = table[labels].sum(axis=1) - inner.sum(axis=1)
    confusion[-1, :-1] = table.sum(axis=0)[labels] - inner.sum(axis=0)
    confusion[-1, -1] = table.sum() - confusion.sum()
    return confusion


def _group_table(table: Array, protocol: SemanticProtocol) -> Array:
    """Return the confusion matrix of groups; labels that are not classes belong to no group."""
    groups = np.append(_groups_of_labels(protocol)[np.array(protocol.labels)], len(protocol.groups))
    grouped = np.zeros((len(protocol.groups) + 1,) * 2, np.int64)
    np.add.at(grouped, (groups[:, None], groups), table)
    return grouped


def _groups_of_labels(protocol: SemanticProtocol) -> Array:
    groups = np.full(_LABELS, len(protocol.groups))
    for index, (_, labels) in enumerate(protocol.groups):
        groups[list(labels)] = index
    return groups


def _measure_classes(table: Array, classes: int) -> Dict[str, Optional[float]]:
    """Return the means over the first classes of a table; None if the truth has none of them."""
    rows, hits, columns = (numbers[:classes] for numbers in (table.sum(1), np.diagonal(table), table.sum(0)))
    present, union = rows > 0, rows + columns - hits
    names = ("mIoU", "IoU", "Acc", "Acc_class", "fwIoU", "Precision", "mIoU-official", "Score")
    if not present.any():
        return dict.fromkeys(names)
    ious = hits[present] / union[present]
    accuracy, over_all = float(hits.sum() / rows.sum()), add(ious) / classes
    means = (
        mean(ious),
        add(ious) / int(np.count_nonzero(union)),
        accuracy,
        mean(hits[present] / rows[present]),
        add(rows[present] / rows.sum() * ious),
        mean(hits[present] / np.maximum(columns[present], 1)),
        over_all,
        (over_all + accuracy) / 2,
    )
    return dict(zip(names, means))


def _weigh_objects(units: List[UnitCounts], protocol: SemanticProtocol) -> List[List[Optional[float]]]:
    """Return the iIoU of each class and group, where every object weighs as one of average size.

    A pixel of an object with any label of its group is right for the group, even if the label is not a class. Surplus
    pixels have no weight. A value is None without objects or without anything to average.
    """
    keys, pixels = join_cells(units)
    truth, prediction = split_keys(keys)
    groups, label = _groups_of_labels(protocol), np.minimum(drop_numbers(truth, protocol), _LABELS - 1)
    sizes = np.zeros(_LABELS)
    for sized_label, size in protocol.sizes:
        sizes[sized_label] = size
    _, objects = np.unique(units_of_cells(units) << _OBJECT_BITS | truth, return_inverse=True)
    weight = pixels * sizes[label] / np.bincount(objects, pixels)[objects] * (truth >= _NUMBERS)
    lists = []
    for kinds, scored in ((np.arange(_LABELS), protocol.labels), (groups, range(len(protocol.groups)))):
        true_kind, predicted = kinds[label], kinds[prediction]
        hits, total = (
            np.bincount(true_kind, weights, _LABELS) for weights in (weight * (true_kind == predicted), weight)
        )
        union = total + np.bincount(predicted, pixels * (true_kind != predicted), _LABELS)
        sized = set(kinds[sizes > 0].tolist())
        lists.append([float(hits[kind] / union[kind]) if kind in sized and union[kind] else None for kind in scored])
    return lists


def values(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, Optional[float]]:
    """Return the benchmark's metrics of all videos."""
    protocol, table = describe_classes(accumulator.protocol, accumulator.facts), sum_confusion(accumulator)
    metrics = _measure_classes(table, protocol.averaged or protocol.classes)
    if protocol.grouping:
        means = _measure_classes(_group_table(table, protocol), len(protocol.groups))
        metrics.update({f"{name}-{protocol.grouping}": value for name, value in means.items()})
    if protocol.sizes:
        for name, ious in zip(
            ("iIoU", f"iIoU-{protocol.grouping}"), _weigh_objects(accumulator.complete_counts(), protocol)
        ):
            scored_ious = [iou for iou in ious if iou is not None]
            metrics[name] = mean(scored_ious) if scored_ious else None
    for length in protocol.windows:
        in_both, in_truth = np.concatenate([counts.tables[f"VC{length}"] for counts in accumulator.complete_counts()]).T
        shares = in_both[in_truth > 0] / in_truth[in_truth > 0]
        metrics[f"VC{length}"] = mean(shares) if shares.size else None
    return {name: metrics[name] for name in protocol.metrics}


def tables(accumulator: UnitAccumulator[SemanticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per occurring class and group; None marks values outside the means."""
    protocol, table = describe_classes(accumulator.protocol, accumulator.facts), sum_confusion(accumulator)
    weighted = _weigh_objects(accumulator.complete_counts(), protocol) if protocol.sizes else [[], []]
    classes = [
        {"id": label, "name": protocol.name_class(label) if protocol.names else str(label)} for label in protocol.labels
    ]
    rows = {"categories": _list_rows(classes, table, weighted[0], protocol)}
    if protocol.grouping:
        groups = [{"name": name} for name, _ in protocol.groups]
        rows["groups"] = _list_rows(groups, _group_table(table, protocol), weighted[1], protocol)
    return rows


def _list_rows(
    entries: List[Dict[str, Any]], table: Array, weighted: List[Optional[float]], protocol: SemanticProtocol
) -> List[Dict[str, Any]]:
    pixels, hits = table.sum(1), np.diagonal(table)
    union = (table.sum(0) + pixels - hits)[:-1]
    rows = []
    for index in np.flatnonzero(union).tolist():
        is_averaged = pixels[index] or protocol.averages_predicted
        rows.append({**entries[index], "IoU": float(hits[index] / union[index]) if is_averaged else None})
        if weighted:
            rows[-1]["iIoU"] = weighted[index]
    return rows


def _shapes(protocol: SemanticProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of a video's tables."""
    return {"cells": (2, "n"), **{f"VC{length}": (str(length), 2) for length in protocol.windows}}


# ── the doctor ──────────────────────────────────────────────────────────────


def _sample(submission: AnySubmission, number: int) -> List[Sample]:
    """Return the maps of some frames of a video, or of an image; none if it is missing."""
    unit, protocol = submission.truth.units[number], submission.protocol
    frames = unit.load()
    chosen = choose_frames(len(frames))
    raw: List[Array] = []
    predictions: List[Array] = []
    for frame in [frames[index] for index in chosen]:
        labels = _read_labels(frame)
        prediction = submission.read(unit.name, frame, labels, Problems())
        if prediction is None:
            return []
        raw.append(labels)
        predictions.append(prediction)
    truth = [_drop_void(labels, protocol) for labels in raw]
    return [Sample(number, unit.name, truth, predictions, chosen, len(frames), origin=raw)]


def _drop_void(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return the labels of classes without object numbers, and -1 elsewhere."""
    if labels.dtype == np.uint8 and labels.size > _LABELS:
        return _drop_void(np.arange(_LABELS, dtype=np.uint8), protocol).astype(np.int16)[labels]
    plain = drop_numbers(labels, protocol).astype(np.int32)
    return np.where(class_indices(labels, protocol) < protocol.classes, plain, -1)


def _examine(submission: AnySubmission) -> Examination:
    """Return a submission as the doctor examines it."""
    protocol = submission.protocol
    plain = replace(protocol, windows=())

    def tabulate(sample: Sample) -> Dict[str, Array]:
        labels = [np.clip(prediction, 0, protocol.refused_from - 1) for prediction in sample.prediction]
        return count_maps(zip(sample.origin, labels), len(labels), plain)

    traits = {"pictures", "places", "filled", "units", "labels"}
    traits |= {"frames"} if protocol.form == VIDEOS else {"runs"} if protocol.form == STUFF else set()
    return Examination(
        submission.truth.item_names, partial(_sample, submission), frozenset(traits), submission.noun, "maps",
        fit=fit_classes, rescore=partial(score_samples, plain, submission.truth.facts, values, tabulate),
        metric=protocol.metrics[0], agreement="the mean IoU of classes", classes=protocol.labels,
    )  # fmt: skip


ENGINE = replace(
    unit_engine(
        read_truth,
        open_maps,
        count,
        values,
        tables,
        _shapes,
        facts={"categories": (int, str, str)},
        examine=_examine,
    ),
    read_published=lambda path, subset, layout: AnnotationFile(
        {subset or DEFAULT_SPLIT: _read_published(path, subset, layout)}
    ),
)
