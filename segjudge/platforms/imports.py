"""The modules that a script imports, and which of them it requires.

An import is certain if loading the module always executes it: outside functions, `if`, `match`, and any `try` that
expects its failure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

#: Statements below which an import may never be reached, or may fail.
_UNCERTAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.Match, ast.Try, getattr(ast, "TryStar", ast.Try))
#: The nodes that contain statements; expressions import nothing.
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)


class ImportedName(NamedTuple):
    """A module that is imported, as it is written."""

    line: int
    name: str
    #: The number of dots before it.
    level: int = 0
    #: The imported names, which may be modules too.
    members: tuple[str, ...] = ()
    is_certain: bool = True

    @property
    def package(self) -> str:
        """Return the top-level package or module of its path; "" for a module beside the importer."""
        return "" if self.level else self.name.partition(".")[0]


def find_imports(text: str | bytes, version: tuple[int, int] | None = None) -> list[ImportedName]:
    """Find a module's imports, in their order; raises the errors of `ast.parse` for other text."""
    imports = list[ImportedName]()
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(text, feature_version=version), True)]
    while pending:
        node, is_certain = pending.pop()
        if isinstance(node, ast.Import):
            imports += [ImportedName(node.lineno, alias.name, is_certain=is_certain) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            members = tuple(alias.name for alias in node.names)
            imports.append(ImportedName(node.lineno, node.module or "", node.level, members, is_certain))
        else:
            is_certain = is_certain and not isinstance(node, _UNCERTAIN)
            pending += [(child, is_certain) for child in ast.iter_child_nodes(node) if isinstance(child, _BLOCKS)]
    return sorted(imports)


@dataclass(frozen=True)
class ParsedModule:
    """A module's imports, or its syntax error with the line."""

    imports: tuple[ImportedName, ...] = ()
    error: str = ""
    line: int | None = None


def parse_modules(texts: Mapping[str, str | bytes], version: tuple[int, int]) -> dict[str, ParsedModule]:
    """Return modules as a version of Python parses them."""
    return {name: _parse(text, version) for name, text in texts.items()}


@lru_cache(maxsize=1000)  # the competitions of a bundle hold the same scorers
def _parse(text: str | bytes, version: tuple[int, int]) -> ParsedModule:
    try:
        return ParsedModule(tuple(find_imports(text, version)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ParsedModule((), str(error) or type(error).__name__, getattr(error, "lineno", None))
