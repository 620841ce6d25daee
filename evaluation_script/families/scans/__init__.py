"""Scans whose points have a class, and objects a number: mIoU, PQ, the IoU of what moves.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `engine` and `files`.
The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, SCAN_PROTOCOLS

__all__ = ["FAMILY", "engine", "files"]

FAMILY = Family("scans", SCAN_PROTOCOLS, ("sequences",), (LAYOUT,))
