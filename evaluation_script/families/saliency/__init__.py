"""Grey maps of salient, camouflaged or finely structured objects: S, E, F, weighted F and MAE.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `counting`, `engine` and
`files`. The engine imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, SALIENCY_PROTOCOLS

__all__ = ["FAMILY", "counting", "engine", "files"]

FAMILY = Family("saliency", SALIENCY_PROTOCOLS, ("sequences",), (LAYOUT,))
