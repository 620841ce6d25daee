"""The halves of plug-ins that go into a bundle, and whether EvalAI's worker could import them."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from segjudge.evaluation_script import families
from segjudge.evaluation_script.families import plugins_of
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.plugins import TOOLKITS, UPLOADS, Plugin, list_plugins, locate

#: The Python of EvalAI's worker.
_WORKER = (3, 9)
#: The scorers, as they are installed.
_SCRIPT = Path(families.__file__).parents[1]
#: What the standard library and its functions had not yet got then: modules; names of modules; arguments of functions.
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
#: The names by which the packages of `requirements.txt` are imported, where these are others.
_IMPORTED_AS = {"pillow": "PIL"}


def read_uploads(protocols: Iterable[str]) -> dict[str, bytes]:
    """Read what plug-ins add to the scorers for these protocols, by path; HostError where a worker could not run it."""
    plugins = find_plugins(protocols)
    files = {name: data for plugin in plugins for name, data in _read_half(plugin, UPLOADS)}
    faults = [fault for plugin in plugins for fault in check_upload(locate(plugin, UPLOADS), plugin.origin)]
    if faults:
        raise HostError("\n".join(faults))
    if plugins:
        listing = '"""The plug-ins of this bundle: their folders, and where they come from."""\n\nFOLDERS = (\n'
        rows = "".join(f"    {(plugin.folder, plugin.origin)!r},\n" for plugin in plugins)
        files["families/plugins.py"] = f"{listing}{rows})\n".encode()
    return files


def read_toolkits(protocols: Iterable[str]) -> dict[str, bytes]:
    """Read what plug-ins add to the toolkit for these protocols, by path."""
    return {name: data for plugin in find_plugins(protocols) for name, data in _read_half(plugin, TOOLKITS)}


def find_plugins(protocols: Iterable[str]) -> list[Plugin]:
    origins = plugins_of(protocols)
    return [plugin for plugin in list_plugins() if origins.get(plugin.folder) == plugin.origin]


def _read_half(plugin: Plugin, package: str) -> Iterator[tuple[str, bytes]]:
    root = locate(plugin, package)
    for path in _files_of(root) if root else ():
        yield f"families/{plugin.folder}/{path.relative_to(root).as_posix()}", path.read_bytes()


def _files_of(root: str) -> list[Path]:
    """Return the files of a half: no hidden or compiled ones."""
    paths = [path for path in sorted(Path(root).rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    return [path for path in paths if not any(name.startswith(".") for name in path.relative_to(root).parts)]


def check_upload(folder: str, name: str) -> list[str]:
    """Return a sentence on whatever of an upload half EvalAI's worker could not import.

    That is another syntax than that of Python 3.9, an import from outside the upload, or of a package that the
    worker lacks.  What only a call shows is not found here.
    """
    faults = []
    for path in [path for path in _files_of(folder) if path.suffix == ".py"]:
        at = f"{name}, upload/{path.relative_to(folder).as_posix()}"
        try:
            tree = ast.parse(path.read_bytes(), feature_version=_WORKER)
        except (SyntaxError, ValueError) as error:
            faults.append(
                f"{at}, line {getattr(error, 'lineno', 1)}: is no Python 3.9, which EvalAI runs ({error.args[0]})"
            )
            continue
        depth = len(path.relative_to(folder).parts) + 1  # below `evaluation_script`, as `families/NAME` is
        faults += [f"{at}, line {line}: {fault}" for line, fault in sorted(_faults_of(tree, depth))]
    return faults


def _faults_of(tree: ast.Module, depth: int) -> Iterator[tuple[int, str]]:
    late_annotations = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in tree.body
    )
    for node in _run_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level > depth + 1:
                yield node.lineno, "imports what lies above the upload, and is not uploaded"
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
                yield node.lineno, "joins types by |, which Python 3.9 needs `from __future__ import annotations` for"


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs: not what `if TYPE_CHECKING` guards."""
    for node in ast.iter_child_nodes(tree):
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not guarded:
            yield node
            yield from _run_nodes(node)


def _fault_of_import(name: str) -> str:
    package = name.partition(".")[0]
    if package in ("segjudge", _SCRIPT.name):
        return (
            f"imports {name}, which the upload reaches by relative imports alone, such as `from ...files import Flaw`"
        )
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
