"""Records of instance masks as columns: the fast way, which raises something for any record that is unusual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks import kernel_runs, polygons
from ...masks import run_lengths as rle
from ...masks.kernel_runs import RecordTable
from ...masks.stack import Array, places_of
from ...masks.texts import MaskTexts, of_texts
from .flaws import LARGEST_ID, LARGEST_SIDE
from .json_records import PlainRecords
from .tubes import Tubes, joined

#: What is raised for records of which one at least is unusual; `instance_flaws` says what is wrong with it.
UNUSUAL = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, Flaw)


@dataclass(frozen=True)
class Category:
    """One of the truth's categories."""

    id: int
    name: str
    #: One of FREQUENCIES, where the truth says it.
    frequency: str = ""


@dataclass(frozen=True)
class KnownImages:
    """What the truth knows of its images and categories, sorted by id."""

    ids: Array
    sizes: Array
    categories: Array
    #: Of videos, how many frames each has; the sizes are then those of all frames side by side.
    frames: Optional[Array] = None

    @property
    def key(self) -> str:
        """The key of the image, or video, in records."""
        return "image_id" if self.frames is None else "video_id"

    def pixels(self, image: Array) -> Array:
        """Return how many pixels these images have."""
        pixels: Array = self.sizes[image, 0] * self.sizes[image, 1]
        return pixels

    def image_indices(self, ids: List[Any]) -> Array:
        """Return the index of each image, -1 for one that is not known."""
        return np.array([self._image_index.get(number, -1) for number in ids], np.int64)

    def category_indices(self, ids: List[Any]) -> Array:
        """Return the index of each category, -1 for one that is not known."""
        return np.array([self._category_index.get(number, -1) for number in ids], np.int64)

    @cached_property
    def _image_index(self) -> Dict[int, int]:
        return {number: index for index, number in enumerate(self.ids.tolist())}

    @cached_property
    def _category_index(self) -> Dict[int, int]:
        return {number: index for index, number in enumerate(self.categories.tolist())}


@dataclass(frozen=True)
class RecordColumns:
    """Some records as columns, each of the right type."""

    #: Index of the image.
    image: Array
    #: Index of the category, -1 for one that the truth does not have.
    category: Array
    score: Array
    #: Text of run lengths; "" where there are polygons.
    masks: List[str]
    boxes: Array
    #: Index of a record → its polygons.
    polygons: Dict[int, List[Any]]
    #: In place of `masks`, those that were checked before, and what they are.
    texts: Optional[MaskTexts] = None
    checked: Optional[rle.CheckedMasks] = None
    #: Of videos, over the frames that show anything.
    mean_area: Optional[Array] = None


def columns_of(records: List[Any], images: KnownImages, *, boxes: bool) -> RecordColumns:
    """Return the records as columns, unchecked in the masks' own runs alone; raises one of `UNUSUAL`."""
    image = images.image_indices(_checked_ids([record[images.key] for record in records]))
    category = images.category_indices(_checked_ids([record["category_id"] for record in records]))
    scores = [record["score"] for record in records]
    _check_types(scores, float, int)
    score = np.array(scores, float)
    if (image < 0).any() or not np.isfinite(score).all():
        raise ValueError
    if boxes:
        table = _boxes([record["bbox"] for record in records])
        return RecordColumns(image, category, score, [""] * len(records), table, {})
    if images.frames is not None:
        tubes = tubes_of([record["segmentations"] for record in records], images.sizes[image], images.frames[image])
        return _of_tubes(image, category, score, tubes)
    masks, outlines = _masks([record["segmentation"] for record in records], images.sizes[image])
    return RecordColumns(image, category, score, masks, np.zeros((len(masks), 4)), outlines)


def _of_tubes(image: Array, category: Array, score: Array, tubes: Tubes) -> RecordColumns:
    checked, nowhere = rle.CheckedMasks(np.zeros(len(image), np.int8), tubes.pixels), np.zeros((len(image), 4))
    return RecordColumns(image, category, score, [], nowhere, {}, tubes.masks, checked, tubes.mean_area)


def columns_of_plain(records: PlainRecords, images: KnownImages) -> Optional[RecordColumns]:
    """Return records that the kernel read as columns, or None where one at least is unusual."""
    table = records.table.rows
    image = places_of(images.ids, table[:, kernel_runs.IMAGE])
    category = places_of(images.categories, table[:, kernel_runs.CATEGORY])
    score = _plain_scores(records)
    if (image < 0).any() or not np.isfinite(score).all():
        return None
    if images.frames is not None or records.table.frames is not None:
        tubes = _plain_tubes(records.table, images, image)
        return None if tubes is None else _of_tubes(image, category, score, tubes)
    starts, stops = table[:, kernel_runs.COUNTS], table[:, kernel_runs.COUNTS_END]
    if not np.array_equal(table[:, kernel_runs.HEIGHT : kernel_runs.COUNTS], images.sizes[image]):
        return None
    if (stops - starts > rle.longest(images.pixels(image))).any():
        return None
    masks = MaskTexts(records.table.masks, starts.copy(), stops.copy())
    checked = rle.CheckedMasks(table[:, kernel_runs.FAULT], table[:, kernel_runs.AREA].copy())
    return RecordColumns(image, category, score, [], np.zeros((len(masks), 4)), {}, masks, checked)


def _plain_scores(records: PlainRecords) -> Array:
    table = records.table.rows
    decimals = table[:, kernel_runs.DECIMALS]
    # Whole numbers up to 2^53 and powers of ten up to 10^22 are exact, so their quotient is what Python would read.
    score: Array = table[:, kernel_runs.DIGITS] / 10.0 ** np.maximum(decimals, 0)
    unusual = np.flatnonzero(decimals < 0)
    places = table[unusual, kernel_runs.SCORE : kernel_runs.SCORE_END + 1].tolist()
    score[unusual] = [float(records.text[start:stop]) for start, stop in places]
    return score


def _plain_tubes(table: RecordTable, images: KnownImages, image: Array) -> Optional[Tubes]:
    """Return the masks of videos; None where one is unusual, or it is not videos on both sides."""
    if images.frames is None or table.frames is None:
        return None
    counts = table.rows[:, kernel_runs.COUNTS_END] - table.rows[:, kernel_runs.COUNTS]
    if not np.array_equal(counts, images.frames[image]):
        return None
    size, tube = _of_frames(images.sizes[image], counts)
    shown = table.frames[:, 0] >= 0
    if not np.array_equal(table.frames[shown, :2], size[shown]):
        return None
    stops = table.frames[shown, 2]
    try:
        masks = MaskTexts(table.masks, np.append(0, stops)[:-1], stops)
        return joined(masks, shown, tube, size[:, 0] * size[:, 1], len(counts))
    except ValueError:
        return None


def _of_frames(sizes: Array, frames: Array) -> Tuple[Array, Array]:
    """Return the size of each frame of wide masks, and the index of its mask."""
    tube = np.repeat(np.arange(len(frames)), frames)
    return np.stack((sizes[:, 0], sizes[:, 1] // np.maximum(frames, 1)), axis=1)[tube], tube


def _masks(segmentations: List[Any], sizes: Array) -> Tuple[List[str], Dict[int, List[Any]]]:
    """Return run lengths as text, and polygons."""
    outlines: Dict[int, List[Any]] = {}
    encoded = list(segmentations)
    if list in set(map(type, segmentations)):
        outlines = {index: mask for index, mask in enumerate(segmentations) if type(mask) is list}
        polygons.outlines(list(outlines.values()), sizes[list(outlines)].max(axis=1))
        for index in outlines:
            encoded[index] = {"size": sizes[index].tolist(), "counts": ""}
    if not np.array_equal(_integer_table([mask["size"] for mask in encoded]), sizes):
        raise ValueError
    texts = [mask["counts"] for mask in encoded]
    if list in set(map(type, texts)):
        lists = [index for index, counts in enumerate(texts) if type(counts) is list]
        pixels = sizes[lists].prod(axis=1)
        for index, text in zip(lists, rle.compressed_many([texts[index] for index in lists], pixels)):
            texts[index] = text
    _check_types(texts, str)
    return texts, outlines


def tubes_of(segmentations: List[Any], sizes: Array, frames: Array) -> Tubes:
    """Return lists of masks, one for each frame or None, as wide masks of these sizes; raises one of `UNUSUAL`."""
    _check_types(segmentations, list)
    if not np.array_equal(list(map(len, segmentations)), frames):
        raise ValueError
    flat = list(chain.from_iterable(segmentations))
    shown = np.fromiter((mask is not None for mask in flat), bool, len(flat))
    size, tube = _of_frames(sizes, frames)
    masks = [mask for mask in flat if mask is not None]
    _check_types(masks, dict)  # no polygons
    texts = _masks(masks, size[shown])[0] if masks else []
    if not all(map(str.isascii, texts)):
        raise ValueError
    return joined(of_texts(texts), shown, tube, size[:, 0] * size[:, 1], len(frames))


def _boxes(boxes: List[Any]) -> Array:
    _check_types(boxes, list)
    _check_types([side for box in boxes for side in box], float, int)
    table = np.array(boxes, float)
    if table.shape != (len(boxes), 4) or not (np.abs(table) <= LARGEST_SIDE).all() or (table[:, 2:] < 0).any():
        raise ValueError
    return table


def _checked_ids(ids: List[Any]) -> List[int]:
    _check_types(ids, int)
    if min(ids) < -LARGEST_ID - 1 or max(ids) > LARGEST_ID:
        raise OverflowError
    return ids


def _integer_table(sizes: List[Any]) -> Array:
    _check_types(sizes, list)
    _check_types([side for size in sizes for side in size], int)
    table = np.array(sizes, np.int64)
    if table.shape != (len(sizes), 2):
        raise ValueError
    return table


def _check_types(values: List[Any], *types: type) -> None:
    if not set(map(type, values)) <= set(types):
        raise TypeError
