"""A submission of instances: a JSON list of records, read in parts that fit into memory and checked one by one.

A file of 86 MB would take 400 MB as Python objects; part by part it takes a few, and what stays are arrays and the
masks' own text.  A part is parsed at one go up to what looks like its last border between two records.  Where that was
inside a text, its records are parsed one by one instead: the parser itself says where each ends.  A record that is not
complete is tried again when twice as much was read, so every byte is parsed a few times at the most.
"""

from __future__ import annotations

import codecs
import dataclasses
import json
import re
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import field, replace
from operator import itemgetter
from typing import Any, AnyStr, Callable, Iterator, List, NoReturn, Optional, Pattern, Tuple, Union

import numpy as np

from ...files.archive import JSON_NAME, UPLOAD, open_files
from ...files.limits import CHUNK_BYTES, ArchiveLimits, Files, check_memory, unique_keys
from ...files.problems import Flaw, Problem, Problems, SubmissionError, inflect, name_list, printable, quantity
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.detections import RecordTable
from ...masks.run_lengths import MaskTexts, join_texts, pack_texts
from ...masks.stack import Array
from ...runner.parallel import results_of_processes, results_of_threads
from ...runner.tuning import without_collector
from ...values import dataclass
from ..base.family import ScoringRules
from .protocols import PER_IMAGE, InstanceProtocol
from .records import (
    BOXES_EXAMPLE,
    EXAMPLE,
    LARGEST_ID,
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

#: So many bad records are enough: what follows is not looked at.
_MOST_PROBLEMS = 1000
_SEND_RECORDS = f"Send one JSON file, plain, gzipped or zipped, with a list of records: {EXAMPLE}"
_SEND_FEWER = "Send fewer records, those with the highest scores, with compressed run lengths"
#: What may stand before the list, and after it.
_BLANKS, _PADDING = "\ufeff \r\n\t", " \r\n\t\0"
#: Between two records of the list, and not between the masks of a video's frames.
_BORDER = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)(?!\{\s{0,99}\"(?:size|counts)\")")
_RAW_BORDER = re.compile(_BORDER.pattern.encode())
#: Where a record may begin, and what follows one.
_BLANK, _COMMA, _END = (re.compile(pattern) for pattern in (r"[ \t\r\n]*", r"[ \t\r\n]*,[ \t\r\n]*", r"[ \t\r\n]*\]"))
#: How many closing braces are looked at for a border.
_MOST_BRACES = 2000
_LONGEST_RECORD = 32 << 20
#: Where no border is found, so many records at the most are parsed one by one before the next part.
_FEW = 1000
#: What a record that is longer than a part may take in memory, roughly.
_COSTLIEST_RECORD = 160 << 20
#: What is held of a larger submission at a time: all of it would not fit into a worker's memory.
_BYTES_OF_PASS = 160 << 20
#: So many records more are held than are within the cap, until those beyond it are left out.
_MOST_BEYOND = 1 << 16
#: Up to so many groups of records are counted one by one.
_MOST_GROUPS = 1 << 22
#: What one without a mask takes, beside its keypoints of 16 each.
_BYTES_OF_RECORD = 88
#: An error further than this from the end of what was read is an error whatever follows.
_NEAR_THE_END = 64
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)
#: Some of the records, as they were sent or already as a table.
RawPart = Union[bytes, RecordTable]


@dataclass(frozen=True)
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
    #: x and y of keypoints, where these are compared.
    points: Array
    #: Of each image, how many records beyond the cap are not among these.
    dropped: Array
    warnings: List[str]


def read_records(path: str, images: KnownImages, protocol: InstanceProtocol, limits: ArchiveLimits) -> InstanceRecords:
    """Read and check a submission; raises SubmissionError with every problem."""
    return _read(path, _Checker(images, protocol), limits)


def read_within_cap(
    path: str, images: KnownImages, protocol: InstanceProtocol, rules: ScoringRules, only: Optional[Array] = None
) -> InstanceRecords:
    """Read and check a submission, and hold what is within the cap; raises SubmissionError with every problem.

    With `only`, rising indices of images, all is checked and what is of these images returned.
    """
    return _read(path, _Checker(images, protocol, only, capped=True), rules.limits, rules.jobs, rules.ahead)


def _read(
    path: str, checker: _Checker, limits: ArchiveLimits, jobs: int = 1, ahead: Optional[List[RawPart]] = None
) -> InstanceRecords:
    files, name = _open_records(path, checker.protocol, limits)
    try:
        member = UPLOAD if name == JSON_NAME else name
        try:
            return _join_parts(
                _check_parts(lambda: files.read_chunks(name), checker, jobs, ahead or []), checker, limits
            )
        except Flaw as flaw:
            remedy = flaw.remedy.replace(EXAMPLE, _example_of(checker.protocol))
            raise SubmissionError.of(Problem(member, flaw.fault, remedy)) from None
    finally:
        files.close()


def count_passes(path: str, images: KnownImages, protocol: InstanceProtocol, limits: ArchiveLimits) -> int:
    """How often records are to be read, to hold those within the cap of some of the images at a time.

    A gzipped file counts as it is sent.
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
    files = open_files(path, replace(limits, send=send, smaller=_SEND_FEWER))
    names = [name for name in files.sizes if name.lower().endswith(".json")]
    if len(names) == 1:
        return files, names[0]
    files.close()
    content = f"no JSON file, but {name_list(list(files.sizes))}" if files.sizes else "no files"
    problem = f"holds {len(names)} JSON files" if names else f"holds {content}"
    raise SubmissionError.of(Problem(UPLOAD, problem, send))


def _example_of(protocol: InstanceProtocol) -> str:
    if protocol.tubes:
        return VIDEO_EXAMPLE
    return POINTS_EXAMPLE if protocol.keypoints else BOXES_EXAMPLE if protocol.boxes else EXAMPLE


def check_records(records: List[Any], images: KnownImages, protocol: InstanceProtocol) -> InstanceRecords:
    """Check records that were parsed; raises SubmissionError with every problem."""
    long_enough = 1 << 40  # whatever it costs to draw their polygons
    checker = _Checker(images, protocol)
    return _join_parts(iter([checker.check(_JsonPart(records, long_enough))]), checker, ArchiveLimits())


@dataclasses.dataclass
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
    #: Whether the first of them has a box that is not empty.
    begins_with_box: bool = False
    #: Image, category, score, area, pixels, box and keypoints of each.
    columns: List[Tuple[Array, ...]] = field(default_factory=list)
    masks: List[MaskTexts] = field(default_factory=list)
    #: The image of each record that the cap dropped, which has no columns.
    beyond: List[Array] = field(default_factory=list)


def read_ahead(
    path: str, protocol: InstanceProtocol, rules: ScoringRules, goes_on: Callable[[], bool]
) -> List[RawPart]:
    """Return what of a submission needs no truth, read as far as it goes on; nothing where anything is wrong."""
    try:
        files, name = _open_records(path, protocol, rules.limits)
        try:
            return _read_raw(files.read_chunks(name), goes_on)
        finally:
            files.close()
    except (Flaw, SubmissionError):
        return []


def _read_raw(source: Iterator[bytes], goes_on: Callable[[], bool]) -> List[RawPart]:
    """Return the parts of a list, of the usual form the first of them as tables; nothing when they cannot be cut."""
    raw: List[RawPart] = []
    try:
        for raw_part in _cut_raw_json(source):
            usual = not raw or (isinstance(raw[-1], RecordTable) and goes_on())
            raw.append((usual and _read_table(raw_part)) or raw_part)
    except _NotCutError:
        return []
    return raw


def _read_table(raw_part: bytes) -> Optional[RecordTable]:
    """Return the records of a part of the usual form; None where the JSON parser has to."""
    table = backend().read_records(raw_part + b",")
    return table if table is not None and table.end > len(raw_part) else None


def _check_parts(
    source: Callable[[], Iterator[bytes]], checker: _Checker, jobs: int, ahead: List[RawPart]
) -> Iterator[_CheckedPart]:
    """Yield all records, some at a time; checked side by side where borders of records are what they seem."""
    raw = ahead[:] or (_read_raw(source(), lambda: False) if jobs > 1 else [])
    ahead.clear()
    if raw:

        def check_part(number: int) -> Tuple[int, Optional[_CheckedPart]]:
            raw_part, raw[number] = raw[number], b""
            table = raw_part if isinstance(raw_part, RecordTable) else _read_table(raw_part)
            with suppress(*UNUSUAL):
                if table is not None:
                    return number, copy(checker).check_table(table, table.end - 1)
            if isinstance(raw_part, RecordTable):
                return number, None
            try:
                text = raw_part.decode("utf-8")
                return number, copy(checker).check(_JsonPart(_parse_records(text), len(text)))
            except (json.JSONDecodeError, UnicodeDecodeError):
                return number, None

        if isinstance(raw[0], RecordTable):
            pairs = results_of_threads(check_part, len(raw), jobs)
        else:
            pairs = sorted(
                results_of_processes(check_part, list(map(len, raw)), jobs, lambda _: None), key=itemgetter(0)
            )
        results = [checked_part for _, checked_part in pairs if checked_part is not None]
        if len(results) == len(raw):
            yield from results
            return
    for json_part in _cut_json(source()):
        yield checker.check(json_part)


def _join_parts(parts: Iterator[_CheckedPart], checker: _Checker, limits: ArchiveLimits) -> InstanceRecords:
    """Return all parts as one table, or raise every problem."""
    problems, protocol = Problems(), checker.protocol
    sound_parts: List[_CheckedPart] = []
    kind = "video" if protocol.tubes else "image"
    count = length = boxed = unknown = drawn = held = 0
    most_held = _MOST_BEYOND
    with without_collector():  # half the time of parsing
        for checked in parts:
            for index, image, problem, remedy in checked.problems:
                problems.add(Problem(f"record {count + index} ({kind} {printable(image)})", problem, remedy))
            if problems.count >= _MOST_PROBLEMS:
                problems.stop()
                break
            count, length = count + checked.count, length + checked.length
            boxed, unknown, drawn = boxed + checked.boxed, unknown + checked.unknown, drawn + checked.drawn
            if count > limits.records:
                raise Flaw(f"holds more than {limits.records:,} records", "Send fewer, those with the highest scores")
            _check_drawn(drawn, length)
            if not problems:
                sound_parts.append(checked)
                held += sum(map(len, checked.masks))
                if held > most_held:
                    held = checker.leave_out_beyond(sound_parts)
                    most_held = held + held // 2 + _MOST_BEYOND
    problems.raise_if_any()
    checker.leave_out_beyond(sound_parts)
    masks = join_texts([texts for checked in sound_parts for texts in checked.masks])
    for checked in sound_parts:
        checked.masks.clear()  # so that the columns find room
    none = np.zeros(0, np.int64)
    nothing = (none, none, np.zeros(0), none, none, np.zeros((0, 4)), np.zeros((0, 0)))
    rows = [columns for checked in sound_parts for columns in checked.columns] or [nothing]
    image, category, score, area, pixels, boxes, points = map(np.concatenate, zip(*rows))
    if protocol.boxes_give_areas:  # all of them or none, as the first record has it
        area = np.where(np.isnan(area) | (not sound_parts or not sound_parts[0].begins_with_box), pixels, area)
    shape = "" if protocol.boxes or protocol.boxes_give_areas else "keypoints" if protocol.keypoints else "mask"
    warnings = describe_records(unknown, count, boxed if shape else 0, shape)
    beyond = np.concatenate([none, *(images for checked in sound_parts for images in checked.beyond)])
    dropped = np.bincount(beyond, minlength=len(checker.images.ids))
    return InstanceRecords(image, category, score, area, pixels, masks, boxes, points, dropped, warnings)


def _check_drawn(cost: int, length: int) -> None:
    """Refuse polygons that would take hours to draw."""
    if cost > polygons.outline_limit(length):
        problem = f"holds polygons whose outlines are {cost:,} pixels long, in {length:,} characters"
        raise Flaw(problem, "Write masks as run lengths")


def describe_records(unknown: int, count: int, boxed: int = 0, shape: str = "mask") -> List[str]:
    """Return what a participant should know of so many records."""
    lines = []
    if unknown:
        have, were = inflect(unknown, "has", "have"), inflect(unknown, "was", "were")
        records = quantity(unknown, "record", count)
        lines.append(f"{records} {have} a category that the truth lacks and {were} ignored")
    if boxed:
        have = inflect(boxed, "has", "have")
        lines.append(
            f"{quantity(boxed, 'record')} {have} a bbox beside the {shape}, which was ignored; the official script "
            "would take areas from it"
        )
    if not count:
        lines.append("the submission holds no records")
    return lines


class _Checker:
    """Checks records, and keeps those of some images, given by rising indices, or of all; if asked within the cap."""

    def __init__(
        self, images: KnownImages, protocol: InstanceProtocol, only: Optional[Array] = None, *, capped: bool = False
    ) -> None:
        self.images, self.protocol, self._only, self._example = images, protocol, only, _example_of(protocol)
        # What else decides whether a record of LVIS counts is not known here.
        self._capped = capped and (protocol.cap == PER_IMAGE or not protocol.federated)
        self._boxes = protocol.boxes or protocol.boxes_give_areas
        self._points = images.keypoints if protocol.keypoints else 0
        self._part = _CheckedPart(0, 0)

    def check(self, json_part: _JsonPart) -> _CheckedPart:
        """Return these records as columns, and what is wrong with any of them."""
        records = json_part.records
        if isinstance(records, RecordTable):
            try:
                return self.check_table(records, json_part.length)
            except UNUSUAL:
                records = _parse_records(records.text[: records.end].rstrip(f",{_BLANKS}"))
        self._part = _CheckedPart(len(records), json_part.length)
        if records:
            self._part.begins_with_box = isinstance(records[0], dict) and bool(records[0].get("bbox"))
            self._check_by_halves(records, 0)
        return self._part

    def check_table(self, table: RecordTable, length: int) -> _CheckedPart:
        """Return records that took so many characters as columns; raises one of `UNUSUAL`."""
        self._part = _CheckedPart(len(table), length)
        self._keep(read_columns(table, self.images, boxes=self._boxes, points=self._points), 0)
        return self._part

    def leave_out_beyond(self, checked_parts: List[_CheckedPart]) -> int:
        """Leave out what of these parts is beyond the cap, and return how many records stay."""
        counts = [len(masks) for checked in checked_parts for masks in checked.masks]
        if not self._capped or not counts:
            return sum(counts)
        tables, by_category = (
            [table for checked in checked_parts for table in checked.columns],
            self.protocol.cap != PER_IMAGE,
        )
        group, category, score = (np.concatenate([table[column] for table in tables]) for column in range(3))
        if by_category:  # a category that the truth lacks is one as well
            group = group * (len(self.images.categories) + 1) + category + 1
        if (
            group.max(initial=0) < _MOST_GROUPS
            and np.bincount(group, minlength=1).max() <= self.protocol.detections[-1]
        ):
            return len(group)  # the usual case, told sooner than by an order
        order = backend().order_by_score(score, group)
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
        """Check all at once, the usual case; where something is unusual, by halves down to the record it is in."""
        if len(self._part.problems) >= _MOST_PROBLEMS:
            return
        try:
            columns = read_columns(records, self.images, boxes=self._boxes, points=self._points)
        except UNUSUAL:
            if len(records) == 1:
                self._explain(records[0], offset)
                return
            half = len(records) // 2
            self._check_by_halves(records[:half], offset)
            self._check_by_halves(records[half:], offset + half)
            return
        self._keep(columns, offset)
        self._part.boxed += sum("bbox" in record for record in records)

    def _explain(self, record: Any, index: int) -> None:
        """Note what is unusual about a record."""
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
            check_record(record, size, boxes=self._boxes, frames=frames, points=self._points)
        except Flaw as flaw:
            problem, remedy = flaw.fault, flaw.remedy
        self._part.problems.append((index, printable(image), problem, remedy.replace(EXAMPLE, self._example)))

    def _keep(self, columns: RecordColumns, offset: int) -> None:
        """Keep records, or note which of their masks have faults."""
        masks, pixels = columns.masks, columns.checked.area
        if columns.polygons:
            masks, pixels = self._draw(columns)
        for index in np.flatnonzero(columns.checked.fault).tolist():
            image = int(self.images.ids[columns.image[index]])
            fault = rle.FAULTS[int(columns.checked.fault[index])]
            self._part.problems.append((offset + index, image, fault, rle.WRITE_AGAIN))
        self._part.unknown += int((columns.category < 0).sum())
        if self._part.problems:
            return
        area = pixels if columns.own_area is None else columns.own_area
        points = np.zeros((len(area), 0)) if columns.points is None else columns.points
        table: Tuple[Array, ...] = (columns.image, columns.category, columns.score, area, pixels, columns.boxes, points)
        if self._only is not None:
            table, masks = _take(table, masks, np.flatnonzero(np.isin(columns.image, self._only)))
        self._part.columns.append(table)
        self._part.masks.append(masks)

    def _draw(self, columns: RecordColumns) -> Tuple[MaskTexts, Array]:
        """Return the masks with run lengths in place of polygons, and the pixels of each."""
        indices = list(columns.polygons)
        sizes = self.images.sizes[columns.image[indices]]
        outlines = polygons.outlines(list(columns.polygons.values()), sizes.max(axis=1))
        self._part.drawn += outlines.cost
        _check_drawn(self._part.drawn, self._part.length)
        texts = [columns.masks[index] for index in range(len(columns.masks))]
        for index, rings, (height, width) in zip(indices, outlines.rings, sizes.tolist()):
            texts[index] = polygons.mask_of(rings, height, width)
        pixels: Array = columns.checked.area.copy()
        pixels[indices] = backend().check_masks([texts[index] for index in indices], sizes.prod(axis=1)).area
        return pack_texts(texts), pixels


def _take(table: Tuple[Array, ...], masks: MaskTexts, indices: Array) -> Tuple[Tuple[Array, ...], MaskTexts]:
    """Return some of the records, which hold no memory of others."""
    return tuple(column[indices] for column in table), masks.take(indices).compact()


@dataclass(frozen=True)
class _JsonPart:
    """Some of the records, and how many characters they took."""

    records: Records
    length: int


def _cut_json(parts: Iterator[bytes], *, tables: bool = True) -> Iterator[_JsonPart]:
    """Yield the records of a JSON list, some at a time; all of them parsed, unless `tables` are taken too."""
    source = _Characters(parts)
    more, size = source.begin(), CHUNK_BYTES
    while more:
        source.fill(size)
        table = backend().read_records(source.text[: 2 * CHUNK_BYTES]) if tables else None
        if table is not None:
            yield _JsonPart(table, table.end)
            source.drop(table.end)
            size = CHUNK_BYTES
            continue
        text = source.text[:size]
        if size > CHUNK_BYTES:
            check_memory(text, _COSTLIEST_RECORD, _SEND_FEWER)
        records, position, more = _read_complete_records(text, source)
        if more and not len(records):
            if size >= _LONGEST_RECORD:
                raise Flaw("holds a record that does not end", f"Write {EXAMPLE}")
            size *= 2
            continue
        yield _JsonPart(records, position)
        source.drop(position)
        size = CHUNK_BYTES
    source.finish()


def parse_parts(parts: Iterator[bytes]) -> Iterator[List[Any]]:
    """Yield the records of a JSON list parsed, some at a time."""
    for json_part in _cut_json(parts, tables=False):
        if isinstance(json_part.records, list):
            yield json_part.records


class _Characters:
    """A stream of UTF-8 as text, of which as much is read as is asked for."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._decoder = parts, codecs.getincrementaldecoder("utf-8")()
        self._dropped = 0
        #: What was read and not yet dropped.
        self.text = ""
        #: Whether everything was read.
        self.ended = False

    def fill(self, count: int) -> None:
        """Read until there are so many characters, or nothing is left."""
        texts, length = [self.text], len(self.text)
        while length < count and not self.ended:
            data = next(self._parts, None)
            self.ended = data is None
            try:
                texts.append(self._decoder.decode(data or b"", final=self.ended))
            except UnicodeDecodeError:
                raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
            length += len(texts[-1])
        self.text = "".join(texts) if len(texts) > 1 else self.text

    def drop(self, count: int) -> None:
        """Go on after so many characters."""
        self.text = self.text[count:]
        self._dropped += count

    def skip(self, blanks: str) -> None:
        """Go to the next character that is not blank, or to the end."""
        while True:
            self.drop(len(self.text) - len(self.text.lstrip(blanks)))
            if self.text or self.ended:
                return
            self.fill(1)

    def begin(self) -> bool:
        """Go to the first record; return whether there is one."""
        self.skip(_BLANKS)
        if not self.text.startswith("["):
            raise Flaw("is JSON, but not a list of records", f"Write {EXAMPLE}")
        self.drop(1)
        self.skip(_BLANKS)
        empty = self.text.startswith("]")
        self.drop(int(empty))
        return not empty

    def finish(self) -> None:
        """Refuse anything but blanks after the list."""
        self.skip(_PADDING)
        if self.text:
            self.refuse("something follows the list", 0)

    def refuse(self, reason: str, position: int) -> NoReturn:
        """Raise a Flaw for text that is not JSON from this position on."""
        problem = f"is not valid JSON: {reason} at character {self._dropped + position:,}"
        raise Flaw(problem, "Write it with a JSON library")


def _read_complete_records(text: str, source: _Characters) -> Tuple[List[Any], int, bool]:
    """Return the complete records at the start of a text, where the next one begins, and whether the list goes on."""
    if len(text) > CHUNK_BYTES:
        return _scan_records(text, source, limit=1)  # one long record: what follows it is read by parts again
    stop, following = _find_last_border(text, _BORDER, "}")
    if stop:
        try:
            return _parse_records(text[:stop]), following, True
        except json.JSONDecodeError:
            return _scan_records(text, source, limit=len(text))  # a border inside a text, or broken JSON
    return _scan_records(text, source, limit=_FEW)


def _find_last_border(text: AnyStr, border: Pattern[AnyStr], brace: AnyStr) -> Tuple[int, int]:
    """Return where the last record ends that is followed by another, and where that begins; zeros without a border."""
    end = len(text)
    for _ in range(_MOST_BRACES):
        end = text.rfind(brace, 0, end)
        if end < 0:
            break
        match = border.match(text, end)
        if match:
            return end + 1, match.end()
    return 0, 0


def _parse_records(text: str) -> List[Any]:
    """Parse records without the brackets around them; raises JSONDecodeError when they are not complete."""
    with _refuse_values():
        return list(_DECODER.decode(f"[{text}]"))


@contextmanager
def _refuse_values() -> Iterator[None]:
    """Raise a Flaw for JSON that the parser cannot turn into values."""
    try:
        yield
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError as error:
        raise Flaw(f"holds a number that cannot be read ({printable(error)})", "Write plain numbers") from None


def _scan_records(text: str, source: _Characters, limit: int) -> Tuple[List[Any], int, bool]:
    """Return the same as `_read_complete_records`, record by record, up to so many."""
    ended = source.ended and len(text) == len(source.text)
    records: List[Any] = []
    position = _end_of(_BLANK, text, 0)
    while len(records) < limit:
        parsed = _next_record(text, position, source, ended=ended)
        if parsed is None:
            break
        record, stop = parsed
        comma, end = _end_of(_COMMA, text, stop), _end_of(_END, text, stop)
        if not comma and not end:
            if ended or len(text) - _end_of(_BLANK, text, stop) > _NEAR_THE_END:
                source.refuse("the list does not end" if not text[stop:].strip(_BLANKS) else "no comma", stop)
            break
        records.append(record)
        position = comma or end
        if end:
            return records, position, False
    return records, position, True


def _end_of(pattern: Pattern[str], text: str, position: int) -> int:
    """Return where what matches at a position ends; 0 when nothing does."""
    match = pattern.match(text, position)
    return match.end() if match else 0


def _next_record(text: str, position: int, source: _Characters, *, ended: bool) -> Optional[Tuple[Any, int]]:
    """Return the record that begins here and where it ends; None when it is not complete."""
    try:
        with _refuse_values():
            return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        error_position, reason = error.pos, error.msg
    if reason.startswith("Unterminated"):
        error_position, reason = (
            (error_position if ended else len(text)),
            "the list does not end, since no quote ends the text that begins",
        )
    elif not text[error_position:].strip(_BLANKS):
        reason = "the list does not end"
    if ended or len(text) - error_position > _NEAR_THE_END:
        source.refuse(reason, error_position)
    return None


class _NotCutError(Exception):
    """Raised for a list that cannot be cut unparsed."""


def _cut_raw_json(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts of a list unparsed, cut at what looks like borders; raises _NotCutError when they cannot be."""
    waiting, begun = b"", False
    for data in parts:
        waiting += data
        if not begun:
            waiting = waiting.lstrip(_BLANKS.encode())
            if not waiting.startswith(b"["):
                raise _NotCutError
            waiting, begun = waiting[1:], True
        stop, following = _find_last_border(waiting, _RAW_BORDER, b"}")
        if stop:
            yield waiting[:stop]
            waiting = waiting[following:]
        elif len(waiting) > 2 * CHUNK_BYTES:
            raise _NotCutError
    waiting = waiting.rstrip(_PADDING.encode())
    if not begun or not waiting.endswith(b"]"):
        raise _NotCutError
    yield waiting[:-1]
