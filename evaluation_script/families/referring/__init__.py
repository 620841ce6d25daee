"""Objects in pictures that expressions refer to: RefCOCO, gRefCOCO, ReasonSeg.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `engine`, `protocols` and
`submission`. The engine imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import REFERRING_PROTOCOLS

__all__ = ["FAMILY", "engine", "protocols", "submission"]

FAMILY = Family("referring", REFERRING_PROTOCOLS, ("sequences",), ("refcoco", "grefcoco", "reasonseg"))
