"""The files of truths and submissions of the tracks that count by unit."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import AbstractSet, Dict, List

from ...files.archive import open_files
from ...files.limits import LETTER, LONE_SEPARATOR, ArchiveLimits, Files
from ...files.problems import Flaw, printable
from .truth import TruthNames, composed
from .unit_truth import UnitTruth

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


class UnitSubmission(abc.ABC):
    """An open submission of a track that counts by unit."""

    #: What a unit is called.
    noun: str

    def __init__(self, path: str, truth: UnitTruth, limits: ArchiveLimits, send: str) -> None:
        """Open the files; `send` is what a participant should send who sent another kind of file."""
        self.truth_names = TruthNames([*(unit.name for unit in truth.units), *sorted(truth.elsewhere)])
        of_track = replace(limits, send=send, smaller="Send less in it")
        if self.truth_names.contain("\\"):
            of_track = replace(of_track, backslash=LETTER)
        self.files: Files = open_files(path, of_track)

    @abc.abstractmethod
    def names(self) -> AbstractSet[str]:
        """Return the names of the units that were sent."""

    def close(self) -> None:
        """Close the file."""
        self.files.close()


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
        found = self._by_name.get(_form_of(name), [])
        if folder:
            inside = composed(f"/{folder}")
            found = [one for one in found if composed(f"/{one.rpartition('/')[0]}").endswith(inside)]
        if len(found) > 1:
            found = [one for one in found if f"/{self._folder}/" in f"/{one}"] or found
        if len(found) != 1:
            what = f"there are {len(found)} PNGs" if found else "there is no PNG"
            raise Flaw(f"{what} {printable(f'{folder}/{name}' if folder else name)}", "Send one PNG for each frame")
        return found[0]

    def folders(self) -> AbstractSet[str]:
        """Return the names of the folders that hold PNGs."""
        return {name.rpartition("/")[0].rpartition("/")[2] for names in self._by_name.values() for name in names}


def _form_of(path: str) -> str:
    """Return the name of a PNG, in one Unicode form and with its ending in small letters."""
    stem, _, ending = composed(path.rpartition("/")[2]).rpartition(".")
    return f"{stem}.{ending.lower()}"
