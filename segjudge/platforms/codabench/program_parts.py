"""What lies beside the scorers in a scoring program: packages that Codabench's image lacks, and what makes pages."""

from __future__ import annotations

import ast
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from segjudge.kernel.compiling import cache_folder, fetch

#: Packages by name and hash: for the scorers, and for pages.
LOCK, PAGE_LOCK = (Path(__file__).with_name(name) for name in ("wheels.txt", "page-wheels.txt"))
#: The image's Python and system; nothing is compiled, and nothing taken that has another hash.
_OPTIONS = (
    *("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes"),
    *("--python-version", "3.12", "--implementation", "cp", "--abi", "abi3", "--abi", "cp312"),
    *("--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux_2_28_x86_64"),
)
#: The package, and the module that makes pages.
_PACKAGE, _MAKER = Path(__file__).parents[2], "segjudge.report.stored"
#: These lie beside the scoring program already.
_SCORERS = "segjudge.evaluation_script"
_BESIDE = ("report/pages/*", "report/published.json", "interactive/davis_sequences.csv")


def wheel_files(lock: Path = LOCK) -> dict[str, bytes]:
    """Return the files of the locked wheels by their paths; pip fetches them once, into the user's cache.

    Raises `CompileError`, whose text says why, where they cannot be had.
    """
    folder = cache_folder() / f"codabench-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        fetch(folder, ["download", *_OPTIONS, "-r", str(lock), "-d"])
    files: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            files.update({name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")})
    return files


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
