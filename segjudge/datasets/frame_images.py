"""Finding the pictures of a sequence's frames."""

import os

#: Folders of sequences below a dataset's root, or the folder itself.
SEQUENCE_FOLDERS = ((), ("JPEGImages",), ("JPEGImages", "480p"), ("JPEGImages_24fps",))
ENDINGS = (".jpg", ".jpeg", ".png")


def frame_images_of(folder: str, sequence: str, frames: list[str]) -> list[str]:
    """Return one picture for each frame of a sequence; none where any is missing."""
    pictures: dict[str, str] = {}
    for parts in SEQUENCE_FOLDERS:
        place = os.path.join(folder, *parts, sequence)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                pictures.setdefault(stem, os.path.join(place, name))
    return [pictures[frame] for frame in frames] if {*frames} <= pictures.keys() else []
