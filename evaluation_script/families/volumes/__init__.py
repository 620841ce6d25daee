"""Label maps in three dimensions: overlaps, distances between surfaces, and lesions.

The contract is the row in the registry and the modules that the toolkit's mirror uses: all except `measures`,
`overlaps` and `surfaces`.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import LAYOUT, VOLUME_PROTOCOLS

__all__ = [
    "FAMILY",
    "boxes",
    "components",
    "engine",
    "files",
    "geometry",
    "headers",
    "lesions",
    "protocols",
    "voxels",
]

FAMILY = Family("volumes", VOLUME_PROTOCOLS, ("sequences",), (LAYOUT,))
