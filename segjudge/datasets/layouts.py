"""The names of layouts in which datasets are published."""

from __future__ import annotations

from segjudge.evaluation_script.dataset_layouts import ALIASES
from segjudge.evaluation_script.dataset_layouts import LAYOUTS as PUBLISHED
from segjudge.evaluation_script.phase import TRACKS

#: How a dataset of mask sequences can be laid out.
LAYOUTS = tuple(sorted({*PUBLISHED, *ALIASES}))

#: Layouts of the tracks that count by unit, and those tracks.
UNIT_LAYOUTS = {layout: name for name, track in TRACKS.items() for layout in track.layouts}

#: The layout of Places-style PNGs, beside those of mask sequences.
PLACES = "places2017"
