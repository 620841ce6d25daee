"""The worst units of a split as frames that one steps through, each segment coloured by what is wrong with it.

A family's `UnitPainter` says which segments a frame has on both sides and where they lie; what is wrong with each, the
worst moments, the rows of a timeline and the classes that are confused follow here, for every family alike.
"""

from __future__ import annotations

import abc
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitSubmission, UnitTruth
from segjudge.evaluation_script.files.problems import HostError, printable
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import Pairs
from segjudge.evaluation_script.masks.run_lengths import Masks, runs_of
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.evaluation_script.masks.stream import MaskStream, in_page
from segjudge.families.base.segments import (
    FAULTS,
    INEXACT,
    MISSED,
    PARTIAL,
    RIGHT,
    SURPLUS,
    SWAPPED,
    WRONG_CLASS,
    JudgedSegments,
    judge_segments,
)
from segjudge.report.confusion import make_confusion
from segjudge.report.page import PageOptions, Section
from segjudge.report.player import describe_frames, make_player, picture_room, shrink_picture

#: So many units are painted at most, and so many pixels of frames are looked at for it.
_MOST_UNITS, _MOST_PIXELS = 40, 60_000_000
#: Of a longer video so many frames are drawn.
_DRAWN = 60
#: What masks may take of a page, and how wide they are, the widest that fits.
_MASKS, _WIDTHS = 0.75, (1280, 854, 640, 480, 320, 240)
#: A page has so many moments, and so many of one unit; a timeline has so many rows.
_MOST_MOMENTS, _MOMENTS_OF_UNIT, _MOST_ROWS = 120, 4, 12
#: Frames between two runs of one fault that still make one moment.
_GAP = 2
#: Faults of a frame that are named, those of the largest segments first.
_MOST_NOTES = 8
#: Codes of two faults in one place: that of the truth times this, and that of the prediction.
_BASE = 16
#: What is right at its place in a segment that as a whole is not.
_BY_PIXEL = (0, RIGHT, PARTIAL)
#: An edge is as wide as this share of the diagonal.
_EDGE = 0.008
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".JPG", ".JPEG", ".PNG")
#: Folders of pictures below that of a unit.
_SUBFOLDERS = ((), ("img1",), ("origin",))


class Side(NamedTuple):
    """The segments of one side of a frame, an entry in each list for each segment."""

    #: What tells them apart through all frames of a unit.
    keys: Sequence[Any]
    names: Sequence[str]
    areas: Array
    classes: Array
    #: Those without an identity of their own, such as the sky, are never swapped.
    things: Array


class SeenFrame(NamedTuple):
    """What there is in a frame: segments, pixels that both sides share, and where they lie."""

    truth: Side
    prediction: Side
    #: Of truth (rows) and prediction (columns).
    shared: Array
    #: Which predictions are not judged, since they lie where nothing is: as many flags as there are predictions.
    excused: Array
    #: For so many rows and columns of a picture, which segment is where: its index from 1, on both sides.
    maps: Array | None
    #: In place of what the shared pixels say.
    judged: JudgedSegments | None = None


class UnitPainter(abc.ABC):
    """Says of the units of a split what is where, one frame after the other."""

    #: Every pixel of the truth has a label, or none that counts.
    dense = False
    #: Tracks and tubes: what follows an object through frames has an identity.
    follows = False
    #: Segments are classes, of which each pixel is judged by itself.
    by_pixel = False
    #: Each painter narrows what it opens; the truth alone is painted where there is none.
    _submission: UnitSubmission | None = None

    @abc.abstractmethod
    def look(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        """Yield what is in each frame of a unit; of those that are drawn also where, at these sizes."""

    def close(self) -> None:
        """Close the submission's file."""
        if self._submission is not None:
            self._submission.close()

    def class_names(self) -> Sequence[str]:
        """Names of classes, by their numbers; none where classes cannot be confused."""
        return ()

    def describe(self, unit: Unit) -> str:
        """Name a unit for people: by what it asks for in words, if it does."""
        text = printable(" ".join(str(unit.facts.get("text", "")).split()))
        return f"“{text}” ({unit.name})" if text else unit.name

    def pick_drawn(self, frames: Sequence[TruthFrame], costs: Sequence[float], count: int) -> list[int]:
        """Pick so many frames to draw, about: those around the worst ones."""
        chosen: set[int] = set()
        for worst in np.argsort(-np.array(costs), kind="stable").tolist():
            chosen.update(range(max(0, worst - 2), min(len(frames), worst + 3)))
            if len(chosen) >= count:
                break
        return sorted(chosen)


# ── a unit ──────────────────────────────────────────────────────────────────


@dataclass
class _JudgedFrame:
    """A frame, with what is wrong in it."""

    seen: SeenFrame
    judged: JudgedSegments


@dataclass
class _Row:
    """What became of one segment through the frames: its fault, and what stands for it."""

    name: str
    object: int
    at: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    partners: list[int] = field(default_factory=list)
    areas: list[float] = field(default_factory=list)

    def count_faults(self) -> int:
        return sum(kind != RIGHT for kind in self.kinds)


@dataclass
class Moment:
    """Frames in which a segment is wrong in one way."""

    sequence: str
    #: The name of the segment; none of a whole image.
    label: str
    kind: str
    style: str
    cost: float
    worst: str
    #: Which object and which frames, and what is wrong, in words.
    subject: str
    text: str
    #: What it can be chosen by: a group, and a word of that.
    words: list[tuple[str, str]]


class PaintedUnit:
    """Collects the frames of a unit."""

    def __init__(self, name: str, frames: list[str], size: Size) -> None:
        self.name, self.frames, self.size = name, frames, size
        self._judged: list[_JudgedFrame] = []
        #: Segments of the truth and of the prediction, by what tells them apart, with their names.
        self._objects: tuple[dict[Any, tuple[int, str]], dict[Any, tuple[int, str]]] = ({}, {})
        #: By the name of a track the object that it mostly follows, where several can be told apart.
        self._followed: dict[str, str] = {}

    def add(self, seen: SeenFrame, *, truth_alone: bool) -> None:
        judged = seen.judged or judge_segments(
            seen.shared,
            (seen.truth.areas, seen.prediction.areas),
            (seen.truth.classes, seen.prediction.classes),
        )
        if truth_alone:
            judged.truth[:] = RIGHT
        judged.prediction[seen.excused & (judged.prediction == SURPLUS)] = 0
        for side, objects in zip((seen.truth, seen.prediction), self._objects, strict=True):
            for key, name in zip(side.keys, side.names, strict=True):
                objects.setdefault(key, (len(objects), name))
        self._judged.append(_JudgedFrame(seen, judged))

    def note_swaps(self) -> None:
        """Call a match swapped where the object mostly has another track, or the track another object."""
        pairs = Counter(pair for frame in self._judged for pair in _pairs_of(frame, things=True))
        main: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
        for (truth, prediction), _ in pairs.most_common():
            main[0].setdefault(truth, prediction)
            main[1].setdefault(prediction, truth)
        for prediction, truth in main[1].items():
            self._followed[self._objects[1][prediction][1]] = self._objects[0][truth][1]
        for frame in self._judged:
            for column, row in enumerate(frame.judged.partner.tolist()):
                if row < 0 or frame.judged.truth[row] != RIGHT or frame.judged.prediction[column] != RIGHT:
                    continue
                truth, prediction = frame.seen.truth.keys[row], frame.seen.prediction.keys[column]
                if (truth, prediction) in pairs and (main[0][truth] != prediction or main[1][prediction] != truth):
                    frame.judged.truth[row] = frame.judged.prediction[column] = SWAPPED

    def count_confusions(self, table: dict[tuple[int, int], int]) -> None:
        """Add which classes were taken for which; -1 is nothing."""
        for frame in self._judged:
            seen, judged = frame.seen, frame.judged
            taken_rows = set()
            for column, row in enumerate(judged.partner.tolist()):
                if row >= 0 and judged.prediction[column] in {RIGHT, WRONG_CLASS, SWAPPED}:
                    taken_rows.add(row)
                    pair = int(seen.truth.classes[row]), int(seen.prediction.classes[column])
                    table[pair] = table.get(pair, 0) + 1
                elif judged.prediction[column]:
                    pair = -1, int(seen.prediction.classes[column])
                    table[pair] = table.get(pair, 0) + 1
            for row, kind in enumerate(seen.truth.classes.tolist()):
                if row not in taken_rows:
                    table[kind, -1] = table.get((kind, -1), 0) + 1

    def frame_costs(self) -> list[float]:
        """What share of each frame's segments is wrong."""
        costs = []
        for frame in self._judged:
            kinds = np.concatenate([frame.judged.truth, frame.judged.prediction])
            areas = np.concatenate([frame.seen.truth.areas, frame.seen.prediction.areas])
            wrong = (kinds != RIGHT) & (kinds != 0)
            pixels = max(1, self.size[0] * self.size[1])
            costs.append(
                float(wrong.sum() / max(1, np.count_nonzero(kinds)) + 0.001 * areas[wrong].sum() / pixels)
                if len(kinds)
                else 0.0
            )
        return costs

    def rows(self) -> list[_Row]:
        """What became of each segment of the truth, and of predicted ones that nothing of the truth explains."""
        rows: dict[Any, _Row] = {}
        for index, frame in enumerate(self._judged):
            partners = _list_taken(frame.judged)
            for row, key in enumerate(frame.seen.truth.keys):
                number, name = self._objects[0][key]
                column = partners.get(row, -1)
                partner = self._objects[1][frame.seen.prediction.keys[column]][0] if column >= 0 else -1
                area = float(frame.seen.truth.areas[row])
                _extend(
                    rows.setdefault((0, key), _Row(name, number)), index, int(frame.judged.truth[row]), partner, area
                )
            for column, key in enumerate(frame.seen.prediction.keys):
                if frame.judged.prediction[column] == SURPLUS:
                    number, name = self._objects[1][key]
                    area = float(frame.seen.prediction.areas[column])
                    _extend(rows.setdefault((1, key), _Row(f"surplus {name}", -1)), index, SURPLUS, number, area)
        return list(rows.values())

    # ── moments ──

    def find_moments(self, unit_cost: float, *, dense: bool) -> list[Moment]:
        """Find where segments are wrong, those that cost most first; an image is one moment."""
        if len(self.frames) == 1:
            return self._sum_up_image(unit_cost, dense=dense)
        pixels, moments = self.size[0] * self.size[1], []
        rows = self.rows()
        total = max(1, sum(row.count_faults() for row in rows))
        for row in rows:
            for start, stop in _find_runs(row):
                kinds, areas = row.kinds[start:stop], row.areas[start:stop]
                kind = Counter(kinds).most_common(1)[0][0]
                frames = row.at[start:stop]
                fault, worst = FAULTS[kind], int(np.argmax(areas))
                about = self._describe_fault(kind, row, start)
                words = [("kind", fault.name), ("size", _name_size(max(areas) / max(1, pixels)))]
                if start and row.at[start] - row.at[start - 1] > 1:
                    words.append(("time", "after an absence"))
                share = sum(frame_kind != RIGHT for frame_kind in kinds) / total
                location = f", {row.name}, {describe_frames(self.frames[frames[0]], self.frames[frames[-1]])}"
                moments.append(
                    Moment(
                        self.name,
                        row.name,
                        fault.name,
                        fault.style,
                        share,
                        self.frames[frames[worst]],
                        location,
                        about,
                        words,
                    )
                )
        moments.sort(key=lambda moment: -moment.cost)
        return [replace(moment, cost=moment.cost * unit_cost) for moment in moments]

    def _describe_fault(self, kind: int, row: _Row, start: int) -> str:
        fault = FAULTS[kind]
        if kind not in {SWAPPED, WRONG_CLASS}:
            return fault.about
        names = dict(self._objects[1].values())
        return self._name_mistake(kind, row.name, names.get(row.partners[start], "nothing"))

    def _name_mistake(self, kind: int, name: str, prediction: str) -> str:
        """Say what an object was taken for, or whose track it has."""
        if kind == WRONG_CLASS:
            return f"taken for {prediction}"
        followed = self._followed.get(prediction, "")
        return f"has the track of {followed}" if followed not in {"", name} else "is on another track than usually"

    def _sum_up_image(self, cost: float, *, dense: bool) -> list[Moment]:
        notes = self._note_faults(0)
        if not notes:
            inexact, (style, text) = FAULTS[INEXACT].name, self._describe_matches(dense=dense)
            return [Moment(self.name, "", inexact, style, cost, self.frames[0], "", text, [("kind", inexact)])]
        counts, areas = Counter(kind for kind, _, _ in notes), Counter[int]()
        pixels = max(1, self.size[0] * self.size[1])
        for kind, _, area in notes:
            areas[kind] += int(area)
        kind = areas.most_common(1)[0][0]
        largest = "; ".join(f"{FAULTS[note_kind].name}: {text}" for note_kind, text, _ in notes[:2])
        text = largest
        if len(notes) > 2:
            totals = ", ".join(f"{count} {FAULTS[note_kind].name}" for note_kind, count in counts.most_common())
            text = f"{totals} ({largest})"
        words = [("kind", FAULTS[note_kind].name) for note_kind in counts]
        words.append(("size", _name_size(max(area for *_, area in notes) / pixels)))
        fault = FAULTS[kind]
        return [Moment(self.name, "", fault.name, fault.style, cost, self.frames[0], "", text, words)]

    def _describe_matches(self, *, dense: bool) -> tuple[str, str]:
        """Say of an image in which everything matches how far it does not, and with which style that is drawn."""
        seen, judged = self._judged[0].seen, self._judged[0].judged
        columns = np.flatnonzero((judged.partner >= 0) & (judged.prediction == RIGHT))
        together = float(seen.shared[judged.partner[columns], columns].sum())
        areas = float(seen.truth.areas[judged.partner[columns]].sum()), float(seen.prediction.areas[columns].sum())
        if dense or not min(areas):
            return FAULTS[INEXACT].style, "everything matches, not exactly"
        missed, surplus = areas[0] - together, areas[1] - together
        shares = 100 * missed / areas[0], 100 * surplus / areas[1]
        text = (
            f"everything matches: {shares[0]:.0f} % of the truth is missed, {shares[1]:.0f} % of what is sent surplus"
        )
        return FAULTS[MISSED if missed > surplus else SURPLUS].style, text

    def _note_faults(self, index: int) -> list[tuple[int, str, float]]:
        """What is wrong in a frame, largest first: kind, words, pixels."""
        frame = self._judged[index]
        seen, judged, notes = frame.seen, frame.judged, []
        partners = _list_taken(judged)
        for row, kind in enumerate(judged.truth.tolist()):
            if kind == RIGHT:
                continue
            text = seen.truth.names[row]
            if kind in {WRONG_CLASS, SWAPPED} and row in partners:
                text += f" {self._name_mistake(kind, text, seen.prediction.names[partners[row]])}"
            notes.append((kind, text, float(seen.truth.areas[row])))
        for column, kind in enumerate(judged.prediction.tolist()):
            if kind == SURPLUS:
                notes.append((kind, seen.prediction.names[column], float(seen.prediction.areas[column])))
        return sorted(notes, key=lambda note: -note[2])

    # ── streams ──

    def pack(self, width: int, painter: UnitPainter, ranks: Mapping[int, int]) -> tuple[bytes, bytes, bytes]:
        """Make the streams of the unit: the truth, the prediction with its numbers, and what is wrong.

        Rows of a timeline are sorted by the ranks of their objects.
        """
        drawn = [index for index, frame in enumerate(self._judged) if frame.seen.maps is not None]
        size = _fit_width(self.size, width)
        sides = [MaskStream([], size, width) for _ in range(2)]
        of_objects = [[(), *((number,) for number in range(len(objects)))] for objects in self._objects]
        empty, codes = np.zeros(size, np.uint8), {}
        for index, frame in enumerate(self._judged):
            if frame.seen.maps is None:
                for stream, groups in zip(sides, of_objects, strict=True):
                    stream.add_labels(empty[None], groups)
                continue
            maps = _shrink_maps(frame.seen.maps, size)
            codes[index] = _code_faults(frame, maps, painter)
            for side, (stream, local) in enumerate(zip(sides, maps, strict=True)):
                keys = (frame.seen.truth, frame.seen.prediction)[side].keys
                numbers = np.array([0, *(self._objects[side][key][0] + 1 for key in keys)], np.uint16)
                stream.add_labels(numbers.take(local)[None], of_objects[side])
        used = sorted({0}.union(*(np.flatnonzero(np.bincount(code.reshape(-1))).tolist() for code in codes.values())))
        places = np.zeros(256, np.uint8)
        places[used] = np.arange(len(used))
        groups = [tuple(fault for fault in divmod(code, _BASE) if fault) for code in used]
        faults = MaskStream([], size, width)
        for index in range(len(self.frames)):
            faults.add_labels(places.take(codes.get(index, empty))[None], groups)
        colours = self._choose_colours()
        rows = sorted(self.rows(), key=lambda row: (row.object < 0, ranks.get(row.object, 0), -row.count_faults()))
        header = {"frames": self.frames, "drawn": drawn, "objects": [name for _, name in self._objects[0].values()]}
        costs, notes = self.frame_costs(), [self._note_faults(index) for index in range(len(self.frames))]
        predicted: dict[str, object] = {
            "objects": [name for _, name in self._objects[1].values()],
            "colours": colours[1],
            "loss": [round(cost, 4) for cost in costs],
            "partners": [self._list_partners(frame) for frame in self._judged],
            "notes": [[note[:2] for note in frame_notes[:_MOST_NOTES]] for frame_notes in notes],
            "counts": list(map(len, notes)),
            "segments": [len(frame.seen.truth.keys) for frame in self._judged],
            "rows": [
                {"name": row.name, "object": row.object, "at": row.at, "kinds": row.kinds, "ids": row.partners}
                for row in rows[:_MOST_ROWS]
            ],
            "all_rows": len(rows),
        }  # fmt: skip
        return sides[0].pack({**header, "colours": colours[0]}), sides[1].pack(predicted), faults.pack({})

    @property
    def width(self) -> int:
        """How wide frames are drawn."""
        return max((frame.seen.maps.shape[2] for frame in self._judged if frame.seen.maps is not None), default=1)

    @property
    def pixels(self) -> int:
        """How many pixels are drawn of one side."""
        return sum(frame.seen.maps[0].size for frame in self._judged if frame.seen.maps is not None)

    def forget_maps(self) -> None:
        """Forget where segments lie, which is packed by now."""
        self._judged = [_JudgedFrame(frame.seen._replace(maps=None), frame.judged) for frame in self._judged]

    def _choose_colours(self) -> tuple[list[int], list[int]]:
        """A colour for each object, and for each prediction that of the object that it mostly stands for."""
        objects, predictions = self._objects
        colours = {key: number for key, (number, _) in objects.items()}
        main: dict[Any, Any] = {}
        pairs = Counter(pair for frame in self._judged for pair in _pairs_of(frame, things=False))
        for (truth, prediction), _ in pairs.most_common():
            main.setdefault(prediction, truth)
        count = len(objects)
        return list(colours.values()), [
            colours[main[key]] if key in main else count + number for key, (number, _) in predictions.items()
        ]

    def _list_partners(self, frame: _JudgedFrame) -> list[list[int]]:
        return [
            [self._objects[1][frame.seen.prediction.keys[column]][0], self._objects[0][frame.seen.truth.keys[row]][0]]
            for column, row in enumerate(frame.judged.partner.tolist())
            if row >= 0
        ]


def _list_taken(judged: JudgedSegments) -> dict[int, int]:
    """Which predicted segment stands for each of the truth, where one does."""
    if judged.taken_for is not None:
        return {row: column for row, column in enumerate(judged.taken_for.tolist()) if column >= 0}
    return {row: column for column, row in reversed(list(enumerate(judged.partner.tolist()))) if row >= 0}


def _pairs_of(frame: _JudgedFrame, *, things: bool) -> Iterator[tuple[Any, Any]]:
    for column, row in enumerate(frame.judged.partner.tolist()):
        if row >= 0 and (not things or (frame.seen.truth.things[row] and frame.judged.prediction[column] == RIGHT)):
            yield frame.seen.truth.keys[row], frame.seen.prediction.keys[column]


def _extend(row: _Row, index: int, kind: int, partner: int, area: float) -> None:
    row.at.append(index)
    row.kinds.append(kind)
    row.partners.append(partner)
    row.areas.append(area)


def _find_runs(row: _Row) -> Iterator[tuple[int, int]]:
    """Yield where runs of one fault begin and end among the entries of a row, small gaps within."""
    wrong = [entry for entry, kind in enumerate(row.kinds) if kind not in {RIGHT, 0}]
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(wrong), 1)
        if row.kinds[before] != row.kinds[after] or row.at[after] - row.at[before] > _GAP + 1
    ]
    for start, stop in pairwise([0, *breaks, len(wrong)] if wrong else []):
        yield wrong[start], wrong[stop - 1] + 1


def _name_size(share: float) -> str:
    return "smaller than 1 %" if share < 0.01 else "1 to 5 %" if share < 0.05 else "from 5 % on"


def _fit_width(size: Size, width: int) -> Size:
    return max(1, round(size[0] * min(1, width / size[1]))), min(width, size[1])


def paint_mask(image: Array, text: str, size: Size, number: int) -> None:
    """Paint a mask, given as run lengths of another size, into an image as a number."""
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


def share_of_masks(truth: Masks, prediction: Masks) -> Array:
    """How many pixels the masks of a frame share: of the truth (rows) and predicted ones (columns)."""
    rows, columns = len(truth.area), len(prediction.area)
    if not rows or not columns:
        return np.zeros((rows, columns))
    pairs = Pairs(np.arange(columns).repeat(rows), np.tile(np.arange(rows), columns), np.array([0, rows * columns]))
    ious = backend().mask_overlaps(pairs, prediction, truth, np.zeros(rows, bool)).reshape(columns, rows).T
    shared: Array = np.rint(ious * (truth.area[:, None] + prediction.area) / (1 + ious))
    return shared


def sample_rows_and_columns(whole: Sequence[int], size: Size) -> tuple[Array, Array]:
    """Which rows and columns of a picture one of another size shows."""
    rows, columns = (
        ((np.arange(count) + 0.5) * length / count).astype(int) for count, length in zip(size, whole, strict=True)
    )
    return rows, columns


def _shrink_maps(maps: Array | None, size: Size) -> Array:
    if maps is None:
        raise ValueError("the frame is not one of those that are drawn")
    if maps.shape[1:] == size:
        return maps
    rows, columns = sample_rows_and_columns(maps.shape[1:], size)
    shrunk: Array = maps[:, rows[:, None], columns]
    return shrunk


def _code_faults(frame: _JudgedFrame, maps: Array, painter: UnitPainter) -> Array:
    """Say of each pixel what is wrong there: a fault, or two of them, that of the truth times a base."""
    truth, prediction = maps
    judged = frame.judged
    own, predicted = (np.append(0, kinds).astype(np.uint8) for kinds in (judged.truth, judged.prediction))
    partner = np.append(-1, judged.partner) + 1
    # The code of each pair of segments: pixels look theirs up.
    table = np.zeros((len(own), len(predicted)), np.uint8)
    for row, kind in enumerate(own.tolist()):
        for column, predicted_kind in enumerate(predicted.tolist()):
            table[row, column] = _code_pair(
                kind, predicted_kind, together=row > 0 and partner[column] == row, painter=painter
            )
    codes: Array = table.reshape(-1).take(truth.astype(np.int32) * len(predicted) + prediction)
    if painter.by_pixel:
        reach = max(1, round(_EDGE * float(np.hypot(*truth.shape))))
        codes[(codes == WRONG_CLASS) & _is_near(truth, prediction, reach)] = INEXACT
    return codes


def _code_pair(kind: int, predicted_kind: int, *, together: bool, painter: UnitPainter) -> int:
    if painter.dense and not kind:
        return 0
    if painter.by_pixel:
        return (RIGHT if together else WRONG_CLASS) if kind and predicted_kind else kind and MISSED
    wrong, wrong_too = kind not in _BY_PIXEL, predicted_kind not in _BY_PIXEL
    if wrong and wrong_too and kind != predicted_kind:
        return kind * _BASE + predicted_kind
    if wrong or wrong_too:
        return kind if wrong else predicted_kind
    if kind and predicted_kind:
        if together:
            return PARTIAL if painter.dense and kind == PARTIAL else RIGHT
        return PARTIAL if painter.dense and PARTIAL in {kind, predicted_kind} else INEXACT
    return MISSED if kind else SURPLUS if predicted_kind else 0


def _is_near(truth: Array, prediction: Array, reach: int) -> Array:
    """Whether the truth has near a pixel what is predicted there."""
    height, width = truth.shape
    padded = np.pad(truth, reach, mode="edge")
    near = np.zeros(truth.shape, bool)
    for down in (0, reach, 2 * reach):
        for across in (0, reach, 2 * reach):
            near |= padded[down : down + height, across : across + width] == prediction
    return near


# ── the sections ────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class UnitPictures:
    """What a page shows of the worst units: a player, and which classes were taken for which."""

    player: Section
    #: Counts by the classes of truth and prediction; -1 is nothing.
    confusions: Mapping[tuple[int, int], int]
    #: How many units these are of, and of how many.
    looked_at: int
    units: int
    #: The player's streams by the names of their units.
    streams: Mapping[str, str]
    #: How units are named for people.
    names: Mapping[str, str]


def draw_units(  # noqa: PLR0913 - what is drawn, in which order and words, and how much of it
    painters: Mapping[str, UnitPainter],
    truth: UnitTruth,
    order: Sequence[tuple[int, Sequence[float]]],
    noun: str,
    options: PageOptions,
    *,
    split: str,
    truth_alone: bool = False,
) -> UnitPictures | None:
    """Paint units in an order (their index, and what they cost each method), as many as page and time have room for.

    A method has a name where there are several; worst moments are those of the second one, or of the only one.
    """
    methods, painter = list(painters), next(iter(painters.values()))
    painted: list[PaintedUnit] = []
    confusions: dict[tuple[int, int], int] = {}
    streams: dict[str, bytes] = {}
    drawn: dict[str, str] = {}
    sequences, moments, paths = [], [], {}
    occurring = {RIGHT, INEXACT} if painter.dense else {RIGHT, MISSED, SURPLUS}
    pixels, room = 0, options.budget * _MASKS
    if options.images:
        room -= picture_room(options.budget)
    costly = [entry for entry in order if truth_alone or max(entry[1]) > 0]
    for index, costs in costly[:_MOST_UNITS]:
        unit = truth.units[index]
        frames = unit.load()
        if not frames or not all(frames[0].size):
            continue
        if painted and (pixels > _MOST_PIXELS or room < 0.02 * options.budget):
            break
        paintings = _paint_unit(painters.values(), unit, frames, truth_alone=truth_alone)
        painting = paintings[:2][-1]
        for looked in paintings:
            pixels += looked.pixels if not painter.dense else len(frames) * frames[0].size[0] * frames[0].size[1]
            looked.count_confusions(confusions)
        packed = _fit(paintings, painter, max(room / max(1, min(len(costly), _MOST_UNITS) - len(painted)), 0.08 * room))
        if painted and in_page(packed.values()) > room:
            break
        stream = f"{split}/{unit.name}"
        for looked in paintings:
            looked.forget_maps()
            occurring |= {kind for row in looked.rows() for kind in row.kinds}
        streams |= {f"{stream}{ending}": data for ending, data in packed.items()}
        room -= in_page(packed.values())
        painted.append(painting)
        lost = [] if truth_alone else [round(cost, 6) for cost in costs]
        sequences.append({"name": painting.name, "stream": stream, "lost": lost})
        drawn[unit.name] = stream
        if not truth_alone:
            grown = costs[0] if len(costs) == 1 else costs[1] - costs[0]
            moments += painting.find_moments(grown, dense=painter.dense)[:_MOMENTS_OF_UNIT]
        if options.images:
            paths[stream] = _find_pictures(options.images, unit.name, painting.frames)
    if not painted:
        return None
    if options.images:
        streams |= _make_pictures(options, paths, painted)
    moments.sort(key=lambda moment: -moment.cost)
    about = {
        "of": methods[:2][-1],
        "bare": 0,
        "pictures": sum("#" in name for name in streams),
        "wanted": bool(options.images),
        "smaller": False,
        "shown": _name_shown(len(painted), noun, methods, truth_alone=truth_alone),
        "looked_at": len(painted),
        "units": len(truth.units),
        "item": noun.removesuffix("s").capitalize(),
        "plural": noun,
        "single": all(len(painting.frames) == 1 for painting in painted),
        "follows": painter.follows,
    }
    names = {unit.name: painter.describe(unit) for unit in truth.units}
    legend = [fault for kind, fault in FAULTS.items() if kind in occurring]
    player = make_player(
        sequences,
        [asdict(moment) for moment in moments[:_MOST_MOMENTS]],
        {
            "form": "segments",
            "follows": painter.follows,
            "faults": {kind: (fault.name, fault.style) for kind, fault in FAULTS.items()},
        },
        {**about, "legend": _merge_styles(legend), "frames": sum(len(painting.frames) for painting in painted)},
        streams,
        [] if truth_alone else methods,
    )
    return UnitPictures(player, confusions, len(painted), len(truth.units), drawn, names)


def _name_shown(count: int, noun: str, methods: Sequence[str], *, truth_alone: bool) -> str:
    """Say which units are drawn."""
    if truth_alone:
        return f"The first {count:,} {noun}"
    if len(methods) > 1:
        return f"The {count:,} {noun} in which {methods[1]} loses most beside {methods[0]}"
    return f"The {count:,} {noun} that cost most"


def _paint_unit(
    painters: Collection[UnitPainter], unit: Unit, frames: Sequence[TruthFrame], *, truth_alone: bool
) -> list[PaintedUnit]:
    """Look with each painter at all frames of a unit, and draw those that there is room for, the same for all."""
    size, pixels = frames[0].size, _MOST_PIXELS // (2 + 2 * len(painters))
    fitting = (_fit_width(size, width) for width in _WIDTHS)
    frame_pixels = pixels // min(len(frames), _DRAWN)
    widest = next((fit for fit in fitting if fit[0] * fit[1] <= frame_pixels), _fit_width(size, _WIDTHS[-1]))

    def look(painter: UnitPainter, drawn: Mapping[int, Size]) -> PaintedUnit:
        painted = PaintedUnit(painter.describe(unit), [frame.name for frame in frames], size)
        for seen in painter.look(unit, frames, drawn):
            painted.add(seen, truth_alone=truth_alone)
        if painter.follows:
            painted.note_swaps()
        return painted

    whole = dict.fromkeys(range(len(frames)), widest)
    if len(frames) > max(_DRAWN, pixels // (widest[0] * widest[1])):
        costs = np.max([look(painter, {}).frame_costs() for painter in painters], axis=0).tolist()
        whole = dict.fromkeys(next(iter(painters)).pick_drawn(frames, costs, _DRAWN), widest)
    return [look(painter, whole) for painter in painters]


def _fit(units: Sequence[PaintedUnit], painter: UnitPainter, room: float) -> dict[str, bytes]:
    """Pack a unit of each method as wide as it is, or narrower where it takes more than its part of a page."""
    packed: dict[str, bytes] = {}
    for width in (units[0].width, *(width for width in _WIDTHS if width < units[0].width)):
        packed = _pack_methods(units, width, painter)
        if in_page(packed.values()) <= room:
            break
    return packed


def _pack_methods(units: Sequence[PaintedUnit], width: int, painter: UnitPainter) -> dict[str, bytes]:
    """Pack one truth, and of each method its own streams; a truth of its own too where it is judged by another one."""
    packed: dict[str, bytes] = {}
    ranks = _rank_objects(units)
    for number, unit in enumerate(units):
        truth, packed[f"/{number}"], packed[f"/{number}/faults"] = unit.pack(width, painter, ranks)
        if packed.setdefault("", truth) != truth:
            packed[f"/{number}/truth"] = truth
    return packed


def _rank_objects(units: Sequence[PaintedUnit]) -> dict[int, int]:
    """Rank objects by what is wrong with them, of all methods together: those that are swapped first."""
    faults, swapped = Counter[int](), set[int]()
    for row in (row for unit in units for row in unit.rows()):
        faults[row.object] += row.count_faults()
        if SWAPPED in row.kinds:
            swapped.add(row.object)
    order = sorted(faults, key=lambda number: (number not in swapped, -faults[number], number))
    return {number: rank for rank, number in enumerate(order)}


def _merge_styles(faults: Sequence[Any]) -> list[tuple[str, str]]:
    styles: dict[str, list[str]] = {}
    for fault in faults:
        styles.setdefault(fault.style, []).append(fault.name)
    return [(style, " or ".join(dict.fromkeys(names))) for style, names in styles.items()]


def make_class_confusion(painter: UnitPainter, pictures: UnitPictures, noun: str) -> list[Section]:
    """Show which classes were taken for which in the units that were drawn, where the family has classes."""
    names = painter.class_names()
    if len(names) < 2 or not pictures.confusions:
        return []
    table = np.zeros((len(names) + 1, len(names) + 1), np.int64)
    for (truth, prediction), count in pictures.confusions.items():
        table[truth, prediction] += count
    looked = (
        "all" if pictures.looked_at == pictures.units else f"the {pictures.looked_at} {noun} that cost most, of all"
    )
    about = f"Segments of {looked} {pictures.units:,} {noun}, matched above an IoU of one half whatever their class."
    return [make_confusion([*names, "nothing"], table, "segments", about)]


# ── pictures below the masks ────────────────────────────────────────────────


def _find_pictures(folder: str, unit: str, frames: list[str]) -> list[str]:
    """Find the picture of each frame; an empty text where there is none."""
    return [_find_picture(folder, unit, frame) for frame in frames]


def _find_picture(folder: str, unit: str, frame: str) -> str:
    stem = os.path.splitext(frame)[0] if os.path.splitext(frame)[1] in _ENDINGS else frame
    stems = dict.fromkeys([stem, stem.zfill(6), stem.zfill(12)] if stem.isdigit() else [stem])
    unit_folder = unit.replace("..", "")
    places = [os.path.join(folder, unit_folder, *below) for below in _SUBFOLDERS]
    places += [folder, os.path.join(folder, unit_folder.rpartition("/")[2])]
    for place_folder in [*places, os.path.join(folder, os.path.dirname(stem).replace("..", ""))]:
        for name in stems:
            for ending in _ENDINGS:
                path = os.path.join(place_folder, os.path.basename(name) + ending)
                if os.path.isfile(path):
                    return path
    return ""


def _make_pictures(
    options: PageOptions, paths: Mapping[str, list[str]], units: Sequence[PaintedUnit]
) -> dict[str, bytes]:
    """Make pictures of the frames that are looked at first, as many as there is room for, by the name of a stream."""
    if not any(path for own in paths.values() for path in own):
        names = ", ".join([unit.frames[0] for unit in units][:3])
        raise HostError(f"{options.images}: has no pictures of what was scored; files such as {names}.jpg are sought")
    room, pictures = picture_room(options.budget), dict[str, bytes]()
    ranked = [
        (stream, np.argsort(-np.array(unit.frame_costs()), kind="stable").tolist())
        for stream, unit in zip(paths, units, strict=True)
    ]
    for rank in range(max(len(order) for _, order in ranked)):
        for stream, order in ranked:
            if rank >= len(order) or not paths[stream][order[rank]]:
                continue
            data = shrink_picture(paths[stream][order[rank]])
            room -= in_page([data])
            if room < 0:
                return pictures
            pictures[f"{stream}#{order[rank]}"] = data
    return pictures
