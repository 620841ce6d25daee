"""A template of a static submission: write your method in `segment` and keep the rest.

The data has a folder of pictures and a first mask for each sequence: `SEQUENCE/00000.jpg …` and `SEQUENCE/first.png`.
"""

import os

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segjudge.static import dataset, sequence_of, write_submission


def segment(frame: NDArray[np.uint8], mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the mask of a frame (height, width, 3), given the previous mask."""
    del frame
    return mask


def masks_of(folder: str) -> list[NDArray[np.uint8]]:
    """Return the masks of all frames of a sequence."""
    mask = np.asarray(Image.open(os.path.join(folder, "first.png")))
    masks = []
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".jpg")):
        mask = segment(np.asarray(Image.open(os.path.join(folder, name)).convert("RGB")), mask)
        masks.append(mask)
    return masks


if __name__ == "__main__":
    root = dataset()
    sequences = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)))
    write_submission({name: sequence_of(masks_of(os.path.join(root, name))) for name in sequences})
