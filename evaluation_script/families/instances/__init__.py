"""Masks, boxes or keypoints of instances with scores, in images and videos: AP.

The contract is the row of the registry and the modules that the toolkit's mirror and reports work with: `protocols`,
`truth` and its `keypoints`, `submission` and its `records`, `matching` and `metrics`.  The rest is reached through the
engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import INSTANCE_PROTOCOLS

__all__ = ["FAMILY", "keypoints", "matching", "metrics", "protocols", "records", "submission", "truth"]

FAMILY = Family(
    "instances",
    INSTANCE_PROTOCOLS,
    ("categories",),
    ("coco", "places2017"),
    adjustable_rules=("about", "cap", "id_zero_quirk"),
    gains_by_packing=False,  # packed, it is the same document
    needs_packages=True,
)
