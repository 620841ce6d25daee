"""Objects tracked through videos by masks: HOTA, CLEAR, and the AP of tracks.

`protocols` has the rules of the benchmarks as rows, `files` reads truths and submissions, `counting` compares them and
`engine` makes scores of the counts.  These modules are the contract, beside the row of the family: it is read at every
start, and they are imported when they are used.
"""

from __future__ import annotations

from ..base.family import Family
from .protocols import TRACKS_PROTOCOLS

__all__ = ["FAMILY", "counting", "files", "protocols"]

FAMILY = Family("tracks", TRACKS_PROTOCOLS, ("sequences",), ("mots", "burst"), needs_packages=True)
