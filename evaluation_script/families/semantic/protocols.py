"""The benchmarks of video semantic segmentation, one row each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Dict, Tuple

from ...values import dataclass


@dataclass(frozen=True)
class SemanticProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "semantic"
    form: ClassVar[str] = "vspw"

    name: str
    #: One line for people: what is applied, and what it skips.
    about: str
    #: Labels from 0 up to this one, excluded, are classes; in the truth all others are void.
    classes: int = 255
    #: Consistency is measured over so many frames.
    windows: Tuple[int, ...] = (8, 16)
    #: The last window of each video is never looked at, as in VSPW's script.
    without_last: bool = False
    #: Raised with whatever changes any score.
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""
        return ("mIoU", *(f"VC{frames}" for frames in self.windows), "Acc", "Acc_class", "fwIoU")


_vspw = SemanticProtocol(
    "vspw",
    "mIoU over the classes that the truth has; VC over all windows of 8 and 16 frames; labels from 124 on are void.",
    classes=124,
)

_ROWS = (
    _vspw,
    replace(
        _vspw,
        name="vspw-official",
        about="As VSPW's scripts compute: VC without the last window of each video.",
        without_last=True,
    ),
    SemanticProtocol("semantic", "As vspw, for labels from 0 to 254; 255 is void."),
)

SEMANTIC_PROTOCOLS: Dict[str, SemanticProtocol] = {protocol.name: protocol for protocol in _ROWS}
