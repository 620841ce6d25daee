"""The outcome of a call, to compare with one value or one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def outcome_of(action: Callable[[], object]) -> Any:
    """Return the value of a call, or its error as `Name: sentence`."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the sentence is compared
        return f"{type(error).__name__}: {error}"


def outcome_with_warnings(action: Callable[[], object]) -> tuple[Any, list[str]]:
    """Return the outcome of a call and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return outcome_of(action), [str(warning.message) for warning in caught]
