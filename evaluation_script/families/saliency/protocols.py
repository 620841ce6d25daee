"""The benchmarks of grey maps, one row each."""

from __future__ import annotations

import math
from typing import ClassVar, Dict, Mapping, Tuple

from ...values import dataclass

#: How truths are published.
LAYOUT = "sod"
METRICS = ("S", "E_adp", "E_max", "E_mean", "F_adp", "F_max", "F_mean", "wF", "MAE")


@dataclass(frozen=True)
class SaliencyProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "saliency"
    form: ClassVar[str] = LAYOUT

    name: str
    about: str
    #: As the script: maps are stretched, images without an object are in the means, E divides by a pixel less.
    as_script: bool = False
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        return METRICS

    @property
    def bounds(self) -> Mapping[str, Tuple[float, float]]:
        """What metrics lie between that are no shares: by the script, E of a perfect map is above 1."""
        return {metric: (0.0, math.inf) for metric in METRICS if metric.startswith("E_")} if self.as_script else {}


_ROWS = (
    SaliencyProtocol(
        "sod",
        "S, E, F, weighted F and MAE of maps as they are, over images with an object; others are told by themselves.",
    ),
    SaliencyProtocol(
        "sod-official",
        "As PySODMetrics: each map is stretched from 0 to 1, and images without an object are in the means.",
        as_script=True,
    ),
)

SALIENCY_PROTOCOLS: Dict[str, SaliencyProtocol] = {protocol.name: protocol for protocol in _ROWS}
