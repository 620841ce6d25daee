"""Segments that cover images or videos, each with a category: PQ, VPQ and STQ.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `protocols`, `files` and
`counting`. The engine imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import CODED_LAYOUTS, IMAGE_LAYOUT, PANOPTIC_PROTOCOLS, VIDEO_LAYOUT

__all__ = ["FAMILY", "counting", "files", "protocols"]

FAMILY = Family("panoptic", PANOPTIC_PROTOCOLS, ("sequences",), (IMAGE_LAYOUT, VIDEO_LAYOUT, *CODED_LAYOUTS))
