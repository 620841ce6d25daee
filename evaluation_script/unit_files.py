"""The files of truths and submissions of the tracks that count by unit."""

from __future__ import annotations

import abc
from typing import AbstractSet, Dict, List

from .archive_limits import ArchiveLimits, Files
from .errors import Flaw, printable

#: What a host's own data may be.
HOST_LIMITS = ArchiveLimits(
    members=10_000_000,
    total_bytes=1 << 42,
    json_bytes=1 << 32,
    memory_bytes=1 << 36,
    links=True,
    send="Name the folder or the file of a dataset",
    smaller="Leave it out",
)


class UnitSubmission(abc.ABC):
    """An open submission of a track that counts by unit."""

    #: What a unit is called.
    noun: str
    files: Files

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
                self._by_name.setdefault(name.rpartition("/")[2], []).append(name)

    def find(self, name: str, folder: str = "") -> str:
        """Return the PNG of this name, in this folder if one is named; a Flaw when there is none, or several."""
        found = [one for one in self._by_name.get(name, []) if not folder or f"/{one}".endswith(f"/{folder}/{name}")]
        if len(found) > 1:
            found = [one for one in found if f"/{self._folder}/" in f"/{one}"] or found
        if len(found) != 1:
            what = f"there are {len(found)} PNGs" if found else "there is no PNG"
            raise Flaw(f"{what} {printable(f'{folder}/{name}' if folder else name)}", "Send one PNG for each frame")
        return found[0]

    def folders(self) -> AbstractSet[str]:
        """Return the names of the folders that hold PNGs."""
        return {name.rpartition("/")[0].rpartition("/")[2] for names in self._by_name.values() for name in names}
