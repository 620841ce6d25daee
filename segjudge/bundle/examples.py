"""The sample submissions of a bundle: `examples/CODENAME/FILE`."""

from __future__ import annotations

import os

FOLDER = "examples"


def samples(root: str, codename: str) -> list[str]:
    """The paths of a phase's samples, in order."""
    folder = os.path.join(root, FOLDER, codename)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names]
