"""The names of layouts in which datasets are published."""

from segjudge.evaluation_script.dataset_layouts import ALIASES
from segjudge.evaluation_script.dataset_layouts import LAYOUTS as PUBLISHED
from segjudge.evaluation_script.phase import TRACKS

#: How a dataset of mask sequences can be laid out.
LAYOUTS = tuple(sorted({*PUBLISHED, *ALIASES}))

#: Layouts of the tracks that count by unit, and those tracks.
UNIT_LAYOUTS = {layout: name for name, track in TRACKS.items() for layout in track.layouts}

#: Layouts of instance masks: Places-style PNGs, and COCO's JSON of images or videos.
INSTANCE_LAYOUTS = ("places2017", "coco")
