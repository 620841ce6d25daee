"""Annotations of a COCO-format document as a table, read without the JSON parser if they have the usual form.

The JSON parser reads the rest of the document. If an annotation is unusual, it reads the whole document instead.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import islice
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.detections import (
    ANNOTATION,
    HAS_AREA,
    HAS_BOX,
    HAS_CROWD,
    HAS_MARKED,
    HAS_MASK,
    NO_BOX,
    WHOLE_BOX,
    RecordTable,
)
from ...masks.run_lengths import MaskTexts, join_texts
from ...masks.stack import Array
from .keypoints import PointColumns

_LIST = re.compile(rb'"annotations"[ \t\n\r]*:[ \t\n\r]*\[')
#: A number that replaces the list while the rest is parsed; no document contains it there.
_PLACE = 7046029254386353131
#: The maximum number of lists that are tried; all but one are values of other keys of the document.
_MOST_LISTS = 8
#: The number of bytes read at once.
_WINDOW = 1 << 24
#: More blanks than this after the last annotation are unusual.
_BLANKS = 64


class AnnotationColumns(NamedTuple):
    """The annotations of a document, one entry each."""

    ids: Array
    #: Ids of images and categories.
    image_id: Array
    category_id: Array
    #: Zeros if absent.
    area: Array
    has_area: Array
    crowd: Array
    has_crowd: Array
    boxes: Array
    has_mask: Array
    #: If all have keypoints.
    points: Optional[PointColumns]
    #: Some of the annotations with their masks, in order.
    tables: List[RecordTable]

    def draw(self, sizes: Array) -> Tuple[MaskTexts, Array]:
        """Return masks and their pixels, given the sizes of their images; raises ValueError or a Flaw for others."""
        drawn, start = [], 0
        for table in self.tables:
            drawn.append(_draw_masks(table, sizes[start : start + len(table)]))
            start += len(table)
        return join_texts([texts for texts, _ in drawn]), np.concatenate([pixels for _, pixels in drawn])

    def leave_empty(self) -> Tuple[MaskTexts, Array]:
        """Return masks without text, for comparisons of boxes."""
        nothing = np.zeros(len(self.ids), np.int64)
        return MaskTexts(b"", nothing, nothing), nothing


@lru_cache
def compress_nothing(pixels: int) -> str:
    """Return an empty mask with this number of pixels as text."""
    return rle.compress([pixels])


def _draw_masks(table: RecordTable, sizes: Array) -> Tuple[MaskTexts, Array]:
    outlined = np.zeros(0, np.int64) if table.outlined is None else table.outlined
    lacking = np.flatnonzero(~_mark_with_key(table, HAS_MASK))
    same, area, pixels = (table.sizes == sizes).all(axis=1), table.area.copy(), sizes.prod(axis=1)
    same[outlined] = same[lacking] = True
    starts, stops = (column.copy() for column in table.bounds.T)
    if not same.all() or table.fault.any() or (stops - starts > rle.length_limit(pixels)).any():
        raise ValueError
    text = table.masks
    if table.rings is not None:
        polygons.measure(table.rings, sizes[outlined].max(axis=1))
        drawn, area[outlined] = backend().draw_polygons(table.rings, sizes[outlined])
        starts[outlined], stops[outlined] = drawn.starts + len(text), drawn.stops + len(text)
        text += drawn.text
    if len(lacking):
        numbers = pixels[lacking].tolist()
        text_of = {number: compress_nothing(number).encode() for number in {*numbers}}
        empty = [text_of[number] for number in numbers]
        ends = len(text) + np.cumsum(list(map(len, empty)))
        starts[lacking], stops[lacking] = np.append(len(text), ends)[:-1], ends
        text += b"".join(empty)
    return MaskTexts(text, starts, stops).compact(), area


def _mark_with_key(table: RecordTable, key: int) -> Array:
    """Return which annotations have a key."""
    columns = np.zeros((len(table), 4), np.int64) if table.frames is None else table.frames
    flags: Array = columns[:, 3] & key > 0
    return flags


def read_annotations(data: bytes) -> Optional[Tuple[Dict[str, Any], AnnotationColumns]]:
    """Return a document without its annotations, and these as columns; None if any is unusual."""
    if backend().kernel is None:
        return None
    for located in islice(_LIST.finditer(data), _MOST_LISTS):
        tables, end = _read_tables(data, located.end())
        if not tables:
            continue
        try:
            document = json.loads(b"%b%d%b" % (data[: located.end() - 1], _PLACE, data[end + 1 :]))
        except (ValueError, RecursionError):
            return None
        if isinstance(document, dict) and document.get("annotations") == _PLACE:
            columns = _join_tables(tables)
            return columns and (document, columns)
    return None


def _read_tables(data: bytes, start: int) -> Tuple[List[RecordTable], int]:
    """Return the annotations of a list from its first one on, and the list's end; no annotations if any is unusual."""
    tables, end = [], start
    while data[end : end + 1] != b"]":
        table = backend().read_records(data[end : end + _WINDOW], ANNOTATION)
        if table is None:
            return [], end
        tables.append(table)
        end += table.end
    if not data[max(end - _BLANKS, start) : end].rstrip().endswith(b"}"):  # nothing, or a comma
        return [], end
    return tables, end


def _join_tables(tables: List[RecordTable]) -> Optional[AnnotationColumns]:
    boxed = np.concatenate([table.boxed for table in tables])
    if not np.isin(boxed, (NO_BOX, WHOLE_BOX)).all():
        return None
    image_id, category_id, area, boxes = (
        np.concatenate([getattr(table, name) for table in tables]) for name in ("image", "category", "score", "boxes")
    )
    ids, crowd, marked, _ = np.concatenate([table.frames for table in tables if table.frames is not None]).T
    has_area, has_mask, has_box, has_crowd, has_marked = (
        np.concatenate([_mark_with_key(table, key) for table in tables])
        for key in (HAS_AREA, HAS_MASK, HAS_BOX, HAS_CROWD, HAS_MARKED)
    )
    points = None
    rows = [table.points for table in tables if table.points is not None]
    if rows:
        if len(rows) < len(tables) or len({numbers.shape[1] for numbers in rows}) > 1:
            return None
        points = PointColumns(ids.copy(), np.concatenate(rows), np.where(has_marked, marked, -1), has_marked, has_box)
    return AnnotationColumns(
        ids.copy(), image_id, category_id, area, has_area, crowd != 0, has_crowd, boxes, has_mask, points, tables
    )
