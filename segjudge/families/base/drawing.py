"""The worst units of a split as frames that one steps through, each segment coloured by what is wrong with it.

A family's `UnitPainter` says what is in a frame; the player that shows it, the classes that are confused and the
pictures below the masks follow here, for every family alike.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.files.problems import HostError, inflect
from segjudge.evaluation_script.masks.stack import Size
from segjudge.evaluation_script.masks.stream import bytes_in_page
from segjudge.families.base.segments import FAULTS, INEXACT, MISSED, RIGHT, SURPLUS, SWAPPED
from segjudge.report.page import PageOptions, Section, make_confusion
from segjudge.report.player import make_player, picture_room, shrink_picture

from .painted import PaintedUnit, fit_width
from .pictures import UnitPainter

#: So many units are painted at most, and so many pixels of frames are looked at for it.
_MOST_UNITS, _MOST_PIXELS = 40, 60_000_000
#: Of a longer video so many frames are drawn.
_DRAWN = 60
#: What masks may take of a page, and how wide they are, the widest that fits.
_MASKS, _WIDTHS = 0.75, (1280, 854, 640, 480, 320, 240)
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".JPG", ".JPEG", ".PNG")
#: Folders of pictures below that of a unit.
_SUBFOLDERS = ((), ("img1",), ("origin",))
#: A page has so many moments, and so many of one unit.
_MOST_MOMENTS, _MOMENTS_OF_UNIT = 120, 4


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
        if painted and bytes_in_page(packed.values()) > room:
            break
        stream = f"{split}/{unit.name}"
        for looked in paintings:
            looked.forget_maps()
            occurring |= {kind for row in looked.rows() for kind in row.kinds}
        streams |= {f"{stream}{ending}": data for ending, data in packed.items()}
        room -= bytes_in_page(packed.values())
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
    units = _count_units(count, noun)
    if truth_alone:
        return f"The first {units}"
    if len(methods) > 1:
        return f"The {units} in which {methods[1]} loses most beside {methods[0]}"
    return f"The {_count_costly(count, noun)}"


def _count_units(count: int, noun: str) -> str:
    """Return `video` of one, else `3 videos`."""
    return inflect(count, noun.removesuffix("s"), f"{count:,} {noun}")


def _count_costly(count: int, noun: str) -> str:
    return f"{_count_units(count, noun)} that {inflect(count, 'costs', 'cost')} most"


def _paint_unit(
    painters: Collection[UnitPainter], unit: Unit, frames: Sequence[TruthFrame], *, truth_alone: bool
) -> list[PaintedUnit]:
    """Look with each painter at all frames of a unit, and draw those that there is room for, the same for all."""
    size, pixels = frames[0].size, _MOST_PIXELS // (2 + 2 * len(painters))
    fitting = (fit_width(size, width) for width in _WIDTHS)
    frame_pixels = pixels // min(len(frames), _DRAWN)
    widest = next((fit for fit in fitting if fit[0] * fit[1] <= frame_pixels), fit_width(size, _WIDTHS[-1]))

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
        if bytes_in_page(packed.values()) <= room:
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
    units = _count_units(pictures.units, noun)
    if pictures.looked_at == pictures.units:
        looked = f"{inflect(pictures.units, 'the', 'all')} {units}"
    else:
        looked = f"the {_count_costly(pictures.looked_at, noun)}, of all {units}"
    about = f"Segments of {looked}, matched above an IoU of one half whatever their class."
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
        names = list(dict.fromkeys(f"{unit.frames[0]}.jpg" for unit in units))
        sought = ", ".join(names[:3])
        raise HostError(f"{options.images}: has no pictures of what was scored; files such as {sought} are sought")
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
            room -= bytes_in_page([data])
            if room < 0:
                return pictures
            pictures[f"{stream}#{order[rank]}"] = data
    return pictures
