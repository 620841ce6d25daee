"""The names of layouts in which datasets are published."""

from __future__ import annotations

from segjudge.evaluation_script import dataset_layouts
from segjudge.evaluation_script.phase import TRACKS

#: Some protocols read the same files.
ALIASES = {
    "lvos-unsupervised": "lvos", "lvos-unsupervised-single": "lvos", "mevis-official": "mevis", "mevis-v2": "mevis",
    "ref-davis17-strict": "ref-davis17",
}  # fmt: skip

#: How a dataset of mask sequences can be laid out.
LAYOUTS = tuple(sorted({*dataset_layouts.LAYOUTS, *ALIASES}))

#: Layouts of the tracks that count by unit, and those tracks.
UNIT_LAYOUTS = {layout: name for name, track in TRACKS.items() for layout in track.layouts}

#: The layout of Places-style PNGs, beside those of mask sequences.
PLACES = "places2017"
