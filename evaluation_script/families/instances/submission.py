"""A submission of instance masks: a JSON list of records, read in parts and checked one by one.

A file of 86 MB would take 400 MB as Python objects; part by part it takes a
few, and what stays are arrays and the masks' own text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from ...files.archive import JSON_NAME, UPLOAD, open_files
from ...files.limits import ArchiveLimits
from ...files.problems import Flaw, Problem, Problems, SubmissionError, counted, listed, printable, verb
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.stack import Array
from ...masks.texts import MaskTexts, joined_texts, of_texts
from ...runner.parallel import results_of_processes
from ...runner.tuning import without_collector
from .columns import UNUSUAL, KnownImages, RecordColumns, columns_of, columns_of_plain
from .flaws import LARGEST_ID, check_record
from .json_records import (
    EXAMPLE,
    SEND_FEWER,
    SEND_RECORDS,
    VIDEO_EXAMPLE,
    JsonPart,
    PlainRecords,
    json_parts,
    loaded,
    raw_json_parts,
    read,
)
from .protocols import InstanceProtocol

#: So many bad records are enough: what follows is not looked at.
MOST_PROBLEMS = 1000


@dataclass
class InstanceRecords:
    """The records of a submission, in the order of the file."""

    image: Array
    #: Index of the category, -1 for one that the truth does not have.
    category: Array
    score: Array
    #: In videos the mean of the frames that show it.
    area: Array
    pixels: Array
    masks: MaskTexts
    boxes: Array
    warnings: List[str]


def read_records(
    path: str,
    images: KnownImages,
    protocol: InstanceProtocol,
    limits: ArchiveLimits,
    *,
    jobs: int = 1,
    taken: Optional[Array] = None,
) -> InstanceRecords:
    """Read and check a submission; raises SubmissionError with every problem.

    With `taken`, rising indices of images, all is checked and only what is of these images returned.
    """
    send = SEND_RECORDS.replace(EXAMPLE, VIDEO_EXAMPLE) if protocol.tubes else SEND_RECORDS
    files = open_files(path, replace(limits, send=send, smaller=SEND_FEWER))
    try:
        names = [name for name in files.sizes if name.lower().endswith(".json")]
        if len(names) != 1:
            content = f"no JSON file, but {listed(list(files.sizes))}" if files.sizes else "no files"
            found = f"holds {len(names)} JSON files" if names else f"holds {content}"
            raise SubmissionError.of(Problem(UPLOAD, found, send))
        where = UPLOAD if names[0] == JSON_NAME else names[0]
        try:
            checker = _Checker(images, protocol, taken)
            return _joined(_checked_parts(lambda: files.parts(names[0]), checker, jobs), protocol, limits)
        except Flaw as flaw:
            remedy = flaw.remedy.replace(EXAMPLE, VIDEO_EXAMPLE) if protocol.tubes else flaw.remedy
            raise SubmissionError.of(Problem(where, flaw.found, remedy)) from None
    finally:
        files.close()


def checked_records(records: List[Any], images: KnownImages, protocol: InstanceProtocol) -> InstanceRecords:
    """Check records that were parsed; raises SubmissionError with every problem."""
    long_enough = 1 << 40  # whatever it costs to draw their polygons
    part = _Checker(images, protocol).checked(JsonPart(records, long_enough))
    return _joined(iter([part]), protocol, ArchiveLimits())


@dataclass
class _CheckedPart:
    """Some of the records, checked."""

    count: int
    #: In characters.
    length: int
    #: How many have a bbox beside their mask, and how many a category that the truth lacks.
    boxed: int = 0
    unknown: int = 0
    #: What drawing their polygons cost.
    drawn: int = 0
    #: Index among these records, image, what was found, what to do.
    problems: List[Tuple[int, object, str, str]] = field(default_factory=list)
    #: Image, category, score, area, pixels and box of each.
    columns: List[Tuple[Array, ...]] = field(default_factory=list)
    masks: List[MaskTexts] = field(default_factory=list)


def _checked_parts(source: Callable[[], Iterator[bytes]], checker: _Checker, jobs: int) -> Iterator[_CheckedPart]:
    """Yield all records, some at a time; checked by several processes where borders of records are what they seem."""
    raw = raw_json_parts(source()) if jobs > 1 else []
    if raw:

        def checked(number: int) -> Tuple[int, Optional[_CheckedPart]]:
            try:
                text = raw[number].decode("utf-8")
                return number, checker.checked(JsonPart(read(text), len(text)))
            except (json.JSONDecodeError, UnicodeDecodeError):
                return number, None

        found = dict(results_of_processes(checked, list(map(len, raw)), jobs, lambda _: None))
        results = [part for _, part in sorted(found.items()) if part is not None]
        if len(results) == len(raw):
            yield from results
            return
    for json_part in json_parts(source()):
        yield checker.checked(json_part)


def _joined(parts: Iterator[_CheckedPart], protocol: InstanceProtocol, limits: ArchiveLimits) -> InstanceRecords:
    """Return all parts as one table, or raise every problem."""
    problems = Problems()
    kept: List[_CheckedPart] = []
    kind = "video" if protocol.tubes else "image"
    count = length = boxed = unknown = drawn = 0
    with without_collector():  # half the time of parsing
        for part in parts:
            for index, image, found, remedy in part.problems:
                problems.add(Problem(f"record {count + index} ({kind} {printable(image)})", found, remedy))
            if problems.count >= MOST_PROBLEMS:
                problems.stop()
                break
            count, length = count + part.count, length + part.length
            boxed, unknown, drawn = boxed + part.boxed, unknown + part.unknown, drawn + part.drawn
            if count > limits.records:
                raise Flaw(f"holds more than {limits.records:,} records", "Send fewer, those with the highest scores")
            _check_drawn(drawn, length)
            if not problems:
                kept.append(part)
    problems.raise_if_any()
    none = np.zeros(0, np.int64)
    nothing = (none, none, np.zeros(0), none, none, np.zeros((0, 4)))
    rows = [nothing, *(columns for part in kept for columns in part.columns)]
    image, category, score, area, pixels, boxes = map(np.concatenate, zip(*rows))
    warnings = notes_of(unknown, count, 0 if protocol.boxes else boxed)
    masks = joined_texts([texts for part in kept for texts in part.masks])
    return InstanceRecords(image, category, score, area, pixels, masks, boxes, warnings)


def _check_drawn(cost: int, length: int) -> None:
    """Refuse polygons that would take hours to draw."""
    if cost > polygons.allowed(length):
        found = f"holds polygons whose outlines are {cost:,} pixels long, in {length:,} characters"
        raise Flaw(found, "Write masks as run lengths")


def notes_of(unknown: int, count: int, boxed: int = 0) -> List[str]:
    """Return what a participant should know of so many records."""
    lines = []
    if unknown:
        have, were = verb(unknown, "has", "have"), verb(unknown, "was", "were")
        records = counted(unknown, "record", count)
        lines.append(f"{records} {have} a category that the truth lacks and {were} ignored")
    if boxed:
        lines.append(
            f"{counted(boxed, 'record')} {verb(boxed, 'has', 'have')} a bbox beside the mask, which was ignored; the "
            "official script would take areas from it"
        )
    if not count:
        lines.append("the submission holds no records")
    return lines


class _Checker:
    """Checks records, and keeps those of the images that are taken: rising indices, or all."""

    def __init__(self, images: KnownImages, protocol: InstanceProtocol, taken: Optional[Array] = None) -> None:
        self._images, self._protocol, self._taken = images, protocol, taken
        self._part = _CheckedPart(0, 0)

    def checked(self, json_part: JsonPart) -> _CheckedPart:
        """Return these records as columns, and what is wrong with any of them."""
        records = json_part.records
        if isinstance(records, PlainRecords):
            self._part = _CheckedPart(len(records.table.rows), json_part.length)
            columns = None if self._protocol.boxes else columns_of_plain(records, self._images)
            if columns is not None:
                self._keep(columns, 0)
                return self._part
            records = loaded(records.text)
        self._part = _CheckedPart(len(records), json_part.length)
        if records:
            self._check(records, 0)
        return self._part

    def _check(self, records: List[Any], first: int) -> None:
        """Check all at once, the usual case; where something is unusual, by halves down to the record it is in."""
        if len(self._part.problems) >= MOST_PROBLEMS:
            return
        try:
            columns = columns_of(records, self._images, boxes=self._protocol.boxes)
        except UNUSUAL:
            if len(records) == 1:
                self._explain(records[0], first)
                return
            half = len(records) // 2
            self._check(records[:half], first)
            self._check(records[half:], first + half)
            return
        self._keep(columns, first)
        self._part.boxed += sum("bbox" in record for record in records)

    def _explain(self, record: Any, index: int) -> None:
        """Note what is unusual about a record."""
        image = record.get(self._images.key, "?") if isinstance(record, dict) else "?"
        size, frames = None, None if self._images.frames is None else 0
        if type(image) is int and -LARGEST_ID - 1 <= image <= LARGEST_ID:
            image_index = int(self._images.image_indices([image])[0])
            size = tuple(self._images.sizes[image_index].tolist()) if image_index >= 0 else None
            if size and self._images.frames is not None:
                frames = int(self._images.frames[image_index])
                size = (size[0], size[1] // frames)
        found, remedy = "cannot be read", f"Write {EXAMPLE}"
        try:
            check_record(record, size, boxes=self._protocol.boxes, frames=frames)
        except Flaw as flaw:
            found, remedy = flaw.found, flaw.remedy
        if self._protocol.tubes:
            remedy = remedy.replace(EXAMPLE, VIDEO_EXAMPLE)
        self._part.problems.append((index, printable(image), found, remedy))

    def _keep(self, columns: RecordColumns, first: int) -> None:
        """Check the masks themselves, and keep what is good."""
        if self._protocol.boxes:
            pixels: Array = columns.boxes[:, 2] * columns.boxes[:, 3]
        else:
            self._draw(columns)
            checked = columns.checked or rle.check_many(columns.masks, self._images.pixels(columns.image))
            pixels = checked.area
            for index in np.flatnonzero(checked.fault).tolist():
                image = int(self._images.ids[columns.image[index]])
                found = rle.FAULTS[int(checked.fault[index])]
                self._part.problems.append((first + index, image, found, rle.WRITE_AGAIN))
        self._part.unknown += int((columns.category < 0).sum())
        if self._part.problems:
            return
        area = pixels if columns.mean_area is None else columns.mean_area
        masks = columns.texts or of_texts(columns.masks)
        table: Tuple[Array, ...] = (columns.image, columns.category, columns.score, area, pixels, columns.boxes)
        if self._taken is not None:
            kept = np.flatnonzero(np.isin(columns.image, self._taken))
            table = tuple(column[kept] for column in table)
            masks = masks.take(kept).compact()
        self._part.columns.append(table)
        self._part.masks.append(masks)

    def _draw(self, columns: RecordColumns) -> None:
        """Replace polygons by run lengths."""
        if not columns.polygons:
            return
        indices = list(columns.polygons)
        sizes = self._images.sizes[columns.image[indices]]
        outlines = polygons.outlines(list(columns.polygons.values()), sizes.max(axis=1))
        self._part.drawn += outlines.cost
        _check_drawn(self._part.drawn, self._part.length)
        for index, rings, (height, width) in zip(indices, outlines.rings, sizes.tolist()):
            columns.masks[index] = polygons.mask_of(rings, height, width)
