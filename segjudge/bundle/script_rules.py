"""The rules of the evaluation script: whether EvalAI's worker can import it and install its requirements."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace

from packaging.requirements import InvalidRequirement, Requirement

from segjudge.hosted_worker.requirements import PINS, REQUIREMENTS

from .opened_bundle import Bundle
from .problems import WARNING, BundleProblems, breaks_later, warning
from .script_imports import INIT, ImportedName, imports_of, is_module, module_path, reached_files

PYTHON = (3, 9)
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


def pins() -> dict[str, str]:
    """Return the pinned version of each package."""
    with open(PINS, encoding="utf-8") as file:
        lines = [line.split("==") for line in file.read().splitlines() if "==" in line]
    return {_normalized(name): version for name, version in lines}


def script(bundle: Bundle) -> BundleProblems:
    """Yield the problems of the modules and requirements in the script's zip."""
    path = str(bundle.config.get("evaluation_script"))
    if not bundle.script and not bundle.has(path):
        return
    if bundle.is_foreign and bundle.evaluated_elsewhere:
        return  # EvalAI stores such a script and never loads it
    folder, texts = path.removesuffix(".zip"), bundle.script
    for name in [name for name in texts if name == REQUIREMENTS]:
        yield from _requirements(f"{folder}/{name}", texts[name])
    yield from _entry(folder, texts)
    yield from _modules(bundle, folder, {name: text for name, text in texts.items() if name.endswith(".py")})


def _entry(folder: str, texts: dict[str, bytes]) -> BundleProblems:
    """Yield why the worker finds no `evaluate`."""
    where, init = f"{folder}/{INIT}", texts.get(INIT)
    if init is None:
        return  # reported by the rules of the challenge
    if b"evaluate" not in init and b"import *" not in init:
        yield breaks_later(where, "has no evaluate, so every submission fails", "Write: from .main import evaluate")


def _modules(bundle: Bundle, folder: str, texts: dict[str, bytes]) -> BundleProblems:
    """Yield what keeps modules from being imported; those that the worker does not come by are only warned of."""
    trees, problems = {}, []
    for name, text in texts.items():
        try:
            trees[name] = ast.parse(text, feature_version=PYTHON)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = f"{folder}/{name}" + (f":{line}" if line else "")
            found = f"is not Python {'.'.join(map(str, PYTHON))} ({error})"
            trees[name] = ast.Module([], [])
            problems.append((name, breaks_later(where, found, "Correct it")))
    # Modules find each other by their bare names through a search path of their own, or when pip installs them.
    finds_its_own = any(re.search(rb"sys\.path|\bpip\b", text) for text in texts.values())
    for name, tree in trees.items():
        found_here = _imports(folder, name, tree, texts, finds_its_own=finds_its_own)
        problems += [(name, problem) for problem in found_here]
    loaded = set(texts) if finds_its_own or not bundle.is_foreign else reached_files(trees)
    for name, problem in problems:
        yield problem if name in loaded else replace(problem, severity=WARNING)


def _imports(
    folder: str, importer: str, tree: ast.Module, texts: dict[str, bytes], *, finds_its_own: bool
) -> BundleProblems:
    modules = {file.split("/", 1)[0].removesuffix(".py") for file in texts}
    for imported in imports_of(tree):
        where = f"{folder}/{importer}:{imported.line}"
        first = imported.name.split(".", 1)[0]
        own = first in (*modules, folder) and first not in sys.stdlib_module_names
        if own and not imported.level and imported.is_certain and not finds_its_own:
            found = f"imports {imported.name} absolutely, and EvalAI's worker finds no such module"
            dotted = imported.name.removeprefix(f"{folder}.")
            yield breaks_later(where, found, f"Write it with a dot: from .{dotted} import …")
        elif imported.level and imported.is_certain:
            for missing in _missing(imported, importer, texts):
                remedy = "Add it to the folder, of which everything is uploaded"
                yield breaks_later(where, f"imports {missing}, which is not in the zip", remedy)


def _missing(imported: ImportedName, importer: str, texts: dict[str, bytes]) -> list[str]:
    """Return the modules that a relative import names and the zip lacks."""
    dots, files, path = "." * imported.level, set(texts), module_path(imported, importer)
    if path is None or (imported.name and not is_module(path, files)):
        return [f"{dots}{imported.name}"]
    if imported.name:
        return []
    defined = texts.get("/".join([*path, INIT]), b"")
    return [
        f"{dots}{member}"
        for member in imported.members
        if not is_module([*path, member], files)
        and not re.search(rb"\b%s\b|import \*" % re.escape(member.encode()), defined)
    ]


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
