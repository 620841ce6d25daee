"""`segjudge pack`: a dataset becomes one self-describing annotation file."""

import json
import os
from dataclasses import replace

from segjudge.evaluation_script import instance_truth, sequence_truth, unit_truth
from segjudge.evaluation_script.engine import engine_of
from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.progress import Progress, ignore_progress
from segjudge.evaluation_script.truth import AnnotationFile

from .opening import DEFAULT_SPLIT, TruthSource, read_published
from .places import convert


def pack_places(
    source: TruthSource, out: str, *, split: str = "", progress: Progress = ignore_progress
) -> tuple[str, list[str]]:
    """Write Places-style PNGs as an annotation file, or add them to one; return what they hold, and what is odd."""
    document, oddities = convert(source.path, source.categories, progress)
    splits = {split or DEFAULT_SPLIT: json.dumps(document, separators=(",", ":")).encode()}
    if split and os.path.exists(out):
        splits = {**instance_truth.documents(out), **splits}
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    instance_truth.write(out, splits)
    return f"{len(document['images']):,} images, {len(document['annotations']):,} instances", oddities


def pack_units(source: TruthSource, track: str, out: str, *, split: str = "") -> tuple[str, unit_truth.UnitTruth]:
    """Write a dataset that is counted by unit as an annotation file, or add it to one; return its split."""
    ((name, truth),) = engine_of(track).read_published(source.path, source.subset, source.layout).splits.items()
    splits = {**(unit_truth.read(out) if split and os.path.exists(out) else {}), split or name: truth}
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    unit_truth.write(out, splits)
    return split or name, truth


def pack(
    source: TruthSource, out: str, *, split: str = "", progress: Progress = ignore_progress
) -> AnnotationFile[sequence_truth.Split]:
    """Write a published dataset as an annotation file; return what was read.

    With `split` the dataset is added to those that the file holds already.
    """
    dataset = read_published(source, split=split, progress=progress)
    ((name, added),) = dataset.splits.items()
    splits = {name: replace(added, layout=source.layout)}
    if split and os.path.exists(out):
        splits = {**sequence_truth.read(out).splits, **splits}
    if not added.sequences:
        raise HostError(f"{source.path}: holds no sequences to pack")
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    sequence_truth.write(out, splits)
    return dataset
