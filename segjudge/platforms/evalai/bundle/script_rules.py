"""The rules of the evaluation script: EvalAI's worker must be able to import it and to install its requirements."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON
from segjudge.platforms.evalai.hosted_worker.requirements import PINS, REQUIREMENTS
from segjudge.platforms.imports import ImportedName, ParsedModule, parse_modules
from segjudge.platforms.rules.problems import WARNING, BundleProblems, breaks_later, warning

from .opened_bundle import Bundle, escapes

_INIT = "__init__.py"
#: The worker, in the words of environment markers.
_WORKER = {
    "python_version": PINNED_PYTHON,
    "python_full_version": "3.9.21",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "implementation_name": "cpython",
    "os_name": "posix",
}


def _read_pins() -> dict[str, str]:
    text = Path(PINS).read_text(encoding="utf-8")
    lines = [line.split("==") for line in text.splitlines() if "==" in line]
    return {canonicalize_name(name.strip()): version for name, version in lines}


def check_script(bundle: Bundle) -> BundleProblems:
    """Yield the problems of the modules and requirements in the script's zip."""
    path = str(bundle.config.get("evaluation_script"))
    if not bundle.script and not bundle.has(path):
        return
    if bundle.is_foreign and bundle.is_evaluated_elsewhere:
        return  # EvalAI stores such a script and never loads it
    folder, texts = path.removesuffix(".zip"), bundle.script
    for name in [name for name in bundle.script_names if escapes(name)]:
        fault = f"holds {name!r:.60}, which points outside the script's folder"
        yield breaks_later(path, fault, "Remove it: EvalAI's worker would put it elsewhere, or drop it")
    for name in [name for name in texts if name == REQUIREMENTS]:
        yield from _check_requirements(f"{folder}/{name}", texts[name])
    init = texts.get(_INIT)  # a script without one is reported by the rules of the challenge
    if init is not None and b"evaluate" not in init and b"import *" not in init:
        fault = "has no evaluate, so every submission fails"
        yield breaks_later(f"{folder}/{_INIT}", fault, "Write: from .main import evaluate")
    yield from _check_modules(bundle, folder, {name: text for name, text in texts.items() if name.endswith(".py")})


def _check_modules(bundle: Bundle, folder: str, texts: dict[str, bytes]) -> BundleProblems:
    """Yield problems of imports; only warnings for modules that the worker does not load."""
    major, minor = map(int, PINNED_PYTHON.split("."))
    modules, problems = parse_modules(texts, (major, minor)), []
    for name, module in modules.items():
        if module.error:
            subject = f"{folder}/{name}" + (f":{module.line}" if module.line else "")
            fault = f"is not Python {PINNED_PYTHON} ({module.error})"
            problems.append((name, breaks_later(subject, fault, "Correct it")))
    # Modules import each other by bare names if a search path is set, or if pip installs them.
    extends_path = any(
        b"sys.path" in text or (b"pip" in text and re.search(rb"\bpip\b", text)) for text in texts.values()
    )
    packages = {folder, *(file.split("/", 1)[0].removesuffix(".py") for file in texts)} - set(sys.stdlib_module_names)
    for name, module in modules.items():
        faults = _check_imports(folder, name, module.imports, texts, set() if extends_path else packages)
        problems += [(name, problem) for problem in faults]
    loaded = set(texts) if extends_path or not bundle.is_foreign else _find_reached_files(modules)
    for name, problem in problems:
        yield problem if name in loaded else replace(problem, severity=WARNING)


def _check_imports(
    folder: str, importer: str, imports: tuple[ImportedName, ...], texts: dict[str, bytes], packages: set[str]
) -> BundleProblems:
    """Yield problems of a module's imports; `packages` are the script's packages that no search path leads to."""
    for imported in imports:
        subject = f"{folder}/{importer}:{imported.line}"
        if imported.package in packages and imported.is_certain:
            fault = f"imports {imported.name} absolutely, but EvalAI's worker cannot find that module"
            dotted = imported.name.removeprefix(f"{folder}.")
            yield breaks_later(subject, fault, f"Write it with a dot: from .{dotted} import …")
        elif imported.level and imported.is_certain:
            for missing in _find_missing(imported, importer, texts):
                remedy = "Add it to the folder, which is uploaded as a whole"
                yield breaks_later(subject, f"imports {missing}, which is not in the zip", remedy)


def _find_missing(imported: ImportedName, importer: str, texts: dict[str, bytes]) -> list[str]:
    """Return the modules of relative imports that the zip lacks."""
    dots, files, path = "." * imported.level, set(texts), _module_path(imported, importer)
    if path is None or (imported.name and not _is_module(path, files)):
        return [f"{dots}{imported.name}"]
    if imported.name:
        return []
    defined = texts.get("/".join([*path, _INIT]), b"")
    return [
        f"{dots}{member}"
        for member in imported.members
        if member != "*"
        and not _is_module([*path, member], files)
        and not re.search(rb"\b%s\b|import \*" % re.escape(member.encode()), defined)
    ]


def _check_requirements(subject: str, text: bytes) -> BundleProblems:
    pinned = _read_pins()
    joined = text.decode("utf-8", "replace").replace("\\\n", " \\\r")
    for number, line in enumerate(joined.split("\n"), 1):
        line_subject, requirement = f"{subject}:{number}", re.sub(r"(^|\s)#.*|\s*\\\r|\s--hash=\S+", " ", line).strip()
        if not requirement:
            continue
        if re.match(r"(-e\b|--editable|\S+\s*@\s*git\+|git\+|https?:|\.{0,2}/)", requirement) or "git+" in requirement:
            fault = f"asks for {requirement}, but EvalAI's worker has neither git nor a compiler"
            yield breaks_later(line_subject, fault, "Name a released package that has a wheel")
        elif requirement.startswith("-"):
            fault = f"has the option {requirement.split()[0]}"
            yield warning(line_subject, fault, "Make sure that it also works on EvalAI's worker")
        else:
            yield from _check_requirement(line_subject, requirement, pinned)


def _check_requirement(subject: str, specification: str, pinned: dict[str, str]) -> BundleProblems:
    try:
        requirement = Requirement(specification)
    except InvalidRequirement as error:
        yield breaks_later(subject, f"is not a requirement ({str(error).splitlines()[0]})", "Write it as name>=version")
        return
    if requirement.marker and not requirement.marker.evaluate(_WORKER):
        return
    pin = pinned.get(canonicalize_name(requirement.name))
    if pin and not requirement.specifier.contains(pin, prereleases=True):
        fault = f"asks for {specification}, but EvalAI's worker pins {requirement.name} {pin}: it would never start"
        yield breaks_later(subject, fault, f"Allow {pin}")


def _module_path(imported: ImportedName, importer: str) -> list[str] | None:
    """Return a module's path in the script; None if it leaves the script.

    Absolute imports start at the script's top.
    """
    folder = importer.split("/")[:-1] if imported.level else []
    if imported.level - 1 > len(folder):
        return None
    above = folder[: len(folder) - imported.level + 1] if imported.level else []
    return [*above, *(imported.name.split(".") if imported.name else [])]


def _is_module(path: list[str], files: set[str]) -> bool:
    name = "/".join(path)
    return f"{name}.py" in files or any(file.startswith(f"{name}/") for file in files)


def _find_reached_files(modules: dict[str, ParsedModule]) -> set[str]:
    """Return the files that the worker may load, starting with `__init__.py`."""
    reached, pending = set[str](), [_INIT]
    while pending:
        name = pending.pop()
        if name in reached or name not in modules:
            continue
        reached.add(name)
        for imported in modules[name].imports:  # an import loads packages, the module, and what is imported from it
            path = _module_path(imported, name) or []
            loaded = [path[: length + 1] for length in range(len(path))]
            loaded += [[*path, member] for member in imported.members]
            pending += ["/".join(path) + ending for path in loaded for ending in (".py", f"/{_INIT}")]
    return reached
