"""Pairs of a picture and a noun phrase, whose objects are all to be found: cgF1 of SA-Co.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `protocols`, `files` and
`counting`.  The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import PHRASE_PROTOCOLS

__all__ = ["FAMILY", "counting", "files", "protocols"]

FAMILY = Family("phrases", PHRASE_PROTOCOLS, ("sequences",), ("sa-co",), needs_packages=True)
