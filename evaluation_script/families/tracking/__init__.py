"""Objects tracked through videos by masks: HOTA, CLEAR, and the AP of tracks.

`protocols` has the benchmarks' rules as rows, `files` reads truths and submissions, `counting` compares them, and
`engine` computes scores. These modules are the contract, with the family's row; the row is read at every start, the
modules on use.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import TRACKS_PROTOCOLS

__all__ = ["FAMILY", "counting", "files", "protocols"]

FAMILY = Family("tracks", TRACKS_PROTOCOLS, ("sequences",), ("mots", "burst"), needs_packages=True)
