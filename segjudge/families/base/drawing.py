"""Pictures of a split's worst units: frames to step through, with segments coloured by their faults.

A family's `UnitPainter` describes a frame; for every family, this module makes the player, the confused classes, and
the pictures below the masks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.files.problems import HostError, inflect
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.evaluation_script.masks.stream import bytes_in_page
from segjudge.families.base.segments import FAULTS, INEXACT, MISSED, RIGHT, SURPLUS, SWAPPED
from segjudge.report.colours import GROUND
from segjudge.report.page import PageOptions, Section, make_confusion
from segjudge.report.player import PictureFolder, Still, decode_picture, make_player, picture_room

from .causes import CauseCounts
from .painted import PaintedUnit
from .pictures import UnitPainter, fit_width

#: The maximum number of painted units, and of frame pixels examined for them.
_MOST_UNITS, _MOST_PIXELS = 40, 60_000_000
#: The number of frames drawn of a longer video.
_MOST_DRAWN_FRAMES = 60
#: The share of a page for masks, and their possible widths, widest first.
_MASKS, _WIDTHS = 0.75, (1280, 854, 640, 480, 320, 240)
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".JPG", ".JPEG", ".PNG")
#: Folders of pictures below a unit's folder.
_SUBFOLDERS = ((), ("img1",), ("origin",))
#: Names of pictures in benchmarks, by the names of label files.
_RENAMED = (("_gtFine_instanceIds", "_leftImg8bit"),)
#: The maximum number of moments on a page, and of one unit.
_MOST_MOMENTS, _MOMENTS_OF_UNIT = 120, 4


@dataclass(frozen=True)
class UnitPictures:
    """The pictures of the worst units: a player, and confused classes."""

    player: Section
    #: Counts by the classes of truth and prediction; -1 is no class.
    confusions: Mapping[tuple[int, int], int]
    #: The numbers of examined and of all units.
    looked_at: int
    units: int
    #: The player's streams by the names of their units.
    streams: Mapping[str, str]
    #: The readable names of units.
    names: Mapping[str, str]
    #: The causes of most of these units' loss, as a sentence.
    cause: str = ""


@dataclass(frozen=True)
class RankedUnits:
    """Units of a split in the order in which a page draws them."""

    split: str
    truth: UnitTruth
    #: The index of each unit, and its cost for each method.
    order: Sequence[tuple[int, Sequence[float]]]
    #: The plural of the name of a unit.
    noun: str
    #: Whether only the truth is drawn.
    truth_alone: bool = False
    #: Whether costs are parts of a metric's loss, which the player states.
    are_losses: bool = True
    #: Each unit's part of the explained loss, by index; empty if costs are not losses.
    losses: Sequence[float] = ()

    def loss_of(self, unit: Unit) -> float:
        """Return the loss to which a unit's causes are scaled; 0 if it is unknown."""
        return self._losses_by_name.get(unit.name, 0.0)

    @cached_property
    def _losses_by_name(self) -> dict[str, float]:
        return {unit.name: loss for unit, loss in zip(self.truth.units, self.losses, strict=False)}

    def list_drawable(self) -> list[tuple[Unit, Sequence[float]]]:
        """Return the units with a cost, up to the limit of a page."""
        costly = [entry for entry in self.order if self.truth_alone or max(entry[1]) > 0]
        return [(self.truth.units[index], costs) for index, costs in costly[:_MOST_UNITS]]

    def describe_scope(self, count: int) -> str:
        """Return the beginning of a sentence on the first units, if they are not all."""
        return "" if count == len(self.truth.units) else f"In the {_count_costly(count, self.noun)}, "

    def describe_first(self, count: int, methods: Sequence[str]) -> str:
        """Return the descriptions of the drawn units."""
        units = _count_units(count, self.noun)
        if self.truth_alone:
            return f"The first {units}"
        if len(methods) > 1:
            return f"The first {units} with a loss, sorted by the loss of {methods[1]} minus that of {methods[0]}"
        return f"The {_count_costly(count, self.noun)}"


def draw_units(painters: Mapping[str, UnitPainter], units: RankedUnits, options: PageOptions) -> UnitPictures | None:
    """Draw the first units within the limits of page and time; None if no unit has a cost.

    With several methods, each has a name; the worst moments are the second method's, or the only one's.
    """
    drawing = _UnitDrawing(painters, units, options)
    drawing.draw()
    return drawing.collect_pictures() if drawing.painted else None


def describe_units(painter: UnitPainter, units: RankedUnits) -> str:
    """Describe the most expensive causes of the first units, of as many as `draw_units` has time for."""
    painted: list[_Painted] = []
    pixels = 0
    for unit, _ in units.list_drawable():
        frames = unit.load()
        if not frames or not all(frames[0].size):
            continue
        if painted and pixels > _MOST_PIXELS:
            break
        drawn = {0: fit_width(frames[0].size, _WIDTHS[0])}  # as on a page
        painted.append(_Painted(unit, _see_unit(painter, unit, frames, drawn)))
        pixels += _count_pixels(frames)
    return _describe_causes(painter, units, painted)


class _Painted(NamedTuple):
    """A unit and its painting."""

    unit: Unit
    painting: PaintedUnit


def _describe_causes(painter: UnitPainter, units: RankedUnits, painted: Sequence[_Painted]) -> str:
    """Describe the most expensive causes of painted units."""
    counts = CauseCounts(
        painter.segment, units.noun.removesuffix("s"), edge_weight=painter.edge_weight, one_to_one=painter.one_to_one,
        averages_shares=painter.dense,
    )  # fmt: skip
    for unit, painting in painted:
        before = dict(counts.costs)
        painting.count_causes(counts, _name_classes(painter, unit))
        counts.scale_costs(before, units.loss_of(unit))
    return counts.describe(units.describe_scope(len(painted)))


def _count_pixels(frames: Sequence[TruthFrame]) -> int:
    return sum(frame.size[0] * frame.size[1] for frame in frames)


def _name_classes(painter: UnitPainter, unit: Unit) -> Sequence[str]:
    """Return the names of all classes; of a single class, the unit's query, if any."""
    names, query = painter.class_names(), painter.describe_query(unit)
    return [query] if query and len(names) < 2 else names


class _UnitDrawing:
    """The drawing of units within the room of a page."""

    def __init__(self, painters: Mapping[str, UnitPainter], units: RankedUnits, options: PageOptions) -> None:
        self._painters, self._units, self._options = painters, units, options
        self._painter = next(iter(painters.values()))
        #: For each unit, its drawing with the second method, or with the only one.
        self.painted: list[PaintedUnit] = []
        self._painted_units: list[_Painted] = []
        self._confusions: dict[tuple[int, int], int] = {}
        self._occurring = {RIGHT, INEXACT} if self._painter.dense else {RIGHT, MISSED, SURPLUS}
        self._streams: dict[str, bytes] = {}
        self._stream_of: dict[str, str] = {}
        self._costs: list[Sequence[float]] = []
        #: Of the first unit, the frame, colours and opacity of its worst mistakes.
        self._still: tuple[int, Array, Array] | None = None
        self._pixels = 0
        self._room = options.budget * _MASKS - (picture_room(options.budget) if options.images else 0)

    def draw(self) -> None:
        """Draw units until the page or the time is used up."""
        drawable = self._units.list_drawable()
        for unit, costs in drawable:
            frames = unit.load()
            if not frames or not all(self._painter.measure_picture(unit, frames[0])):
                continue
            if self.painted and (self._pixels > _MOST_PIXELS or self._room < 0.02 * self._options.budget):
                break
            paintings = self._paint(unit, frames)
            share = max(self._room / max(1, len(drawable) - len(self.painted)), 0.08 * self._room)
            packed = _fit(paintings, self._painter, share)
            if self.painted and bytes_in_page(packed.values()) > self._room:
                break
            self._add(unit, paintings, packed, costs)
            picture = self._painter.make_picture(unit)
            if picture:
                self._add_streams(unit, {"#0": picture})

    def _paint(self, unit: Unit, frames: Sequence[TruthFrame]) -> list[PaintedUnit]:
        paintings = _paint_unit(self._painters.values(), unit, frames, truth_alone=self._units.truth_alone)
        height, width = frames[0].size
        for painting in paintings:
            self._pixels += len(frames) * height * width if self._painter.dense else painting.pixels
            painting.count_confusions(self._confusions)
        return paintings

    def _add(
        self, unit: Unit, paintings: Sequence[PaintedUnit], packed: Mapping[str, bytes], costs: Sequence[float]
    ) -> None:
        self._stream_of[unit.name] = f"{self._units.split}/{unit.name}"
        if not self.painted and not self._units.truth_alone:
            self._still = paintings[:2][-1].paint_faults(self._painter)
        for painting in paintings:
            painting.forget_maps()
            self._occurring |= painting.shown.union(*(row.kinds for row in painting.rows()))
        self._add_streams(unit, packed)
        self.painted.append(paintings[:2][-1])
        self._painted_units.append(_Painted(unit, self.painted[-1]))
        self._costs.append([] if self._units.truth_alone else costs)

    def _add_streams(self, unit: Unit, streams: Mapping[str, bytes]) -> None:
        self._streams |= {f"{self._stream_of[unit.name]}{ending}": data for ending, data in streams.items()}
        self._room -= bytes_in_page(streams.values())

    def collect_pictures(self) -> UnitPictures:
        """Return the player of the drawn units."""
        methods, units, painter, streams = list(self._painters), self._units, self._painter, self._streams
        sequences = [
            {
                "name": painting.name,
                "stream": stream,
                "lost": [round(cost, 6) for cost in costs] if units.are_losses else [],
            }
            for painting, stream, costs in zip(self.painted, self._stream_of.values(), self._costs, strict=True)
        ]
        is_wanted = bool(self._options.images) and not any("#" in name for name in streams)
        folder = PictureFolder(self._options.images)
        if is_wanted:
            streams |= _make_pictures(self._options, self._stream_of, self.painted, folder)
        about = {
            "of": methods[:2][-1],
            "bare": 0,
            "pictures": sum("#" in name for name in streams),
            "wanted": is_wanted,
            "smaller": False,
            "note": f"{painter.note_picture()} {folder.describe_faults()}".strip(),
            "shown": units.describe_first(len(self.painted), methods),
            "looked_at": len(self.painted),
            "units": len(units.truth.units),
            "item": units.noun.removesuffix("s").capitalize(),
            "plural": units.noun,
            "single": all(len(painting.frames) == 1 for painting in self.painted),
            "follows": painter.follows,
            "legend": _merge_styles([fault for kind, fault in FAULTS.items() if kind in self._occurring]),
            "frames": sum(len(painting.frames) for painting in self.painted),
            "still": self._paint_still(),
        }
        drawn_as = {
            "form": "segments",
            "follows": painter.follows,
            "outlined": painter.outlined,
            "threshold": painter.threshold,
            "faults": {kind: (fault.name, fault.style) for kind, fault in FAULTS.items()},
        }
        shown_methods = [] if units.truth_alone else methods
        player = make_player(sequences, self._list_moments(), drawn_as, about, streams, shown_methods)
        names = {unit.name: painter.describe(unit) for unit in units.truth.units}
        looked_at, count = len(self.painted), len(units.truth.units)
        cause = ""
        if not units.truth_alone:
            cause = _describe_causes([*self._painters.values()][:2][-1], units, self._painted_units)
        return UnitPictures(player, self._confusions, looked_at, count, self._stream_of, names, cause)

    def _paint_still(self) -> Still | None:
        """Return the worst frame of the first unit with its mistakes, over its picture if there is one."""
        if self._still is None:
            return None
        frame, colours, opacity = self._still
        painting, stream = self.painted[0], next(iter(self._stream_of.values()))
        background = np.full(colours.shape, GROUND, np.float64)
        if picture := self._streams.get(f"{stream}#{frame}"):
            background[:] = decode_picture(picture, (opacity.shape[1], opacity.shape[0]))
        pixels = background + opacity[..., None] * (colours - background)
        name = painting.frames[frame] if len(painting.frames) > 1 else ""
        return Still(painting.name, name, pixels.round().astype(np.uint8))

    def _list_moments(self) -> list[dict[str, Any]]:
        """Return the most costly moments."""
        moments = []
        for painting, costs in zip(self.painted, self._costs, strict=True):
            if costs:
                grown = costs[0] if len(costs) == 1 else costs[1] - costs[0]
                moments += painting.find_moments(grown, dense=self._painter.dense)[:_MOMENTS_OF_UNIT]
        moments.sort(key=lambda moment: -moment.cost)
        return [asdict(moment) for moment in moments[:_MOST_MOMENTS]]


def _count_units(count: int, noun: str) -> str:
    """Return a count with its noun, without the number if it is one."""
    return inflect(count, noun.removesuffix("s"), f"{count:,} {noun}")


def _count_costly(count: int, noun: str) -> str:
    return f"{_count_units(count, noun)} that {inflect(count, 'costs', 'cost')} most"


def _paint_unit(
    painters: Collection[UnitPainter], unit: Unit, frames: Sequence[TruthFrame], *, truth_alone: bool
) -> list[PaintedUnit]:
    """Paint a unit by each method's painter, drawing the same frames for all as far as room allows."""
    size, pixels = next(iter(painters)).measure_picture(unit, frames[0]), _MOST_PIXELS // (2 + 2 * len(painters))
    fitting = (fit_width(size, width) for width in _WIDTHS)
    frame_pixels = pixels // min(len(frames), _MOST_DRAWN_FRAMES)
    widest = next((fit for fit in fitting if fit[0] * fit[1] <= frame_pixels), fit_width(size, _WIDTHS[-1]))

    def look(painter: UnitPainter, drawn: Mapping[int, Size]) -> PaintedUnit:
        return _see_unit(painter, unit, frames, drawn, truth_alone=truth_alone)

    whole = dict.fromkeys(range(len(frames)), widest)
    if len(frames) > max(_MOST_DRAWN_FRAMES, pixels // (widest[0] * widest[1])):
        costs = np.max([look(painter, {}).frame_costs() for painter in painters], axis=0).tolist()
        whole = dict.fromkeys(next(iter(painters)).pick_drawn(frames, costs, _MOST_DRAWN_FRAMES), widest)
    return [look(painter, whole) for painter in painters]


def _see_unit(
    painter: UnitPainter,
    unit: Unit,
    frames: Sequence[TruthFrame],
    drawn: Mapping[int, Size],
    *,
    truth_alone: bool = False,
) -> PaintedUnit:
    """Judge the segments of a unit, and paint its drawn frames."""
    names, (height, width) = [frame.name for frame in frames], frames[0].size
    size = painter.measure_picture(unit, frames[0])
    painted = PaintedUnit(painter.describe(unit), names, size, height * width)
    for seen in painter.read_frames(unit, frames, drawn):
        painted.add(seen, truth_alone=truth_alone)
    if painter.follows:
        painted.note_swaps()
    return painted


def _fit(units: Sequence[PaintedUnit], painter: UnitPainter, room: float) -> dict[str, bytes]:
    """Pack a unit per method at full width, or narrower if it exceeds its share of the page."""
    packed: dict[str, bytes] = {}
    for width in (units[0].width, *(width for width in _WIDTHS if width < units[0].width)):
        packed = _pack_methods(units, width, painter)
        if bytes_in_page(packed.values()) <= room:
            break
    return packed


def _pack_methods(units: Sequence[PaintedUnit], width: int, painter: UnitPainter) -> dict[str, bytes]:
    """Pack the truth once and the streams per method; a method judged by another truth gets its own."""
    packed: dict[str, bytes] = {}
    ranks = _rank_objects(units)
    for number, unit in enumerate(units):
        truth, packed[f"/{number}"], packed[f"/{number}/faults"] = unit.pack(width, painter, ranks)
        if packed.setdefault("", truth) != truth:
            packed[f"/{number}/truth"] = truth
    return packed


def _rank_objects(units: Sequence[PaintedUnit]) -> dict[int, int]:
    """Return objects ranked by their faults over all methods, swapped ones first."""
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
    """Return the confusion of classes in the drawn units, if the family has classes."""
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
    about = f"Segments of {looked}, matched above an IoU of one half, regardless of class."
    return [make_confusion([*names, "nothing"], table, "segments", about)]


# ── pictures below the masks ────────────────────────────────────────────────


def _find_picture(folder: str, unit: str, frame: str) -> str:
    stem = os.path.splitext(frame)[0] if os.path.splitext(frame)[1] in _ENDINGS else frame
    stems = dict.fromkeys([stem, stem.zfill(6), stem.zfill(12)] if stem.isdigit() else [stem])
    stems |= dict.fromkeys(stem.replace(labels, pictures) for labels, pictures in _RENAMED if labels in stem)
    unit_folder = unit.replace("..", "")
    places = [os.path.join(folder, unit_folder, *below) for below in _SUBFOLDERS]
    places += [
        folder,
        *(os.path.join(folder, name) for name in (os.path.dirname(unit_folder), unit_folder.split("_")[0])),
    ]
    places.append(os.path.join(folder, os.path.basename(unit_folder)))
    for place_folder in [*places, os.path.join(folder, os.path.dirname(stem).replace("..", ""))]:
        for name in stems:
            for ending in _ENDINGS:
                path = os.path.join(place_folder, os.path.basename(name) + ending)
                if os.path.isfile(path):
                    return path
    return ""


def _make_pictures(
    options: PageOptions, stream_of: Mapping[str, str], units: Sequence[PaintedUnit], folder: PictureFolder
) -> dict[str, bytes]:
    """Return pictures of the first frames by stream name, as many as fit."""
    paths = {
        stream: [_find_picture(options.images, name, frame) for frame in painting.frames]
        for (name, stream), painting in zip(stream_of.items(), units, strict=True)
    }
    if not any(path for unit_paths in paths.values() for path in unit_paths):
        names = list(dict.fromkeys(f"{unit.frames[0]}.jpg" for unit in units))
        sought = ", ".join(names[:3])
        raise HostError(f"{options.images}: has no pictures of the scored frames; it needs files such as {sought}")
    room, pictures = picture_room(options.budget), dict[str, bytes]()
    ranked = [
        (stream, np.argsort(-np.array(unit.frame_costs()), kind="stable").tolist(), unit.size)
        for stream, unit in zip(paths, units, strict=True)
    ]
    for rank in range(max(len(order) for _, order, _ in ranked)):
        for stream, order, size in ranked:
            if rank >= len(order) or not paths[stream][order[rank]]:
                continue
            data = folder.shrink(paths[stream][order[rank]], size=size)
            room -= bytes_in_page([data])
            if room < 0:
                return pictures
            if data:
                pictures[f"{stream}#{order[rank]}"] = data
    return pictures
