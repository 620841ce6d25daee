"""The ways to read and score: one folder each, and `base` with what they are made of.

A family's `__init__` has its row `FAMILY`, its module `engine` the `ENGINE` that scores; `docs/adding-a-family.md` says
what both need.  The engine is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Dict

from ..files.problems import HostError
from .base.family import Family, FamilyProtocol

if TYPE_CHECKING:
    from .base.accumulator import Accumulator
    from .base.engine import Engine
    from .base.reports import Report

__all__ = ["FAMILIES", "FOLDERS", "PROTOCOLS", "engine_of", "report_of"]

#: The folders of the families, in the order in which people read of them.
FOLDERS = ("sequences", "instances", "panoptic", "semantic", "tracking", "phrases", "referring")
_ROOMS = [import_module(f".{folder}", __name__) for folder in FOLDERS]

#: The families by name.
FAMILIES: Dict[str, Family] = {room.FAMILY.name: room.FAMILY for room in _ROOMS}
_ENGINES = {room.FAMILY.name: f"{room.__name__}.engine" for room in _ROOMS}

#: The protocols of all families.
PROTOCOLS: Dict[str, FamilyProtocol] = {
    name: protocol for family in FAMILIES.values() for name, protocol in family.protocols.items()
}


def engine_of(family: str) -> Engine[Any, Any, Any]:
    """Return the engine of a family."""
    if family not in FAMILIES:
        raise HostError(f"there is no family {family!r} in this version, only {', '.join(FAMILIES)}")
    engine: Engine[Any, Any, Any] = import_module(_ENGINES[family]).ENGINE
    return engine


def report_of(split: str, counts: Accumulator[Any, Any]) -> Report:
    """Return the scores of a split of which all was counted; raises SubmissionError with every problem."""
    return engine_of(counts.protocol.family).report(split, counts)
