"""Cells that move and divide: the metrics of the Cell Tracking Challenge (SEG, DET, TRA, LNK, BIO, CHOTA).

The contract is the row of the registry and the modules that the toolkit's mirror works with: `engine` and `files`.
The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import CELL_PROTOCOLS, LAYOUT

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("cells", CELL_PROTOCOLS, ("sequences",), (LAYOUT,))
