"""The rules of the evaluation script: whether EvalAI's worker can import it and install its requirements."""

from __future__ import annotations

import ast
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from .opened_bundle import Bundle
from .problems import BundleProblems, breaks_later, warning

PYTHON = (3, 9)
REQUIREMENTS = "requirements.txt"
#: The worker, in the words of environment markers.
_WORKER = {
    "python_version": ".".join(map(str, PYTHON)),
    "python_full_version": "3.9.21",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "implementation_name": "cpython",
    "os_name": "posix",
}
#: The file with the versions that EvalAI's worker pins, also while packages are built.
PINS = os.path.join(os.path.dirname(__file__), f"worker-{PYTHON[0]}.{PYTHON[1]}.txt")


def pins() -> dict[str, str]:
    """Return the pinned version of each package."""
    with open(PINS, encoding="utf-8") as file:
        lines = [line.split("==") for line in file.read().splitlines() if "==" in line]
    return {_normalized(name): version for name, version in lines}


def script(bundle: Bundle) -> BundleProblems:
    """Yield the problems of the modules and requirements in the script's zip."""
    path = str(bundle.config.get("evaluation_script"))
    if not bundle.has(path):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as files:
            names = files.namelist()
            texts = {name: files.read(name) for name in names if name.endswith(".py") or name == REQUIREMENTS}
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        return  # reported by the rules of the challenge
    modules = {name.removesuffix(".py") for name in names if name.endswith(".py") and "/" not in name}
    folder = path.removesuffix(".zip")
    if "main.py" not in names and "__init__.py" in names and b".main" in texts["__init__.py"]:
        yield breaks_later(f"{folder}/main.py", "is not there, and __init__.py imports it", "Add it")
    for name, text in texts.items():
        where = f"{folder}/{name}"
        yield from _requirements(where, text) if name == REQUIREMENTS else _module(where, text, modules, folder)
    if "__init__.py" in texts and b"evaluate" not in texts["__init__.py"]:
        remedy = "Write: from .main import evaluate"
        yield breaks_later(f"{folder}/__init__.py", "has no evaluate, so every submission fails", remedy)


def _module(where: str, text: bytes, modules: set[str], folder: str) -> BundleProblems:
    version = ".".join(map(str, PYTHON))
    try:
        tree = ast.parse(text, feature_version=PYTHON)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        yield breaks_later(f"{where}:{line}" if line else where, f"is not Python {version} ({error})", "Correct it")
        return
    for line, name in _absolute_imports(tree):
        if name.split(".")[0] in (*modules, folder):
            found = f"imports {name} absolutely, and EvalAI's worker finds no such module"
            own = name.removeprefix(f"{folder}.")
            yield breaks_later(f"{where}:{line}", found, f"Write it with a dot: from .{own} import …")
    for line, name in _relative_imports(tree):
        if name.split(".")[0] not in modules:
            remedy = "Keep every module in the one folder: nothing else is uploaded"
            yield breaks_later(f"{where}:{line}", f"imports .{name}, which is not in the zip", remedy)


def _absolute_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module


def _relative_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node.lineno, name) for name in names)


def _requirements(where: str, text: bytes) -> BundleProblems:
    pinned = pins()
    joined = text.decode("utf-8", "replace").replace("\\\n", " \\\r")
    for number, line in enumerate(joined.split("\n"), 1):
        here, requirement = f"{where}:{number}", re.sub(r"(^|\s)#.*|\s*\\\r|\s--hash=\S+", " ", line).strip()
        if not requirement:
            continue
        if re.match(r"(-e\b|--editable|\S+\s*@\s*git\+|git\+|https?:|\.{0,2}/)", requirement) or "git+" in requirement:
            found = f"asks for {requirement}, and EvalAI's worker has no git and no compiler"
            yield breaks_later(here, found, "Name a released package that has a wheel")
        elif requirement.startswith("-"):
            yield warning(
                here, f"has the option {requirement.split()[0]}", "Make sure that it holds on EvalAI's worker too"
            )
        else:
            yield from _requirement(here, requirement, pinned)


def _requirement(where: str, text: str, pinned: dict[str, str]) -> BundleProblems:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        yield breaks_later(where, f"is not a requirement ({str(error).splitlines()[0]})", "Write it as name>=version")
        return
    if requirement.marker and not requirement.marker.evaluate(_WORKER):
        return
    pin = pinned.get(_normalized(requirement.name))
    if pin and not requirement.specifier.contains(pin, prereleases=True):
        found = f"asks for {text}, and EvalAI's worker insists on {requirement.name} {pin}: it would never start"
        yield breaks_later(where, found, f"Allow {pin}")


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
