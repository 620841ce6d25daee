"""The files of a submission with a part for each unit: an image, video or sequence."""

from __future__ import annotations

import abc
import os
from dataclasses import replace
from typing import AbstractSet, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ...files import ArchiveLimits, Files, Flaw, HostError, Problems, SubmissionError, name_list, printable, quantity
from ...files.archive import UPLOAD, open_files
from ...files.limits import read_json
from ...masks.stack import Array
from .truth import DEFAULT_SPLIT, TruthNames, compose
from .unit_truth import UnitTruth

#: The maximum compression ratio of deflate, and the size above which a sparse file is checked before reading.
_SPARSE_RATIO, _SPARSE_BYTES = 1100, 1 << 30


class UnitSubmission(abc.ABC):
    """An open submission of a family that counts by unit."""

    #: The name of a unit.
    noun: str
    #: Files that are mostly background exceed the usual compression ratio; the family checks the stated size of each
    #: before it reads it.
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
        #: The files that were read, or that are searched for units; None if unknown.
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

    def read_document(self, name: str, example: str) -> Any:
        """Return the content of a JSON file; raises SubmissionError with its name if it is wrong."""
        try:
            return read_json(self.files.read(name), self.limits, example)
        except Flaw as flaw:
            raise SubmissionError.from_problem(flaw.as_problem(name)) from None

    def explain_missing(self, _missing: List[str], _surplus: List[str]) -> str:
        """Return the remedy for missing units, given names that the truth lacks."""
        return f"Send every {self.noun}"

    def describe_files(self, missing_kind: str) -> str:
        """Return the sentence that the upload lacks a kind of file and holds others."""
        names = list(self.files.sizes)
        return f"holds no {missing_kind}, only {name_list(names)}" if names else "holds no files"

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

    #: The names of its files and of one file.
    files: str
    example: str
    #: The unit of one file.
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
        raise HostError(f"{path}: has several {nouns.files} for one {nouns.unit}: {name_list(doubled[0])}")
    return {name: member for name, (member,) in sorted(units.items())}


class FilesOfUnits(UnitSubmission):
    """A submission with a file for each unit."""

    #: The name of an upload that lacks its file.
    lacking: str
    #: The remedy for a unit with several files.
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
                raise Flaw(f"is also sent as {name_list(repeats)}", self.once)
            return read(member)
        except Flaw as flaw:
            problems.add(flaw.as_problem(member))
            return None


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
    """Return the name of a PNG, in one Unicode form and with a lower-case extension."""
    stem, _, ending = compose(path.rpartition("/")[2]).rpartition(".")
    return f"{stem}.{ending.lower()}"
