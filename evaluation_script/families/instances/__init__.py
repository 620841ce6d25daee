"""Masks or boxes of instances with scores, in images and videos: AP."""

from __future__ import annotations

from ..base.family import Family
from .protocols import INSTANCE_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family(
    "instances",
    INSTANCE_PROTOCOLS,
    ("categories",),
    ("coco", "places2017"),
    adjustable_rules=("about", "cap", "id_zero_quirk"),
    gains_by_packing=False,  # packed, it is the same document
)
