"""The benchmarks of the tracks that count by unit."""

from __future__ import annotations

from typing import Dict, Union

from .panoptic_protocols import PANOPTIC_PROTOCOLS, PanopticProtocol
from .semantic_protocols import SEMANTIC_PROTOCOLS, SemanticProtocol
from .tracks_protocols import TRACKS_PROTOCOLS, TracksProtocol

UnitProtocol = Union[PanopticProtocol, SemanticProtocol, TracksProtocol]

UNIT_PROTOCOLS: Dict[str, UnitProtocol] = {**PANOPTIC_PROTOCOLS, **SEMANTIC_PROTOCOLS, **TRACKS_PROTOCOLS}
