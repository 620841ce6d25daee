"""The table of slips, and the traits of data that decide which of them are possible."""

from __future__ import annotations

from typing import Dict, List

from .codings import LABEL_SLIPS
from .orders import FRAME_SLIPS
from .places import PLACE_SLIPS
from .slip import Slip

TRAITS: Dict[str, str] = {
    "pictures": "frames are maps along rows and columns, boxes, or points of pictures",
    "voxels": "frames are maps along z, y and x",
    "places": "places along each axis matter, so predictions may be moved",
    "filled": "nearly all pixels have a class",
    "frames": "units are videos",
    "units": "each unit has predictions of its own, which may be exchanged",
    "masks": "the label 0 is background",
    "binary": "labels are 0 and 1",
    "labels": "a label means the same in all units",
    "tracks": "a number follows an object through the frames of its video, and means nothing else",
    "segments": "each object has a number of its own in its frame, whichever",
    "greys": "predictions hold confidences from 0 to 255, and the truth 0 and 1",
    "colours": "predicted labels are three bytes, red lowest",
    "halves": "predicted labels are 32 bits, with the label in the lower half",
    "questions": "units of one picture ask for different objects of it, which a weak method confuses",
    "runs": "masks are written as run lengths",
}

#: All slips that are tried; `orders.EXCHANGED` is tried if none of them explains a low score.
SLIPS: List[Slip] = [*PLACE_SLIPS, *FRAME_SLIPS, *LABEL_SLIPS]
