"""Pictures of volumes: slices along three axes through the costliest place, for a page's player."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, zip_longest
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from PIL import Image

from segjudge.evaluation_script.families.volumes.boxes import Box, cover, select_labels
from segjudge.evaluation_script.families.volumes.geometry import AXES, Geometry
from segjudge.evaluation_script.families.volumes.protocols import LabelRegion
from segjudge.evaluation_script.files.problems import inflect
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.evaluation_script.masks.stream import MaskStream, bytes_in_page
from segjudge.families.base.pictures import sample_rows_and_columns
from segjudge.report.colours import style_of_kind
from segjudge.report.page import PageOptions, Section
from segjudge.report.player import make_player, picture_room

from .components import RIGHT, WRONG_LABEL, JudgedRegion
from .diagnosis import JudgedCase, OpenCase, SeenComponent, Voxel
from .scans import Scan, ScanFolder

#: The title of the player, and the anchor of links to it.
TITLE, ANCHOR = "Slices", "#slices"
#: The maximum share of a page for slices, and the share of the rest that every case may have.
_MASKS, _LEAST_SHARE = 0.7, 0.08
#: The forms of slices, best first: pixels of the longest side, neighbours of the worst slice on each side, slices
#: spread over the rest, and components with slices of their own.
_FORMS = ((320, 20, 20, 12), (240, 16, 16, 8), (200, 10, 12, 6), (160, 8, 8, 4), (120, 4, 4, 2), (64, 2, 2, 1))
#: The voxels drawn around the labels of both sides; with a scan, millimetres.
_MARGIN, _CONTEXT = 3, 20.0
#: The image format and quality of scans' slices.
_SCAN_KIND, _SCAN_QUALITY = "jpeg", 60
#: The maximum number of a case's regions with counts per slice, the costliest first.
_MOST_COUNTED = 12
#: The maximum number of worst components on a page, and of one case.
_MOST_MOMENTS, _MOMENTS_OF_CASE = 60, 4


class Plane(NamedTuple):
    """The slices across one axis: each has rows along one axis and columns along another, numbered as in ViewAxes."""

    name: str
    across: int
    down: int
    #: Draws rows from the last to the first.
    is_turned: bool


PLANES = (
    Plane("Axial", 2, 1, is_turned=False),
    Plane("Coronal", 2, 0, is_turned=True),
    Plane("Sagittal", 1, 0, is_turned=True),
)


class ViewAxes(NamedTuple):
    """A volume as it is drawn: axes from inferior to superior, anterior to posterior, and right to left.

    A volume without a position has its own axes: z, y and x.
    """

    #: For each of these, the axis of an array (z, y, x), and whether it is reversed.
    axes: tuple[int, int, int]
    is_reversed: tuple[bool, bool, bool]
    is_placed: bool

    def turn(self, volume: Array) -> Array:
        """Return a volume (z, y, x) with the axes of the view."""
        turned: Array = volume.transpose(self.axes)
        return turned[tuple(slice(None, None, -1 if is_reversed else 1) for is_reversed in self.is_reversed)]

    def locate(self, voxel: Voxel, shape: Sequence[int]) -> list[int]:
        """Return the coordinates of a voxel (z, y, x) of a volume of this shape."""
        return [
            shape[axis] - 1 - voxel[axis] if is_reversed else voxel[axis]
            for axis, is_reversed in zip(self.axes, self.is_reversed, strict=True)
        ]

    def name_slices(self, axis: int, extent: slice, length: int) -> list[str]:
        """Return the numbers that the file has for the slices of an axis of the view."""
        numbers = range(extent.start, extent.stop)
        return [str(length - 1 - number if self.is_reversed[axis] else number) for number in numbers]


def find_view(geometry: Geometry) -> ViewAxes:
    """Return how a volume is drawn: as radiologists see it, if its position is known."""
    if geometry.affine is None:
        return ViewAxes((0, 1, 2), (False, False, False), is_placed=False)
    directions = geometry.affine[:, :3] / np.array(geometry.spacing)
    # For superior, anterior and right: the axis of the file that runs most along each.
    bodies = (2, 1, 0)
    sources = max(
        permutations(range(3)),
        key=lambda order: sum(abs(directions[body, axis]) for body, axis in zip(bodies, order, strict=True)),
    )
    wanted = (1, -1, -1)
    is_reversed = [
        bool(directions[body, axis] * sign < 0) for body, axis, sign in zip(bodies, sources, wanted, strict=True)
    ]
    axes = 2 - sources[0], 2 - sources[1], 2 - sources[2]
    return ViewAxes(axes, (is_reversed[0], is_reversed[1], is_reversed[2]), is_placed=True)


class _Look(NamedTuple):
    """The drawn content of a case."""

    view: ViewAxes
    #: The truth and each method's prediction, rotated and cropped to the labels.
    sides: tuple[Array, ...]
    #: Start and end in the rotated volume.
    box: Box
    shape: tuple[int, int, int]
    #: Millimetres between voxels along the axes of the view.
    spacing: tuple[float, ...]
    #: All regions, those of each label by their index, and the index of each label's group.
    regions: list[LabelRegion]
    groups: list[tuple[int, ...]]
    names: Array


class SliceDrawing:
    """The drawing of cases within the room of a page."""

    def __init__(
        self, split: str, options: PageOptions, cases: int, scans: ScanFolder | None = None, of: Sequence[str] = ("",)
    ) -> None:
        """Prepare the drawing of cases as methods (`of`) predict them, over scans if available."""
        self._split, self._cases, self._scans, self._methods = split, cases, scans, of
        self._scan_room = picture_room(options.budget) if scans else 0.0
        self._room = options.budget * _MASKS - self._scan_room
        self._least = 0.01 * options.budget
        self._streams: dict[str, bytes] = {}
        self._sequences: list[dict[str, Any]] = []
        self._looks: dict[str, _Look] = {}
        self._drawn: dict[str, set[tuple[int, int, int]]] = {}
        self._moments: list[dict[str, Any]] = []

    @property
    def is_full(self) -> bool:
        return self._room < self._least

    def add(self, *drawn: JudgedCase) -> None:
        """Draw a case (an entry per method) as room allows, at the worst place of the first two methods.

        The slices of the first components are drawn too, those of the second method if there are two.
        """
        case, components = drawn[0].case, drawn[:2][-1].components
        if self.is_full or not case.truth.size:
            return
        worst = max(drawn[:2], key=lambda method: sum(method.costs.values())).worst
        scan = self._scans.read(case.name, case.geometry) if self._scans else None
        look = _crop_sides(drawn, _CONTEXT if scan else 0.0)
        counts = [_count_slices(method.case, method.regions, look) for method in drawn]
        share = self._share(self._room)
        packed, stops = dict[str, bytes](), tuple[list[int], ...]()
        voxels = worst, [seen.voxel for seen in components]
        for form in _FORMS:
            packed, stops = _pack(look, voxels, counts, form)
            if bytes_in_page(packed.values()) <= share:
                break
        size = bytes_in_page(packed.values())
        if self._sequences and size > self._room:
            self._room = 0
            return
        stream = f"{self._split}/{case.name}"
        self._streams |= {f"{stream}{ending}": data for ending, data in packed.items()}
        self._room -= size
        entry: dict[str, Any] = {
            "name": case.name,
            "stream": stream,
            "lost": [round(sum(method.costs.values()), 6) for method in drawn],
        }
        if scan is not None:
            room, entry["scan"] = self._share(self._scan_room), scan.shades.document()
            for ending, data in _draw_scan(scan, look, stops, form[0]):
                room, self._scan_room = room - bytes_in_page([data]), self._scan_room - bytes_in_page([data])
                if room < 0:
                    break
                self._streams[f"{stream}{ending}"] = data
        self._sequences.append(entry)
        self._looks[case.name] = look._replace(sides=())
        places = {worst, *voxels[1]}
        self._drawn[case.name] = {
            slices
            for slices in (_place_in(look, voxel) for voxel in places)
            if all(index in drawn_slices for index, drawn_slices in zip(slices, stops, strict=True))
        }
        self._list_moments(case, components)

    def _share(self, room: float) -> float:
        """Return the share of the remaining bytes that the next case may use."""
        return max(room / max(1, self._cases - len(self._sequences)), _LEAST_SHARE * room)

    def _list_moments(self, case: OpenCase, components: Sequence[SeenComponent]) -> None:
        wrong = [seen for seen in components if seen.kind != RIGHT and self.find(seen)]
        for seen in wrong[:_MOMENTS_OF_CASE]:
            text = f"{seen.kind}{f' ({seen.called})' if seen.called else ''}, {seen.volume:,.0f} mm³"
            self._moments.append(
                {
                    "sequence": case.name, "label": seen.region, "kind": seen.kind,
                    "style": "mixed" if seen.kind == WRONG_LABEL else style_of_kind(seen.kind, 1),
                    "cost": round(seen.cost, 6), "worst": "", "subject": f", {seen.region}", "text": text,
                    "words": [("kind", seen.kind), ("region", seen.region)], "place": self.find(seen),
                }
            )  # fmt: skip

    def find(self, seen: SeenComponent) -> list[int]:
        """Return where the player has a component; empty if its slices are not drawn."""
        look = self._looks.get(seen.case)
        if look is None:
            return []
        z, y, x = _place_in(look, seen.voxel)
        return [z, y, x] if (z, y, x) in self._drawn[seen.case] else []

    def streams_of_cases(self) -> dict[str, str]:
        """Return the streams of the drawn cases by name."""
        return {entry["name"]: entry["stream"] for entry in self._sequences}

    def has(self, case: str) -> bool:
        """Return whether slices of a case are drawn."""
        return case in self._looks

    def link(self, case: str, voxel: Sequence[int] = ()) -> Markup | str:
        """Return the name of a case, linked to a place in it (default: the worst) if it is drawn."""
        if not self.has(case):
            return case
        attribute = Markup(' data-place="{}"').format(",".join(map(str, voxel))) if voxel else ""
        return Markup('<a href="{}" data-open="{}"{}>{}</a>').format(ANCHOR, f"{self._split}/{case}", attribute, case)

    def show(self, cases: int, noun: str) -> Section | None:
        """Return the player of the drawn cases, which states the number of all cases; None if none is drawn."""
        if not self._sequences:
            return None
        moments = sorted(self._moments, key=lambda moment: -moment["cost"])[:_MOST_MOMENTS]
        drawn, several = len(self._sequences), len(self._methods) > 1
        counted = inflect(drawn, "case", f"{drawn} cases")
        shown = f"The {counted} that {inflect(drawn, 'costs', 'cost')} most"
        if several:
            baseline, method = self._methods[:2]
            shown = f"The first {counted} with a loss, sorted by the loss of {method} minus that of {baseline}"
        about = {
            "of": self._methods[1] if several else "", "bare": 0, "pictures": 0, "wanted": False, "smaller": False,
            "frames": 0, "shown": shown,
            "looked_at": drawn, "units": cases, "item": "Case", "plural": "cases", "moments_of": f"{noun}s",
            "scans": any("scan" in entry for entry in self._sequences), "note": self._describe_scans(),
        }  # fmt: skip
        form = {"form": "slices", "planes": [plane._asdict() for plane in PLANES]}
        if self._scans:
            form["pictures"] = f"image/{_SCAN_KIND}"
        player = make_player(self._sequences, moments, form, about, self._streams, self._methods)
        return replace(player, title=TITLE)

    def _describe_scans(self) -> str:
        """Return the sentences about scans that could not be drawn below the slices; "" if none are missing."""
        if self._scans is None:
            return ""
        shown, drawn = sum("scan" in entry for entry in self._sequences), len(self._sequences)
        missing = "" if shown == drawn else f"Scans of {shown} of {drawn} cases are shown. "
        return f"{missing}{self._scans.describe_refused()}".strip()


def _crop_sides(drawn: Sequence[JudgedCase], context: float) -> _Look:
    """Turn all sides of a case, and crop them to the labels of all regions plus a margin in millimetres."""
    case = drawn[0].case
    view, shape = find_view(case.geometry), case.truth.shape
    regions = list(dict.fromkeys(judged.region for method in drawn for judged in method.regions))
    sides = [case.boxes[0], *(method.case.boxes[1] for method in drawn)]
    labels = sorted(frozenset().union(*(side.labels for side in sides)))
    of_label = {label: tuple(n for n, region in enumerate(regions) if label in region.labels) for label in labels}
    scored = [label for label in labels if of_label[label]]
    box = cover(side.box_of(label) for side in sides for label in scored)
    if not box[0].stop:
        box = tuple(slice(0, end) for end in shape)
    margins = [max(_MARGIN, round(min(context / step, max(shape)))) for step in case.geometry.spacing[::-1]]
    wide = [
        slice(max(0, extent.start - margin), min(end, extent.stop + margin))
        for extent, margin, end in zip(box, margins, shape, strict=True)
    ]
    turned: list[slice] = []
    for axis, is_reversed in zip(view.axes, view.is_reversed, strict=True):
        extent, end = wide[axis], shape[axis]
        turned.append(slice(end - extent.stop, end - extent.start) if is_reversed else extent)
    groups = [(), *dict.fromkeys(of_label[label] for label in scored)]
    names = np.zeros(max(labels, default=0) + 1, np.uint16)
    for label in scored:
        names[label] = groups.index(of_label[label])
    volumes = [case.truth, *(method.case.prediction for method in drawn)]
    cut = tuple(view.turn(volume)[tuple(turned)] for volume in volumes)
    spacing = tuple(case.geometry.spacing[2 - axis] for axis in view.axes)
    return _Look(view, cut, tuple(turned), (shape[0], shape[1], shape[2]), spacing, regions, groups, names)


def _place_in(look: _Look, voxel: Voxel) -> tuple[int, int, int]:
    """Return a voxel's coordinates in the drawing."""
    z, y, x = (
        min(max(coordinate, extent.start), extent.stop - 1) - extent.start
        for coordinate, extent in zip(look.view.locate(voxel, look.shape), look.box, strict=True)
    )
    return z, y, x


def _count_slices(case: OpenCase, judged: Sequence[JudgedRegion], look: _Look) -> list[list[dict[str, Any]]]:
    """Return for each plane and region the true, missing and surplus voxels of each slice."""
    wrong = [float(region.missing.sum() + region.wrong.sum()) for region in judged]
    order = sorted(range(len(judged)), key=lambda number: -wrong[number])[:_MOST_COUNTED]
    planes: list[list[dict[str, Any]]] = [[], [], []]
    for number in order:
        region = judged[number]
        box = tuple(
            slice(start, start + side) for start, side in zip(region.origin, region.numbers[0].shape, strict=True)
        )
        true, predicted = (select_labels(side[box], region.region.labels) for side in (case.truth, case.prediction))
        masks = {"truth": true, "missing": true & ~predicted, "extra": predicted & ~true}
        for plane, (axis, is_reversed) in enumerate(zip(look.view.axes, look.view.is_reversed, strict=True)):
            across = tuple(sorted({0, 1, 2} - {axis}))
            counts: dict[str, Any] = {"object": look.regions.index(region.region), "first": 0}
            start, length = box[axis].start, look.shape[axis]
            whole = np.zeros(length, np.int64)
            for kind, mask in masks.items():
                whole[:] = 0
                whole[start : start + mask.shape[axis]] = np.count_nonzero(mask, axis=across)
                counts[kind] = (whole[::-1] if is_reversed else whole)[look.box[plane]].tolist()
            planes[plane].append(_trim(counts))
    return planes


def _trim(counts: dict[str, Any]) -> dict[str, Any]:
    """Drop the empty slices at both ends."""
    filled = np.flatnonzero(np.array(counts["truth"]) + np.array(counts["extra"]))
    start, stop = (int(filled[0]), int(filled[-1]) + 1) if filled.size else (0, 0)
    return {
        **counts, "first": start,
        **{kind: counts[kind][start:stop] for kind in ("truth", "missing", "extra")},
    }  # fmt: skip


def _pack(
    look: _Look,
    voxels: tuple[Voxel, Sequence[Voxel]],
    counts: Sequence[list[list[dict[str, Any]]]],
    form: tuple[int, int, int, int],
) -> tuple[dict[str, bytes], tuple[list[int], ...]]:
    """Return the streams of a case in one form, and the drawn slices of each plane, the most important first."""
    width, around, spread, limit = form
    worst, places = _place_in(look, voxels[0]), {_place_in(look, voxel) for voxel in voxels[1][:limit]}
    extents = [(extent.stop - extent.start) * step for extent, step in zip(look.box, look.spacing, strict=True)]
    pixel = max(max(extents) / width, min(look.spacing))
    across = [max(1, round(extent / pixel)) for extent in extents]
    packed: dict[str, bytes] = {}
    stops: list[list[int]] = []
    for number, plane in enumerate(PLANES):
        length, middle, seen = look.sides[0].shape[number], worst[number], {voxel[number] for voxel in places}
        drawn = set(range(max(0, middle - around), min(length, middle + around + 1)))
        drawn |= set(np.linspace(0, length - 1, spread).round().astype(int).tolist())
        drawn |= seen
        stops.append(sorted(drawn, key=lambda index: (index != middle, index not in seen, abs(index - middle), index)))
        size = across[plane.down], across[plane.across]
        truth, *predictions = look.sides
        letter = AXES[2 - look.view.axes[number]]
        header = {
            "frames": look.view.name_slices(number, look.box[number], look.shape[look.view.axes[number]]),
            "drawn": sorted(drawn), "plane": plane.name if look.view.is_placed else "", "axis": letter,
            "ends": _edge_letters(number) if look.view.is_placed else [], "place": worst,
            "objects": [region.name for region in look.regions],
        }  # fmt: skip
        packed[f"/{number}"] = _draw_side(truth, look, number, drawn, size).pack(header)
        for method, prediction in enumerate(predictions):
            stream = _draw_side(prediction, look, number, drawn, size)
            packed[f"/{number}/{method}"] = stream.pack({"counts": counts[method][number]})
    return packed, tuple(stops)


def _draw_scan(scan: Scan, look: _Look, stops: Sequence[Sequence[int]], width: int) -> Iterator[tuple[str, bytes]]:
    """Yield pictures of a scan's slices with the endings of their streams, the most important first."""
    volume = look.view.turn(scan.volume)[tuple(look.box)]
    extents = [side * step for side, step in zip(volume.shape, look.spacing, strict=True)]
    scale = min(width / max(extents), 1 / min(look.spacing))
    across = [max(1, round(extent * scale)) for extent in extents]
    for indices in zip_longest(*stops):
        for number, index in enumerate(indices):
            if index is not None:
                plane = PLANES[number]
                pixels = volume.take(index, number)[:: -1 if plane.is_turned else 1]
                image = Image.fromarray(np.ascontiguousarray(pixels))
                data = io.BytesIO()
                small = image.resize((across[plane.across], across[plane.down]), Image.Resampling.BILINEAR)
                small.save(data, _SCAN_KIND, quality=_SCAN_QUALITY)
                yield f"/{number}#{index}", data.getvalue()


def _draw_side(volume: Array, look: _Look, number: int, drawn: set[int], size: Size) -> MaskStream:
    """Return the stream of one side's slices across an axis; slices that are not drawn are empty."""
    plane, stream = PLANES[number], MaskStream([], size, size[1])
    slices = np.moveaxis(volume, number, 0)
    rows, columns = sample_rows_and_columns(slices.shape[1:], size)
    if plane.is_turned:
        rows = rows[::-1]
    empty = np.zeros((1, *size), np.uint16)
    for index in range(len(slices)):
        image = look.names[slices[index][rows[:, None], columns]][None] if index in drawn else empty
        stream.add_labels(image, look.groups)
    return stream


def _edge_letters(number: int) -> list[str]:
    """Return the letters of the left, right, top and bottom edge of a plane."""
    ends = (("I", "S"), ("A", "P"), ("R", "L"))
    plane = PLANES[number]
    top, bottom = ends[plane.down][::-1] if plane.is_turned else ends[plane.down]
    return [*ends[plane.across], top, bottom]
