"""A painted unit: the faults of its segments, the worst moments, and streams for a player."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.evaluation_script.masks.stream import MaskStream
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.segments import (
    FAULTS,
    INEXACT,
    MISSED,
    PARTIAL,
    RIGHT,
    SPLIT,
    SURPLUS,
    SWAPPED,
    WRONG_CLASS,
    JudgedSegments,
    find_runs,
    judge_segments,
)
from segjudge.report.colours import MISTAKES
from segjudge.report.player import describe_frames

from .pictures import SeenFrame, UnitPainter, fit_width, sample_rows_and_columns

#: The maximum number of named faults of a frame; the largest segments come first.
_MOST_NOTES = 8
#: The maximum number of an image's faults that a search finds.
_MOST_FOUND = 100
#: The code of two faults in one place is the truth's times this, plus the prediction's.
_BASE = 16
#: The maximum width of a still of an image, the opacity of its mistakes, and of correct pixels.
_STILL, _COVER, _LIGHT = 320, 0.65, 0.35
#: Faults of segments whose correct pixels are drawn as correct.
_BY_PIXEL = (0, RIGHT, PARTIAL)
#: The width of an edge as a share of the diagonal.
_EDGE = 0.008
#: The minimum IoU for which a page can decide whether it matches.
_LEAST_SHOWN = 0.05
#: The maximum number of rows of a timeline.
_MOST_ROWS = 12


@dataclass
class _JudgedFrame:
    """A frame and its faults."""

    seen: SeenFrame
    judged: JudgedSegments


@dataclass
class _Row:
    """The row of one segment through the frames: its fault, and its partner."""

    name: str
    object: int
    #: The indices of its frames.
    indices: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    partners: list[int] = field(default_factory=list)
    areas: list[float] = field(default_factory=list)

    def count_faults(self) -> int:
        return sum(kind != RIGHT for kind in self.kinds)


@dataclass
class _Moment:
    """A moment: consecutive frames in which a segment has one fault."""

    sequence: str
    #: The name of the segment; "" for a whole image.
    label: str
    kind: str
    style: str
    cost: float
    worst: str
    #: The object, the frames and the fault, in words.
    subject: str
    text: str
    #: The filters that select it: a group and an entry of it.
    words: list[tuple[str, str]]
    #: All its faults as text, for the filter.
    faults: str = ""


class PaintedUnit:
    """A collector of a unit's frames."""

    def __init__(self, name: str, frames: list[str], size: Size, pixels: int = 0) -> None:
        self.name, self.frames, self.size = name, frames, size
        #: The number of elements of a frame, by default pixels.
        self._whole = max(1, pixels or size[0] * size[1])
        self._judged: list[_JudgedFrame] = []
        #: True and predicted segments by key, with their names.
        self._objects: tuple[dict[Any, tuple[int, str]], dict[Any, tuple[int, str]]] = ({}, {})
        #: The object that each track mostly follows, by the track's name, if objects are distinguished.
        self._followed: dict[str, str] = {}
        #: Faults that have a colour in the packed pictures.
        self.shown: set[int] = set()

    def add(self, seen: SeenFrame, *, truth_alone: bool) -> None:
        judged = seen.judged or judge_segments(
            seen.shared, (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
        )
        if truth_alone:
            judged.truth[:] = RIGHT
        judged.prediction[seen.excused & (judged.prediction == SURPLUS)] = 0
        for side, objects in zip((seen.truth, seen.prediction), self._objects, strict=True):
            for key, name in zip(side.keys, side.names, strict=True):
                objects.setdefault(key, (len(objects), name))
        self._judged.append(_JudgedFrame(seen, judged))

    def note_swaps(self) -> None:
        """Mark matches as swapped if object or track mostly match another partner."""
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
        """Add the confusions of classes; -1 is nothing."""
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

    def count_causes(self, counts: CauseCounts, classes: Sequence[str]) -> None:
        """Add the verdict on each segment; `classes` are the names of all classes, or what the unit asks for."""
        swaps = []
        for frame, name in zip(self._judged, self.frames, strict=True):
            counts.add(self.name, frame.seen, frame.judged, tuple(classes))
            for column, row in enumerate(frame.judged.partner.tolist()):
                if row >= 0 and frame.judged.truth[row] == SWAPPED:
                    followed = self._followed.get(frame.seen.prediction.names[column], "")
                    if followed not in {"", frame.seen.truth.names[row]}:
                        swaps.append((frame.seen.truth.names[row], followed, name))
        counts.add_swaps(self.name, swaps)

    def frame_costs(self) -> list[float]:
        """Return the fraction of wrong segments per frame."""
        costs = []
        for frame in self._judged:
            kinds = np.concatenate([frame.judged.truth, frame.judged.prediction])
            areas = np.concatenate([frame.seen.truth.areas, frame.seen.prediction.areas])
            wrong = (kinds != RIGHT) & (kinds != 0)
            costs.append(
                float(wrong.sum() / max(1, np.count_nonzero(kinds)) + 0.001 * areas[wrong].sum() / self._whole)
                if len(kinds)
                else 0.0
            )
        return costs

    def rows(self) -> list[_Row]:
        """Return a row per true segment and per unexplained predicted one."""
        rows: dict[Any, _Row] = {}
        for index, frame in enumerate(self._judged):
            partners = frame.judged.list_partners()
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

    def find_moments(self, unit_cost: float, *, dense: bool) -> list[_Moment]:
        """Return the moments with faults, most costly first; an image is one moment."""
        if len(self.frames) == 1:
            return self._sum_up_image(unit_cost, dense=dense)
        moments = []
        rows = self.rows()
        total = max(1, sum(row.count_faults() for row in rows))
        for row in rows:
            faults = [0 if kind == RIGHT else kind for kind in row.kinds]
            for start, stop in find_runs(faults, row.indices):
                kinds, areas = row.kinds[start:stop], row.areas[start:stop]
                kind = Counter(kinds).most_common(1)[0][0]
                frames = row.indices[start:stop]
                fault, worst = FAULTS[kind], int(np.argmax(areas))
                about = self._describe_fault(kind, row, start, stop)
                facets = [("kind", fault.name), ("size", _name_size(max(areas) / self._whole))]
                if start and row.indices[start] - row.indices[start - 1] > 1:
                    facets.append(("time", "after an absence"))
                share = sum(frame_kind != RIGHT for frame_kind in kinds) / total
                location = f", {row.name}, {describe_frames(self.frames[frames[0]], self.frames[frames[-1]])}"
                moments.append(
                    _Moment(
                        self.name,
                        row.name,
                        fault.name,
                        fault.style,
                        share,
                        self.frames[frames[worst]],
                        location,
                        about,
                        facets,
                    )
                )
        if not moments and unit_cost > 0:
            moments = self._find_least_exact_frame(dense=dense)
        moments.sort(key=lambda moment: -moment.cost)
        return [replace(moment, cost=moment.cost * unit_cost) for moment in moments]

    def _find_least_exact_frame(self, *, dense: bool) -> list[_Moment]:
        """Return the frame whose matches overlap least, of a unit without other faults; nothing without matches."""
        measured = [(index, *_measure_matches(frame)) for index, frame in enumerate(self._judged)]
        overlaps = [(together / sum(areas), index) for index, together, areas in measured if min(areas)]
        if not overlaps:
            return []
        _, index = min(overlaps)
        inexact, (style, text) = FAULTS[INEXACT].name, self._describe_matches(index, dense=dense)
        name = self.frames[index]
        return [
            _Moment(
                self.name, "", inexact, style, 1.0, name, f", {describe_frames(name, name)}", text, [("kind", inexact)]
            )
        ]

    def _describe_fault(self, kind: int, row: _Row, start: int, stop: int) -> str:
        """Describe a fault of some frames; what an object is taken for may change, and most pixels decide."""
        if kind not in {SWAPPED, WRONG_CLASS}:
            return FAULTS[kind].about
        pixels: Counter[int] = Counter()
        for index in range(start, stop):
            pixels[row.partners[index]] += int(row.areas[index]) * (row.kinds[index] == kind)
        names = dict(self._objects[1].values())
        return self._name_mistake(kind, row.name, names.get(pixels.most_common(1)[0][0], "nothing"))

    def _name_mistake(self, kind: int, name: str, prediction: str) -> str:
        """Return the sentence about the classes with which an object was confused."""
        if kind == WRONG_CLASS:
            return f"taken for {prediction}"
        followed = self._followed.get(prediction, "")
        return (
            f"has the track of {followed}"
            if followed not in {"", name}
            else "is on a different track than in most frames"
        )

    def _sum_up_image(self, cost: float, *, dense: bool) -> list[_Moment]:
        notes = self._note_faults(0)
        if not notes:
            inexact, (style, text) = FAULTS[INEXACT].name, self._describe_matches(0, dense=dense)
            return [_Moment(self.name, "", inexact, style, cost, self.frames[0], "", text, [("kind", inexact)])]
        counts, areas = Counter(kind for kind, _, _ in notes), Counter[int]()
        for kind, _, area in notes:
            areas[kind] += int(area)
        kind = areas.most_common(1)[0][0]
        largest = "; ".join(f"{FAULTS[note_kind].name}: {text}" for note_kind, text, _ in notes[:2])
        text = largest
        if len(notes) > 2:
            totals = ", ".join(f"{count} {FAULTS[note_kind].name}" for note_kind, count in counts.most_common())
            text = f"{totals} ({largest})"
        facets = [("kind", FAULTS[note_kind].name) for note_kind in counts]
        facets.append(("size", _name_size(max(area for *_, area in notes) / self._whole)))
        fault = FAULTS[kind]
        faults = "; ".join(f"{FAULTS[note_kind].name}: {note}" for note_kind, note, _ in notes[:_MOST_FOUND])
        return [_Moment(self.name, "", fault.name, fault.style, cost, self.frames[0], "", text, facets, faults)]

    def _describe_matches(self, index: int, *, dense: bool) -> tuple[str, str]:
        """Return the style and caption of a frame whose segments all match."""
        together, areas = _measure_matches(self._judged[index])
        if dense or not min(areas):
            return FAULTS[INEXACT].style, "all segments match, but inexactly"
        missed, surplus = areas[0] - together, areas[1] - together
        shares = 100 * missed / areas[0], 100 * surplus / areas[1]
        text = (
            f"everything matches: {shares[0]:.0f} % of the truth is missing, "
            f"{shares[1]:.0f} % of the prediction is surplus"
        )
        return FAULTS[MISSED if missed > surplus else SURPLUS].style, text

    def _note_faults(self, index: int) -> list[tuple[int, str, float]]:
        """Return the faults of a frame, largest first: kind, sentence, pixels."""
        frame = self._judged[index]
        seen, judged, notes = frame.seen, frame.judged, []
        partners = judged.list_partners()
        for row, kind in enumerate(judged.truth.tolist()):
            if kind == RIGHT:
                continue
            text = seen.truth.names[row]
            if kind in {WRONG_CLASS, SWAPPED} and row in partners:
                text += f" {self._name_mistake(kind, text, seen.prediction.names[partners[row]])}"
            notes.append((kind, text, float(seen.truth.areas[row])))
        for column, kind in enumerate(judged.prediction.tolist()):
            row, area = int(judged.partner[column]), float(seen.prediction.areas[column])
            if kind == SURPLUS:
                notes.append((kind, seen.prediction.names[column], area))
            elif kind == SPLIT and row >= 0 and judged.truth[row] == RIGHT:  # a piece beside the match
                notes.append((kind, seen.truth.names[row], area))
        return sorted(notes, key=lambda note: -note[2])

    # ── streams ──

    def pack(self, width: int, painter: UnitPainter, ranks: Mapping[int, int]) -> tuple[bytes, bytes, bytes]:
        """Return the streams of the unit: truth, prediction with numbers, and faults.

        The rows of a timeline are in the order of the objects' ranks.
        """
        drawn = [index for index, frame in enumerate(self._judged) if frame.seen.maps is not None]
        size = fit_width(self.size, width)
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
        self.shown.update(*groups)
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
                {"name": row.name, "object": row.object, "at": row.indices, "kinds": row.kinds, "ids": row.partners}
                for row in rows[:_MOST_ROWS]
            ],
            "all_rows": len(rows),
        }  # fmt: skip
        if painter.threshold:
            predicted |= self._list_overlaps()
        return sides[0].pack({**header, "colours": colours[0]}), sides[1].pack(predicted), faults.pack({})

    def paint_faults(self, painter: UnitPainter) -> tuple[int, Array, Array] | None:
        """Return the drawn frame with the most faults, the colours of its pixels, and their opacity; None if none is
        drawn.

        Correct pixels of maps in which every pixel has a label remain clear.
        """
        costs = self.frame_costs()
        drawn = [index for index, frame in enumerate(self._judged) if frame.seen.maps is not None]
        if not drawn:
            return None
        worst = max(drawn, key=lambda index: costs[index])
        frame = self._judged[worst]
        codes = _code_faults(frame, _shrink_maps(frame.seen.maps, fit_width(self.size, _STILL)), painter)
        colours, opacity = np.zeros((256, 3)), np.zeros(256)
        for code in np.unique(codes[codes > 0]).tolist():
            kind = code // _BASE or code
            colours[code] = MISTAKES[FAULTS[kind].style.split()[0]]
            opacity[code] = _COVER if kind != RIGHT else 0.0 if painter.dense else _LIGHT
        return worst, colours[codes], opacity[codes]

    @property
    def width(self) -> int:
        """Return the width at which frames are drawn."""
        return max((frame.seen.maps.shape[2] for frame in self._judged if frame.seen.maps is not None), default=1)

    @property
    def pixels(self) -> int:
        """Return the number of drawn pixels of one side."""
        return sum(frame.seen.maps[0].size for frame in self._judged if frame.seen.maps is not None)

    def forget_maps(self) -> None:
        """Drop the segment maps after packing."""
        self._judged = [_JudgedFrame(frame.seen._replace(maps=None), frame.judged) for frame in self._judged]

    def _choose_colours(self) -> tuple[list[int], list[int]]:
        """Return a colour per object; a prediction gets the colour of the object that it mostly matches."""
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

    def _list_overlaps(self) -> dict[str, object]:
        """Return what a page needs to match by another threshold: scores, and per frame IoUs and numbers of masks."""
        scores: dict[int, float] = {}
        overlaps, present = [], []
        for frame in self._judged:
            seen = frame.seen
            numbers = [self._objects[1][key][0] for key in seen.prediction.keys]
            scores |= dict(zip(numbers, seen.scores, strict=False))
            union = seen.truth.areas[:, None] + seen.prediction.areas - seen.shared
            ious = np.where(
                seen.truth.classes[:, None] == seen.prediction.classes, seen.shared / np.maximum(union, 1), 0
            )
            overlaps.append(
                [
                    [numbers[column], self._objects[0][seen.truth.keys[row]][0], round(float(ious[row, column]), 3)]
                    for row, column in np.argwhere(ious >= _LEAST_SHOWN).tolist()
                ]
            )
            judged = [number for number, kind in zip(numbers, frame.judged.prediction.tolist(), strict=True) if kind]
            present.append([len(seen.truth.keys), judged])
        return {
            "overlaps": overlaps,
            "present": present,
            "scores": [round(scores[number], 4) for number in range(len(self._objects[1]))] if scores else [],
        }

    def _list_partners(self, frame: _JudgedFrame) -> list[list[int]]:
        return [
            [self._objects[1][frame.seen.prediction.keys[column]][0], self._objects[0][frame.seen.truth.keys[row]][0]]
            for column, row in enumerate(frame.judged.partner.tolist())
            if row >= 0
        ]


def _pairs_of(frame: _JudgedFrame, *, things: bool) -> Iterator[tuple[Any, Any]]:
    for column, row in enumerate(frame.judged.partner.tolist()):
        if row >= 0 and (not things or (frame.seen.truth.things[row] and frame.judged.prediction[column] == RIGHT)):
            yield frame.seen.truth.keys[row], frame.seen.prediction.keys[column]


def _measure_matches(frame: _JudgedFrame) -> tuple[float, tuple[float, float]]:
    """Return the common pixels of correct matches, and all pixels of their segments on either side."""
    seen, judged = frame.seen, frame.judged
    columns = np.flatnonzero((judged.partner >= 0) & (judged.prediction == RIGHT))
    rows = judged.partner[columns]
    areas = float(seen.truth.areas[rows].sum()), float(seen.prediction.areas[columns].sum())
    return float(seen.shared[rows, columns].sum()), areas


def _extend(row: _Row, index: int, kind: int, partner: int, area: float) -> None:
    row.indices.append(index)
    row.kinds.append(kind)
    row.partners.append(partner)
    row.areas.append(area)


def _name_size(share: float) -> str:
    return "smaller than 1 %" if share < 0.01 else "1 to 5 %" if share < 0.05 else "from 5 % on"


def _shrink_maps(maps: Array | None, size: Size) -> Array:
    if maps is None:
        raise ValueError("the frame is not among the drawn frames")
    if maps.shape[1:] == size:
        return maps
    rows, columns = sample_rows_and_columns(maps.shape[1:], size)
    shrunk: Array = maps[:, rows[:, None], columns]
    return shrunk


def _code_faults(frame: _JudgedFrame, maps: Array, painter: UnitPainter) -> Array:
    """Return the fault code of each pixel; the truth's fault is multiplied by a base."""
    truth, prediction = maps
    judged = frame.judged
    true_kinds, predicted = (np.append(0, kinds).astype(np.uint8) for kinds in (judged.truth, judged.prediction))
    partner = np.append(-1, judged.partner) + 1
    # The code of each pair of segments: pixels look theirs up.
    table = np.zeros((len(true_kinds), len(predicted)), np.uint8)
    for row, kind in enumerate(true_kinds.tolist()):
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
    """Return whether the truth has the predicted segment near a pixel."""
    height, width = truth.shape
    padded = np.pad(truth, reach, mode="edge")
    near = np.zeros(truth.shape, bool)
    for down in (0, reach, 2 * reach):
        for across in (0, reach, 2 * reach):
            near |= padded[down : down + height, across : across + width] == prediction
    return near
