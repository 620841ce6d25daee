"""Noun phrases, all of whose objects are to be found in a picture or video: cgF1 of SA-Co.

The contract is the row of the registry and the modules that the toolkit's mirror works with: `protocols`, for
pictures `files` and `counting`, for videos `videos` and `tubes`.  The rest is reached through the engine.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import PHRASE_PROTOCOLS

__all__ = ["FAMILY", "counting", "files", "protocols", "tubes", "videos"]

FAMILY = Family("phrases", PHRASE_PROTOCOLS, ("sequences",), ("sa-co", "sa-co-veval"), needs_packages=True)
