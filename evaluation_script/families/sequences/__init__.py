"""Masks of objects in videos, as PNGs or run lengths: J and F.

`protocols` has the benchmarks' rules as rows. A `truth` is packed, or read by `dataset` in one of the `layouts`.
`engine` pairs a submission with it, `counting` counts pixels, `metrics` computes scores, and `losses` locates where a
score was lost. These modules are the contract, with the family's row; the row is read at every start, most modules only
on use.
"""

from __future__ import annotations

from ..base.family import Family
from .layouts import ALIASES, GENERIC, LAYOUTS
from .protocols import BESIDE, SEQUENCE_PROTOCOLS

__all__ = ["FAMILY", "counting", "dataset", "engine", "layouts", "losses", "metrics", "protocols", "truth"]

_LAYOUTS = (GENERIC.name, *sorted({*LAYOUTS, *ALIASES} - {GENERIC.name}))

FAMILY = Family("sequences", SEQUENCE_PROTOCOLS, ("sequences", "layout", "unseen"), _LAYOUTS, BESIDE)
