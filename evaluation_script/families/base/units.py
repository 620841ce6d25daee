"""The base of families that count each unit separately: an image, video or sequence.

The module has the truth of units, packed and unpacked; the files of a submission; the counts of a unit and their
accumulator; and `unit_engine`, which makes an engine from a family's functions.

A packed truth is a zip: `manifest.json` with the splits, `units/<split>/<n>.json` with the entries of a unit, and
`maps/<split>/<n>/<frame>` with one number per pixel, an index into the frame's labels.
"""

from __future__ import annotations

import abc
import io
import json
import math
import os
import zipfile
from dataclasses import field, replace
from functools import partial
from typing import (
    AbstractSet,
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import numpy as np

from ...files import (
    HOST_LIMITS,
    ArchiveLimits,
    Files,
    Flaw,
    HostError,
    Problem,
    Problems,
    SubmissionError,
    inflect,
    name_list,
    printable,
    quantity,
)
from ...files.archive import UPLOAD, open_files, truth_error
from ...files.inflate import inflate_member
from ...files.packed import (
    DAMAGED,
    FAMILY_KEY,
    MANIFEST,
    add_member,
    annotations_error,
    make_manifest,
    open_packed,
    replace_file,
)
from ...masks import png
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ...runner.parallel import Part
from ...values import dataclass
from .accumulator import NamedAccumulator, NamedCounts, Rules, decode_with, problems_of
from .engine import CountingJob, Engine
from .family import Progress, ScoringRules, Values
from .reports import Report, Row, deal_groups
from .suspicions import (
    Reading,
    ReadingScores,
    choose_units,
    decode_reading_scores,
    encode_reading_scores,
    judge_readings,
    score_readings,
)
from .truth import DEFAULT_SPLIT, AnnotationFile, SplitTruth, TruthNames, compose

#: What a dataset lists in a frame, a row for each segment or track: values that JSON has, in each family's own form.
Rows = List[List[Any]]
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class TruthFrame:
    """One frame of a unit."""

    name: str
    size: Size
    rows: Rows = field(repr=False)
    #: Reads its pixels, where the family has any.
    read: Callable[[], LabelMap] = field(repr=False)


@dataclass(frozen=True)
class Unit:
    """An image, video or sequence of the truth, whose frames are loaded on demand."""

    name: str
    #: How long it takes beside others: the number of its frames.
    cost: int
    load: Callable[[], List[TruthFrame]] = field(repr=False)
    #: What a dataset says of the whole unit; `text` is what it asks for in words, if it does.
    facts: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitTruth(SplitTruth):
    """The units of one split."""

    family: str
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
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
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
    archive, manifest = open_packed(path)
    try:
        family, entries = manifest[FAMILY_KEY], manifest["splits"]
        every = frozenset(unit for entry in entries.values() for unit, *_ in entry["units"])
        return {name: _open_split(archive, name, family, entry, every) for name, entry in entries.items()}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise annotations_error(path, error) from None


def _open_split(
    archive: zipfile.ZipFile, split: str, family: str, entry: Dict[str, Any], every: FrozenSet[str]
) -> UnitTruth:
    units = [
        Unit(name, cost, _loader(archive, f"{split}/{number}"), facts)
        for number, (name, cost, facts) in enumerate(entry["units"])
    ]
    elsewhere = every.union(entry.get("elsewhere", [])) - {unit.name for unit in units}
    return UnitTruth(family, entry["layout"], entry["facts"], units, entry["notes"], elsewhere)


def _loader(archive: zipfile.ZipFile, member: str) -> Callable[[], List[TruthFrame]]:
    def load() -> List[TruthFrame]:
        frames = json.loads(_member(archive, f"units/{member}.json"))
        return [
            TruthFrame(name, (height, width), rows, _reader(archive, f"maps/{member}/{index}", (height, width), labels))
            for index, (name, height, width, rows, labels) in enumerate(frames)
        ]

    return guard_reading(f"annotation file: {member}", load)


def _reader(archive: zipfile.ZipFile, member: str, size: Size, labels: List[int]) -> Callable[[], LabelMap]:
    def read_map() -> LabelMap:
        kind = np.min_scalar_type(len(labels) - 1).newbyteorder("<")
        return LabelMap(np.frombuffer(_member(archive, member), kind).reshape(size), np.array(labels, np.int64))

    return guard_reading(f"annotation file: {member}", read_map) if labels else no_pixels


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return bytes(inflate_member(archive, archive.getinfo(name)) or archive.read(name))
    except DAMAGED as error:
        raise HostError(f"annotation file: {name} cannot be read ({error!r})") from None


def open_dataset(path: str, compressed: Tuple[str, ...] = ()) -> Files:
    """Open the files of a published truth; raises HostError if they cannot be read.

    Files with these endings have compression of their own and are not archives.
    """
    try:
        return open_files(path, replace(HOST_LIMITS, compressed=compressed))
    except (OSError, ValueError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None


#: How far deflate itself can go, and a size that is looked at again before a file is read.
_SPARSE_RATIO, _SPARSE_BYTES = 1100, 1 << 30


class UnitSubmission(abc.ABC):
    """An open submission of a family that counts by unit."""

    #: What a unit is called.
    noun: str
    #: Files of little but background deflate to less than is allowed elsewhere; the family looks at the size that each
    #: states before it reads it.
    has_sparse_files = False
    protocol: Any

    def __init__(self, path: str, truth: UnitTruth, protocol: Any, limits: ArchiveLimits) -> None:
        """Open the files and list their units; close them again if they are rejected."""
        self.truth, self.protocol, self.limits = truth, protocol, limits
        self.truth_names = TruthNames([*truth.item_names, *sorted(truth.elsewhere)])
        limits = replace(self.truth_names.spare_backslashes(limits), send=self.send, smaller="Make it smaller")
        if self.has_sparse_files:
            largest = max(limits.member_bytes, _SPARSE_BYTES)
            limits = replace(limits, ratio=max(limits.ratio, _SPARSE_RATIO), member_bytes=largest)
        self.files: Files = open_files(path, limits)
        #: The files that were read or that units are looked for in; None where that is not known.
        self.used_files: Optional[AbstractSet[str]] = None
        try:
            self.read_upload()
        except Flaw as flaw:
            self.close()
            raise SubmissionError.from_problem(flaw.as_problem(UPLOAD)) from None
        except BaseException:
            self.close()
            raise

    @property
    @abc.abstractmethod
    def send(self) -> str:
        """The sentence that tells participants which files to send."""

    @abc.abstractmethod
    def read_upload(self) -> None:
        """List the units of an upload; raises a Flaw if the upload as a whole is wrong."""

    def find_json(self, remedy: str = "") -> str:
        """Return the name of the only JSON file; a Flaw when there is none, or several."""
        names = [name for name in self.files.sizes if name.lower().endswith(".json")]
        if len(names) != 1:
            fault = f"holds {quantity(len(names), 'JSON file')}" if names else self.describe_files("JSON file")
            raise Flaw(fault, remedy or self.send)
        self.used_files = {names[0]}
        return names[0]

    def describe_files(self, lacking: str) -> str:
        """Return the sentence that the upload lacks a kind of file and holds others."""
        names = list(self.files.sizes)
        return f"holds no {lacking}, only {name_list(names)}" if names else "holds no files"

    @property
    def lone_unit(self) -> str:
        """The name of the truth's only unit, whose folder is optional; "" if there are several."""
        return self.truth.item_names[0] if len(self.truth.units) == 1 and not self.truth.elsewhere else ""

    @property
    def notes(self) -> List[str]:
        """Notes for the participant about the submission."""
        return self.truth_names.notes

    @property
    def suspicions(self) -> List[str]:
        """Suspicions about the submission as a whole, if it looks like a mistake."""
        return []

    @abc.abstractmethod
    def names(self) -> AbstractSet[str]:
        """Return the names of the units that were sent."""

    def close(self) -> None:
        """Close the file."""
        self.files.close()


class UnitNouns(NamedTuple):
    """The words for a truth with a file for each unit."""

    #: Its files, in the plural, and the name of one.
    files: str
    example: str
    #: What each is of.
    unit: str


def choose_members(
    files: Files,
    path: str,
    subset: str,
    list_members: Callable[[Iterable[str]], Dict[str, List[str]]],
    nouns: UnitNouns,
) -> Dict[str, str]:
    """Return the one file of each unit of a truth, below a folder or in folders of a subset's name, sorted by unit."""
    within = "" if subset == DEFAULT_SPLIT else subset
    units = list_members(member for member in files.sizes if not within or within in member.split("/")[:-1])
    if not units and within == os.path.basename(os.path.normpath(path)):
        units = list_members(files.sizes)
    if not units:
        raise HostError(
            f"{path}: has no {nouns.files} such as {nouns.example}" + (f" in a folder {within}" if within else "")
        )
    doubled = [members for members in units.values() if len(members) > 1]
    if doubled:
        raise HostError(f"{path}: has several {nouns.files} of one {nouns.unit}: {name_list(doubled[0])}")
    return {name: member for name, (member,) in sorted(units.items())}


class FilesOfUnits(UnitSubmission):
    """A submission with a file for each unit."""

    #: What an upload is that has no such file.
    lacking: str
    #: What to send where a unit has several files.
    once: str

    @abc.abstractmethod
    def pair_members(self) -> Iterable[Tuple[str, str]]:
        """Yield the name of each file's unit and the file."""

    def read_upload(self) -> None:
        self._members: Dict[str, List[str]] = {}
        for name, member in self.pair_members():
            self._members.setdefault(self.truth_names.respell(name), []).append(member)
        if not self._members:
            raise Flaw(self.lacking, self.send)
        self.used_files = {member for members in self._members.values() for member in members}

    def names(self) -> AbstractSet[str]:
        return self._members.keys()

    def read_member(self, name: str, read: Callable[[str], Array], problems: Problems) -> Optional[Array]:
        """Return a unit's file as decoded by `read`; None if it has a problem."""
        member, *repeats = self._members[name]
        try:
            if repeats:
                raise Flaw(f"is sent again as {name_list(repeats)}", self.once)
            return read(member)
        except Flaw as flaw:
            problems.add(flaw.as_problem(member))
            return None


def count_by_image(
    measure: Callable[[Unit, LabelMap, Array, Any], Dict[str, Array]],
) -> Callable[[Unit, Any], UnitCounts]:
    """Return the function that counts a one-image unit with `measure`, from truth, prediction and protocol."""

    def count(unit: Unit, submission: Any) -> UnitCounts:
        problems, (frame,) = Problems(), unit.load()
        prediction = submission.read(unit.name, frame.size, problems)
        if prediction is None:
            return UnitCounts(unit.name, {}, problems.first, problems.count)
        return UnitCounts(unit.name, measure(unit, frame.read(), prediction, submission.protocol))

    return count


class PictureFiles:
    """The PNGs of a folder or archive, by their names and by those of their folders."""

    def __init__(self, files: Files, folder: str = "", lone_unit: str = "") -> None:
        """Sort the PNGs by name; those at the top belong to the lone unit, if there is one."""
        self.files, self._folder = files, folder
        self._by_name: Dict[str, List[str]] = {}
        self._lone_unit = lone_unit if not any("/" in name for name in files.sizes if _is_png(name)) else ""
        for name in files.sizes:
            if _is_png(name):
                self._by_name.setdefault(_form_of(name), []).append(name)

    def find(self, name: str, folder: str = "") -> str:
        """Return the PNG of this name, in this folder if one is named; a Flaw when there is none, or several."""
        paths = self._by_name.get(_form_of(name), [])
        if folder:
            inside = compose(f"/{folder}")
            paths = [path for path in paths if compose(f"/{self._folder_of(path)}").endswith(inside)]
        if len(paths) > 1:
            paths = [path for path in paths if f"/{self._folder}/" in f"/{path}"] or paths
        if len(paths) != 1:
            count = f"there are {len(paths)} PNGs" if paths else "there is no PNG"
            raise Flaw(f"{count} {printable(f'{folder}/{name}' if folder else name)}", "Send one PNG for each frame")
        return paths[0]

    def members(self) -> AbstractSet[str]:
        """Return the paths of all PNGs."""
        return {path for paths in self._by_name.values() for path in paths}

    def stems(self) -> AbstractSet[str]:
        """Return the names of all PNGs, without their ending."""
        return {name.rpartition(".")[0] for name in self._by_name}

    def folders(self) -> AbstractSet[str]:
        """Return the names of the folders that hold PNGs."""
        return {self._folder_of(name).rpartition("/")[2] for names in self._by_name.values() for name in names}

    def _folder_of(self, path: str) -> str:
        return path.rpartition("/")[0] or self._lone_unit


def _is_png(name: str) -> bool:
    return name.lower().endswith(".png")


def _form_of(path: str) -> str:
    """Return the name of a PNG, in one Unicode form and with its ending in small letters."""
    stem, _, ending = compose(path.rpartition("/")[2]).rpartition(".")
    return f"{stem}.{ending.lower()}"


#: The longest header: names of tables and problems.
_LONGEST_HEADER = 16 << 20
#: What the numbers of a table may be, little-endian.
_KINDS = frozenset({"<i8", "<f8"})
#: The shapes of a unit's tables by name; a number that may be any has a letter, the same one for the same number.
Shapes = Dict[str, Tuple[Union[int, str], ...]]
#: What a row of the truth's facts holds, by its key.
_FactForms = Mapping[str, Tuple[type, ...]]


@dataclass(frozen=True)
class UnitCounts(NamedCounts):
    """The counts of one unit."""

    name: str
    #: Tables of 64-bit numbers, by names that the family gives them.
    tables: Dict[str, Array]
    #: What is wrong with its prediction: the first ones, and how many there are.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0
    #: What it scores by other readings, where it was looked at again.
    reading_scores: ReadingScores = field(default_factory=dict)

    def describe(self) -> Dict[str, object]:
        tables = {key: [f"<{table.dtype.kind}8", *table.shape] for key, table in self.tables.items()}
        return {"tables": tables, **encode_reading_scores(self.reading_scores)}

    def numbers(self) -> List[Array]:
        return [table.astype(f"<{table.dtype.kind}8", copy=False) for table in self.tables.values()]


def decode_unit(data: bytes) -> UnitCounts:
    """Return the counts that `encode` wrote; raises ValueError for malformed bytes."""
    return decode_with(_unit, data, _LONGEST_HEADER)


def _unit(header: Dict[str, Any], numbers: bytes) -> UnitCounts:
    source = io.BytesIO(numbers)
    tables = {str(key): _table(source, *form) for key, form in header["tables"].items()}
    problems, count = problems_of(header)
    if source.read(1):
        raise ValueError("has more numbers than tables")
    return UnitCounts(str(header["name"]), tables, problems, count, decode_reading_scores(header))


def _table(source: io.BytesIO, kind: str, *shape: int) -> Array:
    if kind not in _KINDS or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise ValueError("has a table with an unknown form")
    data = source.read(8 * math.prod(shape))
    if len(data) != 8 * math.prod(shape):
        raise ValueError("has fewer numbers than its tables")
    return np.frombuffer(data, kind).reshape(shape)


class UnitAccumulator(NamedAccumulator[Rules, UnitCounts]):
    """The counts of the units of one split, and the other inputs of their scores."""

    decode = staticmethod(decode_unit)

    def __init__(
        self,
        protocol: Rules,
        facts: Dict[str, Any],
        names: List[str],
        notes: Sequence[str] = (),
        suspicions: Sequence[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, names, strict=strict)
        #: What the truth says of all units, such as its categories; JSON can hold it.
        self.facts = facts
        #: What was noted before anything was decoded.
        self.notes = list(notes)
        #: What all that was sent looks like, if a slip was made.
        self.suspicions = list(suspicions)
        #: The tables that were stacked, for scores without some of the units.
        self._stacks: Dict[str, Array] = {}
        #: What was added up, by name; without some of the units, the accumulator of all, and these units.
        self._sums: Dict[str, Array] = {}
        self._left_out: Optional[Tuple[UnitAccumulator[Rules], List[UnitCounts]]] = None

    @classmethod
    def make_empty(cls, protocol: Rules, description: Dict[str, Any], *, strict: bool) -> UnitAccumulator[Rules]:
        names, notes = (list(map(str, description[key])) for key in ("units", "notes"))
        suspicions = list(map(str, description.get("suspicions", ())))
        return cls(protocol, dict(description["facts"]), names, notes, suspicions, strict=strict)

    def describe(self) -> Dict[str, Any]:
        suspicions = {"suspicions": self.suspicions} if self.suspicions else {}
        return {"units": self.names, "facts": self.facts, "notes": self.notes, **suspicions}

    def check(self, shapes: Shapes, facts: Optional[_FactForms], signed: Collection[str]) -> None:
        """Raise ValueError if tables have unexpected shapes or facts unexpected forms, if these are given."""
        for key, rows in self.facts.items():
            if facts is not None and (key not in facts or any(tuple(map(type, row)) != facts[key] for row in rows)):
                raise ValueError("the description of the truth has an unknown format")
        for unit in self.all_counts():
            if shapes and not unit.problem_count:
                _check_tables(unit.tables, shapes, signed)

    def complete_counts(self) -> List[UnitCounts]:
        """Return the counts of all units in the truth's order; raises SubmissionError with every problem."""
        self.refuse_missing()
        self.refuse_problems()
        return self.all_counts()

    def stack(self, key: str) -> Array:
        """Return a table that has the same shape in all units, with the units first."""
        if key not in self._stacks:
            self._stacks[key] = np.stack([counts.tables[key] for counts in self.complete_counts()])
        return self._stacks[key]

    def add_up(self, key: str, tabulate: Callable[[List[UnitCounts]], Array]) -> Array:
        """Return a table of whole numbers that are sums over units; `key` identifies `tabulate`.

        The sum without a group is the total minus the group's sum, so many scores read each unit only twice.
        """
        if key not in self._sums:
            if self._left_out is None:
                self._sums[key] = tabulate(self.complete_counts())
            else:
                everything, units = self._left_out
                self._sums[key] = everything.add_up(key, tabulate) - tabulate(units)
        return self._sums[key]

    def update(self, counts: UnitCounts) -> None:
        super().update(counts)
        self._stacks, self._sums, self._left_out = {}, {}, None

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._stacks, self._sums, self._left_out = {}, {}, None
        super().load_state_dict(state)

    def _keep(self, units: List[UnitCounts], flags: Array) -> UnitAccumulator[Rules]:
        """Return the accumulator of the units that are flagged."""
        units_by_name = {unit.name: unit for unit, flag in zip(units, flags.tolist()) if flag}
        accumulator = UnitAccumulator(self.protocol, self.facts, list(units_by_name))
        accumulator._counts = units_by_name
        accumulator._stacks = {key: table[flags] for key, table in self._stacks.items()}
        accumulator._left_out = self, [unit for unit, flag in zip(units, flags.tolist()) if not flag]
        return accumulator

    def without_groups(
        self, values: Callable[[UnitAccumulator[Rules]], Values], _metrics: Collection[str] = ()
    ) -> Dict[str, Array]:
        """Return all metrics, computed by `values`, leaving out one group of units at a time; empty for one unit."""
        units = self.complete_counts()
        if len(units) < 2:
            return {}
        groups = deal_groups(len(units))
        rows = [values(self._keep(units, groups != number)) for number in range(int(groups.max()) + 1)]
        return {metric: np.array([row[metric] for row in rows], float) for metric in rows[0]}


def _check_tables(tables: Dict[str, Array], shapes: Shapes, signed: Collection[str]) -> None:
    if tables.keys() != shapes.keys():
        raise ValueError(f"a unit has tables other than {', '.join(shapes)}")
    lengths: Dict[str, int] = {}
    for key, shape in shapes.items():
        sides = tables[key].shape
        fits = len(sides) == len(shape) and all(
            side == (wanted if isinstance(wanted, int) else lengths.setdefault(wanted, side))
            for side, wanted in zip(sides, shape)
        )
        if not fits or not np.isfinite(tables[key]).all() or (key not in signed and (tables[key] < 0).any()):
            raise ValueError(f"a unit has numbers as {key} that are not counts")


_Count = Callable[[Unit, Any], UnitCounts]
#: Returns the metrics of units that were counted.
_Measure = Callable[[UnitAccumulator[Any]], Values]


@dataclass(frozen=True)
class _Counting:
    """How a family counts a unit, and the other readings by which it counts low scores again."""

    count: _Count
    measure: _Measure
    readings: Callable[[Any], Sequence[Reading]]

    def count_twice(self, unit: Unit, submission: UnitSubmission) -> UnitCounts:
        """Count a unit, and by other readings too if its score is low."""
        counts = self.count(unit, submission)

        def score(counts: UnitCounts) -> Optional[float]:
            if counts.problem_count:
                return None
            accumulator = UnitAccumulator(submission.protocol, submission.truth.facts, [unit.name])
            accumulator.update(counts)
            return self.measure(accumulator)[submission.protocol.metrics[0]]

        readings = self.readings(submission.protocol)
        reading_scores = score_readings(
            score(counts), readings, lambda reading: score(self.count(unit, reading.open(submission)))
        ) if readings else {}  # fmt: skip
        return replace(counts, reading_scores=reading_scores) if reading_scores else counts


class _OpenedUnits:
    """A submission beside its truth."""

    def __init__(self, submission: UnitSubmission, truth: UnitTruth, counting: _Counting, rules: ScoringRules) -> None:
        self._submission, self._truth, self._counting, self._rules = submission, truth, counting, rules
        try:
            self._notes = _note_surplus(submission, truth, strict=rules.strict)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the submission's file."""
        self._submission.close()

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        truth, rules = self._truth, self._rules
        notes, suspicions = self._notes, self._submission.suspicions
        accumulator = UnitAccumulator(
            rules.protocol, truth.facts, truth.item_names, notes, suspicions, strict=rules.strict
        )
        numbers = share.select([unit.cost for unit in truth.units])
        units, twice = [truth.units[number] for number in numbers], choose_units(len(truth.units))

        def count(number: int) -> bytes:
            count_unit = self._counting.count_twice if numbers[number] in twice else self._counting.count
            return count_unit(units[number], self._submission).encode()

        return CountingJob(accumulator, count, [unit.cost for unit in units], [unit.name for unit in units])


def unit_engine(  # noqa: PLR0913, PLR0917 - each is one thing that a family does in its own way
    read_truth: Callable[[str, str], UnitTruth],
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], UnitSubmission],
    count: _Count,
    values: _Measure,
    tables: Callable[[UnitAccumulator[Any]], Dict[str, List[Row]]],
    shapes: Callable[[Any, Dict[str, Any]], Shapes] = lambda _protocol, _facts: {},
    suspicions: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
    facts: Optional[_FactForms] = None,
    signed: Collection[str] = (),
    readings: Callable[[Any], Sequence[Reading]] = lambda _protocol: (),
    notes: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
) -> Engine[UnitTruth, Any, UnitAccumulator[Any]]:
    """Return the engine of a family from its functions for reading, counting and scoring.

    `shapes` gives the table shapes of a unit and `facts` the forms of its facts; both check the tables of parts that
    come from files. Only tables in `signed` may hold negative numbers. `suspicions` are warnings about all units that
    suggest a mistake, and `notes` other remarks for participants; neither rejects anything. `readings` are a protocol's
    alternative readings of a submission: the engine counts a few units again if their first metric is low, so that
    metric must rise with quality.
    """
    counting = _Counting(count, values, readings)

    def suspect(counts: UnitAccumulator[Any]) -> List[str]:
        reading_scores, metric = [unit.reading_scores for unit in counts.all_counts()], counts.protocol.metrics[0]
        explained = judge_readings(reading_scores, len(counts.names), readings(counts.protocol), metric)
        return [*counts.suspicions, *(explained or suspicions(counts))]

    def report(split: str, counts: UnitAccumulator[Any]) -> Report:
        return Report(
            split,
            counts.protocol,
            values(counts),
            tables(counts),
            [*counts.notes, *notes(counts)],
            counts,
            len(counts.names),
            partial(counts.without_groups, values),
            suspect(counts),
        )

    return Engine(
        UnitAccumulator,
        read_units,
        lambda path, subset, _protocol: AnnotationFile({subset or DEFAULT_SPLIT: read_truth(path, subset)}),
        lambda path, truth, protocol, rules: _OpenedUnits(
            open_submission(path, truth, protocol, rules.limits), truth, counting, rules
        ),
        report,
        lambda counts: counts.check(shapes(counts.protocol, counts.facts), facts, signed),
    )


def _note_surplus(submission: UnitSubmission, truth: UnitTruth, *, strict: bool) -> List[str]:
    """Return a warning about surplus units; raises SubmissionError if any unit is missing."""
    names, noun = submission.names(), submission.noun
    missing = [name for name in truth.item_names if name not in names]
    surplus = sorted(names - truth.elsewhere.union(truth.item_names))
    if missing:
        lacking = f"{quantity(len(missing), noun, len(truth.units))} {inflect(len(missing), 'is', 'are')} missing"
        fault = f"{lacking}: {name_list(missing, 5)}"
        if surplus:
            fault += f"; {len(surplus):,} {inflect(len(surplus), 'is', 'are')} not in the truth: {name_list(surplus)}"
        raise SubmissionError.from_problem(Problem(UPLOAD, fault, f"Send every {noun}"))
    unused = [] if submission.used_files is None else sorted(submission.files.sizes.keys() - submission.used_files)
    ignored = _describe_surplus(surplus, noun, unused)
    if ignored and strict:
        raise SubmissionError.from_problem(Problem(UPLOAD, "; ".join(ignored), "Send only what is scored"))
    return [*ignored, *submission.notes]


def _describe_surplus(surplus: List[str], noun: str, unused: List[str]) -> List[str]:
    """Return the sentence about surplus units and unused files of a submission."""
    ignored = []
    if surplus:
        were = inflect(len(surplus), "is not in the truth and was", "are not in the truth and were")
        ignored.append(f"{quantity(len(surplus), noun)} {were} ignored: {name_list(surplus)}")
    if unused:
        were = inflect(len(unused), "is not part of the results and was", "are not part of the results and were")
        ignored.append(f"{quantity(len(unused), 'file')} {were} ignored: {name_list(unused)}")
    return ignored
