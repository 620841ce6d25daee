"""The interface for pictures of units: the segments of both sides of a frame, and where they lie."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitSubmission, UnitTruth
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import printable
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap, LabelPairs, Pairs, sum_by_key
from segjudge.evaluation_script.masks.run_lengths import Masks, runs_of
from segjudge.evaluation_script.masks.stack import Array, Size, places_of
from segjudge.families.base.segments import JudgedSegments


class Side(NamedTuple):
    """The segments of one side of a frame, an entry in each list for each segment."""

    #: The keys that identify segments through all frames of a unit.
    keys: Sequence[Any]
    names: Sequence[str]
    areas: Array
    classes: Array
    #: Whether segments have an identity; others, such as the sky, are never swapped.
    things: Array


def side_of_one(name: str, area: int) -> Side:
    """Return the side of a frame with at most one segment."""
    names: list[str] = [name] if area else []
    areas: Array = np.array([area] if area else [], np.int64)
    return Side(names, names, areas, np.zeros(len(names), np.int64), np.zeros(len(names), bool))


def side_of_labels(noun: str, labels: Array, pixels: Array) -> Side:
    """Return the side whose segments are labels of one class, given their areas; 0 is none."""
    labels, areas = sum_by_key(labels, pixels)
    keys = labels[labels > 0].tolist()
    names = [f"{noun} {key}" for key in keys]
    return Side(keys, names, areas[labels > 0], np.zeros(len(keys), np.int64), np.ones(len(keys), bool))


class SeenFrame(NamedTuple):
    """The content of a frame: segments, shared pixels, and where they lie."""

    truth: Side
    prediction: Side
    #: Truth (rows) and prediction (columns).
    shared: Array
    #: Whether each prediction is ignored because it lies on unlabelled or ignored regions.
    excused: Array
    #: Returns for rows and columns of a picture the index of the segment there, from 1, on both sides.
    maps: Array | None
    #: The judgement that replaces one by shared pixels.
    judged: JudgedSegments | None = None
    #: The score of each prediction, if predictions have scores.
    scores: Sequence[float] = ()


class UnitPainter(abc.ABC):
    """A painter that shows the content of a split's units, frame by frame."""

    #: Every pixel of the truth has a label or is ignored.
    dense = False
    #: Segments have an identity through frames, as tracks and tubes do.
    follows = False
    #: Segments are classes; each pixel is judged by itself.
    by_pixel = False
    #: Draw dark outlines around segments; lines and points are too thin for outlines.
    outlined = True
    #: The metric's name of the minimum overlap of matches, if it has several.
    threshold = ""
    #: The name of a segment of a frame.
    segment = "mask"
    #: The weight of a match's missing IoU relative to a missed segment, and whether segments match one to one.
    edge_weight, one_to_one = 1.0, False
    #: Opens the submission to paint.
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], UnitSubmission]
    #: The opened submission, which each painter restricts; None paints only the truth.
    _submission: UnitSubmission | None = None

    def __init__(self, results: str, truth: UnitTruth, rules: ScoringRules) -> None:
        self._protocol: Any = rules.protocol
        if results:
            self._submission = self.open_submission(results, truth, rules.protocol, rules.limits)

    @abc.abstractmethod
    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        """Yield each frame's segments, and for drawn frames also their maps at these sizes."""

    def measure_picture(self, unit: Unit, frame: TruthFrame) -> Size:
        """Return the size of a frame's picture; 0 on both sides if it cannot be drawn."""
        return frame.size

    def make_picture(self, unit: Unit) -> bytes:
        """Return the picture that the painter makes itself below the masks of a unit; b"" if it lies in a file."""
        return b""

    def note_picture(self) -> str:
        """Return the sentences on how pictures show units, and on units without one; "" if nothing is odd."""
        return ""

    def close(self) -> None:
        """Close the submission's file."""
        if self._submission is not None:
            self._submission.close()

    def class_names(self) -> Sequence[str]:
        """Return the names of classes by number; empty if classes cannot be confused."""
        return ()

    def describe(self, unit: Unit) -> str:
        """Return the display name of a unit: the text of its query, if it has one."""
        query = self.describe_query(unit)
        if query:
            return f"{query} ({unit.name})"
        return f"image {unit.name}" if unit.cost == 1 and unit.name.isdigit() else unit.name  # a bare id

    def describe_query(self, unit: Unit) -> str:
        """Return the quoted text of a unit's query; "" without one."""
        text = printable(" ".join(str(unit.facts.get("text", "")).split()))
        return f"“{text}”" if text else ""

    def pick_drawn(self, frames: Sequence[TruthFrame], costs: Sequence[float], count: int) -> list[int]:
        """Return about `count` frames to draw, around the worst ones."""
        chosen: set[int] = set()
        for worst in np.argsort(-np.array(costs), kind="stable").tolist():
            chosen.update(range(max(0, worst - 2), min(len(frames), worst + 3)))
            if len(chosen) >= count:
                break
        return sorted(chosen)


def paint_mask(image: Array, text: str, size: Size, number: int) -> None:
    """Scale a mask (run lengths of another size) to an image, and write a number into its pixels."""
    height = size[0]
    runs = runs_of(text, height * size[1])
    ends = np.cumsum(runs)
    if len(runs) < 2:
        return
    first_column, end_column = int(ends[0]) // height, int(ends[len(ends) // 2 * 2 - 1] - 1) // height + 1
    runs = runs.copy()
    runs[0] -= first_column * height
    flags = np.repeat(np.arange(len(runs)) % 2 == 1, runs)[: (end_column - first_column) * height]
    rows, columns = sample_rows_and_columns(size, (image.shape[0], image.shape[1]))
    start, stop = np.searchsorted(columns, [first_column, end_column])
    window = image[:, start:stop]
    window[flags.reshape(-1, height)[columns[start:stop] - first_column][:, rows].T] = number


def paint_masks(texts: Sequence[str], size: Size, small: Size) -> Array:
    """Paint masks into an image of another size, by their numbers from 1, later ones on top."""
    image = np.zeros(small, np.uint16)
    for number, text in enumerate(texts, 1):
        paint_mask(image, text, size, number)
    return image


def share_of_labels(truth: Sequence[int], prediction: Sequence[int], pairs: LabelPairs) -> Array:
    """Return the shared pixels of true labels (rows) and predicted ones (columns)."""
    shared = np.zeros((len(truth), len(prediction)))
    sides = [np.array(keys, np.int64) for keys in (truth, prediction)]
    orders = [np.argsort(keys) for keys in sides]
    rows, columns = (
        places_of(keys[order], labels)
        for keys, order, labels in zip(sides, orders, (pairs.truth, pairs.prediction), strict=True)
    )
    both = (rows >= 0) & (columns >= 0)
    shared[orders[0][rows[both]], orders[1][columns[both]]] = pairs.pixels[both]
    return shared


def index_labels(pixels: LabelMap, keys: Sequence[int], size: Size) -> Array:
    """Return the index of each pixel's label in `keys` from 1, in a picture of another size; 0 elsewhere."""
    rows, columns = sample_rows_and_columns(pixels.numbers.shape, size)
    numbers = pixels.numbers[rows[:, None], columns].reshape(-1)
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    ids = pixels.labels_of(numbers[starts])
    ids_of_keys = np.array(keys, np.int64)
    order = np.argsort(ids_of_keys)
    places = places_of(ids_of_keys[order], ids)
    indices = np.where(places >= 0, np.append(order, 0)[places] + 1, 0).astype(np.uint16)
    image: Array = np.repeat(indices, np.diff(np.append(starts, len(numbers)))).reshape(size)
    return image


def share_of_masks(truth: Masks, prediction: Masks) -> Array:
    """Return the shared pixels of a frame's masks: true ones (rows), predicted ones (columns)."""
    rows, columns = len(truth.area), len(prediction.area)
    if not rows or not columns:
        return np.zeros((rows, columns))
    pairs = Pairs(np.arange(columns).repeat(rows), np.tile(np.arange(rows), columns), np.array([0, rows * columns]))
    ious = backend().mask_overlaps(pairs, prediction, truth, np.zeros(rows, bool)).reshape(columns, rows).T
    shared: Array = np.rint(ious * (truth.area[:, None] + prediction.area) / (1 + ious))
    return shared


def fit_width(size: Size, width: int) -> Size:
    """Return a size with the same proportions and at most the given width."""
    return max(1, round(size[0] * min(1, width / size[1]))), min(width, size[1])


def sample_rows_and_columns(whole: Sequence[int], size: Size) -> tuple[Array, Array]:
    """Return the sampled rows and columns of a picture for another size."""
    rows, columns = (
        ((np.arange(count) + 0.5) * length / count).astype(int) for count, length in zip(size, whole, strict=True)
    )
    return rows, columns
