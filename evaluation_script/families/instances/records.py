"""Records of instances with masks, boxes or the masks of a video's frames.

`read_columns` reads many records at once, parsed or as a table in the usual form, and raises an error if any is
unusual. `check_record` then describes the fault of one record for the participant.

An instance in a video is one wide mask. Run lengths go down the columns, so the runs of consecutive frames form the
mask of all frames side by side, and shared pixels of two wide masks are shared pixels in all frames. Some runs are
empty, which pycocotools rejects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from ...files import Flaw, printable, quantity
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.detections import OTHER_BOX, WHOLE_BOX, RecordTable, Rings
from ...masks.run_lengths import MaskTexts, pack_texts
from ...masks.stack import Array, places_of
from .keypoints import check_points, extents_of, extract_coordinates, read_points

EXAMPLE = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "..."}, "score": 0.9}, ...]'
BOXES_EXAMPLE = '[{"image_id": 1, "category_id": 1, "bbox": [x, y, width, height], "score": 0.9}, ...]'
POINTS_EXAMPLE = '[{"image_id": 1, "category_id": 1, "keypoints": [x1, y1, 1, x2, y2, 1, ...], "score": 0.9}, ...]'
VIDEO_EXAMPLE = (
    '[{"video_id": 1, "category_id": 1, '
    '"segmentations": [{"size": [h, w], "counts": "..."}, null, ...], "score": 0.9}, ...]'
)
#: The note on an empty list.
NO_RECORDS = "the submission holds no records"
#: The largest id: ids are whole numbers of 64 bits, as in the truth.
LARGEST_ID = (1 << 63) - 1
#: The maximum side and coordinate of a box, up to which products are exact.
LARGEST_SIDE = 1 << 24
#: The exceptions for unusual records; `instance_flaws` describes the fault.
UNUSUAL = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, Flaw)


class Category(NamedTuple):
    """One of the truth's categories."""

    id: int
    name: str
    #: One of FREQUENCIES, if the truth states it.
    frequency: str = ""


@dataclass(frozen=True)
class KnownImages:
    """The images and categories that the truth knows, sorted by id."""

    ids: Array
    sizes: Array
    categories: Array
    #: The number of frames of each video; sizes are then of all frames side by side.
    frames: Optional[Array] = None
    #: The number of keypoints of each instance, if any.
    keypoints: int = 0

    @property
    def key(self) -> str:
        """The key of the image, or video, in records."""
        return "image_id" if self.frames is None else "video_id"

    def pixels(self, image: Array) -> Array:
        pixels: Array = self.sizes[image, 0] * self.sizes[image, 1]
        return pixels

    def image_indices(self, ids: List[Any]) -> Array:
        """Return the index of each image; -1 for unknown ones."""
        return np.array([self._image_index.get(number, -1) for number in ids], np.int64)

    def category_indices(self, ids: List[Any]) -> Array:
        """Return the index of each category; -1 for unknown ones."""
        return np.array([self._category_index.get(number, -1) for number in ids], np.int64)

    @cached_property
    def _image_index(self) -> Dict[int, int]:
        return {number: index for index, number in enumerate(self.ids.tolist())}

    @cached_property
    def _category_index(self) -> Dict[int, int]:
        return {number: index for index, number in enumerate(self.categories.tolist())}


def rank_in_group(group: Array) -> Array:
    """Return the position of each entry among its neighbours of the same group."""
    indices = np.arange(len(group))
    is_first = np.append(True, group[1:] != group[:-1])[: len(group)]
    ranks: Array = indices - np.maximum.accumulate(np.where(is_first, indices, 0))
    return ranks


class RecordColumns(NamedTuple):
    """Some records as columns, each of the right type."""

    #: Index of the image.
    image: Array
    #: Index of the category; -1 if the truth lacks it.
    category: Array
    score: Array
    #: Their faults and areas. The masks of polygons have no text or area yet, boxes have no text.
    masks: MaskTexts
    checked: rle.CheckedMasks
    boxes: Array
    #: The records with polygons, and their polygons.
    outlined: Array
    rings: Optional[Rings]
    #: The areas that records state: of videos, means over frames with a mask; of keypoints with boxes, those of the
    #: boxes.
    own_area: Optional[Array] = None
    #: The x and y of keypoints.
    points: Optional[Array] = None
    #: The cost of drawing the polygons.
    cost: int = 0


#: Parsed records, or a table of records in the usual form.
Records = Union[List[Any], RecordTable]


def read_columns(
    records: Records, images: KnownImages, *, boxes: bool, points: int = 0, boxes_give_areas: bool = False
) -> RecordColumns:
    """Return records as columns, whose mask runs are unchecked; raises one of `UNUSUAL`.

    Each record has a mask, a box or this many keypoints; additional boxes may give areas.
    """
    if isinstance(records, RecordTable):
        image, category = places_of(images.ids, records.image), places_of(images.categories, records.category)
        score = records.score
    else:
        image = images.image_indices(_read_ids([record[images.key] for record in records]))
        category = images.category_indices(_read_ids([record["category_id"] for record in records]))
        scores = [record["score"] for record in records]
        _check_types(scores, float, int)
        score = np.array(scores, float)
    if (image < 0).any() or not np.isfinite(score).all():
        raise ValueError
    sound, no_boxes, none = np.zeros(len(image), np.int8), np.zeros((len(image), 4)), np.zeros(0, np.int64)
    areas, given_boxes = None, no_boxes
    if boxes_give_areas:
        given_boxes = _read_given_boxes(records)
        areas = given_boxes[:, 2] * given_boxes[:, 3]
    if points:
        coordinates = _read_points_of(records, points)
        checked = rle.CheckedMasks(sound, extents_of(coordinates))
        return RecordColumns(
            image, category, score, _no_masks(len(image)), checked, no_boxes, none, None, areas, coordinates
        )
    if boxes:
        table = records.boxes if isinstance(records, RecordTable) else _read_boxes([row["bbox"] for row in records])
        _check_boxes(table)
        checked = rle.CheckedMasks(sound, table[:, 2] * table[:, 3])
        return RecordColumns(image, category, score, _no_masks(len(image)), checked, table, none, None)
    sizes, pixels = images.sizes[image], images.pixels(image)
    if images.frames is not None:
        tubes = _read_tubes_of(records, sizes, images.frames[image])
        checked = rle.CheckedMasks(sound, tubes.pixels)
        return RecordColumns(image, category, score, tubes.masks, checked, no_boxes, none, None, tubes.mean_area)
    if isinstance(records, RecordTable):
        outlined = none if records.outlined is None else records.outlined
        masks, checked = _read_plain_masks(records, sizes, pixels, outlined)
        rings = records.rings
        cost = 0 if rings is None else polygons.measure(rings, sizes[outlined].max(axis=1))
        return RecordColumns(image, category, score, masks, checked, given_boxes, outlined, rings, areas, None, cost)
    texts, indices, rings, cost = _read_masks([record["segmentation"] for record in records], sizes)
    checked = backend().check_masks(texts, np.where(np.isin(np.arange(len(image)), indices), 0, pixels))
    return RecordColumns(
        image, category, score, pack_texts(texts), checked, given_boxes, indices, rings, areas, None, cost
    )


def _no_masks(count: int) -> MaskTexts:
    nothing = np.zeros(count, np.int64)
    return MaskTexts(b"", nothing, nothing)


def _read_points_of(records: Records, points: int) -> Array:
    """Return x and y of this number of keypoints in each record."""
    if not isinstance(records, RecordTable):
        return read_points([record["keypoints"] for record in records], points)
    if records.points is None:
        raise ValueError
    return extract_coordinates(records.points, points)


def _read_plain_masks(
    table: RecordTable, sizes: Array, pixels: Array, outlined: Array
) -> Tuple[MaskTexts, rle.CheckedMasks]:
    starts, stops = table.bounds.T
    same = (table.sizes == sizes).all(axis=1)
    same[outlined] = True
    if table.frames is not None or not same.all():
        raise ValueError
    is_long = stops - starts > rle.length_limit(pixels)
    checked = rle.CheckedMasks(np.where(is_long, rle.TOO_LONG, table.fault), np.where(is_long, 0, table.area))
    return MaskTexts(table.masks, starts.copy(), stops.copy()), checked


def _read_tubes_of(records: Records, sizes: Array, frames: Array) -> _Tubes:
    """Return the masks of videos with this number of frames, joined side by side."""
    if not isinstance(records, RecordTable):
        return read_tubes([record["segmentations"] for record in records], sizes, frames)
    counts = records.bounds[:, 1] - records.bounds[:, 0]
    if records.frames is None or not np.array_equal(counts, frames):
        raise ValueError
    size, tube = _frame_sizes(sizes, counts)
    shown = records.frames[:, 0] >= 0
    if not np.array_equal(records.frames[shown, :2], size[shown]):
        raise ValueError
    stops = records.frames[shown, 2]
    masks = MaskTexts(records.masks, np.append(0, stops)[:-1], stops)
    return join_frames(masks, shown, tube, size[:, 0] * size[:, 1], len(counts))


def _frame_sizes(sizes: Array, frames: Array) -> Tuple[Array, Array]:
    """Return the size of each frame of wide masks, and the index of its mask."""
    tube = np.repeat(np.arange(len(frames)), frames)
    return np.stack((sizes[:, 0], sizes[:, 1] // np.maximum(frames, 1)), axis=1)[tube], tube


def _read_masks(segmentations: List[Any], sizes: Array) -> Tuple[List[str], Array, Optional[Rings], int]:
    """Return run lengths as text, flags of polygons, the polygons, and the cost of drawing them."""
    rings, cost, indices = None, 0, [index for index, mask in enumerate(segmentations) if type(mask) is list]
    encoded = list(segmentations)
    if indices:
        rings, cost = polygons.outlines([segmentations[index] for index in indices], sizes[indices].max(axis=1))
        for index in indices:
            encoded[index] = {"size": sizes[index].tolist(), "counts": ""}
    if not np.array_equal(_read_sizes([mask["size"] for mask in encoded]), sizes):
        raise ValueError
    texts = [mask["counts"] for mask in encoded]
    if list in set(map(type, texts)):
        lists = [index for index, counts in enumerate(texts) if type(counts) is list]
        pixels = sizes[lists].prod(axis=1)
        for index, text in zip(lists, rle.compress_many([texts[index] for index in lists], pixels)):
            texts[index] = text
    _check_types(texts, str)
    return texts, np.array(indices, np.int64), rings, cost


def _read_boxes(boxes: List[Any]) -> Array:
    _check_types(boxes, list)
    _check_types([side for box in boxes for side in box], float, int)
    table = np.array(boxes, float)
    if table.shape != (len(boxes), 4):
        raise ValueError
    return _check_boxes(table)


def _check_boxes(table: Array) -> Array:
    if not (np.abs(table) <= LARGEST_SIDE).all() or (table[:, 2:] < 0).any():
        raise ValueError
    return table


def _read_given_boxes(records: Records) -> Array:
    """Return the records' boxes; NaN for missing boxes."""
    if isinstance(records, RecordTable):
        if (records.boxed == OTHER_BOX).any():
            raise ValueError
        whole = records.boxed == WHOLE_BOX
        if whole.all():
            return _check_boxes(records.boxes)
        table = np.full((len(records), 4), np.nan)
        table[whole] = _check_boxes(records.boxes[whole])
        return table
    table, boxes = np.full((len(records), 4), np.nan), [record.get("bbox") for record in records]
    present = [index for index, box in enumerate(boxes) if box is not None and box != []]
    if present:
        table[present] = _read_boxes([boxes[index] for index in present])
    return table


def _read_ids(ids: List[Any]) -> List[int]:
    _check_types(ids, int)
    if min(ids) < -LARGEST_ID - 1 or max(ids) > LARGEST_ID:
        raise OverflowError
    return ids


def _read_sizes(sizes: List[Any]) -> Array:
    _check_types(sizes, list)
    _check_types([side for size in sizes for side in size], int)
    table = np.array(sizes, np.int64)
    if table.shape != (len(sizes), 2):
        raise ValueError
    return table


def _check_types(values: List[Any], *types: type) -> None:
    if not set(map(type, values)) <= set(types):
        raise TypeError


class _Tubes(NamedTuple):
    """The wide masks of some instances."""

    masks: MaskTexts
    pixels: Array
    #: The means over non-empty frames.
    mean_area: Array


def read_tubes(segmentations: List[Any], sizes: Array, frames: Array) -> _Tubes:
    """Return lists of masks, one or None per frame, as wide masks; raises one of `UNUSUAL`."""
    _check_types(segmentations, list)
    if not np.array_equal(list(map(len, segmentations)), frames):
        raise ValueError
    flat = list(chain.from_iterable(segmentations))
    shown = np.fromiter((mask is not None for mask in flat), bool, len(flat))
    size, tube = _frame_sizes(sizes, frames)
    masks = [mask for mask in flat if mask is not None]
    _check_types(masks, dict)  # no polygons
    texts = _read_masks(masks, size[shown])[0] if masks else []
    if not all(map(str.isascii, texts)):
        raise ValueError
    return join_frames(pack_texts(texts), shown, tube, size[:, 0] * size[:, 1], len(frames))


def join_frames(texts: MaskTexts, shown: Array, tube: Array, pixels: Array, count: int) -> _Tubes:
    """Return the masks of frames joined into wide masks; raises ValueError for a malformed one.

    For each frame, the arguments state whether it has a text, the index of its instance, and its number of pixels.
    Texts are consecutive.
    """
    ends = np.cumsum(np.bincount(tube, minlength=count))
    wide, area = backend().join_frames(texts, shown, pixels, ends)
    total = np.bincount(tube, area, count)
    visible = np.bincount(tube, area > 0, count)
    return _Tubes(wide, total.astype(np.int64), total / np.maximum(visible, 1))


def check_record(
    record: Any,
    size: Optional[Tuple[int, int]],
    *,
    boxes: bool,
    frames: Optional[int] = None,
    points: int = 0,
    boxes_give_areas: bool = False,
) -> None:
    """Raise a Flaw for the first fault of a record; an unknown image has no size.

    A record of a video has this many masks of this size; a record of keypoints has this many points. Additional boxes
    may give areas.
    """
    if not isinstance(record, dict):
        raise Flaw("is not an object", f"Write {EXAMPLE}")
    kind, shape = ("image", "bbox" if boxes else "segmentation") if frames is None else ("video", "segmentations")
    shape = "keypoints" if points else shape
    keys = (f"{kind}_id", "category_id", shape, "score")
    missing = [key for key in keys if key not in record]
    if missing:
        hint = "; its bbox is not compared" if missing == ["segmentation"] and "bbox" in record else ""
        raise Flaw(f"lacks {' and '.join(missing)}{hint}", f"Write {EXAMPLE}")
    for key in keys[:2]:
        _check_id(key, record[key])
    if not is_finite(record["score"]):
        if _is_quoted(record["score"]):
            raise Flaw("has a score in quotes, which is not a number", "Write the score without quotes")
        raise Flaw(f"has the score {printable(repr(record['score']))}, which is not a finite number", "Write a number")
    if size is None:
        raise Flaw(
            f"has {'an image_id' if frames is None else 'a video_id'} that the truth lacks",
            f"Use the ids of the truth's {kind}s",
        )
    if points:
        check_points(record["keypoints"], points)
    elif boxes:
        _check_box(record["bbox"])
    elif frames is not None:
        check_tube(record["segmentations"], size, frames)
    else:
        _check_mask(record["segmentation"], size)
    if boxes_give_areas and record.get("bbox") not in (None, []):
        _check_box(record["bbox"])


def _check_id(key: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        if _is_quoted(value):  # one fault for all values, so that records are joined
            article = "an" if key[0] in "aeiou" else "a"
            raise Flaw(f"has {article} {key} in quotes, which is not a whole number", "Write the id without quotes")
        problem = f"has the {key} {printable(repr(value))}, which is not a whole number"
        raise Flaw(problem, "Write the id as a number")
    if not -LARGEST_ID - 1 <= value <= LARGEST_ID:
        raise Flaw(f"has the {key} {printable(value)}, which is too large for an id", "Use the ids of the truth")


def _is_quoted(value: object) -> bool:
    """Return whether a value is a number as text."""
    return isinstance(value, str) and value.replace(".", "", 1).isdecimal()


def is_finite(value: object) -> bool:
    """Return whether a value is a number that a finite float can hold."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _check_box(box: object) -> None:
    if not isinstance(box, list) or len(box) != 4 or any(type(side) not in (int, float) for side in box):
        raise Flaw("has a bbox that is not [x, y, width, height]", "Write four numbers")
    if not all(map(is_finite, box)) or box[2] < 0 or box[3] < 0:
        raise Flaw("has a bbox that is negative or not finite", "Write [x, y, width, height]")
    if max(map(abs, box)) > LARGEST_SIDE:
        raise Flaw("has a bbox far outside its image", "Write [x, y, width, height] in pixels")


def check_tube(segmentations: object, size: Tuple[int, int], frames: int) -> None:
    """Raise a Flaw for the first fault of the masks of a video's frames."""
    if not isinstance(segmentations, list):
        raise Flaw("has segmentations that are not a list", "Write a mask or null for each frame")
    if len(segmentations) != frames:
        problem = f"has {quantity(len(segmentations), 'segmentation')} but the video has {quantity(frames, 'frame')}"
        raise Flaw(problem, "Write a mask or null for each frame")
    for index, mask in enumerate(segmentations):
        if mask is not None:
            _check_frame(mask, size, f"(frame {index} of {frames}, from 0)")


def _check_frame(mask: Any, size: Tuple[int, int], location: str) -> None:
    try:
        if isinstance(mask, list):
            raise Flaw("has a segmentation that is not run lengths", rle.WRITE_AGAIN)
        _check_mask(mask, size)
        rle.runs_of(mask["counts"], size[0] * size[1])
    except Flaw as flaw:
        raise Flaw(f"{flaw.fault} {location}", flaw.remedy) from None


def _check_mask(segmentation: object, image: Tuple[int, int]) -> None:
    height, width = image
    if isinstance(segmentation, list):
        polygons.outlines([segmentation], np.array([max(image)]))
        return
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise Flaw("has a segmentation that is neither run lengths nor polygons", f"Write {EXAMPLE}")
    size, counts = segmentation["size"], segmentation["counts"]
    if not isinstance(size, list) or [type(side) for side in size] != [int, int]:
        raise Flaw(f"has a mask of size {printable(size)}, which is not [height, width]", rle.WRITE_AGAIN)
    if (height, width) != tuple(size):
        problem = f"has a mask of size {printable(size)} but the image is [{height}, {width}] (height, width)"
        raise Flaw(problem, "Encode the mask at the size of the image")
    if not isinstance(counts, str):
        rle.runs_of(counts, height * width)
