"""The names of layouts in which datasets are published."""

from __future__ import annotations

from segjudge.evaluation_script import dataset_layouts

#: Some protocols read the same files.
ALIASES = {
    "lvos-unsupervised": "lvos", "lvos-unsupervised-single": "lvos", "mevis-official": "mevis", "mevis-v2": "mevis",
    "ref-davis17-strict": "ref-davis17",
}  # fmt: skip

#: How a dataset of mask sequences can be laid out.
LAYOUTS = tuple(sorted({*dataset_layouts.LAYOUTS, *ALIASES}))

#: Layouts of the tracks that count by unit, and those tracks.
UNIT_LAYOUTS = {
    "coco-panoptic": "panoptic", "vipseg": "panoptic", "vspw": "semantic", "mots": "tracks", "burst": "tracks",
}  # fmt: skip

#: The layout of Places-style PNGs, beside those of mask sequences.
PLACES = "places2017"
