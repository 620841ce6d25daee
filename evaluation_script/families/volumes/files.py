"""Label volumes as published and submitted: one file per case, below any folders, in a folder, zip or tar.

The case is the file's name without its ending, and without `-seg` or `_seg` if any name has that suffix, as BraTS's
truth does. A file named `segmentation` is named after its folder, as in KiTS. If the files of grand-challenge have a
`predictions.json`, the case of `JOB/output/images/.../UUID.mha` is the name of the job's input image.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import numpy as np

from ...files.limits import ArchiveLimits, Files, read_json
from ...files.problems import Flaw, Problems, SubmissionError, name_list, printable, quantity
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ..base.units import (
    FilesOfUnits,
    TruthFrame,
    Unit,
    UnitNouns,
    UnitTruth,
    choose_members,
    guard_reading,
    open_dataset,
)
from .geometry import Geometry, require_order
from .headers import NO_SCALE
from .protocols import LAYOUT, VolumeProtocol
from .voxels import DETACHED, Volume, VolumeFile, ending_of, reorder_volume

_SEND = "Send one zip with a label volume for each case, such as CASE.nii.gz, CASE.mha or CASE.nrrd"
_NOUNS = UnitNouns("volumes", "CASE.nii.gz", "case")
#: The endings of volumes that are compressed files.
COMPRESSED = (".nii.gz",)
#: The suffixes of BraTS' label files.
LABEL_SUFFIXES = ("-seg", "_seg")
#: The name of KiTS' label files, and how the names of the folders of labels and of scans begin in nnU-Net's datasets.
_MASK, _LABELS, _IMAGES = "segmentation", "labels", "images"
#: The ending of the voxels of an Analyze or NIfTI volume in two files.
_IMAGE = re.compile(r"\.img(|\.gz)$")
_PREDICTIONS = "predictions.json"
#: The suffix of the first channel of nnU-Net's images.
FIRST_CHANNEL = "_0000"
#: The maximum length of an input image's name.
_LONGEST_STEM = 255
#: The maximum number of outputs whose faults a sentence lists.
_MOST_REASONS = 4
#: The case of each job, and its files by output.
_Jobs = List[Tuple[str, Dict[str, List[str]]]]
_EXAMPLE = '[{"pk": "JOB", "inputs": [{"image": {"name": "CASE.mha"}}], "outputs": [{"image": {"pk": "UUID"}}]}]'


def _stem(member: str) -> str:
    """Return a file's name without its ending; its folder's name for `segmentation`."""
    stem = _name_file(member)
    return _name_folder(member) or stem if stem == _MASK else stem


def _name_file(member: str) -> str:
    """Return a file's name without its ending."""
    name = member.rpartition("/")[2]
    return name[: -len(ending_of(name))] if ending_of(name) else name.partition(".")[0]


def _name_folder(member: str) -> str:
    """Return the name of a file's folder, "" if it is in none."""
    return member.rpartition("/")[0].rpartition("/")[2]


def _is_volume(member: str) -> bool:
    """Return whether a file has a volume's extension; formats with detached data count, and are rejected later."""
    return bool(ending_of(member)) or member.lower().endswith(DETACHED)


def _list_volumes(members: Iterable[str]) -> Dict[str, List[str]]:
    """Return the files of volumes by case."""
    volumes = {member for member in members if _is_volume(member)}
    # The voxels next to a header are not a second volume.
    voxels = {member for member in volumes if _IMAGE.search(member) and _IMAGE.sub(r".hdr\1", member) in volumes}
    stems = {member: _stem(member) for member in sorted(volumes - voxels)}
    marked = {member: stem[:-4] for member, stem in stems.items() if stem.endswith(LABEL_SUFFIXES) and len(stem) > 4}
    by_case: Dict[str, List[str]] = {}
    for member, stem in (marked or stems).items():
        by_case.setdefault(stem, []).append(member)
    return by_case


def _list_truths(members: Iterable[str]) -> Dict[str, List[str]]:
    """Return the files of true volumes by case.

    Scans are left out: KiTS keeps them beside `segmentation`, nnU-Net in `imagesTr` beside `labelsTr`.
    """
    files = list(members)
    masks = {member for member in files if _name_file(member) == _MASK and "/" in member}
    folders = {member.rpartition("/")[0] for member in masks}
    has_labels = any(_name_folder(member).startswith(_LABELS) for member in files)

    def is_scan(member: str) -> bool:
        parts = member.split("/")[:-1]
        is_beside = any("/".join(parts[: end + 1]) in folders for end in range(len(parts)))
        return (is_beside and member not in masks) or (has_labels and _name_folder(member).startswith(_IMAGES))

    return _list_volumes(member for member in files if not is_scan(member))


def _encode_geometry(geometry: Geometry) -> List[List[Any]]:
    """Return the rows of a frame that hold a geometry."""
    affine = [] if geometry.affine is None else geometry.affine.reshape(-1).tolist()
    return [list(geometry.shape), list(geometry.spacing), affine]


def decode_geometry(rows: List[List[Any]]) -> Geometry:
    """Return the geometry that a frame's rows hold."""
    shape, spacing, affine = rows
    return Geometry(
        (shape[0], shape[1], shape[2]),
        (spacing[0], spacing[1], spacing[2]),
        np.reshape(affine, (3, 4)) if affine else None,
    )


def read_labels(frame: TruthFrame) -> Array:
    """Return the labels of a true volume in the smallest type, to save memory."""
    pixels = frame.read()
    if pixels.labels is None:
        return pixels.numbers
    if (pixels.labels == np.arange(len(pixels.labels))).all():
        return pixels.numbers
    return pixels.labels.astype(np.min_scalar_type(int(pixels.labels.max())))[pixels.numbers]


# ── truths ──────────────────────────────────────────────────────────────────


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read the volumes below a folder, or those in folders of a subset's name."""
    files = open_dataset(path, COMPRESSED)
    members = choose_members(files, path, subset, _list_truths, _NOUNS)
    units = [_open_unit(files, name, member) for name, member in members.items()]
    return UnitTruth(VolumeProtocol.family, LAYOUT, {}, units)


def _open_unit(files: Files, name: str, member: str) -> Unit:
    def open_file() -> VolumeFile:
        return VolumeFile(member, files.sizes[member], files.read_chunks(member))

    def load() -> List[TruthFrame]:
        geometry = guard_reading(member, lambda: open_file().geometry)()
        x, y, z = geometry.shape

        def read() -> LabelMap:
            return LabelMap(open_file().read_labels().labels.reshape(z * y, x))

        return [TruthFrame(name, (z * y, x), _encode_geometry(geometry), guard_reading(member, read))]

    return Unit(name, 1, load)


# ── submissions ─────────────────────────────────────────────────────────────


class VolumeSubmission(FilesOfUnits):
    """The volumes of a submission."""

    noun, send = "case", _SEND
    lacking, once = "has no volume such as CASE.nii.gz", "Send one file for each case"
    protocol: VolumeProtocol
    has_sparse_files = True

    def __init__(self, path: str, truth: UnitTruth, protocol: VolumeProtocol, limits: ArchiveLimits) -> None:
        super().__init__(path, truth, protocol, replace(limits, compressed=COMPRESSED))

    def read_upload(self) -> None:
        self._cases = {*self.truth.item_names, *self.truth.elsewhere}
        self._lists = {member for member in self.files.sizes if member.rpartition("/")[2] == _PREDICTIONS}
        self._unscored: Set[str] = set()
        self._choice = ""
        super().read_upload()
        self.used_files = {*(self.used_files or ()), *self._lists, *self._unscored}

    @property
    def notes(self) -> List[str]:
        return [*([self._choice] if self._choice else []), *super().notes]

    def explain_missing(self, missing: List[str], surplus: List[str]) -> str:
        """Return the remedy; the names of nnU-Net's images end with the number of their channel."""
        if any(case + FIRST_CHANNEL in surplus for case in missing):
            return f"Send predictions, not images of channels, and name them without {FIRST_CHANNEL}"
        if any(case + FIRST_CHANNEL in missing for case in surplus):
            return "The truth holds images of channels: use nnU-Net's labels, such as labelsTr, not imagesTr"
        unmarked = sorted(member for member in self.files.sizes if _is_volume(member) and _stem(member) in missing)
        if unmarked and not self._lists:
            marks = " or ".join(LABEL_SUFFIXES)
            return f"Some names end in {marks}, others, such as {name_list(unmarked[:1])}, do not: name all alike"
        if surplus:
            return f"Name each volume after its case, such as {name_list(missing[:1])}.nii.gz"
        return super().explain_missing(missing, surplus)

    def pair_members(self) -> Iterator[Tuple[str, str]]:
        if len(self._lists) > 1:
            raise Flaw(f"has several {_PREDICTIONS}: {name_list(sorted(self._lists))}", "Send one of them")
        if self._lists:
            member = min(self._lists)
            try:
                pairs = list(self._pair_outputs(member))
            except Flaw as flaw:
                raise SubmissionError.from_problem(flaw.as_problem(member)) from None
            yield from pairs
            return
        for name, members in _list_volumes(self.files.sizes).items():
            for member in members:
                yield name, member

    def _pair_outputs(self, member: str) -> Iterator[Tuple[str, str]]:
        """Yield the case and files of each job of grand-challenge, of one output if jobs have several."""
        jobs = self._list_outputs(member)
        several = any(len(outputs) > 1 for _, outputs in jobs)
        socket = (self.limits.socket or self._choose_socket(jobs)) if several else ""
        for case, outputs in jobs:
            for slug, paths in outputs.items():
                if slug == socket or len(outputs) == 1:
                    yield from ((case, path) for path in paths)
                else:
                    self._unscored.update(paths)

    def _list_outputs(self, member: str) -> _Jobs:
        """Return each job's files by output: in the job's folder, or named as its images."""
        jobs = read_json(self.files.read(member), self.limits, _EXAMPLE, digits=40)
        root = member[: -len(_PREDICTIONS)]
        by_folder: Dict[str, List[str]] = {}
        by_stem: Dict[str, List[str]] = {}
        for path in sorted(filter(_is_volume, self.files.sizes)):
            by_folder.setdefault(path.rpartition("/")[0], []).append(path)
            by_stem.setdefault(_stem(path), []).append(path)
        named, listed = set(), []
        try:
            if not isinstance(jobs, list):
                raise TypeError
            for job in jobs:
                case = self._find_case([_stem(entry["image"]["name"]) for entry in job["inputs"] if entry.get("image")])
                outputs: Dict[str, List[str]] = {}
                listed.append((case, outputs))
                for entry in job["outputs"]:
                    socket = entry.get("socket") or entry.get("interface") or {}
                    folder = f"{root}{job.get('pk')}/output/{socket.get('relative_path')}"
                    image = entry.get("image") or {}
                    for path in by_folder.get(folder) or by_stem.get(str(image.get("pk"))) or ():
                        if path in named:
                            raise Flaw(f"names {printable(path)} twice", "List each job and each output once")
                        named.add(path)
                        outputs.setdefault(str(socket.get("slug") or socket.get("relative_path")), []).append(path)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise Flaw("has another form", f"Write {_EXAMPLE}") from None
        if not named:
            raise Flaw(
                "names no volume that was sent", "Send the files of each job, such as JOB/output/images/SLUG/UUID.mha"
            )
        return listed

    def _choose_socket(self, jobs: _Jobs) -> str:
        """Return the only output whose files have whole labels in the grids of the truths; raises a Flaw otherwise."""
        flaws: Dict[str, str] = {}
        units = {unit.name: unit for unit in self.truth.units}
        for case, outputs in jobs:
            for socket, paths in outputs.items():
                for path in paths:
                    flaws[socket] = flaws.get(socket) or self._find_misfit(
                        units.get(self.truth_names.respell(case)), path
                    )
        fitting = [socket for socket in flaws if not flaws[socket]]
        if len(fitting) == 1:
            count = quantity(len(flaws), "output")
            name = printable(fitting[0])
            self._choice = f"jobs write {count}; only {name} has labels in the truth's grid, and was scored"
            return fitting[0]
        remedy = 'Organisers name one in phases.py: Phase(..., socket="SLUG"). Without a phase, remove the others'
        if fitting:
            raise Flaw(f"has jobs with several label maps in the truth's grid: {name_list(fitting)}", remedy)
        reasons = "; ".join([f"{printable(socket)} {flaw}" for socket, flaw in flaws.items()][:_MOST_REASONS])
        raise Flaw(f"has jobs with several outputs, none with labels in the truth's grid: {reasons}", remedy)

    def _find_misfit(self, unit: Optional[Unit], member: str) -> str:
        """Return why a file holds no labels in the grid of its case's truth; "" if it does, or there is no truth."""
        try:
            file = VolumeFile(member, self.files.sizes[member], self.files.read_chunks(member))
            if unit is not None:
                truth = decode_geometry(unit.load()[0].rows)
                require_order(truth, file.geometry, reorders=self.protocol.reorders)
            if file.header.kind.kind == "f" or file.header.scale != NO_SCALE:
                file.read_labels()
        except Flaw as flaw:
            return flaw.fault
        return ""

    def _find_case(self, stems: List[str]) -> str:
        """Return the case of input images: one may have several, such as `CASE_0000` and `CASE-t1c`."""
        cases = {case for case in map(self._name_case, stems) if case}
        if len(cases) > 1:
            raise Flaw(
                f"has a job with images of several cases: {name_list(sorted(cases))}", "Send a job for each case"
            )
        return min(cases or set(stems))

    def _name_case(self, stem: str) -> str:
        """Return the longest name of a true case with which an image's name begins; "" if there is none."""
        if len(stem) > _LONGEST_STEM:
            return ""
        ends = [len(stem), *(end for end in range(len(stem) - 1, 0, -1) if stem[end] in "-_")]
        names = (self.truth_names.respell(stem[:end]) for end in ends)
        return next((name for name in names if name in self._cases), "")

    def read_volume(self, name: str, truth: Geometry, problems: Problems) -> Optional[Volume]:
        """Return the volume of a case in the truth's grid; None if it has problems."""
        volumes = []

        def read_in_order(member: str) -> Array:
            file = VolumeFile(member, self.files.sizes[member], self.files.read_chunks(member))
            order = require_order(truth, file.geometry, reorders=self.protocol.reorders)
            volumes.append(reorder_volume(file.read_labels(), truth, order))
            return volumes[0].labels

        return None if self.read_member(name, read_in_order, problems) is None else volumes[0]
