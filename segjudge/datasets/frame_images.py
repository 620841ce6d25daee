"""Where the pictures of a sequence's frames are."""

from __future__ import annotations

import os

from segjudge.evaluation_script.sequence_truth import Sequence

#: Folders of sequences below a dataset's root, or the folder itself.
HOMES = ((), ("JPEGImages",), ("JPEGImages", "480p"), ("JPEGImages_24fps",))
ENDINGS = (".jpg", ".jpeg", ".png")


def frame_images_of(folder: str, one: Sequence) -> list[str]:
    """One picture for each frame of a sequence; none where any is missing."""
    named: dict[str, str] = {}
    for home in HOMES:
        place = os.path.join(folder, *home, one.name)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                named.setdefault(stem, os.path.join(place, name))
    return [named[frame] for frame in one.frames] if {*one.frames} <= named.keys() else []
