"""Noun phrases, whose objects must all be found in a picture or video: cgF1 of SA-Co.

The contract is the row in the registry and the modules that the toolkit's mirror uses: `protocols`, for pictures
`files` and `counting`, for videos `videos` and `tubes`. The engine imports the rest.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import PHRASE_PROTOCOLS

__all__ = ["FAMILY", "counting", "files", "protocols", "tubes", "videos"]

FAMILY = Family("phrases", PHRASE_PROTOCOLS, ("sequences",), ("sa-co", "sa-co-veval"), needs_packages=True)
