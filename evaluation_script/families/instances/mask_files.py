"""A submission of instances in Cityscapes' form: a text file per image, whose lines name mask files.

    CITY_SEQUENCE_FRAME….txt:  masks/car_0.png 26 0.95

The masks of an image are read and matched before the next image's.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.archive import UPLOAD, open_files
from ...files.limits import ArchiveLimits
from ...files.problems import Flaw, Problem, Problems, SubmissionError, inflect, name_list, printable, quantity
from ...masks import png
from ...masks.backend import backend
from ...masks.files import is_coloured, note_channels
from ...masks.run_lengths import Spans, join_texts, pack_texts, spans_of
from ...masks.stack import Array
from ..base.truth import TruthNames, compose
from .protocols import InstanceProtocol
from .submission import InstanceRecords, describe_records
from .truth import InstanceTruth

_EXAMPLE = "masks/car_0.png 26 0.95"
_SEND = f"Send one zip with a text file for each image; each line names a mask, its label and its score: {_EXAMPLE}"
_SEND_FEWER = "Send fewer masks, those with the highest scores"
_WRITE = f"Write the path of a mask, its label and its score: {_EXAMPLE}"
_SAVE_MASK = "Save each mask in grey; every value except 0 is the object"
#: Cityscapes' labels, and the labels of objects if the scored classes are numbered from 0.
_LABELS, _TRAIN_IDS = range(-1, 34), range(11, 19)
#: The parts of a file's name that identify its image: city, sequence and frame.
_NAME_PARTS = 3
_LONGEST_TEXT = 8 << 20
#: The maximum memory of one image's masks as run lengths, or of the numbers of their pixels inside annotations.
_MOST_OF_IMAGE = 256 << 20
#: The bytes of a number of pixels.
_BYTES_OF_COUNT = 8
#: The distance of the rows whose values are compared.
_ROW_STEP = 16
_LABEL = re.compile(r"-?[0-9]{1,9}")
_SCORE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def name_of(file_name: str) -> str:
    """Return the name of an image: the common prefix of its files' names."""
    stem = file_name.rpartition("/")[2].rpartition(".")[0] or file_name
    return "_".join(stem.split("_")[:_NAME_PARTS])


class ReadImage(NamedTuple):
    """The records of one image of a submission."""

    image: int
    #: None if there are problems.
    records: Optional[InstanceRecords]
    problems: List[Problem]
    problem_count: int
    #: The numbers of lines, of lines whose category the truth lacks, and of lines that repeat a mask.
    lines: int = 0
    unknown: int = 0
    repeated: int = 0
    #: The number of lines whose label may be an object's train id.
    trained: int = 0
    #: The number of lines that name an empty mask.
    empty: int = 0
    #: The number of masks with several values besides 0.
    shaded: int = 0
    #: The pixels of each record (rows) inside each annotation of its image, if the records have no masks.
    inside: Optional[Array] = None


class StreetSubmission:
    """The texts and masks of a submission."""

    def __init__(self, path: str, truth: InstanceTruth, protocol: InstanceProtocol, limits: ArchiveLimits) -> None:
        self.images, self._protocol, self._limits, self._truth = truth.images, protocol, limits, truth
        self._categories = {category.id: index for index, category in enumerate(truth.categories)}
        self._files = open_files(path, replace(limits, send=_SEND, smaller=_SEND_FEWER))
        ids = truth.images.ids.tolist()
        names = [name_of(truth.names[number]) if number in truth.names else str(number) for number in ids]
        own_names = TruthNames(names)
        known_names, lengths = set(names), sorted({len(name) for name in names}, reverse=True)
        #: Text files by the name of their image.
        self._texts: Dict[str, List[str]] = {}
        for text in sorted(self._files.sizes):
            if text.lower().endswith(".txt"):
                stem = own_names.respell(compose(text.rpartition("/")[2][: -len(".txt")]))
                starts = (own_names.respell(stem[:length]) for length in lengths)
                image = next((start for start in starts if start in known_names), stem)
                self._texts.setdefault(image, []).append(text)
        self._names = names
        self._members = {_fold_ending(name): name for name in self._files.sizes}
        surplus = sorted(self._texts.keys() - set(names))
        pngs = [name for name in self._files.sizes if name.lower().endswith(".png")]
        self.notes = note_channels(self._files, pngs, is_coloured)
        if surplus:
            were = inflect(
                len(surplus), "matches no image of the truth and was", "match no image of the truth and were"
            )
            self.notes.append(f"{quantity(len(surplus), 'text')} {were} ignored: {name_list(surplus)}")
        missing = [name for name in names if name not in self._texts]
        if missing:
            self.close()
            fault = f"has no text file for {quantity(len(missing), 'image', len(names))}: {name_list(missing, 5)}"
            if surplus:
                fault += f"; not in the truth: {name_list(surplus)}"
            remedy = f"{_SEND}. If nothing was detected, send an empty text file"
            raise SubmissionError.from_problem(Problem(UPLOAD, fault, remedy))

    def close(self) -> None:
        self._files.close()

    def read(self, image: int, annotations: Optional[Array] = None, *, masked: bool = True) -> ReadImage:
        """Read the text file of an image, given by its index, and optionally its masks, or their pixels inside these
        annotations.
        """
        problems = Problems()
        try:
            return self._read(image, problems, annotations, masked=masked)
        except Flaw as flaw:
            problems.add(flaw.as_problem(self._texts[self._names[image]][0]))
            return ReadImage(image, None, problems.first, problems.count)

    def _read(self, image: int, problems: Problems, annotations: Optional[Array], *, masked: bool) -> ReadImage:
        texts = self._texts[self._names[image]]
        if len(texts) > 1:
            fault = f"is one of {len(texts)} text files of the image: {name_list(texts, 3)}"
            raise Flaw(fault, "Send one text file for each image")
        size = tuple(self.images.sizes[image].tolist())
        rows: List[Tuple[str, int, float]] = []
        spans = None if annotations is None else spans_of(self._truth.masks.take(annotations).unpack())
        masks = _ImageMasks(spans)
        cells = 0 if annotations is None else len(annotations)
        lines = stored = trained = unknown = 0
        for number, line in self._list_lines(texts[0]):
            lines += 1
            try:
                member, label, score = self._read_line(line, texts[0])
            except Flaw as flaw:
                problems.add(flaw.as_problem(f"{texts[0]}, line {number}"))
                continue
            trained += label in _TRAIN_IDS
            if label not in self._categories:
                unknown += 1
                continue
            rows.append((member, label, score))
            stored += _BYTES_OF_COUNT * cells
            if member in masks.encoded or not masked:
                continue
            try:
                masks.add(member, self._read_mask(member, size))
            except Flaw as flaw:
                masks.encoded[member] = "", 0
                problems.add(flaw.as_problem(member))
            stored += len(masks.encoded[member][0])
            if stored > _MOST_OF_IMAGE:
                raise Flaw("names masks that take too much memory", "Save masks without noise, and fewer of them")
        if problems:
            return ReadImage(image, None, problems.first, problems.count, lines)
        chosen = {member: row for row in rows for member in row[:1]}
        repeated = len(rows) - len(chosen)
        if not masked:
            return ReadImage(image, None, [], 0, lines, unknown, repeated, trained)
        if self._protocol.street_quirks:
            rows = list(chosen.values())
        solid = [row for row in rows if masks.encoded[row[0]][1]]  # the script skips empty masks too
        members = [member for member, _, _ in solid]
        records = _make_records(
            [image] * len(solid),
            [self._categories[label] for _, label, _ in solid],
            [score for _, _, score in solid],
            [masks.encoded[member] for member in members],
            len(self.images.ids),
        )
        inside = [] if annotations is None else [masks.inside[member] for member in members]
        return ReadImage(
            image, records, [], 0, lines, unknown, repeated, trained, len(rows) - len(solid), masks.shaded,
            None if annotations is None else np.array(inside).reshape(len(solid), cells),
        )  # fmt: skip

    def _list_lines(self, text: str) -> Iterator[Tuple[int, str]]:
        """Yield the lines of a text file that are not blank, with their numbers."""
        if self._files.sizes[text] > _LONGEST_TEXT:
            raise Flaw(f"has {self._files.sizes[text]:,} bytes", f"Send at most {_LONGEST_TEXT:,} in a text file")
        try:
            content = self._files.read(text).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Flaw("is not UTF-8 text", _WRITE) from None
        if content.count("\n") > self._limits.records:
            raise Flaw(f"holds more than {self._limits.records:,} lines", "Send fewer, those with the highest scores")
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                yield number, line

    def _read_line(self, line: str, text: str) -> Tuple[str, int, float]:
        """Return the file, the label and the score of a line."""
        fields = line.strip().rsplit(None, 2)
        if len(fields) < _NAME_PARTS:
            raise Flaw(f"has {quantity(len(fields), 'word')}, not three", _WRITE)
        path, label, score = fields
        if not _LABEL.fullmatch(label) or not (int(label) in _LABELS or int(label) in self._categories):
            raise Flaw(
                f"has the label {printable(label)}, which is not a label of Cityscapes", "Write ids: 24 is a person"
            )
        if not _SCORE.fullmatch(score) or not np.isfinite(float(score)):
            raise Flaw(f"has the score {printable(score)}, which is not a finite number", "Write a number")
        path_in_upload = posixpath.normpath(posixpath.join(posixpath.dirname(text), path.replace("\\", "/")))
        member = self._members.get(_fold_ending(path_in_upload))
        if member is None:
            raise Flaw(f"names {printable(path)}, which was not sent", "Write paths relative to the text file")
        return member, int(label), float(score)

    def _read_mask(self, member: str, size: Tuple[int, int]) -> Array:
        """Return the values of a mask."""
        png.check_length(self._files.sizes[member], size)
        return backend().read_channel(self._files.read(member), size, _SAVE_MASK)


def _fold_ending(path: str) -> str:
    """Return a path in one Unicode form, with a lower-case extension."""
    stem, ending = posixpath.splitext(compose(path))
    return stem + ending.lower()


def _is_shaded(labels: Array) -> bool:
    """Return whether some rows of a mask hold several values besides 0."""
    rows = labels[::_ROW_STEP]
    return bool(((rows != 0) & (rows != rows.max(initial=0))).any())


class _ImageMasks:
    """The masks of an image by file: their run lengths, or only their pixels inside the annotations of these spans."""

    def __init__(self, spans: Optional[Spans]) -> None:
        self._spans = spans
        #: Run lengths, which are empty if there are spans, and pixels.
        self.encoded: Dict[str, Tuple[str, int]] = {}
        self.inside: Dict[str, Array] = {}
        self.shaded = 0

    def add(self, member: str, labels: Array) -> None:
        """Add a mask by the values of its file."""
        if self._spans is None:
            self.encoded[member] = backend().encode_mask(labels)
        else:
            self.inside[member], area = backend().count_inside(labels, self._spans)
            self.encoded[member] = "", area
        self.shaded += _is_shaded(labels)


def _make_records(
    images: List[int], categories: List[int], scores: List[float], masks: List[Tuple[str, int]], count: int
) -> InstanceRecords:
    pixels, none = np.array([area for _, area in masks], np.int64), np.zeros((len(masks), 0))
    return InstanceRecords(
        np.array(images, np.int64),
        np.array(categories, np.int64),
        np.array(scores, float),
        pixels,
        pixels,
        pack_texts([text for text, _ in masks]),
        np.zeros((len(masks), 4)),
        none,
        np.zeros(count, np.int64),
        [],
    )


def gather(read_images: Iterable[ReadImage], files: StreetSubmission, limits: ArchiveLimits) -> List[str]:
    """Return notes for the participant about the read images; raises SubmissionError with every problem."""
    problems = Problems()
    totals: Dict[str, int] = dict.fromkeys(("lines", "unknown", "repeated", "trained", "empty", "shaded"), 0)
    for read_image in sorted(read_images, key=lambda entry: entry.image):
        problems.extend(read_image.problems, read_image.problem_count)
        totals = {name: total + getattr(read_image, name) for name, total in totals.items()}
    if totals["lines"] > limits.records:
        fault = f"holds more than {limits.records:,} lines"
        raise SubmissionError.from_problem(Problem(UPLOAD, fault, "Send fewer, those with the highest scores"))
    problems.raise_if_any()
    notes = [*files.notes, *describe_records(totals["unknown"], totals["lines"])]
    if totals["lines"] and totals["trained"] == totals["lines"]:
        notes.append("all labels are train ids, from 11 to 18, instead of ids: a person is 24, not 11")
    if totals["empty"]:
        named = f"{quantity(totals['empty'], 'line', totals['lines'])} {inflect(totals['empty'], 'names', 'name')}"
        notes.append(f"{named} an empty mask and {inflect(totals['empty'], 'was', 'were')} ignored")
    if totals["shaded"]:
        count = totals["shaded"]
        shaded = f"{quantity(count, 'mask')} {inflect(count, 'holds', 'hold')} several values besides 0"
        notes.append(f"{shaded}, all of which count: save masks as PNG with 0 and 255, resized by nearest neighbour")
    if totals["repeated"]:
        count = totals["repeated"]
        notes.append(f"{quantity(count, 'line')} {inflect(count, 'names', 'name')} a mask that an earlier line names")
    return notes


def read_mask_files(
    path: str, truth: InstanceTruth, protocol: InstanceProtocol, limits: ArchiveLimits
) -> InstanceRecords:
    """Read and check a submission as one; raises SubmissionError with every problem."""
    files = StreetSubmission(path, truth, protocol, limits)
    try:
        read_images = [files.read(image) for image in range(len(truth.images.ids))]
    finally:
        files.close()
    notes = gather(read_images, files, limits)
    tables = [read_image.records for read_image in read_images if read_image.records is not None]
    columns: Dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in ("image", "category", "score", "area", "pixels", "boxes", "points")
    }
    masks = join_texts([table.masks for table in tables])
    return InstanceRecords(masks=masks, dropped=np.zeros(len(truth.images.ids), np.int64), warnings=notes, **columns)
