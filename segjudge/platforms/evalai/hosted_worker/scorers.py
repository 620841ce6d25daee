"""How our scorers are told from those of other hosts."""

from __future__ import annotations

import os
from collections.abc import Collection

#: Modules that our scorers have and no other script has.
_SCORERS = {"phases.py", "scoring/phase.py", "runner/guard.py"}


def is_ours(names: Collection[str]) -> bool:
    """Return whether the files of a script, by their paths in it, are our scorers, whatever may be missing."""
    return set(names) >= _SCORERS


def is_folder_ours(folder: str) -> bool:
    """Return whether a folder holds our scorers."""
    return is_ours([name for name in _SCORERS if os.path.isfile(os.path.join(folder, name))])
