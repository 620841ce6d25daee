"""Open a truth, packed or as its dataset publishes it."""

import json
import os
from dataclasses import dataclass, field

from segjudge.errors import UsageError
from segjudge.evaluation_script import dataset_reader, instance_truth, sequence_truth, unit_truth
from segjudge.evaluation_script.annotation_file import is_packed
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.progress import Progress, ignore_progress
from segjudge.evaluation_script.sequence_truth import Truth
from segjudge.evaluation_script.unit_truth import UnitTruth

from .layouts import ALIASES, LAYOUTS

__all__ = [
    "OpenedInstances", "TruthSource", "is_packed", "open_instances", "open_sequences", "open_units", "read_published",
]  # fmt: skip

#: The split of a truth that names none.
DEFAULT_SPLIT = "val"


@dataclass(frozen=True)
class TruthSource:
    """Where a truth is, and what the files of a published dataset leave open; a packed file leaves nothing open."""

    path: str
    #: How a dataset of mask sequences is laid out (default: generic).
    layout: str = ""
    #: The list of sequences, e.g. val.
    subset: str = ""
    #: A file with the names of unseen sequences or categories.
    unseen: str = ""
    #: A file with the categories of Places-style PNGs.
    categories: str = ""


@dataclass(frozen=True)
class OpenedInstances:
    """A truth of instance masks by split."""

    splits: dict[str, InstanceTruth]
    #: What is odd about the truth.
    notes: list[str] = field(default_factory=list)


def open_sequences(source: TruthSource) -> Truth:
    """Open mask sequences; of a packed file all splits, of a published dataset the subset as one split."""
    return sequence_truth.read(source.path) if is_packed(source.path) else read_published(source)


def read_published(source: TruthSource, *, split: str = "", progress: Progress = ignore_progress) -> Truth:
    """Read a published dataset of mask sequences as one split of this name (default: its subset's)."""
    name = ALIASES.get(source.layout, source.layout)
    layout = dataset_reader.LAYOUTS.get(name) if name else dataset_reader.GENERIC
    if layout is None:
        raise UsageError(f"there is no layout {source.layout!r}, only {', '.join(LAYOUTS)}")
    return dataset_reader.read(source.path, layout, source.subset, unseen=source.unseen, split=split, progress=progress)


def open_instances(source: TruthSource, progress: Progress = ignore_progress) -> OpenedInstances:
    """Open instance masks: COCO's JSON, a packed file, or with a list of categories a folder of Places-style PNGs."""
    path, split = source.path, source.subset or DEFAULT_SPLIT
    if not os.path.isdir(path):
        if source.categories:
            raise UsageError(f"categories have no meaning for {path}, which is not a folder of PNGs")
        return OpenedInstances(instance_truth.read(path, split))
    if not source.categories:
        raise UsageError(
            f"{path}: is a folder. The truth of instances is COCO's JSON, a packed file, or with --categories FILE a "
            "folder of Places-style PNGs"
        )
    from .places import convert

    document, oddities = convert(path, source.categories, progress)
    return OpenedInstances({split: instance_truth.read_document(json.dumps(document).encode(), path)}, oddities)


def open_units(source: TruthSource, track: str) -> dict[str, UnitTruth]:
    """Open a truth that is counted by unit: a packed file's splits, or a published dataset as one split."""
    from segjudge.evaluation_script.unit_scoring import TRACKS

    if is_packed(source.path):
        return unit_truth.read(source.path)
    return {source.subset or DEFAULT_SPLIT: TRACKS[track].read_truth(source.path, source.subset)}
