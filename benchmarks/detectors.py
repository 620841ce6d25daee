"""Detections as detectors and their users write them: boxes beside masks, ragged masks, lists of counts, polygons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import write_set
from segjudge.evaluation_script.masks.run_lengths import compress, runs_of
from segjudge.evaluation_script.masks.stack import Array

#: How far edges of ragged masks are off, and the share of a box's pixels that are wrong.
_RAGGED, _SPECKLE = 3, 0.05
#: The columns between two points of a polygon, as outlines are thinned out.
_STEP = 2


def write_forms(folder: Path, images: int) -> tuple[int, int]:
    """Write a truth with boxes, and its detections in each form; return their numbers."""
    counts = write_set(folder, images)
    truth, records = (json.loads((folder / f"{name}.json").read_text()) for name in ("truth", "records"))
    for row in (*truth["annotations"], *records):
        row["bbox"] = find_box(row["segmentation"])
    generator = np.random.default_rng(5)
    forms: dict[str, list[dict[str, Any]]] = {
        "both": records,
        "boxes": [{key: value for key, value in row.items() if key != "segmentation"} for row in records],
        "ragged": [{**row, "segmentation": _fray(generator, row["segmentation"], row["bbox"])} for row in records],
        "counts": [{**row, "segmentation": _list_counts(row["segmentation"])} for row in records],
        "polygons": [{**row, "segmentation": _draw_outline(row["segmentation"])} for row in records],
    }
    for name, content in ({"truth": truth} | forms).items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return counts


def find_box(segmentation: dict[str, Any]) -> list[float]:
    """Return the box of a mask."""
    spans = list(_list_spans(segmentation))
    if not spans:
        return [0.0, 0.0, 0.0, 0.0]
    left, right = spans[0][0], spans[-1][0]
    top, bottom = min(top for _, top, _ in spans), max(bottom for _, _, bottom in spans)
    return [float(left), float(top), float(right - left + 1), float(bottom - top)]


def _list_spans(segmentation: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Return column, top and bottom of each run of a mask, column by column."""
    height, width = segmentation["size"]
    ends = list(accumulate(runs_of(segmentation["counts"], height * width)))
    for start, end in zip(ends[::2], ends[1::2], strict=False):
        for column in range(start // height, -(-end // height) if end > start else 0):
            yield column, max(start - column * height, 0), min(end - column * height, height)


def _fray(generator: np.random.Generator, segmentation: dict[str, Any], box: list[float]) -> dict[str, Any]:
    """Return a mask with ragged edges and speckle in its box."""
    height, width = segmentation["size"]
    left, top, wide, tall = map(int, box)
    inside: Array = np.zeros((wide, tall), bool)
    for column, start, end in _list_spans(segmentation):
        inside[column - left, start - top : end - top] = True
    columns, rows = np.indices(inside.shape, np.int32)
    off = generator.integers(-_RAGGED, _RAGGED + 1, (2, *inside.shape), np.int32)
    if inside.size:
        inside = inside[np.clip(columns + off[0], 0, wide - 1), np.clip(rows + off[1], 0, tall - 1)]
    inside ^= generator.random(inside.shape) < _SPECKLE
    columns, rows = np.nonzero(inside)
    places = (columns + left) * height + rows + top
    firsts = np.flatnonzero(np.diff(places, prepend=-2) > 1)
    lasts = np.flatnonzero(np.diff(places, append=height * width + 1) > 1)
    borders = np.stack([places[firsts], places[lasts] + 1], axis=1).reshape(-1)
    runs = np.diff(borders, prepend=0, append=height * width)
    return {"size": [height, width], "counts": compress(runs.tolist())}


def _list_counts(segmentation: dict[str, Any]) -> dict[str, Any]:
    """Return a mask whose run lengths are numbers."""
    height, width = segmentation["size"]
    return {"size": [height, width], "counts": [int(run) for run in runs_of(segmentation["counts"], height * width)]}


def _draw_outline(segmentation: dict[str, Any]) -> list[list[float]]:
    """Return the outline of a mask as a polygon."""
    spans = list(_list_spans(segmentation))
    if not spans:
        return [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    chosen = [*spans[:-1:_STEP], spans[-1]]
    upper = [(float(column), float(top)) for column, top, _ in chosen]
    lower = [(float(column + 1), float(bottom)) for column, _, bottom in reversed(chosen)]
    return [[value for point in upper + lower for value in point]]
