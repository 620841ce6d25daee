"""LiDAR scans with classes and object numbers: mIoU, PQ, IoU of moving points.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `engine` and `files`. The engine
imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, SCAN_PROTOCOLS

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("scans", SCAN_PROTOCOLS, ("sequences",), (LAYOUT,))
