"""Cells in single images: the average precision of label maps, as Cellpose reports it.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `engine` and `files`.
The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, MICROSCOPY_PROTOCOLS

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("microscopy", MICROSCOPY_PROTOCOLS, ("sequences",), (LAYOUT,))
