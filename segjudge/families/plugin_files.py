"""Plug-in files for bundles, and the check that EvalAI's worker can import them."""

from __future__ import annotations

import ast
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from segjudge.evaluation_script import families
from segjudge.evaluation_script.families import plugins_of
from segjudge.evaluation_script.files.problems import HostError, printable
from segjudge.system.plugins import TOOLKITS, UPLOADS, Plugin, list_plugins, locate

#: The files of an upload half that a bundle includes, as of Segjudge's scorers, and additional files for type checkers.
_SUFFIXES = (".py", ".pyi", ".typed")
#: The maximum bytes of a plug-in's file.
_MOST_BYTES = 1 << 20
#: The Python of EvalAI's worker.
_WORKER = (3, 9)
#: The folder of the installed scorers.
_SCRIPT = Path(families.__file__).parents[1]
#: Additions to the standard library after Python 3.9: modules, names in modules, arguments of functions.
_LATER_MODULES = {"tomllib", "annotationlib", "compression"}
_LATER_NAMES = {
    "dataclasses": {"KW_ONLY"},
    "enum": {"StrEnum", "verify", "member", "nonmember"},
    "itertools": {"pairwise", "batched"},
    "types": {"EllipsisType", "NoneType", "NotImplementedType", "UnionType"},
    "typing": {
        *("Concatenate", "LiteralString", "Never", "NotRequired", "ParamSpec", "Required", "Self", "TypeAlias"),
        *("TypeGuard", "TypeVarTuple", "Unpack", "assert_never", "assert_type", "override", "reveal_type"),
    },
}
_LATER_ARGUMENTS = {"zip": {"strict"}, "dataclass": {"slots", "kw_only", "match_args"}, "bisect": {"key"}}
#: The import names of packages in `requirements.txt`, if they differ.
_IMPORTED_AS = {"pillow": "PIL"}


def read_uploads(protocols: Iterable[str]) -> dict[str, bytes]:
    """Return the scorer files of these protocols' plug-ins, by path.

    Raises HostError for files that a bundle cannot include or a worker cannot run.
    """
    plugins = find_plugins(protocols)
    faults = [fault for plugin in plugins for fault in check_upload(locate(plugin, UPLOADS), plugin.origin)]
    if faults:
        raise HostError("\n".join(faults))
    files = {name: data for plugin in plugins for name, data in _read_half(plugin, UPLOADS)}
    if plugins:
        listing = '"""The plug-ins of this bundle: their folders, and where they come from."""\n\nFOLDERS = (\n'
        rows = "".join(f"    {(plugin.folder, plugin.origin)!r},\n" for plugin in plugins)
        files["families/plugins.py"] = f"{listing}{rows})\n".encode()
    return files


def read_toolkits(protocols: Iterable[str]) -> dict[str, bytes]:
    """Return the plug-ins' toolkit files for these protocols, by path; raises HostError for unsuitable ones."""
    return {name: data for plugin in find_plugins(protocols) for name, data in _read_half(plugin, TOOLKITS)}


def find_plugins(protocols: Iterable[str]) -> list[Plugin]:
    origins = plugins_of(protocols)
    return [plugin for plugin in list_plugins() if origins.get(plugin.folder) == plugin.origin]


def _read_half(plugin: Plugin, package: str) -> Iterator[tuple[str, bytes]]:
    root = locate(plugin, package)
    name_of_half = f"{plugin.origin}, {os.path.basename(root)}"
    for name, data in read_package(root, name_of_half, _MOST_BYTES).items() if root else ():
        yield f"families/{plugin.folder}/{name}", data


def read_package(folder: str, name: str, most_bytes: float = math.inf) -> dict[str, bytes]:
    """Return the files of a plug-in's folder by path; raises HostError for unsuitable ones."""
    paths, faults = _list_files(folder, most_bytes)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    if faults:
        raise HostError("\n".join(f"{name}/{fault}" for fault in faults))
    return files


def _list_files(folder: str, most_bytes: float) -> tuple[list[Path], list[str]]:
    """Return the files of a folder to bundle, except hidden and compiled ones, and any objections."""
    paths, faults, root = [], [], os.path.join(os.path.realpath(folder), "")
    for path in sorted(Path(folder).rglob("*")):
        inner = path.relative_to(folder)
        is_hidden = any(name.startswith(".") or name == "__pycache__" for name in inner.parts)
        if is_hidden or path.suffix in (".pyc", ".partial"):
            continue
        fault = _why_refused(path, root, most_bytes)
        if fault:
            faults.append(f"{printable(inner.as_posix())}: {fault}")
        elif path.is_file():
            paths.append(path)
    return paths, faults


def _why_refused(path: Path, root: str, most_bytes: float) -> str:
    """Return why a file of a plug-in cannot be bundled; "" if it can."""
    if not path.name.isprintable():
        return "has an unprintable name. Rename it"
    if path.is_symlink() and not os.path.join(os.path.realpath(path), "").startswith(root):
        return "is a link that leads out of the folder. Replace it by the file itself"
    if path.is_symlink() and path.is_dir():
        return "is a link to a folder. Replace it by the folder itself"
    if path.is_dir():
        return ""
    if not path.is_file():
        return "is not a readable file. Remove it"
    size = path.stat().st_size
    return f"has {size:,} bytes; the limit is {most_bytes:,}. Make it smaller" if size > most_bytes else ""


def check_upload(folder: str, name: str) -> list[str]:
    """Return the faults of an upload half that EvalAI's worker could not import.

    Faults are syntax beyond Python 3.9, imports from outside the upload, and packages that the worker lacks. Faults
    that appear only in calls are not detected.
    """
    paths, refusals = _list_files(folder, _MOST_BYTES)
    faults = [f"{name}, upload/{refusal}" for refusal in refusals]
    for path in [path for path in paths if path.suffix not in _SUFFIXES]:
        file = printable(path.relative_to(folder).as_posix())
        faults.append(f"{name}, upload/{file}: is not a module; bundles include only modules. Move it out of upload/")
    for path in [path for path in paths if path.suffix == ".py"]:
        place_of_file = f"{name}, upload/{path.relative_to(folder).as_posix()}"
        try:
            tree = ast.parse(path.read_bytes(), feature_version=_WORKER)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 1)
            faults.append(f"{place_of_file}, line {line}: is not Python 3.9, which EvalAI runs ({error.args[0]})")
            continue
        depth = len(path.relative_to(folder).parts) + 1  # below `evaluation_script`, as `families/NAME` is
        faults += [f"{place_of_file}, line {line}: {fault}" for line, fault in sorted(_faults_of(tree, depth))]
    return faults


def _faults_of(tree: ast.Module, depth: int) -> Iterator[tuple[int, str]]:
    late_annotations = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in tree.body
    )
    for node in _run_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level > depth + 1:
                yield node.lineno, "imports a module above the upload, which is not uploaded"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from ((node.lineno, fault) for name in names if (fault := _fault_of_import(name)))
            if isinstance(node, ast.ImportFrom):
                later = _LATER_NAMES.get(node.module or "", set()) & {alias.name for alias in node.names}
                yield from ((node.lineno, f"{node.module} of Python 3.9 has no {name}") for name in sorted(later))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _LATER_NAMES.get(node.value.id, ()):
                yield node.lineno, f"{node.value.id} of Python 3.9 has no {node.attr}"
        elif isinstance(node, ast.Call):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            for argument in sorted(_LATER_ARGUMENTS.get(function, set()) & {str(word.arg) for word in node.keywords}):
                yield node.lineno, f"{function} of Python 3.9 has no argument {argument}"
        if not late_annotations and isinstance(node, (ast.arg, ast.AnnAssign, ast.FunctionDef)):
            annotation = node.returns if isinstance(node, ast.FunctionDef) else node.annotation
            union = any(isinstance(inner, ast.BinOp) for inner in ast.walk(annotation)) if annotation else False
            if union:
                yield node.lineno, "joins types by |, for which Python 3.9 needs `from __future__ import annotations`"


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run, without `if TYPE_CHECKING` blocks."""
    for node in ast.iter_child_nodes(tree):
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not guarded:
            yield node
            yield from _run_nodes(node)


def _fault_of_import(name: str) -> str:
    package = name.partition(".")[0]
    if package in ("segjudge", _SCRIPT.name):
        return f"imports {name}, which the upload can only import relatively, such as by `from ...files import Flaw`"
    if package in _LATER_MODULES:
        return f"imports {package}, which Python 3.9 does not have"
    if package in sys.stdlib_module_names or package in _worker_packages():
        return ""
    return f"imports {name}, which EvalAI's worker does not have: there are {', '.join(sorted(_worker_packages()))}"


def _worker_packages() -> set[str]:
    """Return the packages that are installed with the scorers."""
    with open(os.path.join(_SCRIPT, "requirements.txt"), encoding="utf-8") as file:
        names = re.findall(r"^([A-Za-z][\w.-]*)", file.read(), re.MULTILINE)
    return {_IMPORTED_AS.get(name.lower(), name.lower()) for name in names}
