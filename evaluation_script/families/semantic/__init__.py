"""Label maps of images or videos: IoU by class, and how steady labels are."""

from __future__ import annotations

from ..base.family import Family
from .protocols import SEMANTIC_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family("semantic", SEMANTIC_PROTOCOLS, ("sequences",), ("vspw",))
