"""A submission of instance masks: a JSON list of records, read in pieces and checked one by one.

A file of 86 MB would take 400 MB as Python objects; piece by piece it takes a
few, and what stays are arrays and the masks' own text.
"""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import polygons, rle
from .archive import JSON_NAME, UPLOAD, open_files
from .archive_limits import ArchiveLimits
from .errors import Flaw, Problem, Problems, SubmissionError, counted, listed, printable, verb
from .instance_flaws import LARGEST_ID, LARGEST_SIDE, check_record
from .instance_json import EXAMPLE, SEND_FEWER, SEND_RECORDS, JsonPart, json_parts, loaded, raw_json_parts
from .instance_protocols import InstanceProtocol
from .masks import Array
from .parallel import map_in_processes

#: So many bad records are enough: what follows is not looked at.
MOST_PROBLEMS = 1000
#: What the usual way through the records raises for one that is not as usual.
UNUSUAL = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, Flaw)


@dataclass(frozen=True)
class KnownImages:
    """What the truth knows of its images and categories, sorted by id."""

    ids: Array
    sizes: Array
    categories: Array

    def pixels(self, image: Array) -> Array:
        """Pixels of these images."""
        pixels: Array = self.sizes[image, 0] * self.sizes[image, 1]
        return pixels


@dataclass
class InstanceRecords:
    """Everything that was sent, in the order of the file."""

    image: Array
    #: Place of the category, -1 for one that the truth does not have.
    category: Array
    score: Array
    area: Array
    masks: List[str]
    boxes: Array
    warnings: List[str]


def read_records(
    path: str, images: KnownImages, protocol: InstanceProtocol, limits: ArchiveLimits, *, jobs: int = 1
) -> InstanceRecords:
    """Read and check a submission; raises SubmissionError with every problem."""
    files = open_files(path, replace(limits, send=SEND_RECORDS, smaller=SEND_FEWER))
    try:
        names = [name for name in files.sizes if name.lower().endswith(".json")]
        if len(names) != 1:
            held = f"no JSON file, but {listed(list(files.sizes))}" if files.sizes else "no files"
            found = f"holds {len(names)} JSON files" if names else f"holds {held}"
            raise SubmissionError.of(Problem(UPLOAD, found, SEND_RECORDS))
        where = UPLOAD if names[0] == JSON_NAME else names[0]
        try:
            return _joined(_parts(lambda: files.parts(names[0]), images, protocol, jobs), protocol, limits)
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(where)) from None
    finally:
        files.close()


@dataclass(frozen=True)
class _Columns:
    """Some records as columns, each of the right type."""

    image: Array
    category: Array
    score: Array
    #: Text of run lengths; "" where there are polygons.
    masks: List[str]
    boxes: Array
    #: Place of a record → its polygons.
    polygons: Dict[int, List[Any]]


@dataclass
class _Part:
    """Some of the records, checked."""

    count: int = 0
    length: int = 0
    #: How many have a bbox beside their mask.
    boxed: int = 0
    #: What drawing their polygons cost.
    drawn: int = 0
    #: Place among these records, image, what was found, what to do.
    problems: List[Tuple[int, Any, str, str]] = field(default_factory=list)
    #: Image, category, score, area and box of each.
    columns: List[Tuple[Array, ...]] = field(default_factory=list)
    masks: List[str] = field(default_factory=list)


def _parts(
    source: Callable[[], Iterator[bytes]], images: KnownImages, protocol: InstanceProtocol, jobs: int
) -> Iterator[_Part]:
    """All records, some at a time; by several processes where a border between records is what it seems to be."""
    raw = raw_json_parts(source()) if jobs > 1 else []
    if raw:

        def checked(number: int) -> Optional[Tuple[_Part, str, Array]]:
            try:
                text = raw[number].decode("utf-8")
                piece = JsonPart(loaded(text), len(text))
            except (json.JSONDecodeError, UnicodeDecodeError):
                return None
            part = _Checker(images, protocol).part(piece)
            masks, part.masks = part.masks, []  # one long text travels faster than many short ones
            return part, "".join(masks), np.cumsum([0, *map(len, masks)])

        parts = map_in_processes(checked, len(raw), jobs)
        if all(part is not None for part in parts):
            for part, text, bounds in (part for part in parts if part is not None):
                ends = bounds.tolist()
                part.masks = [text[start:end] for start, end in zip(ends, ends[1:])]
                yield part
            return
    for piece in json_parts(source()):
        yield _Checker(images, protocol).part(piece)


def _joined(parts: Iterator[_Part], protocol: InstanceProtocol, limits: ArchiveLimits) -> InstanceRecords:
    """One table of all parts, or every problem."""
    problems = Problems()
    kept: List[_Part] = []
    count = length = boxed = drawn = 0
    enabled = gc.isenabled()
    gc.disable()  # a million small objects, none of them a cycle: half the time of parsing
    try:
        for part in parts:
            for place, image, found, remedy in part.problems:
                problems.add(Problem(f"record {count + place} (image {printable(image)})", found, remedy))
            if problems.count >= MOST_PROBLEMS:
                problems.stop()
                break
            count, length = count + part.count, length + part.length
            boxed, drawn = boxed + part.boxed, drawn + part.drawn
            if count > limits.records:
                most = f"holds more than {limits.records:,} records"
                raise Flaw(most, "Send fewer, those with the highest scores")
            _check_drawn(drawn, length)
            if not problems:
                kept.append(part)
    finally:
        if enabled:
            gc.enable()
    problems.raise_if_any()
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 4)))
    columns = [np.concatenate(some) for some in zip(nothing, *(one for part in kept for one in part.columns))]
    image, category, score, area, boxes = columns
    warnings = _warnings(category, count, 0 if protocol.boxes else boxed)
    return InstanceRecords(
        image, category, score, area, [mask for part in kept for mask in part.masks], boxes, warnings
    )


def _check_drawn(cost: int, length: int) -> None:
    """Refuse polygons that would take hours to draw."""
    if cost > polygons.allowed(length):
        found = f"holds polygons whose outlines are {cost:,} pixels long, in {length:,} characters"
        raise Flaw(found, "Write masks as run lengths")


def _warnings(category: Array, count: int, boxed: int) -> List[str]:
    lines = []
    unknown = int((category < 0).sum())
    if unknown:
        have = verb(
            unknown, "has a category that the truth lacks and was", "have a category that the truth lacks and were"
        )
        lines.append(f"{counted(unknown, 'record', count)} {have} ignored")
    if boxed:
        lines.append(
            f"{counted(boxed, 'record')} {verb(boxed, 'has', 'have')} a bbox beside the mask, which was ignored; the "
            "official script would take areas from it"
        )
    if not count:
        lines.append("the submission holds no records")
    return lines


class _Checker:
    """Checks some records."""

    def __init__(self, images: KnownImages, protocol: InstanceProtocol) -> None:
        self._images, self._protocol = images, protocol
        self._part = _Part()

    def part(self, piece: JsonPart) -> _Part:
        """These records as columns, and what is wrong with any of them."""
        self._part.count, self._part.length = len(piece.records), piece.length
        if piece.records:
            self._check(piece.records, 0)
        return self._part

    def _check(self, records: List[Any], first: int) -> None:
        """All at once, which is the usual case; where something is unusual by halves, down to the record it is in."""
        if len(self._part.problems) >= MOST_PROBLEMS:
            return
        try:
            table = self._columns(records)
        except UNUSUAL:
            if len(records) == 1:
                self._explain(records[0], first)
                return
            half = len(records) // 2
            self._check(records[:half], first)
            self._check(records[half:], first + half)
            return
        self._take(table, first)
        if not self._protocol.boxes:
            self._part.boxed += sum("bbox" in record for record in records)

    def _explain(self, record: Any, place: int) -> None:
        """Why a record is not as usual."""
        known = isinstance(record, dict) and "image_id" in record
        image = record["image_id"] if known else "?"
        size = None
        if type(image) is int and -LARGEST_ID - 1 <= image <= LARGEST_ID:
            found = int(_place(self._images.ids, np.array([image], np.int64))[0])
            size = tuple(self._images.sizes[found].tolist()) if found >= 0 else None
        try:
            check_record(record, size, boxes=self._protocol.boxes)
        except Flaw as flaw:
            self._part.problems.append((place, printable(image), flaw.found, flaw.remedy))
        else:
            self._part.problems.append((place, printable(image), "cannot be read", f"Write {EXAMPLE}"))

    def _take(self, table: _Columns, first: int) -> None:
        """Check the masks themselves, and keep what is good."""
        if self._protocol.boxes:
            area: Array = table.boxes[:, 2] * table.boxes[:, 3]
        else:
            self._draw(table)
            checked = rle.check_many(table.masks, self._images.pixels(table.image))
            area = checked.area
            for place in np.flatnonzero(checked.fault).tolist():
                image = int(self._images.ids[table.image[place]])
                found = rle.FAULTS[int(checked.fault[place])]
                self._part.problems.append((first + place, image, found, rle.WRITE_AGAIN))
        if not self._part.problems:
            self._part.columns.append((table.image, table.category, table.score, area, table.boxes))
            self._part.masks += table.masks

    def _draw(self, table: _Columns) -> None:
        if not table.polygons:
            return
        places = list(table.polygons)
        sizes = self._images.sizes[table.image[places]]
        found = polygons.outlines(list(table.polygons.values()), sizes.max(axis=1))
        self._part.drawn += found.cost
        _check_drawn(self._part.drawn, self._part.length)
        for place, rings, (height, width) in zip(places, found.rings, sizes.tolist()):
            table.masks[place] = polygons.mask_of(rings, height, width)

    def _columns(self, records: List[Any]) -> _Columns:
        """Everything but the masks' own runs; anything that is not as it should be raises something."""
        image = _place(self._images.ids, _whole([record["image_id"] for record in records]))
        category = _place(self._images.categories, _whole([record["category_id"] for record in records]))
        scores = [record["score"] for record in records]
        _only(scores, (float, int))
        score = np.array(scores, float)
        if (image < 0).any() or not np.isfinite(score).all():
            raise ValueError
        if self._protocol.boxes:
            boxes = _boxes([record["bbox"] for record in records])
            return _Columns(image, category, score, [""] * len(records), boxes, {})
        return _Columns(image, category, score, *self._masks([one["segmentation"] for one in records], image))

    def _masks(self, segmentations: List[Any], image: Array) -> Tuple[List[str], Array, Dict[int, List[Any]]]:
        """Run lengths as text, no boxes, and polygons."""
        outlined: Dict[int, List[Any]] = {}
        sizes = self._images.sizes[image]
        encoded = list(segmentations)
        if list in set(map(type, segmentations)):
            outlined = {place: one for place, one in enumerate(segmentations) if type(one) is list}
            polygons.outlines(list(outlined.values()), sizes[list(outlined)].max(axis=1))
            for place in outlined:
                encoded[place] = {"size": sizes[place].tolist(), "counts": ""}
        if not np.array_equal(_sizes([one["size"] for one in encoded]), sizes):
            raise ValueError
        masks = [one["counts"] for one in encoded]
        if list in set(map(type, masks)):
            lists = [place for place, mask in enumerate(masks) if type(mask) is list]
            pixels = sizes[lists].prod(axis=1)
            for place, mask in zip(lists, rle.compressed_lists([masks[place] for place in lists], pixels)):
                masks[place] = mask
        _only(masks, (str,))
        return masks, np.zeros((len(masks), 4)), outlined


def _boxes(boxes: List[Any]) -> Array:
    _only(boxes, (list,))
    _only([side for box in boxes for side in box], (float, int))
    table = np.array(boxes, float)
    if table.shape != (len(boxes), 4) or not (np.abs(table) <= LARGEST_SIDE).all() or (table[:, 2:] < 0).any():
        raise ValueError
    return table


def _whole(values: List[Any]) -> Array:
    _only(values, (int,))
    return np.array(values, np.int64)


def _sizes(sizes: List[Any]) -> Array:
    _only(sizes, (list,))
    _only([side for size in sizes for side in size], (int,))
    table = np.array(sizes, np.int64)
    if table.shape != (len(sizes), 2):
        raise ValueError
    return table


def _only(values: List[Any], kinds: Tuple[type, ...]) -> None:
    if not set(map(type, values)) <= set(kinds):
        raise TypeError


def _place(known: Array, ids: Array) -> Array:
    """Places of ids among the sorted ones that are known; -1 for others."""
    if not len(known):
        return np.full(len(ids), -1)
    found = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[found] == ids, found, -1)
