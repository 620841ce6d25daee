"""Where the pictures of a sequence's frames are."""

import os

from segjudge.evaluation_script.sequence_truth import Sequence

#: Folders of sequences below a dataset's root, or the folder itself.
SEQUENCE_FOLDERS = ((), ("JPEGImages",), ("JPEGImages", "480p"), ("JPEGImages_24fps",))
ENDINGS = (".jpg", ".jpeg", ".png")


def frame_images_of(folder: str, sequence: Sequence) -> list[str]:
    """Return one picture for each frame of a sequence; none where any is missing."""
    pictures: dict[str, str] = {}
    for parts in SEQUENCE_FOLDERS:
        place = os.path.join(folder, *parts, sequence.name)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                pictures.setdefault(stem, os.path.join(place, name))
    return [pictures[frame] for frame in sequence.frames] if {*sequence.frames} <= pictures.keys() else []
