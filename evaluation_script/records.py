"""A submission of instance masks: a JSON list of records, read in pieces and checked one by one.

A file of 86 MB would take 400 MB as Python objects; piece by piece it takes a
few, and what stays are arrays and the masks' own text.
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from . import rle
from .archive import JSON_NAME, UPLOAD, open_files
from .errors import Flaw, Problem, Problems, SubmissionError, shown
from .instance_protocols import InstanceProtocol
from .masks import Array
from .members import Limits
from .pieces import EXAMPLE, parsed, pieces, raw_pieces
from .workers import mapped

#: A corner of a polygon this many image sizes away would make a library allocate gigabytes.
FAR = 4


@dataclass(frozen=True)
class Images:
    """What the truth knows of its images and categories, sorted by id."""

    ids: Array
    sizes: Array
    categories: Array

    def pixels(self, image: Array) -> Array:
        """Pixels of these images."""
        pixels: Array = self.sizes[image, 0] * self.sizes[image, 1]
        return pixels


@dataclass
class Records:
    """Everything that was sent, in the order of the file."""

    image: Array
    #: Place of the category, -1 for one that the truth does not have.
    category: Array
    score: Array
    area: Array
    masks: List[str]
    boxes: Array
    warnings: List[str]


def read_records(path: str, images: Images, protocol: InstanceProtocol, limits: Limits, *, jobs: int = 1) -> Records:
    """Read and check a submission; raises SubmissionError with every problem."""
    files = open_files(path, limits)
    try:
        names = [name for name in files.sizes if name.lower().endswith(".json")]
        if len(names) != 1:
            found = f"holds {len(names)} JSON files" if names else "holds no JSON file"
            raise SubmissionError.of(Problem(UPLOAD, found, f"Send one: {EXAMPLE}"))
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

    #: Where they stand among those that were looked at.
    places: List[int]
    image_id: Array
    category_id: Array
    score: Array
    sizes: Array
    masks: List[str]
    boxes: Array


@dataclass
class _Part:
    """Some of the records, checked."""

    count: int = 0
    #: How many have a bbox beside their mask.
    boxed: int = 0
    #: Place among these records, image, what was found, what to do.
    problems: List[Tuple[int, Any, str, str]] = field(default_factory=list)
    #: Image, category, score, area and box of each.
    columns: Tuple[Array, ...] = ()
    masks: List[str] = field(default_factory=list)


def _parts(
    source: Callable[[], Iterator[bytes]], images: Images, protocol: InstanceProtocol, jobs: int
) -> Iterator[_Part]:
    """All records, some at a time; by several processes where a border between records is what it seems to be."""
    if jobs > 1:
        raw = list(raw_pieces(source()))

        def checked(number: int) -> Optional[Tuple[_Part, str, Array]]:
            records = parsed(raw[number], whole=number == len(raw) - 1)
            if records is None:
                return None
            part = _Checker(images, protocol).part(records)
            masks, part.masks = part.masks, []  # one long text travels faster than many short ones
            return part, "".join(masks), np.cumsum([0, *map(len, masks)])

        parts = mapped(checked, len(raw), jobs)
        if all(part is not None for part in parts):
            for part, text, bounds in (part for part in parts if part is not None):
                ends = bounds.tolist()
                part.masks = [text[start:end] for start, end in zip(ends, ends[1:])]
                yield part
            return
    for records in pieces(source()):
        yield _Checker(images, protocol).part(records)


def _joined(parts: Iterator[_Part], protocol: InstanceProtocol, limits: Limits) -> Records:
    """One table of all parts, or every problem."""
    problems = Problems()
    kept: List[_Part] = []
    count = boxed = 0
    enabled = gc.isenabled()
    gc.disable()  # a million small objects, none of them a cycle: half the time of parsing
    try:
        for part in parts:
            for place, image, found, remedy in part.problems:
                problems.add(Problem(f"record {count + place} (image {shown(image)})", found, remedy))
            count, boxed = count + part.count, boxed + part.boxed
            if count > limits.records:
                most = f"holds more than {limits.records:,} records"
                raise Flaw(most, "Send fewer, those with the highest scores")
            if part.columns and not problems:
                kept.append(part)
    finally:
        if enabled:
            gc.enable()
    problems.raise_if_any()
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 4)))
    columns: List[Array] = [np.concatenate(some) for some in zip(nothing, *(part.columns for part in kept))]
    image, category, score, area, boxes = columns
    warnings = _warnings(category, count, 0 if protocol.boxes else boxed)
    return Records(image, category, score, area, [mask for part in kept for mask in part.masks], boxes, warnings)


def _warnings(category: Array, count: int, boxed: int) -> List[str]:
    lines = []
    unknown = int((category < 0).sum())
    if unknown:
        lines.append(f"{unknown:,} of {count:,} records have a category that the truth lacks and were ignored")
    if boxed:
        lines.append(
            f"{boxed:,} records have a bbox beside the mask, which was ignored; the official script would "
            "take areas from it"
        )
    if not count:
        lines.append("the submission holds no records")
    return lines


class _Checker:
    """Checks some records."""

    def __init__(self, images: Images, protocol: InstanceProtocol) -> None:
        self._images, self._protocol = images, protocol
        self._part = _Part()

    def part(self, records: List[Any]) -> _Part:
        """These records as columns; none of them when one has a problem."""
        part = self._part
        part.count = len(records)
        if not records:
            return part
        try:
            table: Optional[_Columns] = self._columns(records)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            part.boxed = 0
            table = self._columns_one_by_one(records)
        if table is None:
            return part
        places = table.places
        image = _place(self._images.ids, table.image_id)
        for place in np.flatnonzero(image < 0).tolist():
            found = "is of an image that the truth lacks"
            self._add(places[place], table.image_id[place], found, "Use the ids of the truth's images")
        finite = np.isfinite(table.score)
        for place in np.flatnonzero(~finite).tolist():
            self._add(places[place], table.image_id[place], "has a score that is not finite", "Write a number")
        good = (image >= 0) & finite
        area = self._areas(table, np.where(good, image, 0), good)
        if not part.problems:
            category = _place(self._images.categories, table.category_id)
            part.columns = (image, category, table.score, area, table.boxes)
            part.masks = table.masks
        part.problems.sort(key=lambda problem: problem[0])
        return part

    def _areas(self, table: _Columns, image: Array, good: Array) -> Array:
        if self._protocol.boxes:
            area: Array = table.boxes[:, 2] * table.boxes[:, 3]
            return area
        other = good & (table.sizes != self._images.sizes[image]).any(axis=1)
        for place in np.flatnonzero(other).tolist():
            height, width = self._images.sizes[image[place]].tolist()
            found = f"has a mask of size {table.sizes[place].tolist()} but the image is [{height}, {width}]"
            self._add(table.places[place], table.image_id[place], found, "Encode the mask at the size of the image")
        checked = rle.check_many(table.masks, table.sizes[:, 0] * table.sizes[:, 1])
        for place in np.flatnonzero(good & ~other & (checked.fault > 0)).tolist():
            self._add(
                table.places[place], table.image_id[place], rle.FAULTS[int(checked.fault[place])], rle.WRITE_AGAIN
            )
        return checked.area

    def _add(self, place: int, image: Any, found: str, remedy: str) -> None:
        self._part.problems.append((place, image, found, remedy))

    def _columns(self, records: List[Any]) -> _Columns:
        """The usual case in few steps; anything unusual raises and is looked at one by one."""
        places = list(range(len(records)))
        image_id = _whole([record["image_id"] for record in records])
        category_id = _whole([record["category_id"] for record in records])
        scores = [record["score"] for record in records]
        _only(scores, (float, int))
        if self._protocol.boxes:
            boxes = [record["bbox"] for record in records]
            _only([side for box in boxes for side in box], (float, int))
            sizes = np.zeros((len(records), 2), np.int64)
            masks = [""] * len(records)
            return _Columns(places, image_id, category_id, np.array(scores, float), sizes, masks, _boxes(boxes))
        segmentations = [record["segmentation"] for record in records]
        masks = [segmentation["counts"] for segmentation in segmentations]
        _only(masks, (str,))
        sizes = _sizes([segmentation["size"] for segmentation in segmentations])
        self._part.boxed += sum("bbox" in record for record in records)
        nothing = np.zeros((len(records), 4))
        return _Columns(places, image_id, category_id, np.array(scores, float), sizes, masks, nothing)

    def _columns_one_by_one(self, records: List[Any]) -> Optional[_Columns]:
        rows, places = [], []
        for place, record in enumerate(records):
            try:
                rows.append(self._row(record))
                places.append(place)
            except Flaw as flaw:  # noqa: PERF203 - every record may have a flaw of its own
                image = record.get("image_id", "?") if isinstance(record, dict) else "?"
                self._add(place, image, flaw.found, flaw.remedy)
        if not rows:
            return None
        image_id, category_id, score, size, mask, box = zip(*rows)
        return _Columns(
            places,
            np.array(image_id, np.int64),
            np.array(category_id, np.int64),
            np.array(score, float),
            np.array(size, np.int64),
            list(mask),
            np.array(box, float),
        )

    def _row(self, record: Any) -> Tuple[Any, ...]:
        """One record, whatever form its mask has."""
        if not isinstance(record, dict):
            raise Flaw("is no object", f"Write {EXAMPLE}")
        wanted = ("image_id", "category_id", "bbox" if self._protocol.boxes else "segmentation", "score")
        missing = [key for key in wanted if key not in record]
        if missing:
            raise Flaw(f"lacks {' and '.join(missing)}", f"Write {EXAMPLE}")
        for key in ("image_id", "category_id"):
            if type(record[key]) is not int or abs(record[key]) > 1 << 53:
                raise Flaw(f"has the {key} {shown(record[key])}, which is no whole number", "Write the id as a number")
        score = record["score"]
        if type(score) not in (int, float) or not math.isfinite(score):
            raise Flaw(f"has the score {shown(score)}, which is no finite number", "Write a number")
        head = (record["image_id"], record["category_id"], float(score))
        if self._protocol.boxes:
            return (*head, (0, 0), "", _box(record["bbox"]))
        self._part.boxed += "bbox" in record
        return (*head, *self._mask(record["segmentation"], record["image_id"]), (0.0,) * 4)

    def _mask(self, segmentation: Any, image_id: int) -> Tuple[Tuple[int, int], str]:
        """Size and compressed runs of any segmentation."""
        place = int(_place(self._images.ids, np.array([image_id]))[0])
        height, width = self._images.sizes[place].tolist() if place >= 0 else (0, 0)
        if isinstance(segmentation, list):
            return (height, width), polygon_mask(segmentation, height, width)
        if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
            raise Flaw("has a segmentation that is neither run lengths nor polygons", f"Write {EXAMPLE}")
        size, counts = segmentation["size"], segmentation["counts"]
        if not isinstance(size, list) or [type(side) for side in size] != [int, int]:
            raise Flaw(f"has a mask of size {shown(size)}, which is not [height, width]", rle.WRITE_AGAIN)
        if place >= 0 and (height, width) != tuple(size):
            found = f"has a mask of size {size} but the image is [{height}, {width}] (height, width)"
            raise Flaw(found, "Encode the mask at the size of the image")
        if isinstance(counts, str):
            return (size[0], size[1]), counts
        return (size[0], size[1]), rle.compressed(rle.runs_of(counts, height * width).tolist())


def polygon_mask(polygons: Any, height: int, width: int) -> str:
    """Compressed runs of polygons."""
    import pycocotools.mask as coco

    rings = polygons if polygons and isinstance(polygons[0], list) else [polygons]
    far = FAR * max(height, width, 1)
    for ring in rings:
        if not isinstance(ring, list) or len(ring) < 6 or len(ring) % 2:
            raise Flaw("has a polygon without three corners (x, y)", "Write [[x1, y1, x2, y2, x3, y3, …]]")
        if any(type(side) not in (int, float) or not -far <= side <= far for side in ring):
            raise Flaw("has a polygon with corners that are no numbers or far outside", "Keep it within the image")
    if not height or not width:
        return ""
    corners: Any = [[float(side) for side in ring] for ring in rings]
    counts = coco.merge(coco.frPyObjects(corners, height, width))["counts"]
    return counts if isinstance(counts, str) else counts.decode("ascii")


def _box(box: Any) -> Tuple[float, ...]:
    if not isinstance(box, list) or len(box) != 4 or any(type(side) not in (int, float) for side in box):
        raise Flaw("has a bbox that is not [x, y, width, height]", "Write four numbers")
    if not all(math.isfinite(side) for side in box) or box[2] < 0 or box[3] < 0:
        raise Flaw("has a bbox that is negative or not finite", "Write [x, y, width, height]")
    return tuple(float(side) for side in box)


def _boxes(boxes: List[Any]) -> Array:
    table = np.array(boxes, float)
    if table.shape != (len(boxes), 4) or not np.isfinite(table).all() or (table[:, 2:] < 0).any():
        raise ValueError
    return table


def _whole(values: List[Any]) -> Array:
    _only(values, (int,))
    return np.array(values, np.int64)


def _sizes(sizes: List[Any]) -> Array:
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
