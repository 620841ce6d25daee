"""What is wrong with one record of a submission of instance masks, in the participant's words."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np

from ...files.problems import Flaw, printable
from ...masks import run_lengths as rle
from ...masks.polygons import outlines
from .json_records import EXAMPLE

#: Ids are whole numbers of 64 bits, as in the truth.
LARGEST_ID = (1 << 63) - 1
#: No box has larger sides or lies further away; beyond this their products would not be exact.
LARGEST_SIDE = 1 << 24


def check_record(
    record: Any, size: Optional[Tuple[int, int]], *, boxes: bool = False, frames: Optional[int] = None
) -> None:
    """Raise a Flaw for the first thing that is wrong with a record; an image that is not known has no size.

    A record of a video has masks for so many frames, and the size of one.
    """
    if not isinstance(record, dict):
        raise Flaw("is not an object", f"Write {EXAMPLE}")
    kind, shape = ("image", "bbox" if boxes else "segmentation") if frames is None else ("video", "segmentations")
    keys = (f"{kind}_id", "category_id", shape, "score")
    missing = [key for key in keys if key not in record]
    if missing:
        raise Flaw(f"lacks {' and '.join(missing)}", f"Write {EXAMPLE}")
    for key in keys[:2]:
        _check_id(key, record[key])
    if not is_finite(record["score"]):
        raise Flaw(f"has the score {printable(repr(record['score']))}, which is not a finite number", "Write a number")
    if size is None:
        raise Flaw(
            f"is of {'an image' if frames is None else 'a video'} that the truth lacks",
            f"Use the ids of the truth's {kind}s",
        )
    if boxes:
        _check_box(record["bbox"])
    elif frames is not None:
        check_tube(record["segmentations"], size, frames)
    else:
        _check_mask(record["segmentation"], size)


def is_finite(value: object) -> bool:
    """Return whether a value is a number that a finite float can hold."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _check_id(key: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        found = f"has the {key} {printable(repr(value))}, which is not a whole number"
        raise Flaw(found, "Write the id as a number")
    if not -LARGEST_ID - 1 <= value <= LARGEST_ID:
        raise Flaw(f"has the {key} {printable(value)}, which is larger than an id can be", "Use the ids of the truth")


def _check_box(box: object) -> None:
    if not isinstance(box, list) or len(box) != 4 or any(type(side) not in (int, float) for side in box):
        raise Flaw("has a bbox that is not [x, y, width, height]", "Write four numbers")
    if not all(map(is_finite, box)) or box[2] < 0 or box[3] < 0:
        raise Flaw("has a bbox that is negative or not finite", "Write [x, y, width, height]")
    if max(map(abs, box)) > LARGEST_SIDE:
        raise Flaw("has a bbox far outside of its image", "Write [x, y, width, height] in pixels")


def check_tube(segmentations: object, size: Tuple[int, int], frames: int) -> None:
    """Raise a Flaw for the first thing that is wrong with the masks of a video's frames."""
    if not isinstance(segmentations, list):
        raise Flaw("has segmentations that are not a list", "Write a mask or null for each frame")
    if len(segmentations) != frames:
        found = f"has {len(segmentations):,} segmentations but the video has {frames:,} frames"
        raise Flaw(found, "Write a mask or null for each frame")
    for index, mask in enumerate(segmentations):
        if mask is not None:
            _check_frame(mask, size, f"(frame {index} of {frames}, from 0)")


def _check_frame(mask: Any, size: Tuple[int, int], which: str) -> None:
    try:
        if isinstance(mask, list):
            raise Flaw("has a segmentation that is not run lengths", rle.WRITE_AGAIN)
        _check_mask(mask, size)
        rle.runs_of(mask["counts"], size[0] * size[1])
    except Flaw as flaw:
        raise Flaw(f"{flaw.found} {which}", flaw.remedy) from None


def _check_mask(segmentation: object, image: Tuple[int, int]) -> None:
    height, width = image
    if isinstance(segmentation, list):
        outlines([segmentation], np.array([max(image)]))
        return
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise Flaw("has a segmentation that is neither run lengths nor polygons", f"Write {EXAMPLE}")
    size, counts = segmentation["size"], segmentation["counts"]
    if not isinstance(size, list) or [type(side) for side in size] != [int, int]:
        raise Flaw(f"has a mask of size {printable(size)}, which is not [height, width]", rle.WRITE_AGAIN)
    if (height, width) != tuple(size):
        found = f"has a mask of size {printable(size)} but the image is [{height}, {width}] (height, width)"
        raise Flaw(found, "Encode the mask at the size of the image")
    if not isinstance(counts, str):
        rle.runs_of(counts, height * width)
