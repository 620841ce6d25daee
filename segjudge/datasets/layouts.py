"""The names of layouts in which datasets are published."""

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import TrackProtocol
from segjudge.evaluation_script.families.sequences.layouts import ALIASES
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS as PUBLISHED

#: How a dataset of mask sequences can be laid out.
LAYOUTS = tuple(sorted({*PUBLISHED, *ALIASES}))

#: Layouts of the tracks that count by unit, and those tracks.
UNIT_LAYOUTS = {layout: name for name, track in FAMILIES.items() for layout in track.layouts}

#: Layouts of instance masks: Places-style PNGs, and COCO's JSON of images or videos.
INSTANCE_LAYOUTS = ("places2017", "coco")


def layout_of(protocol: TrackProtocol) -> str:
    """Return the layout in which the truth of a benchmark is published, by its name or by its track."""
    of_track = {"sequences": LAYOUTS, "instances": INSTANCE_LAYOUTS}.get(
        protocol.track, FAMILIES[protocol.track].layouts
    )
    similar = [layout for layout in of_track if protocol.name.startswith(layout)]
    other = {"sequences": "generic", "instances": "coco"}.get(protocol.track, of_track[0])
    return max(similar, key=len, default=other)
