"""The standard streams of a program that was started without them."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open closed standard streams, so that other files do not take their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
