"""The files of cells: label maps as TIFF, and a text file with one line per track.

The truth is `01_GT/TRA/man_track000.tif` and `man_track.txt`, with outlines of some frames in `01_GT/SEG`; a submission
is `01_RES/mask000.tif` and `res_track.txt`. A sequence is named 01; if a folder holds several data sets, the name
includes its folder. The slices of a volume are stacked vertically.
"""

from __future__ import annotations

import codecs
import os
import re
from typing import AbstractSet, Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.archive import UPLOAD
from ...files.limits import Files
from ...files.problems import Flaw, HostError, Problem, Problems, name_list, printable, quantity
from ...masks import tiff
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ..base.units import TruthFrame, Unit, UnitSubmission, UnitTruth, guard_reading, open_dataset
from .protocols import LAYOUT, CellProtocol

_SEND = "Send one zip with 01_RES/mask000.tif and so on, and 01_RES/res_track.txt, for each sequence"
_TRACK_LINES = "Write a line for each label: the label, its first and last frame, and its parent or 0"
#: The columns of a track.
LABEL, BEGIN, END, PARENT = range(4)
#: The exclusive maximum of 16-bit labels, and of a sequence's tracks.
LABELS_END = 1 << 16
_TRACK_BYTES = 4 << 20
_MASK, _TRACKS = re.compile(r"mask(\d{1,6})\.tiff?", re.IGNORECASE), "res_track.txt"
_MARKERS, _OUTLINES = re.compile(r"man_track(\d{1,6})\.tiff?"), re.compile(r"man_seg_?(\d{1,6})(?:_(\d{1,6}))?\.tiff?")
_LINE = re.compile(rb"\s*(\d{1,9})[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+(-?\d{1,9})\s*")


# ── tracks ──────────────────────────────────────────────────────────────────


def _parse_tracks(data: bytes) -> Array:
    """Return a row for each track of a text: label, first and last frame, parent."""
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        fields = _LINE.fullmatch(line)
        if fields is None:
            text = printable(line[:60].decode("utf-8", "backslashreplace"))
            raise Flaw(
                f'has the line {number} "{text}", which is not four whole numbers separated by spaces', _TRACK_LINES
            )
        rows.append(list(map(int, fields.groups())))
        if len(rows) >= LABELS_END:
            raise Flaw(f"has more than {LABELS_END - 1:,} tracks, the limit of 16-bit labels", _TRACK_LINES)
    return np.array(rows, np.int64).reshape(-1, 4)


def judge_tracks(tracks: Array, frames: int) -> List[Flaw]:
    """Return the faults of the tracks of a sequence that can be found without masks."""
    labels, begin, end, parents = tracks.T
    unique, places, counts = np.unique(labels, return_index=True, return_counts=True)
    rows = np.minimum(np.searchsorted(unique, parents), max(len(unique) - 1, 0))
    has_line = unique[rows] == parents if len(unique) else np.zeros(0, bool)
    parent_ends = end[places][rows] if len(unique) else end
    faults = (
        (np.isin(labels, unique[counts > 1]), "in several lines", "Write one line for each label"),
        ((labels < 1) | (labels >= LABELS_END), f"beyond 1 to {LABELS_END - 1:,}", "Number cells from 1"),
        (begin > end, "whose last frame is before the first", _TRACK_LINES),
        (end >= frames, f"that end after the last frame, {frames - 1}", "Count frames from 0"),
        (parents < 0, "with a negative parent", "Write 0 where there is no parent"),
        ((parents > 0) & ~has_line, "with a parent that has no line", "Write the parent's line, or 0 for no parent"),
        ((parents > 0) & has_line & (parent_ends >= begin), "that begin before their parent ends",
         "End the parent in the frame before its first child, or earlier"),
    )  # fmt: skip
    flaws = []
    for flags, fault, remedy in faults:
        if flags.any():
            chosen = np.unique(labels[flags])
            flaws.append(Flaw(f"has {quantity(len(chosen), 'label')} {fault}: {name_labels(chosen)}", remedy))
    return flaws


def judge_frame(present: Array, frame: int, tracks: Array) -> List[Flaw]:
    """Return the differences between a frame's labels and the tracks that cover it."""
    listed = tracks[(tracks[:, BEGIN] <= frame) & (tracks[:, END] >= frame), LABEL]
    absent, unlisted = subtract_labels(listed, present), subtract_labels(present, listed)
    flaws = []
    if len(absent):
        fault = f"lacks {quantity(len(absent), 'label')} that {_TRACKS} lists there: {name_labels(absent)}"
        flaws.append(Flaw(fault, "End the track of a cell that disappears, and continue it as its own child"))
    if len(unlisted):
        fault = f"has {quantity(len(unlisted), 'label')} that {_TRACKS} does not list there: {name_labels(unlisted)}"
        flaws.append(Flaw(fault, _TRACK_LINES))
    return flaws


def subtract_labels(labels: Array, listed: Array) -> Array:
    """Return the labels that are not listed, each once, in rising order."""
    return np.array(sorted(set(labels.tolist()).difference(listed.tolist())), np.int64)


def name_labels(labels: Array) -> str:
    return name_list(list(map(str, labels.tolist())))


# ── truths ──────────────────────────────────────────────────────────────────


class _Truth(NamedTuple):
    """The files of a sequence: tracks, markers by frame, outlines by frame and slice (-1 for all of a frame)."""

    tracks: List[str]
    markers: Dict[int, str]
    outlines: Dict[Tuple[int, int], str]


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read the sequences below a folder."""
    del subset
    above = os.path.abspath(path).split(os.sep) if os.path.isdir(path) else []
    truths: Dict[Tuple[str, str], _Truth] = {}
    files = open_dataset(path)
    for member in sorted(files.sizes):
        _file_away([*above, *member.split("/")], member, truths)
    truths = {key: truth for key, truth in truths.items() if truth.markers}
    if not truths:
        raise HostError(f"{path}: has no files SEQUENCE_GT/TRA/man_track000.tif")
    several = len({dataset for dataset, _ in truths}) > 1
    units = [
        _open_unit(files, f"{dataset}/{sequence}" if several else sequence, truth)
        for (dataset, sequence), truth in truths.items()
    ]
    return UnitTruth(CellProtocol.family, LAYOUT, {}, units)


def _file_away(path: List[str], member: str, truths: Dict[Tuple[str, str], _Truth]) -> None:
    """Store a file under its sequence and part, if it belongs to a sequence."""
    if len(path) < 3 or not path[-3].endswith("_GT") or path[-2] not in ("TRA", "SEG"):
        return
    key = (path[-4] if len(path) > 3 else "", path[-3][: -len("_GT")])
    truth = truths.setdefault(key, _Truth([], {}, {}))
    marker, outline = _MARKERS.fullmatch(path[-1]), _OUTLINES.fullmatch(path[-1])
    if path[-2] == "TRA" and path[-1] == "man_track.txt":
        truth.tracks.append(member)
    elif path[-2] == "TRA" and marker:
        _add_member(truth.markers, int(marker[1]), member)
    elif path[-2] == "SEG" and outline:
        _add_member(truth.outlines, (int(outline[1]), int(outline[2] or -1)), member)


def _add_member(members: Dict[Any, str], key: Any, member: str) -> None:
    if members.setdefault(key, member) != member:
        raise HostError(f"{members[key]} and {member} are the same frame")


def _open_unit(files: Files, name: str, truth: _Truth) -> Unit:
    count = len(truth.markers)
    if sorted(truth.markers) != list(range(count)):
        raise HostError(f"{name}_GT/TRA: frames are not numbered from 0 without gaps")
    if len(truth.tracks) != 1:
        raise HostError(f"{name}_GT/TRA: has no man_track.txt")
    odd = sorted({frame for frame, _ in truth.outlines if frame >= count})
    if odd:
        raise HostError(f"{name}_GT/SEG: has frames that TRA lacks: {name_labels(np.array(odd))}")
    (member,) = truth.tracks
    tracks = guard_reading(member, lambda: _parse_tracks(files.read(member)))()
    for flaw in judge_tracks(tracks, count):
        raise HostError(f"{member}: {flaw}")
    first_marker = truth.markers[0]
    pages, height, width = guard_reading(first_marker, lambda: tiff.size_of(files.read(first_marker)))()
    size = (height, width)

    def open_frame(frame: str, rows: List[List[int]], path: str, slices: int) -> TruthFrame:
        def read() -> LabelMap:
            return LabelMap(tiff.read_labels(files.read(path), size, slices))

        return TruthFrame(frame, (slices * height, width), rows, guard_reading(path, read))

    frames = [open_frame(f"{frame:03d}", [], truth.markers[frame], pages) for frame in range(count)]
    for (frame, cut), path in sorted(truth.outlines.items()):
        label = f"SEG {frame:03d}" if cut < 0 else f"SEG {frame:03d} {cut:03d}"
        if cut >= pages:
            raise HostError(f"{path}: the frame has {quantity(pages, 'slice')}")
        frames.append(open_frame(label, [[frame, cut]], path, pages if cut < 0 else 1))
    facts = {"tracks": tracks.tolist(), "slices": pages}
    return Unit(name, count, lambda: frames, facts)


# ── submissions ─────────────────────────────────────────────────────────────


class CellSubmission(UnitSubmission):
    """The folders of a submission, one for each sequence."""

    noun, send = "sequence", _SEND
    protocol: CellProtocol
    has_sparse_files = True

    def read_upload(self) -> None:
        #: The files of each sequence by frame; the text files with tracks have no frame.
        self._members: Dict[str, Dict[int, List[str]]] = {}
        truth = self.truth
        known_names = {*truth.item_names, *truth.elsewhere}
        alone = truth.item_names[0] if len(truth.units) == 1 else ""
        members = [(member, member.split("/")) for member in sorted(self.files.sizes)]
        if any(path[-2].endswith("_RES") for _, path in members if len(path) > 1):
            alone = ""
        for member, parts in members:
            mask = _MASK.fullmatch(parts[-1])
            if mask is None and parts[-1].lower() != _TRACKS:
                continue
            name = alone or self._name_sequence(parts, known_names)
            if name:
                frame = int(mask[1]) if mask else -1
                self._members.setdefault(name, {}).setdefault(frame, []).append(member)
        if not self._members:
            raise Flaw("has no folder SEQUENCE_RES with mask000.tif", _SEND)
        self.used_files = {
            member for frames in self._members.values() for members in frames.values() for member in members
        }

    def _name_sequence(self, parts: List[str], known_names: AbstractSet[str]) -> str:
        """Return the sequence that a folder belongs to; "" for none."""
        if len(parts) < 2 or not parts[-2].endswith("_RES"):
            return ""
        name = self.truth_names.respell(parts[-2][: -len("_RES")])
        long = self.truth_names.respell(f"{parts[-3]}/{name}") if len(parts) > 2 else name
        return long if long in known_names or name not in known_names else name

    def names(self) -> AbstractSet[str]:
        return self._members.keys()

    def open_sequence(self, unit: Unit, problems: Problems) -> Tuple[Optional[Array], List[str]]:
        """Return the tracks (None if anything has problems) and the file of each frame ("" for none)."""
        members = self._members[unit.name]
        folder = next(iter(members.values()))[0].rpartition("/")[0] or UPLOAD
        frames = range(unit.cost)
        missing = [f"mask{frame:03d}.tif" for frame in frames if frame not in members]
        surplus = [members[frame][0].rpartition("/")[2] for frame in sorted(members) if frame >= len(frames)]
        if missing:
            lacking = f"lacks {quantity(len(missing), 'frame', len(frames))}: {name_list(missing)}"
            problems.add(Problem(folder, lacking, "Send every frame, numbered as in the dataset"))
        if surplus:
            fault = f"has {quantity(len(surplus), 'frame')} that the sequence lacks: {name_list(surplus)}"
            problems.add(Problem(folder, fault, "Number frames from 000, as in the dataset"))
        for frame in sorted(members):
            member, *repeats = members[frame]
            if repeats:
                problems.add(Problem(member, f"is also sent as {name_list(repeats)}", "Send each file once"))
        tracks = self._read_tracks(unit, folder, problems)
        return None if missing or surplus else tracks, [members.get(frame, [""])[0] for frame in frames]

    def _read_tracks(self, unit: Unit, folder: str, problems: Problems) -> Optional[Array]:
        member = self._members[unit.name].get(-1, [""])[0]
        if not member:
            problems.add(Problem(folder, f"has no {_TRACKS}", _TRACK_LINES))
            return None
        try:
            if self.files.sizes[member] > _TRACK_BYTES:
                raise Flaw(f"is too large for a text file with {LABELS_END:,} tracks", _TRACK_LINES)
            tracks = _parse_tracks(self.files.read(member).removeprefix(codecs.BOM_UTF8))
        except Flaw as flaw:
            problems.add(flaw.as_problem(member))
            return None
        faults = judge_tracks(tracks, unit.cost)
        for fault in faults:
            problems.add(fault.as_problem(member))
        return None if faults else tracks

    def read(self, member: str, size: Size, slices: int) -> Array:
        """Return the labels of a frame, its slices stacked vertically; raises a Flaw if they cannot be read."""
        tiff.check_length(self.files.sizes[member], size, slices)
        return tiff.read_labels(self.files.read(member), size, slices)
