"""The phase of segments: photographs in which every pixel has a category, and methods with one fault each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.phases import PHASES
from segjudge.families.base.challenges import encode_json
from segjudge.masks.compression import code_png

from .drawing import (
    SIZE,
    Floats,
    Frame,
    Ground,
    Labels,
    Pose,
    blur,
    load_cutout,
    load_ground,
    load_view,
    make_clouds,
)
from .files import SPLIT, encode_picture, pack_truth, replace, zipped
from .films import SEED, lay_grass, lay_table, lay_wall

PHASE = "photo-panoptic"
#: What is in the images; a segment's id is so many times the number of its category, and its own number beside.
THINGS = {1: "astronaut", 2: "raccoon", 3: "cup", 4: "shuttle", 5: "rocket", 6: "photograph"}
STUFF = {11: "wall", 12: "grass", 13: "gravel", 14: "sky", 15: "table"}
_IDS = 1000
_COUNT = 12
#: The id of each pixel's segment.
Segments = NDArray[np.int64]
_Method = Callable[[Segments, np.random.Generator], Segments]


# ── the images ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Place:
    """The scene of an image: its background and ground, their border, and the things that may stand there."""

    behind: tuple[int, Callable[[], Ground]]
    below: tuple[int, Callable[[], Ground]]
    horizon: float
    rough: float
    #: Categories, each with the least and the largest height.
    things: Mapping[int, tuple[int, int]]
    path: Callable[[], Ground] | None = None


def draw_image(number: int) -> tuple[NDArray[np.uint8], Segments]:
    """Return an image: its picture, and the segment id of each pixel."""
    generator = np.random.default_rng([SEED, 3, number])
    place = _PLACES[number % len(_PLACES)]
    canvas, stuff = _draw_ground(place, generator)
    names = generator.choice(list(place.things), int(generator.integers(4, 7)))
    feet = np.sort(generator.uniform(0, 1, len(names)))
    across = generator.permutation(np.linspace(50, SIZE[1] - 50, len(names)))
    for index, (category, depth, x) in enumerate(zip(names.tolist(), feet.tolist(), across.tolist(), strict=True), 1):
        least, largest = place.things[category]
        height = least + (largest - least) * depth
        bottom = SIZE[0] * (place.horizon + 0.06) + (SIZE[0] * (0.92 - place.horizon)) * depth
        turn = float(generator.uniform(-10, 10))
        looks = _LOOKS[category]
        canvas.draw(
            load_cutout(looks[(number + index) % len(looks)]),
            Pose(0, x, bottom - height / 2, height, turn),
            index,
            0.45,
        )
    ids = np.append(0, [category * _IDS + index for index, category in enumerate(names.tolist(), 1)])
    segments: Segments = np.where(canvas.labels > 0, ids[canvas.labels], stuff.astype(np.int64) * _IDS)
    return canvas.picture(), segments


def _draw_ground(place: _Place, generator: np.random.Generator) -> tuple[Frame, Labels]:
    """Draw the ground and background of an image; return the category of each pixel."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]].astype(np.float32)
    wave = make_clouds(generator, SIZE, (6, 40)) - 0.5
    edge = SIZE[0] * place.horizon + place.rough * wave
    is_below = rows > edge
    canvas = place.behind[1]().seen(*generator.uniform(0, 40, 2).tolist(), 1.0)
    front = place.below[1]().seen(*generator.uniform(0, 60, 2).tolist(), 1.0)
    near = np.clip((rows - SIZE[0] * place.horizon) / 60, 0, 1)[..., None]
    _lay(canvas, front.colours * (0.72 + 0.28 * near), is_below)
    stuff = np.where(is_below, place.below[0], place.behind[0]).astype(np.uint8)
    if place.path is not None:
        middle = generator.uniform(140, 340) + 0.5 * (rows - 200) * generator.uniform(-1, 1)
        wide = 26 + 0.5 * (rows - SIZE[0] * place.horizon) + 16 * wave
        is_path = is_below & (np.abs(columns - middle) < wide)
        _lay(canvas, place.path().seen(0, 0, 1.2).colours, is_path)
        stuff[is_path] = _number(STUFF, "gravel")
    return canvas, stuff


def _lay(canvas: Frame, colours: Floats, where: NDArray[np.bool_]) -> None:
    """Draw something over a part of the frame, with a soft edge."""
    alpha = blur(where.astype(np.float32), 1)[..., None]
    canvas.colours = canvas.colours * (1 - alpha) + colours * alpha


def _number(categories: Mapping[int, str], name: str) -> int:
    return next(number for number, other in categories.items() if other == name)


#: What a category looks like: names of the material, in turn.
_LOOKS: Mapping[int, tuple[str, ...]] = {
    1: ("astronaut",),
    2: ("raccoon",),
    3: ("cup",),
    4: ("shuttle",),
    5: ("rocket",),
    6: ("photo-cat", "photo-coffee", "photo-raccoon", "photo-rocket"),
}


def _pale_wall() -> Ground:
    return load_ground("brick", (0.3, 0.34, 0.36), (0.82, 0.86, 0.84), lies=True)


def _gravel() -> Ground:
    return load_ground("gravel", (0.12, 0.1, 0.09), (0.95, 0.9, 0.84))


def _sky() -> Ground:
    return Ground(load_view("pad").colours[:300] * np.array((1.3, 1.25, 1.2), np.float32))


_PLACES = (
    _Place((11, lay_wall), (12, lay_grass), 0.36, 16, {2: (50, 120), 1: (90, 190), 3: (34, 70)}, _gravel),
    _Place((14, _sky), (13, _gravel), 0.6, 8, {4: (90, 190), 5: (110, 220), 1: (60, 150)}),
    _Place((11, _pale_wall), (15, lay_table), 0.42, 0, {3: (56, 120), 6: (60, 110), 2: (60, 120)}),
)


# ── the methods ─────────────────────────────────────────────────────────────


def _careful(truth: Segments, generator: np.random.Generator) -> Segments:
    """Return precise segments, slightly off at every edge."""
    ids = np.unique(truth)
    noise = 1.1 * (make_clouds(generator, SIZE, (14, 24)) - 0.5)
    fields = [blur((truth == number).astype(np.float32), 4) + noise * (number in _things(truth)) for number in ids]
    segments: Segments = ids[np.argmax(fields, axis=0)]
    return segments


def _coarse(truth: Segments, _generator: np.random.Generator) -> Segments:
    """Return segments in blocks of eighteen pixels."""
    ids, side = np.unique(truth), 18
    height, width = (-(-length // side) * side for length in SIZE)
    padded = np.pad(truth, ((0, height - SIZE[0]), (0, width - SIZE[1])), mode="edge")
    blocks = padded.reshape(height // side, side, width // side, side)
    small = ids[np.argmax([(blocks == number).mean(axis=(1, 3)) for number in ids], axis=0)]
    return small.repeat(side, axis=0).repeat(side, axis=1)[: SIZE[0], : SIZE[1]]


def _merging(truth: Segments, generator: np.random.Generator) -> Segments:
    """Return segments in which all things of a category are one."""
    segments = _careful(truth, generator)
    category = segments // _IDS
    return np.where(category < 10, category * _IDS + 1, segments)


def _splitting(truth: Segments, generator: np.random.Generator) -> Segments:
    """Return segments in which every wide thing is split in two."""
    segments = _careful(truth, generator)
    for number in _things(segments):
        _, columns = np.nonzero(segments == number)
        half = columns.min() + 0.42 * (np.ptp(columns))
        if np.ptp(columns) > 60:
            segments[(segments == number) & (np.arange(SIZE[1]) > half)] = number + 500
    return segments


def _confused(truth: Segments, generator: np.random.Generator) -> Segments:
    """Return confused classes: rockets as shuttles, half of the cups as photographs, gravel as grass."""
    segments = _careful(truth, generator)
    taken = {5: 4, 13: 12}
    for number in np.unique(segments).tolist():
        category = taken.get(number // _IDS, number // _IDS)
        if number // _IDS == 3 and number % 2:
            category = 6
        segments[segments == number] = category * _IDS + number % _IDS
    return segments


def _forgetful(truth: Segments, generator: np.random.Generator) -> Segments:
    """Return segments without small ones, whose pixels get the surrounding segment."""
    segments = _careful(truth, generator)
    for number in _things(segments):
        mask = segments == number
        if mask.sum() < 3500:
            around = (blur(mask.astype(np.float32), 6) > 0.02) & ~mask
            ids, counts = np.unique(segments[around], return_counts=True)
            segments[mask] = ids[counts.argmax()]
    return segments


def _things(segments: Segments) -> list[int]:
    return [number for number in np.unique(segments).tolist() if number < 10 * _IDS]


#: By the names of their samples.
METHODS: Mapping[str, _Method] = {
    "careful": _careful,
    "coarse": _coarse,
    "merging": _merging,
    "splitting": _splitting,
    "confused": _confused,
    "forgetful": _forgetful,
}


# ── files ───────────────────────────────────────────────────────────────────


def _protocol() -> str:
    """Return the protocol that scores the phase of the demo."""
    return next(phase.splits[0].protocol for phase in PHASES if phase.codename == PHASE)


def write(root: Path) -> list[Path]:
    """Write the pictures, the annotation file and the results; return their paths."""
    drawn = [draw_image(number) for number in range(_COUNT)]
    paths = []
    for number, (picture, _) in enumerate(drawn):
        paths.append(root / "pictures" / PHASE / f"{_name(number)}.jpg")
        replace(paths[-1], encode_picture(picture))
    truths = [segments for _, segments in drawn]
    paths.append(root / "annotations" / f"{PHASE}.zip")
    pack_truth(paths[-1], _protocol(), _published(f"panoptic_{SPLIT}", truths))
    for name, method in METHODS.items():
        paths.append(root / "examples" / PHASE / f"{name}.zip")
        replace(paths[-1], zipped(_published("segments", make_results(method, truths))))
    return paths


def make_results(method: _Method, truths: list[Segments]) -> list[Segments]:
    """Make a method's segments of all images."""
    return [method(truth, np.random.default_rng([SEED, 4, number])) for number, truth in enumerate(truths)]


def _published(stem: str, results: list[Segments]) -> dict[str, bytes]:
    """Return truth or results in COCO's form: a JSON of this name, and a folder beside it."""
    categories = [
        {"id": number, "name": name, "isthing": int(kind is THINGS)}
        for kind in (THINGS, STUFF)
        for number, name in kind.items()
    ]
    names = [f"{_name(number)}.png" for number in range(len(results))]
    images = [{"id": number, "file_name": name} for number, name in enumerate(names, 1)]
    annotations = [
        {"image_id": image["id"], "file_name": image["file_name"], "segments_info": _list_segments(segments)}
        for image, segments in zip(images, results, strict=True)
    ]
    files = {f"{stem}/{name}": code_png(segments) for name, segments in zip(names, results, strict=True)}
    document = {"images": images, "annotations": annotations, "categories": categories}
    return {**files, f"{stem}.json": encode_json(document)}


def _name(number: int) -> str:
    """Return the name of an image, without its ending; COCO counts from 1."""
    return f"{number + 1:012d}"


def _list_segments(segments: Segments) -> list[dict[str, int]]:
    ids, areas = np.unique(segments, return_counts=True)
    return [
        {"id": number, "category_id": number // _IDS, "iscrowd": 0, "area": area}
        for number, area in zip(ids.tolist(), areas.tolist(), strict=True)
    ]
