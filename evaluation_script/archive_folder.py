"""A folder on this machine, as names and bytes.

On a server links are refused: they would be read with the server's rights.  On one's own machine (`Limits.links`)
they are followed wherever they stand; a link that leads back to a folder it lies in adds nothing and is passed over.
"""

from __future__ import annotations

import os
import stat
from typing import FrozenSet, Tuple

from .archive_limits import ArchiveLimits, Files, Names, is_litter
from .errors import Flaw, Problem, SubmissionError

#: Device and inode of a folder.
Identity = Tuple[int, int]

CHECK = "Check it and its permissions"


class FolderFiles(Files):
    """Names and bytes of a folder."""

    def __init__(self, root: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._root, self._limits = root, limits
        self._names = Names(limits)
        try:
            self._walk("", frozenset())
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(root)) from None
        self._names.problems.raise_if_any()

    def _walk(self, folder: str, above: FrozenSet[Identity]) -> None:
        """Take the files of a folder, then those of the folders in it."""
        path = os.path.join(self._root, folder)
        try:
            found = os.stat(path)
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._add(folder or self._root, f"cannot be read ({error.strerror})", "Check its permissions")
            return
        here = (found.st_dev, found.st_ino)
        if here in above:
            return
        entries = [entry for entry in entries if not is_litter([entry.name])]
        below = []
        for entry in entries:
            self._names.count()
            name = os.path.join(folder, entry.name)
            if self._is_folder(entry):
                below.append(name)
            else:
                self._take(entry, name)
        for name in below:
            if name.count("/") < self._limits.depth:
                self._walk(name, above | {here})
            else:
                self._names.clean(name, 0, 0, folder=True)  # which says how deep it lies

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=self._limits.links)
        except OSError:  # a link that leads to itself
            return False

    def _take(self, entry: os.DirEntry[str], name: str) -> None:
        try:
            found = entry.stat(follow_symlinks=self._limits.links)
        except OSError as error:
            if entry.is_symlink():
                self._add(name, f"is a link that leads nowhere ({error.strerror})", "Put the file there, or remove it")
            else:
                self._add(name, f"cannot be read ({error.strerror})", CHECK)
            return
        if not stat.S_ISREG(found.st_mode):
            self._add(name, "is a link or a device, not a file", "Put the file itself there")
            return
        clean = self._names.clean(name, found.st_size, found.st_size)
        if clean is not None:
            self.sizes[clean] = found.st_size

    def _add(self, where: str, found: str, remedy: str) -> None:
        self._names.problems.add(Problem(where, found, remedy))

    def read(self, name: str) -> bytes:
        try:
            with open(os.path.join(self._root, name), "rb") as file:
                return file.read(self.sizes[name] + 1)
        except OSError as error:
            raise Flaw(f"cannot be read ({error.strerror})", CHECK) from None
