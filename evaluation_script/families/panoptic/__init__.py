"""Segments that cover images or videos, each with a category: PQ, VPQ and STQ."""

from __future__ import annotations

from ..base.family import Family
from .protocols import PANOPTIC_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family("panoptic", PANOPTIC_PROTOCOLS, ("sequences",), ("coco-panoptic", "vipseg"))
