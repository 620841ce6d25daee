"""LiDAR scans with classes and object numbers: mIoU, PQ, IoU of moving points.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `engine` and `files`.
The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, SCAN_PROTOCOLS

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("scans", SCAN_PROTOCOLS, ("sequences",), (LAYOUT,))
