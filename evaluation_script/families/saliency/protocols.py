"""The benchmarks of grey maps, one row each."""

from __future__ import annotations

import math
from typing import ClassVar, Dict, Mapping, Tuple

from ..base.family import ScriptedProtocol

#: The layout of published truths.
LAYOUT = "sod"
METRICS = ("S", "E_adp", "E_max", "E_mean", "F_adp", "F_max", "F_mean", "wF", "MAE")


class SaliencyProtocol(ScriptedProtocol):
    """The rules of one benchmark.

    In the script, maps are stretched, images without an object are averaged, and E divides by one pixel less.
    """

    family: ClassVar[str] = "saliency"
    form: ClassVar[str] = LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        return METRICS

    @property
    def bounds(self) -> Mapping[str, Tuple[float, float]]:
        """The bounds of metrics beyond 0 to 1: the script's E exceeds 1 for a perfect map."""
        return {metric: (0.0, math.inf) for metric in METRICS if metric.startswith("E_")} if self.as_script else {}


_ROWS = (
    SaliencyProtocol(
        "sod", "S, E, F, weighted F and MAE of maps as submitted. Images without an object are reported separately."
    ),
    SaliencyProtocol(
        "sod-official",
        "As computed by PySODMetrics: each map is stretched to the range 0 to 1, and images without an object count.",
        as_script=True,
    ),
)

SALIENCY_PROTOCOLS: Dict[str, SaliencyProtocol] = {protocol.name: protocol for protocol in _ROWS}
