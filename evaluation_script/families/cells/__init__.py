"""Cells that move and divide: the metrics of the Cell Tracking Challenge (SEG, DET, TRA, LNK, BIO, CHOTA).

The contract is the row in the registry and the modules that the toolkit's mirror uses: `engine` and `files`. The engine
imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import CELL_PROTOCOLS, LAYOUT

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("cells", CELL_PROTOCOLS, ("sequences",), (LAYOUT,))
