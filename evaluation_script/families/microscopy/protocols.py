"""The benchmarks of cells in images, one row each."""

from __future__ import annotations

import math
from typing import ClassVar, Dict, Mapping, Tuple

from ..base.family import ScriptedProtocol

#: The layout of published truths.
LAYOUT = "cellpose"
#: The minimum IoU of a match, by metric.
THRESHOLDS = {"AP50": 0.5, "AP75": 0.75, "AP90": 0.9}


class MicroscopyProtocol(ScriptedProtocol):
    """The rules of one benchmark.

    In the script, numbers have 32 bits, an image without cells makes the mean undefined, and an image without
    background loses a cell.
    """

    family: ClassVar[str] = "microscopy"
    form: ClassVar[str] = LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        return tuple(THRESHOLDS)

    @property
    def bounds(self) -> Mapping[str, Tuple[float, float]]:
        """The bounds of metrics beyond 0 to 1: the script's AP exceeds 1 if nothing is background."""
        return dict.fromkeys(THRESHOLDS, (0.0, math.inf)) if self.as_script else {}


_ROWS = (
    MicroscopyProtocol(
        "cellpose-ap", "AP at IoU .5, .75 and .9: TP / (TP + FP + FN) per image, averaged over images with cells."
    ),
    MicroscopyProtocol(
        "cellpose-ap-official",
        "As computed by Cellpose's script: AP is undefined if an image lacks cells; "
        "without background, one cell is lost.",
        as_script=True,
    ),
)

MICROSCOPY_PROTOCOLS: Dict[str, MicroscopyProtocol] = {protocol.name: protocol for protocol in _ROWS}
