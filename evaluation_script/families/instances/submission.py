"""A submission of instances: a JSON list of records, read in parts that fit into memory and checked one by one.

As Python objects, a file of 86 MB would take 400 MB. In parts it takes a few MB, and only arrays and the text of the
masks remain.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ...files.archive import JSON_NAME, UPLOAD, open_files
from ...files.limits import CHUNK_BYTES, ArchiveLimits, Files
from ...files.problems import Flaw, Problem, Problems, SubmissionError, inflect, name_list, printable, quantity
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.detections import BOX, FRAMES, MASK, NO_BOX, POINTS, WHOLE_BOX, RecordTable, Rings
from ...masks.run_lengths import MaskTexts, join_texts
from ...masks.stack import Array
from ...runner.tuning import release_memory, without_collector
from ..base.family import ScoringRules
from .json_parts import SEND_FEWER, JsonPart, cut_json
from .protocols import PER_IMAGE, InstanceProtocol
from .records import (
    BOXES_EXAMPLE,
    EXAMPLE,
    LARGEST_ID,
    NO_RECORDS,
    POINTS_EXAMPLE,
    UNUSUAL,
    VIDEO_EXAMPLE,
    KnownImages,
    RecordColumns,
    Records,
    check_record,
    rank_in_group,
    read_columns,
)

#: The number of bad records after which reading ends.
_MOST_PROBLEMS = 1000
_SEND_RECORDS = f"Send one JSON file, plain, gzipped or zipped, with a list of records: {EXAMPLE}"
#: The part of a larger submission in memory at a time, since the whole would exceed a worker's memory.
_BYTES_OF_PASS = 200 << 20
#: The length of the masks' texts from which they are joined one by one, and the number of records from which the memory
#: of their parts is returned.
_MUCH_TEXT, _MANY_RECORDS = 96 << 20, 600_000
#: The number of records beyond the cap that are kept before they are dropped.
_MOST_BEYOND = 1 << 16
#: The maximum number of groups of records that are counted one by one.
_MOST_GROUPS = 1 << 22
#: The memory of a record without a mask; a keypoint adds 16.
_BYTES_OF_RECORD = 88
#: A length above that of all records, for records whose polygons may cost anything to draw.
_LONG_ENOUGH = 1 << 40


@dataclass(frozen=True)
class InstanceRecords:
    """The records of a submission, in the order of the file."""

    image: Array
    #: Index of the category; -1 if the truth lacks it.
    category: Array
    score: Array
    #: The area; in videos the mean over non-empty frames.
    area: Array
    pixels: Array
    masks: MaskTexts
    boxes: Array
    #: The x and y of keypoints, if the protocol compares them.
    points: Array
    #: The number of each image's records beyond the cap.
    dropped: Array
    warnings: List[str]

    def take(self, indices: Array) -> InstanceRecords:
        """Return some of the records as copies, independent of the rest."""
        columns = self.image, self.category, self.score, self.area, self.pixels, self.boxes, self.points
        image, category, score, area, pixels, boxes, points = (column[indices] for column in columns)
        masks = self.masks.take(indices).compact()
        return InstanceRecords(image, category, score, area, pixels, masks, boxes, points, self.dropped, [])


def read_records(path: str, images: KnownImages, protocol: InstanceProtocol, limits: ArchiveLimits) -> InstanceRecords:
    """Read and check a submission; raises SubmissionError with every problem."""
    return _read(path, _Checker(images, protocol), limits)


def read_within_cap(
    path: str,
    images: KnownImages,
    protocol: InstanceProtocol,
    rules: ScoringRules,
    only: Optional[Array] = None,
) -> InstanceRecords:
    """Read and check a submission, keeping records within the cap; raises SubmissionError with every problem.

    With `only` (rising indices of images), all records are checked, but only those of these images are returned.
    """
    return _read(path, _Checker(images, protocol, only, capped=True), rules.limits)


def _read(path: str, checker: _Checker, limits: ArchiveLimits) -> InstanceRecords:
    files, name = _open_records(path, checker.protocol, limits)
    try:
        member = UPLOAD if name == JSON_NAME else name
        try:
            parts = map(checker.check, cut_json(files.read_chunks(name), _shape_of(checker.protocol)))
            return _join_parts(parts, checker, limits)
        except Flaw as flaw:
            remedy = flaw.remedy.replace(EXAMPLE, _example_of(checker.protocol))
            raise SubmissionError.from_problem(Problem(member, flaw.fault, remedy)) from None
    finally:
        files.close()


def count_passes(path: str, images: KnownImages, protocol: InstanceProtocol, limits: ArchiveLimits) -> int:
    """Return how many passes over the records keep memory bounded, given the cap.

    A gzipped file counts with its compressed size.
    """
    files, name = _open_records(path, protocol, limits)
    try:
        size = files.sizes[name]
    finally:
        files.close()
    if protocol.boxes or protocol.keypoints:
        groups = len(images.ids) * (1 if protocol.cap == PER_IMAGE else len(images.categories) + 1)
        size = min(size, groups * protocol.detections[-1] * (_BYTES_OF_RECORD + 16 * images.keypoints))
    return 1 + size // _BYTES_OF_PASS


def _open_records(path: str, protocol: InstanceProtocol, limits: ArchiveLimits) -> Tuple[Files, str]:
    """Open the upload, and find the one JSON in it."""
    send = _SEND_RECORDS.replace(EXAMPLE, _example_of(protocol))
    files = open_files(path, replace(limits, send=send, smaller=SEND_FEWER))
    names = [name for name in files.sizes if name.lower().endswith(".json")]
    if len(names) == 1:
        return files, names[0]
    files.close()
    content = f"no JSON file, only {name_list(list(files.sizes))}" if files.sizes else "no files"
    problem = f"holds {len(names)} JSON files" if names else f"holds {content}"
    raise SubmissionError.from_problem(Problem(UPLOAD, problem, send))


def _example_of(protocol: InstanceProtocol) -> str:
    if protocol.tubes:
        return VIDEO_EXAMPLE
    return POINTS_EXAMPLE if protocol.keypoints else BOXES_EXAMPLE if protocol.boxes else EXAMPLE


def check_records(records: List[Any], images: KnownImages, protocol: InstanceProtocol) -> InstanceRecords:
    """Check records that were parsed; raises SubmissionError with every problem."""
    checker = _Checker(images, protocol)
    return _join_parts(iter([checker.check(JsonPart(records, _LONG_ENOUGH))]), checker, ArchiveLimits())


def check_json(data: bytes, images: KnownImages, protocol: InstanceProtocol) -> InstanceRecords:
    """Read and check records from JSON in memory; raises SubmissionError or a Flaw."""
    checker = _Checker(images, protocol)
    chunks = (data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES))
    parts = map(checker.check, cut_json(chunks, _shape_of(protocol)))
    return _join_parts(parts, checker, ArchiveLimits(records=_LONG_ENOUGH))


@dataclasses.dataclass
class _CheckedPart:
    """Some of the records, checked."""

    count: int
    #: The length in characters.
    length: int
    #: The numbers of records with a bbox beside their mask, and with a category that the truth lacks.
    boxed: int = 0
    unknown: int = 0
    #: The cost of drawing their polygons.
    drawn: int = 0
    #: Index among these records, image, fault, remedy.
    problems: List[Tuple[int, object, str, str]] = field(default_factory=list)
    #: Whether the first record has a non-empty box.
    begins_with_box: bool = False
    #: Image, category, score, area, pixels, box and keypoints of each.
    columns: List[Tuple[Array, ...]] = field(default_factory=list)
    masks: List[MaskTexts] = field(default_factory=list)
    #: The image of each record beyond the cap, which has no columns.
    beyond: List[Array] = field(default_factory=list)


def _shape_of(protocol: InstanceProtocol) -> int:
    """Return the shape of the values read from each record."""
    return FRAMES if protocol.tubes else POINTS if protocol.keypoints else BOX if protocol.boxes else MASK


def _join_parts(parts: Iterator[_CheckedPart], checker: _Checker, limits: ArchiveLimits) -> InstanceRecords:
    """Return all parts as one table, or raise every problem."""
    problems, protocol = Problems(), checker.protocol
    sound_parts: List[_CheckedPart] = []
    kind = "video" if protocol.tubes else "image"
    count = length = boxed = unknown = drawn = stored = 0
    most_held = _MOST_BEYOND
    with without_collector():  # half the time of parsing
        for checked in parts:
            for index, image, problem, remedy in checked.problems:
                if problems.places < _MOST_PROBLEMS:  # regardless of the borders of parts
                    problems.add(Problem(f"record {count + index} ({kind} {printable(image)})", problem, remedy))
            if problems.places >= _MOST_PROBLEMS:
                problems.stop()
                break
            count, length = count + checked.count, length + checked.length
            boxed, unknown, drawn = boxed + checked.boxed, unknown + checked.unknown, drawn + checked.drawn
            if count > limits.records:
                raise Flaw(f"holds more than {limits.records:,} records", "Send fewer, those with the highest scores")
            _check_drawn(drawn, length)
            if not problems:
                sound_parts.append(checked)
                stored += sum(map(len, checked.masks))
                if stored > most_held:
                    stored = checker.leave_out_beyond(sound_parts)
                    most_held = stored + stored // 2 + _MOST_BEYOND
    problems.raise_if_any()
    checker.leave_out_beyond(sound_parts)
    masks = _take_masks(sound_parts)
    image, category, score, area, pixels, boxes, points = _take_columns(sound_parts)
    if protocol.boxes_give_areas:  # all or none, as in the first record
        area = np.where(np.isnan(area) | (not sound_parts or not sound_parts[0].begins_with_box), pixels, area)
    shape = "" if protocol.boxes or protocol.boxes_give_areas else "keypoints" if protocol.keypoints else "mask"
    ids = checker.images.categories
    # Records that number classes one by one name none beyond their number; those of more classes than the truth's do.
    skipped = [] if (ids[category[category >= 0]] > len(ids)).any() else ids.tolist()
    warnings = describe_records(unknown, count, boxed if shape else 0, shape, skipped)
    beyond = np.concatenate([np.zeros(0, np.int64), *(images for checked in sound_parts for images in checked.beyond)])
    dropped = np.bincount(beyond, minlength=len(checker.images.ids))
    return InstanceRecords(image, category, score, area, pixels, masks, boxes, points, dropped, warnings)


def _take_masks(checked_parts: List[_CheckedPart]) -> MaskTexts:
    """Return the masks of all parts, which lose them, so that memory never holds much of their text twice."""
    if sum(len(texts.text) for checked in checked_parts for texts in checked.masks) < _MUCH_TEXT:
        masks = join_texts([texts for checked in checked_parts for texts in checked.masks])
        for checked in checked_parts:
            checked.masks.clear()  # to leave room for the columns
        return masks
    text, written = BytesIO(), 0
    bounds: List[Tuple[Array, Array]] = []
    for checked in checked_parts:
        for texts in checked.masks:
            bounds.append((texts.starts + text.tell(), texts.stops + text.tell()))
            text.write(texts.text)
        checked.masks.clear()
        if text.tell() - written > _MUCH_TEXT // 6:
            written = text.tell()
            release_memory()
    release_memory()
    return MaskTexts(text.getvalue(), *map(np.concatenate, zip(*bounds)))


def _take_columns(checked_parts: List[_CheckedPart]) -> Iterator[Array]:
    """Yield each column of all parts, which lose them, so that memory holds few of them twice."""
    none = np.zeros(0, np.int64)
    nothing = (none, none, np.zeros(0), none, none, np.zeros((0, 4)), np.zeros((0, 0)))
    rows = [columns for checked in checked_parts for columns in checked.columns] or [nothing]
    columns = list(map(list, zip(*rows)))
    rows.clear()
    for checked in checked_parts:
        checked.columns.clear()
    is_long = sum(map(len, columns[0])) > _MANY_RECORDS
    for arrays in columns:
        yield np.concatenate(arrays)
        arrays.clear()
        if is_long:
            release_memory()


def _check_drawn(cost: int, length: int) -> None:
    """Refuse polygons that would take hours to draw."""
    if cost > polygons.outline_limit(length):
        problem = f"holds polygons whose outlines are {cost:,} pixels long, in {length:,} characters"
        raise Flaw(problem, "Write masks as run lengths")


#: The number and the share of records of unknown categories that suggest another numbering.
_FEWEST_UNKNOWN, _MANY_UNKNOWN = 10, 0.1


def describe_records(
    unknown: int, count: int, boxed: int = 0, shape: str = "mask", categories: Sequence[int] = ()
) -> List[str]:
    """Return notes for the participant about the records, given the truth's categories that they may have counted."""
    lines = []
    if unknown:
        have, were = inflect(unknown, "has", "have"), inflect(unknown, "was", "were")
        records = quantity(unknown, "record", count)
        cause = ""
        has_gaps = len(categories) > 1 and len(categories) <= max(categories) - min(categories)
        if has_gaps and unknown >= max(_FEWEST_UNKNOWN, _MANY_UNKNOWN * count):
            ids = name_list(list(map(str, categories)))
            cause = f". Its ids have gaps ({ids}): write them, not the order of the classes"
        lines.append(f"{records} {have} a category that the truth lacks and {were} ignored{cause}")
    if boxed:
        have = inflect(boxed, "has", "have")
        lines.append(
            f"{quantity(boxed, 'record')} {have} a bbox beside the {shape}, which was ignored; the official script "
            "would compute areas from it"
        )
    if not count:
        lines.append(NO_RECORDS)
    return lines


class _Checker:
    """A checker that keeps the records of some or all images, optionally only those within the cap."""

    def __init__(
        self,
        images: KnownImages,
        protocol: InstanceProtocol,
        only: Optional[Array] = None,
        *,
        capped: bool = False,
    ) -> None:
        self.images, self.protocol, self._only, self._example = images, protocol, only, _example_of(protocol)
        # Other conditions for counting a record of LVIS are unknown here.
        self._capped = capped and (protocol.cap == PER_IMAGE or not protocol.federated)
        self._points = images.keypoints if protocol.keypoints else 0
        self._part = _CheckedPart(0, 0)

    def check(self, json_part: JsonPart) -> _CheckedPart:
        """Return these records as columns, and the faults of any."""
        if isinstance(json_part.records, RecordTable):
            with suppress(*UNUSUAL):
                return self.check_table(json_part.records, json_part.length)
        records = json_part.parse()
        self._part = _CheckedPart(len(records), json_part.length)
        if records:
            self._part.begins_with_box = isinstance(records[0], dict) and bool(records[0].get("bbox"))
            self._check_by_halves(records, 0)
        return self._part

    def check_table(self, table: RecordTable, length: int) -> _CheckedPart:
        """Return a part of this length as columns; raises one of `UNUSUAL`."""
        self._part = _CheckedPart(len(table), length)
        self._add_records(self._read_columns(table), 0)
        self._part.boxed = int(np.count_nonzero(table.boxed != NO_BOX))
        self._part.begins_with_box = bool(table.boxed[0] == WHOLE_BOX)
        return self._part

    def _read_columns(self, records: Records) -> RecordColumns:
        rules = self.protocol
        return read_columns(
            records, self.images, boxes=rules.boxes, points=self._points, boxes_give_areas=rules.boxes_give_areas
        )

    def leave_out_beyond(self, checked_parts: List[_CheckedPart]) -> int:
        """Drop the records of these parts beyond the cap, and return how many remain."""
        counts = [len(masks) for checked in checked_parts for masks in checked.masks]
        if not self._capped or not counts:
            return sum(counts)
        tables, by_category = (
            [table for checked in checked_parts for table in checked.columns],
            self.protocol.cap != PER_IMAGE,
        )
        group = np.concatenate([table[0] for table in tables])
        if by_category:  # a category that the truth lacks is one as well
            group = group * (len(self.images.categories) + 1) + np.concatenate([table[1] for table in tables]) + 1
        members = np.arange(len(group))
        if group.max(initial=0) < _MOST_GROUPS:  # only groups beyond the cap need an order, and usually none is
            is_beyond = np.bincount(group) > self.protocol.detections[-1]
            if not is_beyond.any():
                return len(group)
            members = np.flatnonzero(is_beyond[group])
        score = np.concatenate([table[2] for table in tables])
        order = members[backend().order_by_score(score[members], group[members])]
        is_within = np.ones(len(group), bool)
        is_within[order[rank_in_group(group[order]) >= self.protocol.detections[-1]]] = False
        flags = iter(np.split(is_within, np.cumsum(counts)[:-1]))
        for checked in checked_parts:
            for index, (table, masks, within) in enumerate(zip(checked.columns, checked.masks, flags)):
                if not within.all():
                    checked.beyond.append(table[0][~within & (table[1] >= 0) if by_category else ~within])
                    checked.columns[index], checked.masks[index] = _take(table, masks, np.flatnonzero(within))
        return int(is_within.sum())

    def _check_by_halves(self, records: List[Any], offset: int) -> None:
        """Check all records at once; if something is unusual, bisect down to its record."""
        if len(self._part.problems) >= _MOST_PROBLEMS:
            return
        try:
            columns = self._read_columns(records)
        except UNUSUAL:
            if len(records) == 1:
                self._add_problem(records[0], offset)
                return
            half = len(records) // 2
            self._check_by_halves(records[:half], offset)
            self._check_by_halves(records[half:], offset + half)
            return
        self._add_records(columns, offset)
        self._part.boxed += sum("bbox" in record for record in records)

    def _add_problem(self, record: Any, index: int) -> None:
        """Record the problem of an unusual record."""
        image = record.get(self.images.key, "?") if isinstance(record, dict) else "?"
        size, frames = None, None if self.images.frames is None else 0
        if type(image) is int and -LARGEST_ID - 1 <= image <= LARGEST_ID:
            image_index = int(self.images.image_indices([image])[0])
            size = tuple(self.images.sizes[image_index].tolist()) if image_index >= 0 else None
            if size and self.images.frames is not None:
                frames = int(self.images.frames[image_index])
                size = (size[0], size[1] // frames)
        problem, remedy = "cannot be read", f"Write {EXAMPLE}"
        try:
            check_record(
                record,
                size,
                boxes=self.protocol.boxes,
                frames=frames,
                points=self._points,
                boxes_give_areas=self.protocol.boxes_give_areas,
            )
        except Flaw as flaw:
            problem, remedy = flaw.fault, flaw.remedy
        self._part.problems.append((index, printable(image), problem, remedy.replace(EXAMPLE, self._example)))

    def _add_records(self, columns: RecordColumns, offset: int) -> None:
        """Keep records, or record the faults of their masks."""
        masks, pixels = columns.masks, columns.checked.area
        if columns.rings is not None:
            masks, pixels = self._rasterize_polygons(columns, columns.rings)
        for index in np.flatnonzero(columns.checked.fault).tolist():
            image = int(self.images.ids[columns.image[index]])
            fault = rle.FAULTS[int(columns.checked.fault[index])]
            self._part.problems.append((offset + index, image, fault, rle.WRITE_AGAIN))
        self._part.unknown += int(np.count_nonzero(columns.category < 0))
        if self._part.problems:
            return
        area = pixels if columns.own_area is None else columns.own_area
        points = np.zeros((len(area), 0)) if columns.points is None else columns.points
        table: Tuple[Array, ...] = (columns.image, columns.category, columns.score, area, pixels, columns.boxes, points)
        if self._only is not None:
            table, masks = _take(table, masks, np.flatnonzero(np.isin(columns.image, self._only)))
        self._part.columns.append(table)
        self._part.masks.append(masks)

    def _rasterize_polygons(self, columns: RecordColumns, rings: Rings) -> Tuple[MaskTexts, Array]:
        """Return the masks with polygons replaced by run lengths, and their areas."""
        outlined, masks = columns.outlined, columns.masks
        sizes = self.images.sizes[columns.image[outlined]]
        self._part.drawn += columns.cost
        _check_drawn(self._part.drawn, self._part.length)
        drawn, area = backend().draw_polygons(rings, sizes)
        pixels, starts, stops = columns.checked.area.copy(), masks.starts.copy(), masks.stops.copy()
        pixels[outlined] = area
        starts[outlined], stops[outlined] = drawn.starts + len(masks.text), drawn.stops + len(masks.text)
        return MaskTexts(masks.text + drawn.text, starts, stops), pixels


def _take(table: Tuple[Array, ...], masks: MaskTexts, indices: Array) -> Tuple[Tuple[Array, ...], MaskTexts]:
    """Return some of the records as copies, independent of the rest."""
    return tuple(column[indices] for column in table), masks.take(indices).compact()
