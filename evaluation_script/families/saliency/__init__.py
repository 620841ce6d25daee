"""Grey maps of salient, camouflaged or finely structured objects: S, E, F, weighted F and MAE.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `counting`, `engine`
and `files`.  The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, SALIENCY_PROTOCOLS

__all__ = ["FAMILY", "counting", "engine", "files"]

FAMILY = Family("saliency", SALIENCY_PROTOCOLS, ("sequences",), (LAYOUT,))
