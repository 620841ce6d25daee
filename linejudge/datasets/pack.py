"""`linejudge pack`: a dataset becomes one self-describing annotation file."""

from __future__ import annotations

import os
from dataclasses import replace

from evaluation_script import published, truth
from evaluation_script.errors import HostError

#: Tasks of LVOS read the same files.
ALIASES = {"lvos-unsupervised": "lvos", "lvos-unsupervised-single": "lvos"}


def pack(root: str, out: str, layout: str, *, subset: str = "", split: str = "", unseen: str = "") -> truth.Truth:
    """Read a dataset and write (or extend) an annotation file; returns what was read.

    With `split` the dataset is added to those that the file holds already.
    """
    row = published.LAYOUTS[ALIASES.get(layout, layout)]
    read = published.read(root, row, subset, unseen=unseen, split=split)
    ((name, added),) = read.splits.items()
    splits = {name: replace(added, layout=layout)}
    if split and os.path.exists(out):
        held = truth.read(out).splits
        splits = {**held, **splits}
    if not added.sequences:
        raise HostError(f"{root}: holds no sequences to pack")
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    truth.write(out, splits)
    return read
