"""Faults of results: the change that each makes to an otherwise perfect prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from segjudge.evaluation_script.masks.stack import Array

from .known_files import Benchmark
from .known_scenes import CELL, COLUMNS, OBJECTS, POINTS, ROWS, SIZE, Video, World

#: A fault spoils these videos of a world, by this many pixels where it moves borders.
Spoil = Callable[[Video, int, np.random.Generator], None]
#: Numbers of what is made up begin here, in steps of the objects.
_SURPLUS, _PART = 2 * OBJECTS, 4 * OBJECTS
#: Identities change from this frame on.
EXCHANGED_AT, EXCHANGED_LATE = 4, 6


def _miss(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    for number in (1, 2):
        video.labels[video.labels == number] = 0
        video.points.pop(number, None)


def _add(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    """Draw small objects of the second class, or of the only one, where cells meet."""
    down, across = np.mgrid[: SIZE[0], : SIZE[1]]
    kind = 2 if 2 in video.classes.values() else 1
    for column in range(1, COLUMNS):
        disk = (down - SIZE[0] // ROWS) ** 2 + (across - column * CELL[1]) ** 2 <= 49
        number = _SURPLUS + column + (OBJECTS if column > 1 else 0)
        video.labels[:, disk] = np.where(video.labels[:, disk] == 0, number, video.labels[:, disk])
        video.classes[number] = kind
        video.scores[number] = 0.95
        middle = np.array([column * CELL[1], SIZE[0] // ROWS])
        video.points[number] = middle + 12.0 * np.array(list(POINTS.values()))


def _shift(video: Video, pixels: int, _random: np.random.Generator) -> None:
    video.labels[:] = np.roll(video.labels, pixels, 2)
    for number in video.points:
        video.points[number] = video.points[number] + [float(pixels), 0.0]


def _grow(mask: Array, pixels: int) -> Array:
    for _ in range(pixels):
        mask = mask | np.roll(mask, 1, 1) | np.roll(mask, -1, 1) | np.roll(mask, 1, 2) | np.roll(mask, -1, 2)
    return mask


def _erode(video: Video, pixels: int, _random: np.random.Generator) -> None:
    video.labels[_grow(video.labels == 0, pixels)] = 0


def _dilate(video: Video, pixels: int, _random: np.random.Generator) -> None:
    for number in video.numbers():
        video.labels[_grow(video.labels == number, pixels) & (video.labels == 0)] = number


def _halve(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    """Cut a little more than the right half of each object."""
    for labels in video.labels:
        for number in np.unique(labels[labels > 0]).tolist():
            _, columns = np.nonzero(labels == number)
            labels[(labels == number) & (np.arange(SIZE[1]) >= np.median(columns))] = 0


def _exchange_classes(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    video.classes = {number: {1: 2, 2: 1}.get(kind, kind) for number, kind in video.classes.items()}


def _rename(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    video.classes = {number: 2 if kind == 1 else kind for number, kind in video.classes.items()}


def _exchange_objects(video: Video, _pixels: int, _random: np.random.Generator, start: int = EXCHANGED_AT) -> None:
    later = video.labels[start:]
    later[:] = np.where(later == 1, 2, np.where(later == 2, 1, later))


def _merge(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    video.labels[video.labels == 2] = 1


def _split(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    """Give the upper and the lower halves of objects of the first class numbers of their own."""
    for labels in video.labels:
        for number in (1, 2):
            rows, _ = np.nonzero(labels == number)
            if len(rows):
                labels[(labels == number) & (np.arange(SIZE[0])[:, None] >= np.median(rows))] = _PART + number
    for number in (1, 2):
        video.classes[_PART + number] = video.classes[number]


def _sprinkle(video: Video, _pixels: int, random: np.random.Generator) -> None:
    """Remove pixels of objects, and add some around them."""
    for number in video.numbers():
        mask = video.labels == number
        around = _grow(mask, 2) & (video.labels == 0)
        noise = random.random(mask.shape)
        video.labels[mask & (noise < 0.15)] = 0
        video.labels[around & (noise < 0.4)] = number


def _disorder(video: Video, pixels: int, random: np.random.Generator) -> None:
    """Add false objects, and give correct ones lower scores than these."""
    _add(video, pixels, random)
    for number in range(1, OBJECTS + 1):
        video.scores[number] = 0.1 + 0.01 * number


def _exchange_sides(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    names = list(POINTS)
    order = [names.index(name.replace("left", "L").replace("right", "left").replace("L", "right")) for name in names]
    for number in video.points:
        video.points[number] = video.points[number][order]


def _displace_head(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    for number in video.points:
        video.points[number] = video.points[number] + np.eye(len(POINTS))[:, :1] * [0.0, -12.0]


def _bridge(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    """Fill a path between the first two objects."""
    columns, rows = (np.nonzero((video.labels == 1) | (video.labels == 2))[axis] for axis in (2, 1))
    middle = int(columns.mean())
    path = video.labels[:, rows.min() + 4 : rows.max() - 3, middle - 3 : middle + 3]
    path[path == 0] = 1


def _break(video: Video, _pixels: int, _random: np.random.Generator) -> None:
    """Cut a gap through the middle of the first two objects."""
    for number in (1, 2):
        rows = np.nonzero(video.labels == number)[1]
        gap = video.labels[:, int(rows.mean()) - 1 : int(rows.mean()) + 1]
        gap[gap == number] = 0


@dataclass(frozen=True)
class Fault:
    """A fault, and the expected verdict, as a pattern with {a}, {b} (classes) and {ground}."""

    spoil: Spoil
    pattern: str
    #: The same of label maps of classes alone, whose regions have no objects.
    of_maps: str = ""
    #: The same where one object is asked for.
    of_object: str = ""


_SMALL, _LARGE = r"too small|too little|is missing|are missing", r"too large|too much|lie outside|spilled over"
_EDGE = "inexact"
FAULTS: dict[str, Fault] = {
    "missed": Fault(_miss, r"missed|not shown", r"{a} is called {ground}", r"empty|missed"),
    "surplus": Fault(
        _add,
        r"match(es)? nothing|shows? nobody|surplus|no object there|not there|false alarm",
        r"{ground} is called {b}|{b}.*wrongly|too large",
        rf"{_LARGE}|surplus",
    ),
    "shifted": Fault(_shift, _EDGE, rf"{_EDGE}|edges", _EDGE),
    "eroded": Fault(_erode, _SMALL, rf"is called {{ground}}|{_SMALL}", _SMALL),
    "dilated": Fault(_dilate, _LARGE, rf"{{ground}} is called|{_LARGE}", _LARGE),
    "half": Fault(_halve, _SMALL, rf"called {{ground}}|{_SMALL}", _SMALL),
    "exchanged": Fault(_exchange_classes, r"“?({a}”? and “?{b}|{b}”? and “?{a})”? are exchanged"),
    "renamed": Fault(_rename, r"{a} is called {b}|{a} called {b}"),
    "identities": Fault(_exchange_objects, rf"exchange.* frame 0*{EXCHANGED_AT}\b|exchange.* frame 0*{EXCHANGED_AT + 1}\b"),
    "late identities": Fault(partial(_exchange_objects, start=EXCHANGED_LATE), rf"exchange.* frame 0*({EXCHANGED_LATE}|{EXCHANGED_LATE + 1})\b"),
    "merged": Fault(_merge, "merged", of_object=_LARGE),
    "split": Fault(_split, "split", of_object=_SMALL),
    "noise": Fault(_sprinkle, rf"{_EDGE}|noise", rf"{_EDGE}|edges|{{ground}} is called|called {{ground}}", rf"{_EDGE}|noise"),
    "bridged": Fault(_bridge, "merged"),
    "broken": Fault(_break, "split"),
    "scores": Fault(_disorder, "scores?"),
    "sides": Fault(_exchange_sides, r"left \w+ and right \w+ are exchanged|(left|right).*(exchanged|swapped)"),
    "joint": Fault(_displace_head, "head"),
}  # fmt: skip


def spoil(world: World, faults: list[str], random: np.random.Generator) -> World:
    """Return a prediction with these faults in all videos."""
    spoilt = [video.copy() for video in world]
    for name in faults:
        for video in spoilt:
            FAULTS[name].spoil(video, 3, random)
    return spoilt


def pattern_of(name: str, benchmark: Benchmark) -> str:
    fault = FAULTS[name]
    pattern = {"maps": fault.of_maps, "object": fault.of_object}.get(benchmark.asks, "")
    a, b = benchmark.names.get(1, ""), benchmark.names.get(2, "")
    return (pattern or fault.pattern).replace("{a}", a).replace("{b}", b).replace("{ground}", benchmark.ground)
