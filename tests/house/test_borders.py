"""The interfaces of rooms.

A room says in its `__init__` what it is for and names its contract in `__all__`: names, or public modules of it.  Other
rooms import exactly that.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .test_architecture import FILES, ROOT, room_of, statements, tree_of

#: Names that tests of other packages import in addition to contracts, and why.
TESTED_FROM_OUTSIDE = {
    "describe_counts": "how the kit compares counts, bit by bit",
    "empty_like": "what the kit merges counts into",
    "encode_nifti": "what tests of `new` write a tiny case with",
    "rings": "what draws polygons, which may cost no more than a limit",
    "_lzw": "what the kit makes hostile pictures with, which the reader of TIFF meets",
    "_tiff": "the same",
}


class Use(NamedTuple):
    room: str
    module: str
    line: int
    names: tuple[str, ...]
    """From the room down to what is imported: `("requests", "Request")`."""


def _is_package(room: str) -> bool:
    return FILES[room].name == "__init__.py"


ROOMS = sorted(room for room in {room_of(module) for module in FILES} if _is_package(room))


@functools.cache
def contract(room: str) -> list[str] | None:
    for node in tree_of(FILES[room]).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            names: list[str] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            return names
    return None


def _imports(path: Path, package: str) -> Iterator[tuple[str, int]]:
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def _uses(module: str, path: Path, package: str) -> Iterator[Use]:
    """Yield the imports of a file from inside rooms; imports of whole rooms are omitted."""
    for name, line in _imports(path, package):
        owner = name if name in FILES else name.rpartition(".")[0]
        if owner in FILES and (room := room_of(owner)) != name:
            yield Use(room, module, line, tuple(name[len(room) + 1 :].split(".")))


def _uses_of_others(module: str) -> Iterator[Use]:
    package = module if _is_package(module) else module.rpartition(".")[0]
    for use in _uses(module, FILES[module], package):
        if _is_package(use.room) and use.room != room_of(module):
            yield use


def _passes_contract(use: Use) -> bool:
    return not set(contract(use.room) or ()) & set(use.names)


USES = [use for module in FILES for use in _uses_of_others(module)]


@pytest.mark.parametrize("room", ROOMS)
def test_other_rooms_import_what_the_contract_names(room: str) -> None:
    assert [use for use in USES if use.room == room and _passes_contract(use)] == []


TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


def _tests_of(room: str) -> Path:
    """Return the folder of tests that may look inside a room."""
    below = room.replace("segjudge.evaluation_script", "segjudge").removeprefix("segjudge.")
    named = {"remote_challenge_evaluation": "remote", "code_upload_challenge_evaluation": "code_upload"}
    return ROOT / "tests" / named.get(below, below).replace(".", "/")


def _looks_inside(path: Path) -> Iterator[Use]:
    """Yield the imports of a test file from other rooms than its own, besides their contracts."""
    name = str(path.relative_to(ROOT))
    for use in _uses(name, path, ".".join(path.relative_to(ROOT).parts[:-1])):
        if _tests_of(use.room) in path.parents or use.names[-1] in TESTED_FROM_OUTSIDE:
            continue
        if (_is_package(use.room) and _passes_contract(use)) or re.match("_[^_]", use.names[-1]):
            yield use


def test_tests_import_contracts_beside_their_own_room() -> None:
    assert len(TESTS) > 150
    assert [fault for path in TESTS for fault in _looks_inside(path)] == []
