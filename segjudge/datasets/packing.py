"""`segjudge pack`: a dataset becomes one self-describing annotation file."""

import json
import os
import shutil
from dataclasses import replace

from segjudge.evaluation_script.families import FAMILIES, engine_of
from segjudge.evaluation_script.families.base.engine import Progress, ignore_progress
from segjudge.evaluation_script.families.base.family import TrackProtocol
from segjudge.evaluation_script.families.base.truth import DEFAULT_SPLIT, AnnotationFile
from segjudge.evaluation_script.families.base.units import UnitTruth, read_units, write_units
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import HOST_LIMITS
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.annotation_file import is_packed
from segjudge.system.errors import UsageError
from segjudge.system.files import make_folder

from .layouts import LAYOUTS
from .opening import TruthSource, check_subset, read_published
from .places import convert


def pack_instances(
    source: TruthSource, out: str, *, split: str = "", progress: Progress = ignore_progress
) -> tuple[str, list[str]]:
    """Write COCO's JSON or Places-style PNGs as an annotation file, or add them to one.

    Returns what they hold, and what is odd about it.
    """
    if os.path.isdir(source.path):
        if not source.categories:
            raise UsageError(f"{source.path}: is a folder of PNGs, which needs --categories FILE")
        document, notes = convert(source.path, source.categories, progress)
        data = json.dumps(document, separators=(",", ":")).encode()
        images, instances = len(document["images"]), len(document["annotations"])
    else:
        if is_packed(source.path):
            raise UsageError(f"{source.path}: is packed already")
        (truth,) = instance_truth.read(source.path).values()  # says what is wrong
        files = open_files(source.path, HOST_LIMITS)
        (data,) = (files.read(name) for name in files.sizes if name.endswith(".json"))
        images, instances, notes = len(truth.images.ids), len(truth.ids), truth.notes
    splits = {split or DEFAULT_SPLIT: data}
    if split and os.path.exists(out):
        splits = {**instance_truth.documents(out), **splits}
    make_folder(os.path.dirname(out) or ".")
    instance_truth.write(out, splits)
    return f"{images:,} images or videos, {instances:,} instances", notes


def pack_truth(source: TruthSource, protocol: TrackProtocol, out: str, progress: Progress) -> list[str]:
    """Write the truth of a protocol, packed or published, as an annotation file; return what is odd about it."""
    if is_packed(source.path):
        shutil.copyfile(source.path, out)
        return []
    options = FAMILIES[protocol.track].options
    if "categories" in options:
        return pack_instances(source, out, split=source.subset, progress=progress)[1]
    if "layout" in options:
        layout = source.layout or (protocol.name if protocol.name in LAYOUTS else "")
        return pack(replace(source, layout=layout), out, progress=progress).notes
    return pack_units(source, protocol.track, out)[1].notes


def pack_units(source: TruthSource, track: str, out: str, *, split: str = "") -> tuple[str, UnitTruth]:
    """Write a dataset that is counted by unit as an annotation file, or add it to one; return its split."""
    check_subset(source)
    ((name, truth),) = engine_of(track).read_published(source.path, source.subset, source.layout).splits.items()
    splits = {**(read_units(out) if split and os.path.exists(out) else {}), split or name: truth}
    make_folder(os.path.dirname(out) or ".")
    write_units(out, splits)
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
    make_folder(os.path.dirname(out) or ".")
    sequence_truth.write(out, splits)
    return dataset
