"""The families, one folder each: how to read and score truths and submissions; `base` holds what they share.

A family's `__init__` has its row `FAMILY`; its module `engine` has the `ENGINE` that scores, and is imported on first
use. `docs/adding-a-family.md` describes both.

Plug-ins are families of other distributions. They are folders here too, listed by a module `plugins`: a bundle lists
those that its phases need, and the toolkit lists the installed ones. They are imported if a name is not Segjudge's own,
or if all families are listed.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, TypeVar

from ..files.problems import HostError, name_list, near_hint, printable_lines
from .base.family import Family, FamilyProtocol

if TYPE_CHECKING:
    from .base.accumulator import Accumulator
    from .base.engine import Engine
    from .base.reports import Report

__all__ = [
    "FAMILIES",
    "FOLDERS",
    "LAYOUTS",
    "PROTOCOLS",
    "describe_unknown",
    "engine_of",
    "folder_of",
    "import_from",
    "plugins_of",
    "report_of",
]

_Item = TypeVar("_Item")

#: The folders of the families, in the order of the documentation.
FOLDERS = (
    "sequences",
    "instances",
    "panoptic",
    "semantic",
    "tracking",
    "phrases",
    "referring",
    "scans",
    "saliency",
    "cells",
    "microscopy",
    "volumes",
)


class _Registry(Mapping[str, _Item]):
    """A mapping of families' contents by name, which imports them in the order of the documentation up to the name.

    Segjudge's own are found without searching plug-ins.
    """

    def __init__(self) -> None:
        self.loaded: Dict[str, _Item] = {}

    def __getitem__(self, name: str) -> _Item:
        with _LOCK:
            while name not in self.loaded and _WAITING:
                _load_next()
        if name not in self.loaded:
            _load_plugins()
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        _load_plugins()
        return iter(list(self.loaded))

    def __len__(self) -> int:
        _load_plugins()
        return len(self.loaded)

    @property
    def faults(self) -> List[str]:
        """Sentences about the plug-ins that cannot be used, one each."""
        _load_plugins()
        return list(_FAULTS)


#: The families by name, all protocols, and the family that reads each layout of published truths.
FAMILIES: _Registry[Family] = _Registry()
PROTOCOLS: _Registry[FamilyProtocol] = _Registry()
LAYOUTS: _Registry[str] = _Registry()

#: The folder of each family.
_FOLDER_OF: Dict[str, str] = {}
#: The plug-in's folder that defines a protocol, and the description of a plug-in's origin.
_BRINGS: Dict[str, str] = {}
_ORIGINS: Dict[str, str] = {}
_FAULTS: List[str] = []
#: The maximum number of characters that a sentence quotes from a plug-in's exception.
_LONGEST_FAULT = 400
#: The folders of families that are not imported yet.
_WAITING = list(FOLDERS)
#: The module that lists plug-ins; empty once they are loaded.
_PENDING = [f"{__name__}.plugins"]
_LOCK = RLock()


def _add(folder: str, family: Family) -> None:
    FAMILIES.loaded[family.name] = family
    PROTOCOLS.loaded.update(family.protocols)
    LAYOUTS.loaded.update(dict.fromkeys(family.layouts, family.name))
    _FOLDER_OF[family.name] = folder


def _load_next() -> None:
    """Import the first family that waits."""
    folder = _WAITING.pop(0)
    _add(folder, import_module(f".{folder}", __name__).FAMILY)


def folder_of(family: str) -> str:
    """Return the folder of a family, here and in its mirror."""
    return _FOLDER_OF[FAMILIES[family].name]


def import_from(family: str, package: str, module: str, name: str) -> Any:
    """Return a name from a module of a family's folder; raises HostError if a plug-in's module cannot be imported."""
    folder = folder_of(family)
    if folder in FOLDERS:
        return getattr(import_module(f"{package}.{folder}{module}"), name)
    try:
        with redirect_stdout(sys.stderr):
            return getattr(import_module(f"{package}.{folder}{module}"), name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it may do anything
        raise HostError(_describe_fault(_ORIGINS[folder], error)) from None


def describe_unknown(protocol: str) -> str:
    """Return the sentence about an unknown protocol, with the reasons for unusable plug-ins."""
    hint = near_hint(protocol, PROTOCOLS)
    return "\n".join([f"there is no protocol {protocol!r}{hint} (`segjudge benchmarks` lists all)", *PROTOCOLS.faults])


def engine_of(family: str) -> Engine[Any, Any, Any]:
    if family not in FAMILIES:
        names = ", ".join(FAMILIES)
        raise HostError("\n".join([f"there is no family {family!r} in this version, only {names}", *FAMILIES.faults]))
    engine: Engine[Any, Any, Any] = import_from(family, __name__, ".engine", "ENGINE")
    return engine


def report_of(split: str, counts: Accumulator[Any, Any]) -> Report:
    """Return the report of a fully counted split; raises SubmissionError with every problem."""
    return engine_of(counts.protocol.family).report(split, counts)


# ── plug-ins ────────────────────────────────────────────────────────────────


def plugins_of(protocols: Iterable[str]) -> Dict[str, str]:
    """Return the folders of the plug-ins that these protocols need, each with its origin."""
    folders = set()
    for name in protocols:
        if name in PROTOCOLS:
            folders |= {_BRINGS.get(name, ""), _FOLDER_OF[PROTOCOLS[name].family]}
    return {folder: _ORIGINS[folder] for folder in sorted(folders & _ORIGINS.keys())}


def _load_plugins() -> None:
    """Import all families and plug-ins once; skip the unusable plug-ins, which `faults` describes."""
    with _LOCK:
        if not _PENDING:
            return
        while _WAITING:
            _load_next()
        listing, rooms = _PENDING.pop(), []
        for folder, listed_origin in import_module(listing).FOLDERS if find_spec(listing) else ():
            origin = " ".join(printable_lines(listed_origin).split())
            with _note_faults(origin):
                if folder in (*FOLDERS, *_ORIGINS, "base", "plugins") or not folder.isidentifier():
                    raise ValueError(f"{folder} cannot name a family: the name is taken, or is not a valid module name")
                rooms.append((folder, import_module(f".{folder}", __name__)))
                _ORIGINS[folder] = origin
        # Plug-ins that only add protocols come last, since they may extend families of plug-ins.
        for folder, room in sorted(rooms, key=lambda entry: not hasattr(entry[1], "FAMILY")):
            with _note_faults(_ORIGINS[folder]):
                _add_plugin(folder, room)


@contextmanager
def _note_faults(origin: str) -> Iterator[None]:
    """Record an unusable plug-in as a fault and continue without it, after any exception.

    Its output goes to stderr: stdout may be a program's input.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as said
        _FAULTS.append(_describe_fault(origin, error))


def _add_plugin(folder: str, room: ModuleType) -> None:
    """Add a plug-in's family, or its protocols to an existing family; raises ValueError if that is impossible."""
    family: Optional[Family] = getattr(room, "FAMILY", None)
    if family is None and not hasattr(room, "PROTOCOLS"):
        raise ValueError("it has neither FAMILY nor PROTOCOLS")
    protocols = room.PROTOCOLS if family is None else family.protocols
    rows: List[FamilyProtocol] = list(protocols.values() if isinstance(protocols, Mapping) else protocols)
    names = [row.name for row in rows]
    clashes = [f"a protocol {name}" for name in names if name in PROTOCOLS.loaded or names.count(name) > 1]
    if family is not None:
        clashes += [f"a family {family.name}"] * (family.name in FAMILIES.loaded)
        clashes += [f"a layout {layout}" for layout in family.layouts if layout in LAYOUTS.loaded]
    if clashes:
        raise ValueError(f"these names are already taken: {name_list(clashes)}")
    families = FAMILIES.loaded if family is None else {family.name: family}
    for row in rows:
        if row.family not in families:
            raise ValueError(
                f"its protocol {row.name} belongs to the family {row.family}, but must belong to {', '.join(families)}"
            )
    if family is not None:
        _add(folder, family)
    for row in rows if family is None else ():
        whole = FAMILIES.loaded[row.family]
        _add(_FOLDER_OF[whole.name], replace(whole, protocols={**whole.protocols, row.name: row}))
    _BRINGS.update(dict.fromkeys(names, folder))


def _describe_fault(origin: str, error: BaseException) -> str:
    why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    line = " ".join(why.splitlines())
    return printable_lines(f"the plug-in {origin} cannot be used: {line[:_LONGEST_FAULT]}")
