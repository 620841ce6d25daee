"""The evaluation script: whether EvalAI's worker could import it and install what it asks for."""

from __future__ import annotations

import ast
import io
import os
import re
import zipfile
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from .finding import Finding, Findings, warning
from .opened import Bundle

PYTHON = (3, 9)
REQUIREMENTS = "requirements.txt"
#: Versions that EvalAI's worker insists on, also while packages are built.
PINS = os.path.join(os.path.dirname(__file__), f"worker-{PYTHON[0]}.{PYTHON[1]}.txt")


def pins() -> dict[str, str]:
    """Package → version."""
    with open(PINS, encoding="utf-8") as file:
        rows = [line.split("==") for line in file.read().splitlines() if "==" in line]
    return {_plain(name): version for name, version in rows}


def script(bundle: Bundle) -> Findings:
    """Modules and requirements of the script's zip."""
    path = str(bundle.config.get("evaluation_script"))
    if not bundle.has(path):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as files:
            names = files.namelist()
            texts = {name: files.read(name) for name in names if name.endswith(".py") or name == REQUIREMENTS}
    except zipfile.BadZipFile:
        return  # told by the rules
    modules = {name.removesuffix(".py") for name in names if name.endswith(".py") and "/" not in name}
    for name, text in texts.items():
        where = f"{path.removesuffix('.zip')}/{name}"
        yield from _requirements(where, text) if name == REQUIREMENTS else _module(where, text, modules)
    if "__init__.py" in texts and b"evaluate" not in texts["__init__.py"]:
        remedy = "Write: from .main import evaluate"
        yield Finding(f"{path.removesuffix('.zip')}/__init__.py", "has no evaluate, so every submission fails", remedy)


def _module(where: str, text: bytes, modules: set[str]) -> Findings:
    version = ".".join(map(str, PYTHON))
    try:
        tree = ast.parse(text, feature_version=PYTHON)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        yield Finding(f"{where}:{line}" if line else where, f"is no Python {version} ({error})", "Mend it")
        return
    for line, name in _absolute(tree):
        if name.split(".")[0] in modules:
            found = f"imports {name} absolutely, and EvalAI's worker finds no such module"
            yield Finding(f"{where}:{line}", found, f"Write it with a dot: from .{name} import …")


def _absolute(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module


def _requirements(where: str, text: bytes) -> Findings:
    pinned = pins()
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        here, wanted = f"{where}:{number}", re.sub(r"(^|\s)#.*", "", line).strip()
        if not wanted:
            continue
        if re.match(r"(-e\b|--editable|\S+\s*@\s*git\+|git\+|https?:|\.{0,2}/)", wanted) or "git+" in wanted:
            found = f"asks for {wanted}, and EvalAI's worker has no git and no compiler"
            yield Finding(here, found, "Name a released package that has a wheel")
        elif wanted.startswith("-"):
            yield warning(here, f"has the option {wanted.split()[0]}", "Make sure that it holds on EvalAI's worker too")
        else:
            yield from _requirement(here, wanted, pinned)


def _requirement(here: str, wanted: str, pinned: dict[str, str]) -> Findings:
    try:
        requirement = Requirement(wanted)
    except InvalidRequirement as error:
        yield Finding(here, f"is no requirement ({str(error).splitlines()[0]})", "Write it as name>=version")
        return
    pin = pinned.get(_plain(requirement.name))
    if pin and not requirement.specifier.contains(pin, prereleases=True):
        found = f"asks for {wanted}, and EvalAI's worker insists on {requirement.name} {pin}: it would never start"
        yield Finding(here, found, f"Allow {pin}")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
