"""The folders of EvalAI's worker: the script, the annotations, one submission at a time, and what may be written."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Callable
from contextlib import suppress

PREFIX = "segjudge-worker-"


class Compute:
    """A folder of its own outside the rehearsal's, so that no path in it leads to the database."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix=PREFIX)
        self.root = os.path.join(self.folder, "compute")
        #: What the process has as /tmp, or as its working folder where there is no sandbox.
        self.temporary = os.path.join(self.folder, "tmp")
        self.submissions = os.path.join(self.root, "submission_files")
        self._incoming = os.path.join(self.folder, "incoming")
        for one in (self.temporary, self.submissions, self._incoming, os.path.join(self.root, "challenge_data")):
            os.makedirs(one)
        open(os.path.join(self.root, "challenge_data", "__init__.py"), "w").close()

    def script(self, challenge: int, bundle: zipfile.ZipFile) -> str:
        """Extract a challenge's script; where it lies."""
        place = os.path.join(self.root, "challenge_data", f"challenge_{challenge}")
        os.makedirs(place)
        bundle.extractall(place)  # within the folder: zipfile leaves out what would lead elsewhere
        return place

    def annotation(self, challenge: int, phase: int, ending: str, write: Callable[[str], object]) -> str:
        """A truth, under the name that EvalAI gives it."""
        data = os.path.join(self.root, "challenge_data", f"challenge_{challenge}", "phase_data")
        folder = os.path.join(data, f"phase_{phase}")
        os.makedirs(folder)
        path = _named(folder, ending)
        write(path)
        return path

    def bring(self, number: int, ending: str, write: Callable[[str], object]) -> str:
        """A submission.

        Moved in whole: the script can write where submissions lie, and a link that it left there would lead our own
        writing elsewhere.
        """
        self.take_away(number)
        name = f"submission_{number}"
        folder = os.path.join(self._incoming, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        made = _named(folder, ending)
        write(made)
        os.rename(folder, os.path.join(self.submissions, name))
        return os.path.join(self.submissions, name, os.path.basename(made))

    def take_away(self, number: int) -> None:
        """Remove a submission, and whatever the script put in its place."""
        path = os.path.join(self.submissions, f"submission_{number}")
        with suppress(OSError):
            if os.path.islink(path) or not os.path.isdir(path):
                os.remove(path)
        shutil.rmtree(path, ignore_errors=True)

    def written(self) -> int:
        """Bytes that the folder holds on the disk."""
        total = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
        return total

    def remove(self) -> None:
        """Forget it all."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _named(folder: str, ending: str) -> str:
    return os.path.join(folder, f"{uuid.uuid4()}{ending}")
