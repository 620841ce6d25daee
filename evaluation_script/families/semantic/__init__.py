"""Label maps of images or videos: IoU per class, and the consistency of labels over time.

`protocols` has the benchmarks' rules as rows, `records` reads maps in COCO's JSON, `engine` does the rest. The contract
is the family's row, read at every start, and `engine` and `protocols`, imported on use.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import IMAGE_LAYOUTS, SEMANTIC_PROTOCOLS

__all__ = ["FAMILY", "engine", "protocols"]

FAMILY = Family("semantic", SEMANTIC_PROTOCOLS, ("sequences",), ("vspw", *IMAGE_LAYOUTS))
