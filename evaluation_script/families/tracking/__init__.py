"""Objects that are followed through videos by their masks: HOTA, CLEAR."""

from __future__ import annotations

from ..base.family import Family
from .protocols import TRACKS_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family("tracks", TRACKS_PROTOCOLS, ("sequences",), ("mots", "burst"))
