"""Masks, boxes or keypoints of instances with scores, in images and videos: AP.

The contract is the row in the registry and the modules that the toolkit's mirror and reports use: `protocols`, `truth`
with `keypoints` and `annotation_columns`, `submission` with `records` and `json_parts`, `mask_files` for Cityscapes,
`matching`, `cityscapes` and `metrics`. The engine imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import INSTANCE_PROTOCOLS

__all__ = [
    "FAMILY", "annotation_columns", "cityscapes", "json_parts", "keypoints", "mask_files", "matching", "metrics",
    "protocols", "records", "submission", "truth",
]  # fmt: skip

FAMILY = Family(
    "instances",
    INSTANCE_PROTOCOLS,
    ("categories",),
    ("coco", "places2017", "cityscapes-instance"),
    adjustable_rules=("about", "cap", "id_zero_quirk"),
    gains_by_packing=False,  # the packed form is the same document with drawn polygons
    needs_packages=True,
)
