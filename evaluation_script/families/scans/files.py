"""The files of scans: 32 bits per point, with the label in the lower half and the object's number in the upper half.

The truth is `sequences/08/labels/000000.label`, a submission `sequences/08/predictions/000000.label`; a scan is named
by its sequence and its file, 08/000000.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from ...files.limits import Files
from ...files.problems import Flaw, HostError, Problems, name_list, quantity
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ..base.truth import DEFAULT_SPLIT
from ..base.units import FilesOfUnits, TruthFrame, Unit, UnitTruth, guard_reading, open_dataset
from .protocols import LABELS_END, LAYOUT, ScanProtocol

_SEND = "Send one zip with sequences/08/predictions/000000.label and so on, in the format of the published labels"
#: The remedy for class numbers instead of labels.
REMEDY = "Write the labels of learning_map_inv: 10 for a car, 40 for road; 9 and 251 for static and moving"
#: SemanticKITTI's splits, by their sequences.
_SPLITS = {
    "train": ("00", "01", "02", "03", "04", "05", "06", "07", "09", "10"),
    DEFAULT_SPLIT: ("08",),
    "test": tuple(f"{number:02d}" for number in range(11, 22)),
}
_ENDING = ".label"
#: The bytes of a point.
_POINT = 4


def _name_scans(members: Iterable[str], above: List[str], kind: str) -> Iterator[Tuple[str, str]]:
    """Yield the name of each scan and its member, in a folder of this kind; the folders `above` precede all members."""
    sequences: Dict[str, str] = {}
    for member in members:
        folder, _, file = member.rpartition("/")
        if folder not in sequences:
            path = [*above, *folder.split("/")] if folder else above
            sequences[folder] = f"{path[-2]}/" if len(path) > 1 and path[-1] == kind else ""
        if sequences[folder] and file.lower().endswith(_ENDING):
            yield sequences[folder] + file[: -len(_ENDING)], member


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read the named sequences, those of a split, or all."""
    above = os.path.abspath(path).split(os.sep) if os.path.isdir(path) else []
    members: Dict[str, str] = {}
    files = open_dataset(path)
    for name, member in _name_scans(sorted(files.sizes), above, "labels"):
        if members.setdefault(name, member) != member:
            raise HostError(f"{path}: has the scan {name} twice, as {members[name]} and as {member}")
    split = subset or DEFAULT_SPLIT
    chosen = [name for name in members if name.partition("/")[0] in _SPLITS.get(split, (split,))]
    chosen = chosen or (list(members) if split == DEFAULT_SPLIT else [])
    if not chosen:
        raise HostError(f"{path}: has no files sequences/SEQUENCE/labels/SCAN.label of {split!r}")
    odd = [members[name] for name in chosen if not files.sizes[members[name]] or files.sizes[members[name]] % _POINT]
    if odd:
        raise HostError(f"{path}: {quantity(len(odd), 'file')} without 4 bytes for each point: {name_list(odd)}")

    units = [Unit(name, 1, partial(_load_scan, files, name, members[name]), {}) for name in chosen]
    return UnitTruth(ScanProtocol.family, LAYOUT, {}, units)


def _load_scan(files: Files, name: str, member: str) -> List[TruthFrame]:
    points = files.sizes[member] // _POINT

    def read() -> LabelMap:
        return LabelMap(_read_values(files, member, points).reshape(1, points))

    return [TruthFrame(name.partition("/")[2], (1, points), [], guard_reading(member, read))]


def _read_values(files: Files, member: str, points: int) -> Array:
    """Return the 32 bits of each point; the length is checked before decompression."""
    size = files.sizes[member]
    if size != points * _POINT:
        size_text = quantity(size // _POINT, "point") if size % _POINT == 0 else quantity(size, "byte")
        raise Flaw(
            f"holds {size_text}; the scan has {quantity(points, 'point')} of 4 bytes", "Send a label for every point"
        )
    values: Array = np.frombuffer(files.read_buffer(member), "<u4")
    check_labels(values)
    return values


def check_labels(values: Array) -> None:
    """Raise a Flaw if a point has a label beyond all tables of the benchmark."""
    if int(np.bitwise_or.reduce(values, axis=None)) & 0xFFFF < LABELS_END:  # which no label exceeds
        return
    greatest = int((values & 0xFFFF).max())
    if greatest >= LABELS_END:
        raise Flaw(f"holds the label {greatest}, which is not a label of SemanticKITTI", REMEDY)


class ScanSubmission(FilesOfUnits):
    """The scans of a submission, below any other folders."""

    noun, send = "scan", _SEND
    lacking, once = "has no file predictions/SCAN.label for any sequence", "Send each scan once"
    protocol: ScanProtocol

    def pair_members(self) -> Iterator[Tuple[str, str]]:
        members = sorted(self.files.sizes)
        sequences = {name.partition("/")[0] for name in self.truth.elsewhere.union(self.truth.item_names)}
        is_bare = len(sequences) == 1 and not any("/" in member for member in members)
        # A single sequence needs no folder.
        above = [*sequences, "predictions"] if is_bare else []
        return _name_scans(members, above, "predictions")

    def read(self, name: str, points: int, problems: Problems) -> Optional[Array]:
        """Return the 32 bits of each point of a scan; None if its file has a problem."""
        return self.read_member(name, lambda member: _read_values(self.files, member, points), problems)
