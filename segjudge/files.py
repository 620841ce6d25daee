"""A folder that one process has for itself, and files that are written in one step."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.packed_file import replaced


def locked(folder: str, user: str) -> TextIO:
    """Lock a folder until the process ends or the returned file is closed; raises HostError where another holds it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = open(os.path.join(folder, "lock"), "w", encoding="ascii")  # noqa: SIM115 - held as long as the process
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise HostError(f"{folder}: another {user} uses this folder; end it, or name another with --data") from None
    return file


def replace(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file in one step: a reader finds the old content or the new, each complete."""
    with replaced(str(path)) as partial:
        if private:  # before there is anything in it
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600))
        Path(partial).write_text(text, encoding="utf-8")


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a text file that takes its place whole when the block ends, and not at all when it fails."""
    with replaced(os.fspath(path)) as partial, open(partial, "w", encoding="utf-8") as file:
        yield file
