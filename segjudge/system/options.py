"""The option types and variables shared by commands and programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: The environment variable with the bundle to use in folders without one; `run.sh` sets it to its checkout.
BUNDLE = "SEGJUDGE_BUNDLE"


def read_whole(text: str) -> int:
    """Read a whole number; the option type of `int`."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def read_number(text: str) -> float:
    """Read a number; the option type of `float`."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def whole_number(least: int, largest: int) -> Callable[[str], int]:
    """Return the option type of a whole number within bounds."""

    def number(text: str) -> int:
        if not text.strip().lstrip("+-").isdecimal() or not least <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {largest}")
        return int(text)

    return number
