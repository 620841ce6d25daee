"""`segjudge pack`: a dataset becomes one self-describing annotation file."""

from __future__ import annotations

import json
import os
from dataclasses import replace

from segjudge.datasets.places import Progress, convert
from segjudge.evaluation_script import dataset_reader, instance_truth, sequence_truth
from segjudge.evaluation_script.errors import HostError

#: Tasks of LVOS read the same files.
ALIASES = {"lvos-unsupervised": "lvos", "lvos-unsupervised-single": "lvos"}


PLACES = "places2017"


def pack_places(root: str, out: str, categories: str, progress: Progress, *, split: str = "") -> tuple[str, list[str]]:
    """Convert Places-style PNGs and write (or extend) an annotation file; what it holds, and what was odd."""
    document, odd = convert(root, categories, progress)
    data = json.dumps(document, separators=(",", ":")).encode()
    splits = {split or "val": data}
    if split and os.path.exists(out):
        splits = {**instance_truth.documents(out), **splits}
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    instance_truth.write(out, splits)
    return f"{len(document['images']):,} images, {len(document['annotations']):,} instances", odd


def pack(  # noqa: PLR0913 - a dataset leaves several choices
    root: str, out: str, layout: str, progress: Progress, *, subset: str = "", split: str = "", unseen: str = ""
) -> sequence_truth.Truth:
    """Read a dataset and write (or extend) an annotation file; returns what was read.

    With `split` the dataset is added to those that the file holds already.
    """
    row = dataset_reader.LAYOUTS[ALIASES.get(layout, layout)]
    read = dataset_reader.read(root, row, subset, unseen=unseen, split=split, progress=progress)
    ((name, added),) = read.splits.items()
    splits = {name: replace(added, layout=layout)}
    if split and os.path.exists(out):
        held = sequence_truth.read(out).splits
        splits = {**held, **splits}
    if not added.sequences:
        raise HostError(f"{root}: holds no sequences to pack")
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    sequence_truth.write(out, splits)
    return read
