"""An annotation file of any track: packed, mask sequences as a dataset publishes them, or COCO's JSON."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from typing import List, Mapping, Union

from . import dataset_reader, instance_truth, packed_file, sequence_truth, unit_truth
from .errors import HostError
from .instance_truth import InstanceTruth
from .sequence_truth import Split
from .unit_truth import UnitTruth

#: The truth of one split.
SplitTruth = Union[Split, InstanceTruth, UnitTruth]

#: The first bytes of a file, after blanks, say whether it is a zip.
_START_BYTES = 1 << 16


@dataclass(frozen=True)
class AnnotationFile:
    """The splits of an annotation file, all of one track."""

    splits: Mapping[str, SplitTruth]
    #: What the host should know, e.g. that a packed file would score faster.
    notes: List[str] = field(default_factory=list)


def read(path: str) -> AnnotationFile:
    """Open an annotation file, whatever its track; raises HostError when it cannot be read."""
    track = packed_file.track_of(path)
    if track == instance_truth.TRACK or (not track and not _holds_masks(path)):
        return AnnotationFile(instance_truth.read(path))
    if track and track != sequence_truth.TRACK:
        return AnnotationFile(unit_truth.read(path))
    if track:
        return AnnotationFile(sequence_truth.read(path).splits)
    dataset = dataset_reader.read(path)
    slow = "was not made by `segjudge pack`; a packed annotation file scores faster"
    return AnnotationFile(dataset.splits, [*dataset.notes, slow])


def is_packed(path: str) -> bool:
    """Return whether `segjudge pack` made this file, for either track."""
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
