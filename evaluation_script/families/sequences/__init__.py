"""Masks of objects in videos, as PNGs or run lengths: J and F.

`protocols` has the rules of the benchmarks as rows.  A `truth` is packed, or read by `dataset` from one of the
`layouts`; `engine` pairs a submission with it; `counting` counts pixels; `metrics` makes scores of the counts, and
`losses` says where a score was lost.  These modules are the contract, beside the row of the family: it is read at every
start, and most of them are imported when they are used.
"""

from __future__ import annotations

from ..base.family import Family
from .layouts import ALIASES, GENERIC, LAYOUTS
from .protocols import BESIDE, SEQUENCE_PROTOCOLS

__all__ = [
    "FAMILY",
    "counting",
    "dataset",
    "engine",
    "layouts",
    "losses",
    "metrics",
    "protocols",
    "truth",
]

_LAYOUTS = (GENERIC.name, *sorted({*LAYOUTS, *ALIASES} - {GENERIC.name}))

FAMILY = Family("sequences", SEQUENCE_PROTOCOLS, ("sequences", "layout", "unseen"), _LAYOUTS, BESIDE)
