"""The option types and variables shared by commands and programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: The environment variable with the bundle to use in folders without one; `run.sh` sets it to its checkout.
BUNDLE = "SEGJUDGE_BUNDLE"


def whole_number(least: int, largest: int) -> Callable[[str], int]:
    """Return the option type of a whole number within bounds."""

    def number(text: str) -> int:
        if not text.strip().lstrip("+-").isdecimal() or not least <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {largest}")
        return int(text)

    return number
