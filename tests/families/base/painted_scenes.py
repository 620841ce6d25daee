"""The texts and drawings of small scenes in which boxes have every kind of error, as one text."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.families.base.drawing import _rank_objects
from segjudge.families.base.painted import PaintedUnit
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter
from segjudge.families.base.segments import FAULTS, judge_segments
from tests.pages import digest, round_numbers

FILE = Path(__file__).with_suffix(".txt")
_SIZE = (18, 24)
#: The kinds of painters: tracks, classes of pixels, and segments that cover all of a frame.
_KINDS = {
    "boxes": {},
    "tracks": {"follows": True},
    "classes": {"by_pixel": True, "dense": True},
    "cover": {"dense": True},
}


class _Painter(UnitPainter):
    def __init__(self, flags: Mapping[str, bool]) -> None:
        vars(self).update(flags)

    def read_frames(self, *_: object) -> Iterator[SeenFrame]:
        raise AssertionError("its frames are made here")


def write_scenes() -> str:
    lines = ["# segments, by the pixels that they share: each side, partners", *_judge_tables()]
    lines += ["# frames that are drawn of so many, by what they cost", *_pick_frames()]
    for kind, flags in _KINDS.items():
        for seed, count in ((0, 1), (4, 40)):
            lines += [f"# {kind}, {count} frames", *_describe(_Painter(flags), seed, count)]
    return round_numbers("\n".join(lines)) + "\n"


def _judge_tables() -> Iterator[str]:
    """Judge segments of ten pixels, and some others, on each side of every limit."""
    tables: list[tuple[list[list[int]], list[int], list[int], list[int], list[int]]] = [
        ([[7]], [10], [11], [1], [1]), ([[7]], [10], [11], [1], [2]), ([[10]], [15], [15], [1], [1]), ([[10]], [15], [15], [1], [2]),
        ([[11]], [15], [15], [1], [2]), ([[2]], [11], [11], [1], [1]), ([[1]], [10], [1], [1], [1]), ([[1]], [10], [2], [1], [1]),
        ([[1]], [10], [2], [1], [2]), ([[5, 5]], [10], [5, 5], [1], [1, 1]), ([[5, 4]], [10], [5, 9], [1], [1, 1]),
        ([[2, 2]], [10], [3, 3], [1], [1, 1]), ([[3, 2]], [10], [3, 3], [1], [1, 1]), ([[9, 1]], [10], [9, 2], [1], [1, 1]),
        ([[9, 1]], [10], [9, 2], [1], [1, 2]), ([[9, 1]], [10], [9, 3], [1], [1, 1]), ([[10], [10]], [10, 10], [20], [1, 1], [1]),
        ([[5], [4]], [10, 8], [20], [1, 1], [1]), ([[4], [4]], [10, 10], [20], [1, 1], [1]), ([[8], [8]], [10, 10], [16], [1, 1], [2]),
        ([[10], [10]], [10, 10], [30], [1, 2], [1]), ([[9, 0], [10, 0]], [10, 10], [19, 5], [1, 1], [1, 1]), ([[8], [2]], [9, 4], [10], [1, 1], [1]),
        ([[6, 3], [3, 6]], [10, 10], [10, 10], [1, 1], [1, 1]), ([[8, 8]], [10], [10, 10], [1], [2, 1]), ([[2, 2]], [10], [10, 10], [1], [1, 1]),
        ([[2], [2]], [10, 10], [10], [1, 1], [1]), ([[0]], [0], [0], [1], [1]), ([[3, 3, 3]], [10], [3, 3, 9], [1], [1, 1, 2]),
    ]  # fmt: skip
    for shared, rows, columns, classes, predicted in tables:
        sides = np.array(rows), np.array(columns)
        judged = judge_segments(np.array(shared, float), sides, (np.array(classes), np.array(predicted)))
        true_faults, predicted_faults = (
            [FAULTS[kind].name for kind in side.tolist()] for side in (judged.truth, judged.prediction)
        )
        yield f"{shared} of {rows} {columns}, classes {classes} {predicted}: {true_faults} {predicted_faults} {judged.partner.tolist()}"


def _pick_frames() -> Iterator[str]:
    painter, frames = _Painter({}), [TruthFrame("", _SIZE, [], lambda: LabelMap(np.zeros(_SIZE, np.uint8)))] * 10
    for costs in ("0300000020", "0000000001", "1000000000", "2000000200", "0000500004", "1111111111"):
        picked = [painter.pick_drawn(frames, list(map(float, costs)), count) for count in (1, 3, 5, 6, 10)]
        yield f"{costs}: {picked}"


def _describe(painter: UnitPainter, seed: int, count: int) -> Iterator[str]:
    """Describe the faults, the costliest ones, and the drawing, at full width and narrower."""
    units = [_paint(painter, seed, count, worse) for worse in (0.8,)]
    ranks = _rank_objects(units)
    yield f"ranks {ranks}"
    for unit in units:
        confusions: dict[tuple[int, int], int] = {}
        unit.count_confusions(confusions)
        yield f"costs {unit.frame_costs()}; confusions {sorted(confusions.items())}"
        for moment in unit.find_moments(0.5, dense=painter.dense)[:4]:
            yield f"  {list(vars(moment).values())}"
        for stream in unit.pack(24, painter, ranks):
            line, _, pixels = zlib.decompress(stream).partition(b"\n")
            header = {key: value for key, value in json.loads(line).items() if value and key != "frames"}
            yield f"  {json.dumps(header, ensure_ascii=False) if count < 9 else digest(line)} {digest(pixels)}"
        yield f"  narrower {digest(b''.join(map(zlib.decompress, unit.pack(10, painter, ranks))))}"


def _paint(painter: UnitPainter, seed: int, count: int, worse: float) -> PaintedUnit:
    draw = np.random.RandomState(seed)  # whose numbers never change
    unit = PaintedUnit(f"scene {seed}", [f"{2 * frame:03d}" for frame in range(count)], _SIZE)
    boxes = [(draw.randint(0, 10), draw.randint(0, 14), draw.randint(3, 9), draw.randint(3, 10)) for _ in range(5)]
    for frame in range(count):
        truth, prediction = np.zeros(_SIZE, np.uint16), np.zeros(_SIZE, np.uint16)
        for number, (top, left, high, wide) in enumerate(boxes, 1):
            window = slice(top, top + high), slice(left + frame % 3, left + frame % 3 + wide)
            if draw.rand() < 0.8:
                truth[window] = number
            fault = draw.randint(1, 8) if draw.rand() < worse and (frame % 5 or count == 1) else 0
            moved = [
                window,
                window,
                (window[0], slice(left + wide // 2, left + wide + 2)),
                (window[0], slice(left, left + 2)),
            ]
            label = {4: number % 5 + 1, 5: 1, 6: number + 5, 7: 11}.get(fault, number)
            if fault != 1:
                prediction[moved[fault] if fault < 4 else window] = label
        if painter.dense:
            truth, prediction = np.where(truth, truth, 6), np.where(prediction, prediction, 6)
        unit.add(_see(truth, prediction, drawn=frame % 4 < 3), truth_alone=False)
    if painter.follows:
        unit.note_swaps()
    return unit


def _see(truth: Any, prediction: Any, *, drawn: bool) -> SeenFrame:
    sides = [_list_side(noun, labels) for noun, labels in (("object", truth), ("track", prediction))]
    shared = [
        [float(((truth == key) & (prediction == predicted_faults)).sum()) for predicted_faults in sides[1].keys]
        for key in sides[0].keys
    ]
    table = np.array(shared).reshape(len(sides[0].keys), len(sides[1].keys))
    places = [
        np.searchsorted([0, *side.keys], labels).astype(np.uint16) for side, labels in zip(sides, (truth, prediction))
    ]
    excused = np.array([key == 11 for key in sides[1].keys], bool)
    return SeenFrame(sides[0], sides[1], table, excused, np.stack(places) if drawn else None)


def _list_side(noun: str, labels: Any) -> Side:
    keys: Sequence[int] = [key for key in np.unique(labels).tolist() if key]
    areas = np.array([(labels == key).sum() for key in keys], np.int64)
    classes = np.array([key % 3 for key in keys], np.int64)
    return Side(keys, [f"{noun} {key}" for key in keys], areas, classes, np.array([key != 6 for key in keys], bool))


if __name__ == "__main__":
    FILE.write_text(write_scenes())
