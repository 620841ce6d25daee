"""How our scorers are told from those of other hosts."""

from __future__ import annotations

from collections.abc import Collection

#: Modules that our scorers have beside each other and no other script has.
_SCORERS = {"phases.py", "phase.py", "guard.py"}


def is_ours(names: Collection[str]) -> bool:
    """Return whether the files of a script are our scorers, whatever may be missing."""
    return set(names) >= _SCORERS
