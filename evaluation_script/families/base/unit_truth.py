"""The truth of the tracks that count by unit: images, videos or sequences with what lies in each frame.

Packed, it is a zip: `manifest.json` with the splits, `units/<split>/<n>.json` with what a unit lists, and
`maps/<split>/<n>/<frame>` with one number for each pixel, an index into the labels that the frame has.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, FrozenSet, List, TypeVar

import numpy as np

from ...files.inflate import whole_member
from ...files.limits import Files
from ...files.packed import FORMAT, MANIFEST, add_member, opened_packed, replaced, unreadable
from ...files.problems import Flaw, HostError
from ...masks import png
from ...masks.label_maps import LabelMap
from ...masks.stack import Array, Size
from .truth import SplitTruth, TruthNames

#: What a dataset lists in a frame, a row for each segment or track; each track has its own form.
Rows = List[List[Any]]
Read = TypeVar("Read")


@dataclass(frozen=True)
class TruthFrame:
    """One frame of a unit."""

    name: str
    size: Size
    rows: Rows = field(repr=False)
    #: Reads its pixels, where the track has any.
    read: Callable[[], LabelMap] = field(repr=False)


@dataclass(frozen=True)
class Unit:
    """One image, video or sequence of the truth; its frames are loaded when they are needed."""

    name: str
    #: How long it takes beside others: the number of its frames.
    cost: int
    load: Callable[[], List[TruthFrame]] = field(repr=False)
    #: What a dataset says of the whole unit.
    facts: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitTruth(SplitTruth):
    """The units of one split."""

    track: str
    layout: str
    #: What a dataset says of all units, such as its categories.
    facts: Dict[str, Any]
    units: List[Unit]
    #: What is odd about it, for the host.
    notes: List[str] = field(default_factory=list)
    #: Units of other splits, and those that are not scored, which a submission may hold too.
    elsewhere: FrozenSet[str] = frozenset()

    @property
    def form(self) -> str:
        return self.layout

    @property
    def item_names(self) -> List[str]:
        return [unit.name for unit in self.units]

    def only(self, names: List[str]) -> UnitTruth:
        """Return the truth of some units; raises KeyError for those that it does not have."""
        known = {unit.name: unit for unit in self.units}
        names = list(map(TruthNames(known).own, names))
        if not known.keys() >= set(names):
            raise KeyError(*[name for name in names if name not in known])
        rest = (self.elsewhere | known.keys()) - set(names)
        return replace(self, units=[known[name] for name in names], elsewhere=rest)

    def read_through(self) -> str:
        """Read all pixels, and return in words how many frames there are."""
        frames = [frame.read().numbers.size for unit in self.units for frame in unit.load()]
        return f"{len(self.units)} images or sequences of {len(frames)} frames"


def of_host(where: str, read: Callable[[], Read]) -> Callable[[], Read]:
    """Return what reads a part of a published truth, and raises HostError where that is broken."""

    def checked() -> Read:
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError, Flaw) as error:
            why = str(error) if isinstance(error, Flaw) else repr(error)
            raise HostError(f"{where}: cannot be read ({why})") from None

    return checked


def png_frame(files: Files, member: str, rows: Rows, read: Callable[[bytes, Size], Array]) -> TruthFrame:
    """Return a frame whose pixels are a dataset's PNG."""
    name = os.path.splitext(os.path.basename(member))[0]
    size = of_host(member, lambda: png.size_of(files.read(member)))()
    return TruthFrame(name, size, rows, of_host(member, lambda: LabelMap(read(files.read(member), size))))


def no_pixels() -> LabelMap:
    """Return the map of a frame whose rows hold all there is."""
    return LabelMap(np.zeros((0, 0), np.uint8))


def write(path: str, splits: Dict[str, UnitTruth]) -> None:
    """Write an annotation file; the same splits give the same bytes."""
    (track,) = {split.track for split in splits.values()}
    manifest: Dict[str, Any] = {"format": FORMAT, "track": track, "splits": {}}
    with replaced(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, split in splits.items():
            units = []
            for number, unit in enumerate(split.units):
                frames = [_written(archive, f"{name}/{number}/{at}", one) for at, one in enumerate(unit.load())]
                add_member(archive, f"units/{name}/{number}.json", _json(frames))
                units.append([unit.name, unit.cost, unit.facts])
            manifest["splits"][name] = {
                "layout": split.layout, "facts": split.facts, "units": units, "notes": split.notes,
            }  # fmt: skip
        add_member(archive, MANIFEST, _json(manifest))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _written(archive: zipfile.ZipFile, place: str, frame: TruthFrame) -> List[Any]:
    """Write a frame's pixels; return its entry in the unit's list."""
    pixels = frame.read()
    values = pixels.numbers.reshape(-1)
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if values.size else values
    labels = np.unique(pixels.at(starts)) if values.size else starts
    if values.size:
        kind = np.min_scalar_type(len(labels) - 1)
        runs = np.searchsorted(labels, pixels.at(starts)).astype(kind.newbyteorder("<"))
        add_member(archive, f"maps/{place}", np.repeat(runs, np.diff(np.append(starts, values.size))).tobytes())
    return [frame.name, *frame.size, frame.rows, labels.tolist()]


def read(path: str) -> Dict[str, UnitTruth]:
    """Open a packed annotation file: its manifest at once, its units and frames one by one."""
    archive, manifest = opened_packed(path)
    try:
        every = frozenset(unit for entry in manifest["splits"].values() for unit, *_ in entry["units"])
        return {name: _split(archive, name, manifest["track"], one, every) for name, one in manifest["splits"].items()}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise unreadable(path, error) from None


def _split(archive: zipfile.ZipFile, split: str, track: str, entry: Dict[str, Any], every: FrozenSet[str]) -> UnitTruth:
    units = [
        Unit(name, cost, _loader(archive, f"{split}/{number}"), facts)
        for number, (name, cost, facts) in enumerate(entry["units"])
    ]
    elsewhere = every - {unit.name for unit in units}
    return UnitTruth(track, entry["layout"], entry["facts"], units, entry["notes"], elsewhere)


def _loader(archive: zipfile.ZipFile, place: str) -> Callable[[], List[TruthFrame]]:
    def load() -> List[TruthFrame]:
        frames = json.loads(_member(archive, f"units/{place}.json"))
        return [
            TruthFrame(name, (height, width), rows, _reader(archive, f"maps/{place}/{at}", (height, width), labels))
            for at, (name, height, width, rows, labels) in enumerate(frames)
        ]

    return load


def _reader(archive: zipfile.ZipFile, member: str, size: Size, labels: List[int]) -> Callable[[], LabelMap]:
    def read_map() -> LabelMap:
        kind = np.min_scalar_type(len(labels) - 1).newbyteorder("<")
        return LabelMap(np.frombuffer(_member(archive, member), kind).reshape(size), np.array(labels, np.int64))

    return read_map if labels else no_pixels


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return bytes(whole_member(archive, archive.getinfo(name)) or archive.read(name))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise HostError(f"annotation file: {name} cannot be read ({error!r})") from None
