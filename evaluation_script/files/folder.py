"""A folder on this machine as the files of a submission.

On a server links are refused: they would be read with the server's rights.  On one's own machine
(`ArchiveLimits.links`) they are followed wherever they lead; a link to a folder that contains it is skipped.
"""

from __future__ import annotations

import os
import stat
from typing import FrozenSet, Iterator, Tuple

from .limits import CHUNK_BYTES, ArchiveLimits, Files, MemberChecks, is_litter
from .problems import Flaw, Problem, SubmissionError

#: Device and inode of a folder.
Identity = Tuple[int, int]

CHECK = "Check it and its permissions"


class FolderFiles(Files):
    """The files of a folder."""

    def __init__(self, root: str, limits: ArchiveLimits) -> None:
        super().__init__()
        self._root, self._limits = root, limits
        self._checks = MemberChecks(limits)
        #: The paths of files below the root, by the names that they are read by.
        self._paths: dict[str, str] = {}
        try:
            self._walk("", frozenset())
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(root)) from None
        self._checks.problems.raise_if_any()

    def _walk(self, folder: str, above: FrozenSet[Identity]) -> None:
        """Add the files of a folder, then those of the folders in it."""
        path = os.path.join(self._root, folder)
        try:
            status = os.stat(path)
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._report(folder or self._root, f"cannot be read ({error.strerror})", "Check its permissions")
            return
        here = (status.st_dev, status.st_ino)
        if here in above:
            return
        entries = [entry for entry in entries if not is_litter([entry.name])]
        folders = []
        for entry in entries:
            self._checks.count()
            name = os.path.join(folder, entry.name)
            if self._is_folder(entry):
                folders.append(name)
            else:
                self._add_file(entry, name)
        for name in folders:
            if name.count("/") < self._limits.depth:
                self._walk(name, above | {here})
            else:
                self._checks.clean_name(name, 0, 0, folder=True)  # which says how deep it lies

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=self._limits.links)
        except OSError:  # a link that leads to itself
            return False

    def _add_file(self, entry: os.DirEntry[str], name: str) -> None:
        try:
            status = entry.stat(follow_symlinks=self._limits.links)
        except OSError as error:
            if entry.is_symlink():
                self._report(
                    name, f"is a link that leads nowhere ({error.strerror})", "Put the file there, or remove it"
                )
            else:
                self._report(name, f"cannot be read ({error.strerror})", CHECK)
            return
        if not stat.S_ISREG(status.st_mode):
            self._report(name, "is a link or a device, not a file", "Put the file itself there")
            return
        clean = self._checks.clean_name(name, status.st_size, status.st_size)
        if clean is not None:
            self.sizes[clean], self._paths[clean] = status.st_size, name

    def _report(self, where: str, found: str, remedy: str) -> None:
        self._checks.problems.add(Problem(where, found, remedy))

    def read(self, name: str) -> bytes:
        size = self.sizes[name]
        try:
            file = os.open(f"{self._root}/{self._paths[name]}", os.O_RDONLY)
            try:
                data = os.read(file, size + 1) if size < CHUNK_BYTES else b""
            finally:
                os.close(file)
        except OSError as error:
            raise Flaw(f"cannot be read ({error.strerror})", CHECK) from None
        return data if len(data) == size else super().read(name)

    def parts(self, name: str) -> Iterator[bytes]:
        try:
            with open(os.path.join(self._root, self._paths[name]), "rb") as file:
                left = self.sizes[name] + 1  # a byte more, so that a file that grew is not taken for complete
                while part := file.read(min(CHUNK_BYTES, left)):
                    left -= len(part)
                    yield part
        except OSError as error:
            raise Flaw(f"cannot be read ({error.strerror})", CHECK) from None
