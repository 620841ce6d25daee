"""An annotation file of any track: packed, or as the dataset of a benchmark was published."""

from __future__ import annotations

import os

from ..families import PROTOCOLS, engine_of
from ..families.base.truth import AnnotationFile, SplitTruth
from ..families.instances.protocols import InstanceProtocol
from ..files import packed as packed_file
from ..files.problems import HostError


def read(path: str, protocol: str) -> AnnotationFile[SplitTruth]:
    """Open an annotation file: packed, or else as the protocol's truth is published; raises HostError."""
    track = packed_file.track_of(path)
    if track:
        return AnnotationFile(engine_of(track).read_packed(path))
    if protocol not in PROTOCOLS:
        raise HostError(f"{path}: there is no protocol {protocol!r} that says how to read it")
    track = PROTOCOLS[protocol].track
    dataset = engine_of(track).read_published(path, "", protocol)
    if track == InstanceProtocol.track:
        return dataset  # packed, it is the same document
    slow = "was not made by `segjudge pack`; a packed annotation file scores faster"
    return AnnotationFile(dataset.splits, [*dataset.notes, slow])


def is_packed(path: str) -> bool:
    """Return whether `segjudge pack` made this file."""
    return os.path.isfile(path) and bool(packed_file.track_of(path))
