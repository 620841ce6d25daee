"""Cells in single images: the average precision of label maps, as Cellpose reports it.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `engine` and `files`. The engine
imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, MICROSCOPY_PROTOCOLS

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("microscopy", MICROSCOPY_PROTOCOLS, ("sequences",), (LAYOUT,))
