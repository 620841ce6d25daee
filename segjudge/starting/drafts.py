"""A folder that is written in one step: beside where it will be, and moved there when all of it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.errors import UsageError
from segjudge.system.files import make_folder

#: What the folder's name begins with while it is made.
_TEMPORARY = ".new-"


@contextmanager
def open_draft(folder: str) -> Iterator[str]:
    """Give a folder to write into, which becomes this one; UsageError where there is something already."""
    target = os.path.abspath(folder)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise UsageError(f"{folder}: is there already, and nothing in it is written over; name another folder")
    target = os.path.realpath(target)  # a link to an empty folder stays
    above = os.path.dirname(target)
    try:
        make_folder(above)
        with tempfile.TemporaryDirectory(dir=above, prefix=_TEMPORARY) as temporary:
            draft = os.path.join(temporary, "draft")
            os.mkdir(draft)
            yield draft
            os.replace(draft, target)
    except packed_file.NotWritten:
        raise
    except OSError as error:
        if error.filename and _TEMPORARY not in str(error.filename):
            raise HostError(f"{error.filename}: cannot be read ({error.strerror})") from None
        raise packed_file.NotWritten(error.errno, error.strerror, folder) from None
