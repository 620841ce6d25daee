"""Families that count by unit: images, videos or sequences, each counted by itself.

Here are the truth of units, packed and read again; the files of a submission; the counts of a unit and their
accumulator; and `unit_engine`, which makes an engine of a family's own functions.

Packed, a truth is a zip: `manifest.json` with the splits, `units/<split>/<n>.json` with what a unit lists, and
`maps/<split>/<n>/<frame>` with one number for each pixel, an index into the labels that the frame has.
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
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import numpy as np

from ...files import (
    LONE_SEPARATOR,
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
from ...files.packed import FORMAT, MANIFEST, add_member, annotations_error, open_packed, replace_file
from ...masks import png
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ...runner.parallel import Part
from ...values import dataclass
from .accumulator import NamedAccumulator, NamedCounts, Rules, decode_with, problems_of
from .engine import CountingJob, Engine
from .family import Progress, ScoringRules, Values
from .reports import Report, Row, deal_groups
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
    """One image, video or sequence of the truth; its frames are loaded when they are needed."""

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
        """Return the truth of some units; raises KeyError for those that it does not have."""
        units = {unit.name: unit for unit in self.units}
        names = self.spell(names)
        return replace(
            self, units=[units[name] for name in names], elsewhere=(self.elsewhere | units.keys()) - set(names)
        )

    def read_through(self) -> str:
        """Read all pixels, and return in words how many frames there are."""
        frames = [frame.read().numbers.size for unit in self.units for frame in unit.load()]
        units = inflect(len(self.units), "image or sequence", "images or sequences")
        return f"{len(self.units):,} {units} of {quantity(len(frames), 'frame')}"


def guard_reading(name: str, read: Callable[[], _Read]) -> Callable[[], _Read]:
    """Return what reads a part of a published truth, and raises HostError where that is broken."""

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
    """Return the map of a frame whose rows hold all there is."""
    return LabelMap(np.zeros((0, 0), np.uint8))


def write_units(path: str, splits: Dict[str, UnitTruth]) -> None:
    """Write an annotation file; the same splits give the same bytes."""
    (family,) = {split.family for split in splits.values()}
    manifest: Dict[str, Any] = {"format": FORMAT, "track": family, "splits": {}}
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, split in splits.items():
            units = []
            for number, unit in enumerate(split.units):
                frames = [_write_frame(archive, f"{name}/{number}/{at}", frame) for at, frame in enumerate(unit.load())]
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
    labels = np.unique(pixels.at(starts)) if values.size else starts
    if values.size:
        kind = np.min_scalar_type(len(labels) - 1)
        runs = np.searchsorted(labels, pixels.at(starts)).astype(kind.newbyteorder("<"))
        add_member(archive, f"maps/{member}", np.repeat(runs, np.diff(np.append(starts, values.size))).tobytes())
    return [frame.name, *frame.size, frame.rows, labels.tolist()]


def read_units(path: str) -> Dict[str, UnitTruth]:
    """Open a packed annotation file: its manifest at once, its units and frames one by one."""
    archive, manifest = open_packed(path)
    try:
        family, entries = manifest["track"], manifest["splits"]
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
            TruthFrame(name, (height, width), rows, _reader(archive, f"maps/{member}/{at}", (height, width), labels))
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
        return bytes(inflate_member(archive, archive.getinfo(name)) or archive.read(name))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise HostError(f"annotation file: {name} cannot be read ({error!r})") from None


#: What a host's own data may be.
HOST_LIMITS = ArchiveLimits(
    members=10_000_000,
    total_bytes=1 << 42,
    json_bytes=1 << 32,
    memory_bytes=1 << 36,
    links=True,
    backslash=LONE_SEPARATOR,
    send="Name the folder or the file of a dataset",
    smaller="Leave it out",
)


def open_dataset(path: str) -> Files:
    """Open the files of a published truth; raises HostError where they cannot be read."""
    try:
        return open_files(path, HOST_LIMITS)
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
        """Open the files, and read what says which units there are; close them again where that is refused."""
        self.truth, self.protocol, self.limits = truth, protocol, limits
        self.truth_names = TruthNames([*truth.item_names, *sorted(truth.elsewhere)])
        limits = replace(self.truth_names.spare_backslashes(limits), send=self.send, smaller="Send less in it")
        if self.has_sparse_files:
            largest = max(limits.member_bytes, _SPARSE_BYTES)
            limits = replace(limits, ratio=max(limits.ratio, _SPARSE_RATIO), member_bytes=largest)
        self.files: Files = open_files(path, limits)
        try:
            self.read_upload()
        except Flaw as flaw:
            self.close()
            raise SubmissionError.of(flaw.at(UPLOAD)) from None
        except BaseException:
            self.close()
            raise

    @property
    @abc.abstractmethod
    def send(self) -> str:
        """What to send, for a participant who sent something else."""

    @abc.abstractmethod
    def read_upload(self) -> None:
        """Read what says which units there are; a Flaw where the upload as a whole is wrong."""

    def find_json(self, remedy: str = "") -> str:
        """Return the name of the only JSON file; a Flaw when there is none, or several."""
        names = [name for name in self.files.sizes if name.lower().endswith(".json")]
        if len(names) != 1:
            raise Flaw(f"holds {quantity(len(names), 'JSON file')}", remedy or self.send)
        return names[0]

    @property
    def notes(self) -> List[str]:
        """What a participant should know of what was sent."""
        return self.truth_names.notes

    @abc.abstractmethod
    def names(self) -> AbstractSet[str]:
        """Return the names of the units that were sent."""

    def close(self) -> None:
        """Close the file."""
        self.files.close()


class FilesOfUnits(UnitSubmission):
    """A submission with a file for each unit."""

    #: What an upload is that has no such file.
    lacking: str
    #: What to send where a unit has several files.
    once: str

    @abc.abstractmethod
    def pair_members(self) -> Iterable[Tuple[str, str]]:
        """Yield files with the names of their units before them."""

    def read_upload(self) -> None:
        self._members: Dict[str, List[str]] = {}
        for name, member in self.pair_members():
            self._members.setdefault(self.truth_names.respell(name), []).append(member)
        if not self._members:
            raise Flaw(self.lacking, self.send)

    def names(self) -> AbstractSet[str]:
        return self._members.keys()

    def read_member(self, name: str, read: Callable[[str], Array], problems: Problems) -> Optional[Array]:
        """Return what `read` makes of a unit's file; None where there is a problem with it."""
        member, *repeats = self._members[name]
        try:
            if repeats:
                raise Flaw(f"is sent again as {name_list(repeats)}", self.once)
            return read(member)
        except Flaw as flaw:
            problems.add(flaw.at(member))
            return None


class PictureFiles:
    """The PNGs of a folder or archive, by their names and by those of their folders."""

    def __init__(self, files: Files, folder: str = "") -> None:
        self.files, self._folder = files, folder
        self._by_name: Dict[str, List[str]] = {}
        for name in files.sizes:
            if name.lower().endswith(".png"):
                self._by_name.setdefault(_form_of(name), []).append(name)

    def find(self, name: str, folder: str = "") -> str:
        """Return the PNG of this name, in this folder if one is named; a Flaw when there is none, or several."""
        paths = self._by_name.get(_form_of(name), [])
        if folder:
            inside = compose(f"/{folder}")
            paths = [path for path in paths if compose(f"/{path.rpartition('/')[0]}").endswith(inside)]
        if len(paths) > 1:
            paths = [path for path in paths if f"/{self._folder}/" in f"/{path}"] or paths
        if len(paths) != 1:
            count = f"there are {len(paths)} PNGs" if paths else "there is no PNG"
            raise Flaw(f"{count} {printable(f'{folder}/{name}' if folder else name)}", "Send one PNG for each frame")
        return paths[0]

    def stems(self) -> AbstractSet[str]:
        """Return the names of all PNGs, without their ending."""
        return {name.rpartition(".")[0] for name in self._by_name}

    def folders(self) -> AbstractSet[str]:
        """Return the names of the folders that hold PNGs."""
        return {name.rpartition("/")[0].rpartition("/")[2] for names in self._by_name.values() for name in names}


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
    """What was counted in one unit."""

    name: str
    #: Tables of 64-bit numbers, by names that the family gives them.
    tables: Dict[str, Array]
    #: What is wrong with its prediction: the first ones, and how many there are.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0

    def describe(self) -> Dict[str, object]:
        return {"tables": {key: [f"<{table.dtype.kind}8", *table.shape] for key, table in self.tables.items()}}

    def numbers(self) -> List[Array]:
        return [table.astype(f"<{table.dtype.kind}8", copy=False) for table in self.tables.values()]


def decode_unit(data: bytes) -> UnitCounts:
    """Return the counts that `encode` wrote; raises ValueError where they cannot be such."""
    return decode_with(_unit, data, _LONGEST_HEADER)


def _unit(header: Dict[str, Any], numbers: bytes) -> UnitCounts:
    source = io.BytesIO(numbers)
    tables = {str(key): _table(source, *form) for key, form in header["tables"].items()}
    problems, count = problems_of(header)
    if source.read(1):
        raise ValueError("has more numbers than tables")
    return UnitCounts(str(header["name"]), tables, problems, count)


def _table(source: io.BytesIO, kind: str, *shape: int) -> Array:
    if kind not in _KINDS or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise ValueError("has a table of an unknown form")
    data = source.read(8 * math.prod(shape))
    if len(data) != 8 * math.prod(shape):
        raise ValueError("has fewer numbers than its tables")
    return np.frombuffer(data, kind).reshape(shape)


class UnitAccumulator(NamedAccumulator[Rules, UnitCounts]):
    """The counts of the units of one split, and what their scores need beside them."""

    decode = staticmethod(decode_unit)

    def __init__(
        self,
        protocol: Rules,
        facts: Dict[str, Any],
        names: List[str],
        notes: Sequence[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, names, strict=strict)
        #: What the truth says of all units, such as its categories; JSON can hold it.
        self.facts = facts
        #: What was noted before anything was decoded.
        self.notes = list(notes)
        #: The tables that were stacked, for scores without some of the units.
        self._stacks: Dict[str, Array] = {}

    @classmethod
    def make_empty(cls, protocol: Rules, description: Dict[str, Any], *, strict: bool) -> UnitAccumulator[Rules]:
        names, notes = (list(map(str, description[key])) for key in ("units", "notes"))
        return cls(protocol, dict(description["facts"]), names, notes, strict=strict)

    def describe(self) -> Dict[str, Any]:
        return {"units": self.names, "facts": self.facts, "notes": self.notes}

    def check(self, shapes: Shapes, facts: Optional[_FactForms], signed: Collection[str]) -> None:
        """Raise ValueError where tables have other shapes, or facts other forms; without these they may be any."""
        for key, rows in self.facts.items():
            if facts is not None and (key not in facts or any(tuple(map(type, row)) != facts[key] for row in rows)):
                raise ValueError("the truth is described in a way that is not known")
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

    def update(self, counts: UnitCounts) -> None:
        super().update(counts)
        self._stacks = {}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._stacks = {}
        super().load_state_dict(state)

    def _keep(self, units: List[UnitCounts], flags: Array) -> UnitAccumulator[Rules]:
        """Return the accumulator of the units that are flagged."""
        units_by_name = {unit.name: unit for unit, flag in zip(units, flags.tolist()) if flag}
        accumulator = UnitAccumulator(self.protocol, self.facts, list(units_by_name))
        accumulator._counts = units_by_name
        accumulator._stacks = {key: table[flags] for key, table in self._stacks.items()}
        return accumulator

    def without_groups(
        self, values: Callable[[UnitAccumulator[Rules]], Values], _metrics: Collection[str] = ()
    ) -> Dict[str, Array]:
        """Return what `values` makes of the units without each group of them: all metrics; nothing of a single unit."""
        units = self.complete_counts()
        if len(units) < 2:
            return {}
        groups = deal_groups(len(units))
        rows = [values(self._keep(units, groups != number)) for number in range(int(groups.max()) + 1)]
        return {metric: np.array([row[metric] for row in rows], float) for metric in rows[0]}


def _check_tables(tables: Dict[str, Array], shapes: Shapes, signed: Collection[str]) -> None:
    if tables.keys() != shapes.keys():
        raise ValueError(f"a unit has other tables than {', '.join(shapes)}")
    lengths: Dict[str, int] = {}
    for key, shape in shapes.items():
        sides = tables[key].shape
        fits = len(sides) == len(shape) and all(
            side == (wanted if isinstance(wanted, int) else lengths.setdefault(wanted, side))
            for side, wanted in zip(sides, shape)
        )
        if not fits or not np.isfinite(tables[key]).all() or (key not in signed and (tables[key] < 0).any()):
            raise ValueError(f"a unit has numbers as {key} that are no counts")


_Count = Callable[[Unit, Any], UnitCounts]


class _OpenedUnits:
    """A submission beside its truth."""

    def __init__(self, submission: UnitSubmission, truth: UnitTruth, count: _Count, rules: ScoringRules) -> None:
        self._submission, self._truth, self._count, self._rules = submission, truth, count, rules
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
        accumulator = UnitAccumulator(rules.protocol, truth.facts, truth.item_names, self._notes, strict=rules.strict)
        units = [truth.units[number] for number in share.of([unit.cost for unit in truth.units])]

        def count(number: int) -> bytes:
            return self._count(units[number], self._submission).encode()

        return CountingJob(accumulator, count, [unit.cost for unit in units], [unit.name for unit in units])


def unit_engine(  # noqa: PLR0913, PLR0917 - each is one thing that a family does in its own way
    read_truth: Callable[[str, str], UnitTruth],
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], UnitSubmission],
    count: _Count,
    values: Callable[[UnitAccumulator[Any]], Values],
    tables: Callable[[UnitAccumulator[Any]], Dict[str, List[Row]]],
    shapes: Callable[[Any, Dict[str, Any]], Shapes] = lambda _protocol, _facts: {},
    oddities: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
    facts: Optional[_FactForms] = None,
    signed: Collection[str] = (),
) -> Engine[UnitTruth, Any, UnitAccumulator[Any]]:
    """Return the engine of a family: how truths and submissions are read, what is counted, and what follows.

    Of parts that files bring the tables are checked where `shapes` says which a unit of a protocol and truth has, and
    what the truth says of all units where `facts` says what a row of each holds.  Only numbers of tables that are
    `signed` may be below zero.
    `oddities` are what a participant should know of all units together, though it refuses nothing.
    """

    def report(split: str, counts: UnitAccumulator[Any]) -> Report:
        return Report(
            split,
            counts.protocol,
            values(counts),
            tables(counts),
            [*counts.notes, *oddities(counts)],
            counts,
            len(counts.names),
            partial(counts.without_groups, values),
        )

    return Engine(
        UnitAccumulator,
        read_units,
        lambda path, subset, _protocol: AnnotationFile({subset or DEFAULT_SPLIT: read_truth(path, subset)}),
        lambda path, truth, protocol, rules: _OpenedUnits(
            open_submission(path, truth, protocol, rules.limits), truth, count, rules
        ),
        report,
        lambda counts: counts.check(shapes(counts.protocol, counts.facts), facts, signed),
    )


def _note_surplus(submission: UnitSubmission, truth: UnitTruth, *, strict: bool) -> List[str]:
    """Return a warning of units that the truth does not have; raises SubmissionError where any is missing."""
    names, noun = submission.names(), submission.noun
    missing = [name for name in truth.item_names if name not in names]
    surplus = sorted(names - truth.elsewhere.union(truth.item_names))
    if missing:
        lacking = f"{quantity(len(missing), noun, len(truth.units))} {inflect(len(missing), 'is', 'are')} missing"
        fault = f"{lacking}: {name_list(missing, 5)}"
        if surplus:
            fault += f"; {len(surplus):,} {inflect(len(surplus), 'is', 'are')} not in the truth: {name_list(surplus)}"
        raise SubmissionError.of(Problem(UPLOAD, fault, f"Send every {noun}"))
    if not surplus:
        return submission.notes
    were = inflect(len(surplus), "is not in the truth and was", "are not in the truth and were")
    ignored = f"{quantity(len(surplus), noun)} {were} ignored: {name_list(surplus)}"
    if strict:
        raise SubmissionError.of(Problem(UPLOAD, ignored, "Send only what is scored"))
    return [ignored, *submission.notes]
