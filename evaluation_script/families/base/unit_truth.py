"""The truth of families that count each unit separately: an image, video or sequence; packed and unpacked.

A packed truth is a zip: `manifest.json` with the splits, `units/<split>/<n>.json` with the entries of a unit, and
`maps/<split>/<n>/<frame>` with one number per pixel, an index into the frame's labels.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Callable, Dict, FrozenSet, List, Tuple, TypeVar

import numpy as np

from ...files import HOST_LIMITS, Files, Flaw, HostError, SubmissionError, inflect, quantity
from ...files.archive import open_files, truth_error
from ...files.inflate import Inflated
from ...files.packed import (
    FAMILY_KEY,
    MANIFEST,
    PackedFile,
    add_member,
    annotations_error,
    list_damages,
    make_manifest,
    open_packed,
    replace_file,
)
from ...masks import png
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ...runner.tuning import without_collector
from .truth import SplitTruth

#: The rows of a frame, one per segment or track: JSON values in the family's own form.
Rows = List[List[Any]]
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class TruthFrame:
    """One frame of a unit."""

    name: str
    size: Size
    rows: Rows = field(repr=False)
    #: Reads its pixels, if the family has any.
    read: Callable[[], LabelMap] = field(repr=False)


@dataclass(frozen=True)
class Unit:
    """An image, video or sequence of the truth, whose frames are loaded on demand."""

    name: str
    #: Its relative time, which is the number of its frames.
    cost: int
    load: Callable[[], List[TruthFrame]] = field(repr=False)
    #: The dataset's facts about the unit; `text` is its phrase or expression, if any.
    facts: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitTruth(SplitTruth):
    """The units of one split."""

    family: str
    layout: str
    #: The dataset's facts about all units, such as its categories.
    facts: Dict[str, Any]
    units: List[Unit]
    #: Notes for the host about oddities.
    notes: List[str] = field(default_factory=list)
    #: Units of other splits, and unscored units, which a submission may also contain.
    elsewhere: FrozenSet[str] = frozenset()

    @property
    def form(self) -> str:
        return self.layout

    @cached_property
    def item_names(self) -> List[str]:
        return [unit.name for unit in self.units]

    def select(self, names: List[str], protocol: Any) -> UnitTruth:
        """Return the truth of some units; raises KeyError for unknown ones."""
        units = {unit.name: unit for unit in self.units}
        names = self.spell(names)
        return replace(
            self, units=[units[name] for name in names], elsewhere=(self.elsewhere | units.keys()) - set(names)
        )

    def read_through(self) -> str:
        """Read all pixels and return the number of frames in words."""
        frames = [frame.read().numbers.size for unit in self.units for frame in unit.load()]
        units = inflect(len(self.units), "image or sequence", "images or sequences")
        return f"{len(self.units):,} {units} of {quantity(len(frames), 'frame')}"


def guard_reading(name: str, read: Callable[[], _Read]) -> Callable[[], _Read]:
    """Return a reader for part of a published truth that raises HostError if the part is broken."""

    def read_or_refuse() -> _Read:
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError, Flaw) as error:
            why = str(error) if isinstance(error, Flaw) else repr(error)
            raise HostError(f"{name}: cannot be read ({why})") from None

    return read_or_refuse


def png_frame(files: Files, member: str, rows: Rows, read: Callable[[bytes, Size], Array]) -> TruthFrame:
    """Return a frame whose pixels are a dataset's PNG."""
    name = os.path.splitext(os.path.basename(member))[0]

    size = guard_reading(member, lambda: png.size_of(files.read(member)))()
    return TruthFrame(name, size, rows, guard_reading(member, lambda: LabelMap(read(files.read(member), size))))


def no_pixels() -> LabelMap:
    """Return an empty map, for a frame whose rows hold all data."""
    return LabelMap(np.zeros((0, 0), np.uint8))


def write_units(path: str, splits: Dict[str, UnitTruth]) -> None:
    """Write an annotation file; the same splits give the same bytes."""
    (family,) = {split.family for split in splits.values()}
    manifest = make_manifest(family, {})
    with replace_file(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, split in splits.items():
            units = []
            for number, unit in enumerate(split.units):
                frames = [
                    _write_frame(archive, f"{name}/{number}/{index}", frame) for index, frame in enumerate(unit.load())
                ]
                add_member(archive, f"units/{name}/{number}.json", _json(frames))
                units.append([unit.name, unit.cost, unit.facts])
            manifest["splits"][name] = {
                "layout": split.layout, "facts": split.facts, "units": units, "notes": split.notes,
            }  # fmt: skip
            if split.elsewhere:
                manifest["splits"][name]["elsewhere"] = sorted(split.elsewhere)
        add_member(archive, MANIFEST, _json(manifest))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _write_frame(archive: zipfile.ZipFile, member: str, frame: TruthFrame) -> List[Any]:
    """Write a frame's pixels; return its entry in the unit's list."""
    pixels = frame.read()
    values = pixels.numbers.reshape(-1)
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if values.size else values
    labels = np.unique(pixels.labels_at(starts)) if values.size else starts
    if values.size:
        kind = np.min_scalar_type(len(labels) - 1)
        runs = np.searchsorted(labels, pixels.labels_at(starts)).astype(kind.newbyteorder("<"))
        add_member(archive, f"maps/{member}", np.repeat(runs, np.diff(np.append(starts, values.size))).tobytes())
    return [frame.name, *frame.size, frame.rows, labels.tolist()]


def read_units(path: str) -> Dict[str, UnitTruth]:
    """Open a packed annotation file: its manifest at once, its units and frames on demand."""
    with without_collector():
        archive, manifest = open_packed(path)
        try:
            family, entries = manifest[FAMILY_KEY], manifest["splits"]
            several = entries.values() if len(entries) > 1 else ()
            every = frozenset(unit for entry in several for unit, *_ in entry["units"])
            return {name: _open_split(archive, name, family, entry, every) for name, entry in entries.items()}
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise annotations_error(path, error) from None


def _open_split(
    archive: PackedFile, split: str, family: str, entry: Dict[str, Any], names_of_all: FrozenSet[str]
) -> UnitTruth:
    units = [
        Unit(name, cost, partial(_load_unit, archive, split, number), facts)
        for number, (name, cost, facts) in enumerate(entry["units"])
    ]
    elsewhere = names_of_all.union(entry.get("elsewhere", ())).difference(unit.name for unit in units)
    return UnitTruth(family, entry["layout"], entry["facts"], units, entry["notes"], elsewhere)


def _load_unit(archive: PackedFile, split: str, number: int) -> List[TruthFrame]:
    member = f"{split}/{number}"

    def load() -> List[TruthFrame]:
        frames = json.loads(_member(archive, f"units/{member}.json"))
        return [
            TruthFrame(name, (height, width), rows, _reader(archive, f"maps/{member}/{index}", (height, width), labels))
            for index, (name, height, width, rows, labels) in enumerate(frames)
        ]

    return guard_reading(f"annotation file: {member}", load)()


def _reader(archive: PackedFile, member: str, size: Size, labels: List[int]) -> Callable[[], LabelMap]:
    def read_map() -> LabelMap:
        kind = np.min_scalar_type(len(labels) - 1).newbyteorder("<")
        return LabelMap(np.frombuffer(_member(archive, member), kind).reshape(size), np.array(labels, np.int64))

    return guard_reading(f"annotation file: {member}", read_map) if labels else no_pixels


def _member(archive: PackedFile, name: str) -> Inflated:
    try:
        return archive.read(name)
    except list_damages() as error:
        raise HostError(f"annotation file: {name} cannot be read ({error!r})") from None


def open_dataset(path: str, compressed: Tuple[str, ...] = ()) -> Files:
    """Open the files of a published truth; raises HostError if they cannot be read.

    Files with these endings have compression of their own and are not archives.
    """
    try:
        return open_files(path, replace(HOST_LIMITS, compressed=compressed))
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None
