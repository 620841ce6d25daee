"""Masks or boxes of instances with scores, in images and videos: AP."""

from __future__ import annotations

from ..base.family import Family
from .protocols import INSTANCE_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family("instances", INSTANCE_PROTOCOLS, ("categories",), ("coco", "places2017"))
