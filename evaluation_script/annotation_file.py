"""An annotation file of any track: packed, mask sequences as a dataset publishes them, or COCO's JSON."""

from __future__ import annotations

import os
import zipfile

from . import packed_file
from .engine import engine_of
from .errors import HostError
from .truth import AnnotationFile, SplitTruth

#: The first bytes of a file, after blanks, say whether it is a zip.
_START_BYTES = 1 << 16


def read(path: str) -> AnnotationFile[SplitTruth]:
    """Open an annotation file, whatever its track; raises HostError when it cannot be read."""
    track = packed_file.track_of(path)
    if track:
        return AnnotationFile(engine_of(track).read_packed(path))
    if not _holds_masks(path):
        return engine_of("instances").read_published(path, "")
    dataset = engine_of("sequences").read_published(path, "")
    slow = "was not made by `segjudge pack`; a packed annotation file scores faster"
    return AnnotationFile(dataset.splits, [*dataset.notes, slow])


def is_packed(path: str) -> bool:
    """Return whether `segjudge pack` made this file."""
    return os.path.isfile(path) and bool(packed_file.track_of(path))


def _holds_masks(path: str) -> bool:
    """Return whether an annotation file that is not packed is a dataset of PNGs; otherwise it is COCO's JSON."""
    if os.path.isdir(path):
        return True
    with open(path, "rb") as file:
        start = file.read(_START_BYTES).lstrip()
    if not start.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.lower().endswith((".png", "mask_dict.json")) for name in archive.namelist())
    except zipfile.BadZipFile as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
