"""Masks of objects in videos, by PNG or run lengths: J and F."""

from __future__ import annotations

from ..base.family import Family
from .protocols import SEQUENCE_PROTOCOLS

__all__ = ["FAMILY"]

FAMILY = Family("sequences", SEQUENCE_PROTOCOLS, ("sequences", "layout", "unseen"))
