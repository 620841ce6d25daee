"""The benchmarks of cells in images, one row each."""

from __future__ import annotations

import math
from typing import ClassVar, Dict, Mapping, Tuple

from ...values import dataclass

#: How truths are published.
LAYOUT = "cellpose"
#: The least IoU of a match, by metric.
THRESHOLDS = {"AP50": 0.5, "AP75": 0.75, "AP90": 0.9}


@dataclass(frozen=True)
class MicroscopyProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "microscopy"
    form: ClassVar[str] = LAYOUT

    name: str
    about: str
    #: As the script: 32 bits, an image without any cell leaves no mean, and one without background has a cell less.
    as_script: bool = False
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        return tuple(THRESHOLDS)

    @property
    def bounds(self) -> Mapping[str, Tuple[float, float]]:
        """What metrics lie between that are no shares: by the script, AP is above 1 where nothing is background."""
        return dict.fromkeys(THRESHOLDS, (0.0, math.inf)) if self.as_script else {}


_ROWS = (
    MicroscopyProtocol(
        "cellpose-ap",
        "AP at IoU .5, .75 and .9: TP / (TP + FP + FN) of each image, and the mean over images with any cell.",
    ),
    MicroscopyProtocol(
        "cellpose-ap-official",
        "As Cellpose's script: an image without any cell makes AP undefined, one without background has a cell less.",
        as_script=True,
    ),
)

MICROSCOPY_PROTOCOLS: Dict[str, MicroscopyProtocol] = {protocol.name: protocol for protocol in _ROWS}
