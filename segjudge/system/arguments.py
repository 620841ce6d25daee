"""The types of arguments of public functions, and the sentences about wrong ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from segjudge.system.errors import ArgumentTypeError, ArgumentValueError


class Kind(NamedTuple):
    """The types that an argument may have, and their name in sentences."""

    types: tuple[type, ...]
    about: str


PATH = Kind((str, os.PathLike), "a path, as text or from pathlib")
SOURCE = Kind((str, os.PathLike), "a path or an address")
TEXT = Kind((str,), "a text")
FLAG = Kind((bool,), "True or False")
WHOLE = Kind((int,), "a whole number")
NUMBER = Kind((int, float), "a number")
SEVERAL = Kind((Iterable,), "a list or a mapping")
FUNCTION = Kind((Callable,), "a function")  # type: ignore[arg-type] # an abstract class, of which functions are instances


def check_arguments(kind: Kind, /, **arguments: object) -> None:
    """Raise ArgumentTypeError for an argument of another kind, ArgumentValueError for a path that does not exist."""
    for name, value in arguments.items():
        is_number = isinstance(value, bool) and bool not in kind.types  # Python takes True for 1
        if is_number or not isinstance(value, kind.types):
            raise ArgumentTypeError(f"{name} is {describe_value(value)}; give {kind.about}")
        if kind in (PATH, SOURCE) and (not value or "\0" in os.fspath(value)):  # type: ignore[call-overload] # is one
            fault = "holds a null character" if value else "is empty"
            raise ArgumentValueError(f"{name} is {describe_value(value)}, which {fault}; give {kind.about}")


def check_options(kind: Kind, /, **arguments: object) -> None:
    """Raise ArgumentTypeError for the first argument of a wrong kind; None and "" omit an option."""
    options = {name: value for name, value in arguments.items() if value is not None}
    check_arguments(kind, **{name: value for name, value in options.items() if not isinstance(value, str) or value})


def describe_value(value: object) -> str:
    """Return the description of an argument in a sentence: its beginning and its type."""
    if value is None:
        return "None"
    from reprlib import repr as abbreviate  # only if there are faults

    text = " ".join(abbreviate(value).split())
    return f"{text[:60]}{'…' if len(text) > 60 else ''}, of type {type(value).__name__}"
