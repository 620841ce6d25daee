"""Label maps of images or videos: IoU per class, and the consistency of labels over time.

`protocols` has the rules of the benchmarks as rows, `records` maps in COCO's JSON, `engine` the rest; `engine` and
`protocols` are the contract, beside the row of the family: it is read at every start, and they are imported when they
are used.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import IMAGE_LAYOUTS, SEMANTIC_PROTOCOLS

__all__ = ["FAMILY", "engine", "protocols"]

FAMILY = Family("semantic", SEMANTIC_PROTOCOLS, ("sequences",), ("vspw", *IMAGE_LAYOUTS))
