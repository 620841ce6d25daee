"""The folder of EvalAI's worker: script, annotations, one submission at a time, and writable files.

The content of the script's folder distinguishes Segjudge's scorers from other hosts' scripts.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Collection
from contextlib import suppress

from segjudge.system.files import remove_folder

FOLDER_PREFIX = "segjudge-worker-"
#: Modules that only our scorers have.
_OUR_MODULES = {"phases.py", "scoring/phase.py", "runner/guard.py"}


def has_our_modules(names: Collection[str]) -> bool:
    """Test that a script has the modules that only our scorers have, by the paths of its files."""
    return set(names) >= _OUR_MODULES


def folder_has_our_modules(folder: str) -> bool:
    return has_our_modules([name for name in _OUR_MODULES if os.path.isfile(os.path.join(folder, name))])


class WorkerFolder:
    """A folder outside the rehearsal's, so that no path in it leads to the database."""

    def __init__(self, note: Callable[[str], object] | None = None) -> None:
        """Make the folder; `note` gets its path first, so that an interruption leaves no unrecorded folder."""
        import tempfile  # many commands only ask whose scorers these are
        import uuid

        self.path = os.path.join(tempfile.gettempdir(), f"{FOLDER_PREFIX}{uuid.uuid4().hex}")
        if note is not None:
            note(self.path)
        os.mkdir(self.path, 0o700)
        self.root = os.path.join(self.path, "compute")
        #: The process's /tmp, or its working folder without a sandbox.
        self.temporary = os.path.join(self.path, "tmp")
        self.submissions = os.path.join(self.root, "submission_files")
        self._incoming = os.path.join(self.path, "incoming")
        self._challenges = os.path.join(self.root, "challenge_data")
        for folder in (self.temporary, self.submissions, self._incoming, self._challenges):
            os.makedirs(folder)
        open(os.path.join(self._challenges, "__init__.py"), "w").close()

    def add_script(self, challenge: int, script: zipfile.ZipFile) -> None:
        folder = self.script_folder(challenge)
        os.makedirs(folder)
        script.extractall(folder)  # within the folder: zipfile drops parts that would lead elsewhere

    def script_folder(self, challenge: int) -> str:
        return os.path.join(self._challenges, f"challenge_{challenge}")

    def annotation_path(self, challenge: int, phase: int, suffix: str) -> str:
        """Return the path of an annotation file, under EvalAI's name."""
        folder = os.path.join(self.script_folder(challenge), "phase_data", f"phase_{phase}")
        os.makedirs(folder)
        return _random_name(folder, suffix)

    def add_submission(self, number: int, source: str, suffix: str) -> str:
        """Copy a submission's file; return its path.

        It is renamed into place when complete: a script can write in that folder, and could leave a link that leads
        elsewhere.
        """
        self.remove_submission(number)
        name = f"submission_{number}"
        folder = os.path.join(self._incoming, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        path = _random_name(folder, suffix)
        shutil.copyfile(source, path)
        os.rename(folder, os.path.join(self.submissions, name))
        return os.path.join(self.submissions, name, os.path.basename(path))

    def remove_submission(self, number: int) -> None:
        """Remove a submission, and anything that the script put in its place."""
        path = os.path.join(self.submissions, f"submission_{number}")
        with suppress(OSError):
            if os.path.islink(path) or not os.path.isdir(path):
                os.remove(path)
        remove_folder(path)

    def remove(self) -> None:
        remove_folder(self.path)


def _random_name(folder: str, suffix: str) -> str:
    import uuid  # likewise

    return os.path.join(folder, f"{uuid.uuid4()}{suffix}")
