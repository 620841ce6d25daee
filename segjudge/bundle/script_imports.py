"""What the modules of an evaluation script import, and which of them the worker comes by."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

INIT = "__init__.py"


@dataclass(frozen=True)
class ImportedName:
    """A module that is imported, as it is written."""

    line: int
    name: str
    #: The number of dots before it.
    level: int = 0
    #: What is imported from it, which may be modules too.
    members: tuple[str, ...] = ()
    #: It is imported whenever the module is: not in a function, nor where an error is expected.
    is_certain: bool = True


def imports_of(tree: ast.Module) -> Iterator[ImportedName]:
    """Yield what a module imports."""
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, certain = pending.pop(0)
        if isinstance(node, ast.Import):
            yield from (ImportedName(node.lineno, alias.name, is_certain=certain) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            members = tuple(alias.name for alias in node.names)
            yield ImportedName(node.lineno, node.module or "", node.level, members, certain)
        else:
            certain = certain and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Try, ast.If))
            pending += [(child, certain) for child in ast.iter_child_nodes(node)]


def module_path(imported: ImportedName, importer: str) -> list[str] | None:
    """Return the path of an imported module in the script, without its ending; None where it leads out of it.

    Absolute imports are sought from the script's top.
    """
    folder = importer.split("/")[:-1] if imported.level else []
    if imported.level - 1 > len(folder):
        return None
    above = folder[: len(folder) - imported.level + 1] if imported.level else []
    return [*above, *(imported.name.split(".") if imported.name else [])]


def is_module(path: list[str], files: set[str]) -> bool:
    """Return whether there is a module or a package at a path."""
    name = "/".join(path)
    return f"{name}.py" in files or any(file.startswith(f"{name}/") for file in files)


def _loaded_by(imported: ImportedName, importer: str, files: set[str]) -> list[str]:
    """Return the files that an import loads: packages, the module, and what is imported from it."""
    path = module_path(imported, importer) or []
    candidates = [path[: length + 1] for length in range(len(path))]
    candidates += [[*path, member] for member in imported.members]
    names = ("/".join(one) + ending for one in candidates for ending in (".py", f"/{INIT}"))
    return [name for name in names if name in files]


def reached_files(trees: dict[str, ast.Module]) -> set[str]:
    """Return the files that the worker may load, beginning with `__init__.py`."""
    files, reached, pending = set(trees), set[str](), [INIT]
    while pending:
        name = pending.pop()
        if name in reached or name not in files:
            continue
        reached.add(name)
        for imported in imports_of(trees[name]):
            pending += _loaded_by(imported, name, files)
    return reached
