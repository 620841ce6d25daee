"""What makes pages in Codabench's image: a program, what it imports of this package, and the templates."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

#: The package, and the module that makes pages.
_PACKAGE, _MAKER = Path(__file__).parent.parent, "segjudge.stored_report"
#: These lie beside the scoring program already.
_SCORERS = "segjudge.evaluation_script"
_BESIDE = ("report/pages/*", "report/published.json")


def page_files(program: str) -> dict[str, bytes]:
    """Return files by their paths: the program, and the package beside it."""
    folder = Path(program).parent
    paths = {Path(__file__).with_name("page_program.py"): Path(program)}
    beside = [path for pattern in _BESIDE for path in sorted(_PACKAGE.glob(pattern)) if path.is_file()]
    for path in [*_modules(_MAKER), *beside]:
        paths[path] = folder / path.relative_to(_PACKAGE.parent)
    return {target.as_posix(): path.read_bytes() for path, target in paths.items()}


def _modules(name: str) -> list[Path]:
    """Return the files of a module, and of what it imports of this package when it is imported."""
    found: dict[str, Path] = {}
    pending = [name]
    while pending:
        module = pending.pop()
        path = _file(module)
        if path is not None and module not in found and not module.startswith(_SCORERS):
            found[module] = path
            pending += [module.rpartition(".")[0], *_imports(module, path)]
    return [found[module] for module in sorted(found)]


def _file(module: str) -> Path | None:
    stem = _PACKAGE.parent / module.replace(".", "/")
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if module and path.is_file()), None)


def _imports(module: str, path: Path) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            base = package if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
