"""Arrows point down only.  When this fails, move the code, not the line."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge import evaluation_script

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "evaluation_script"
TOOLKIT = ROOT / "segjudge"
MOUNTED = ("evaluation_script", "remote_challenge_evaluation", "code_upload_challenge_evaluation")

#: Packages, by the names they are imported by → what of ours they may import.
LAYERS = {
    "segjudge.evaluation_script": {"segjudge.evaluation_script"},
    "segjudge": {"segjudge", "segjudge.evaluation_script"},
    "segjudge.remote_challenge_evaluation": {"segjudge", "segjudge.evaluation_script", "segjudge.remote_challenge_evaluation"},
    "segjudge.code_upload_challenge_evaluation": {"segjudge", "segjudge.evaluation_script", "segjudge.code_upload_challenge_evaluation"},
}  # fmt: skip

#: The files at the top of the uploaded folder next to its packages: all that a host sees.
TOP = {"__init__.py", "main.py", "phases.py", "requirements.txt"}

#: Only these print.
PRINTING = {
    "evaluation_script/main.py",
    *(f"segjudge/commands/{path.name}" for path in (ROOT / "segjudge/commands").glob("*.py")),
    "segjudge/drop_in/coco.py",
    "segjudge/drop_in/cocoeval.py",
    "segjudge/drop_in/lvis.py",
    "segjudge/drop_in/vos_benchmark.py",
}


def paths(package: str) -> list[Path]:
    """Return the files of a layer; the mounted folders are layers of their own."""
    folder = TOOLKIT if package == "segjudge" else ROOT / package.partition(".")[2]
    results = sorted(folder.rglob("*.py"))
    return [path for path in results if package != "segjudge" or path.relative_to(TOOLKIT).parts[0] not in MOUNTED]


FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if package == "segjudge"
    else "segjudge." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in LAYERS
    for path in paths(package)
}


def layer_of(module: str) -> str:
    return max((layer for layer in LAYERS if f"{module}.".startswith(f"{layer}.")), key=len)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax of a file, which several tests read."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's syntax."""
    return list(ast.walk(tree_of(path)))


def statements(path: Path, *, late: bool = True, typed: bool = True) -> Iterator[ast.AST]:
    """Yield the imports of a file, with or without those inside functions, and those only for types."""
    pending = list(tree_of(path).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and not typed and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not isinstance(node, ast.expr) and (late or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            pending += list(ast.iter_child_nodes(node))


@functools.cache
def imports(name: str, *, late: bool = True, typed: bool = True) -> set[str]:
    """Return the imports of a file, as absolute module names."""
    path = FILES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    results = set()
    for node in statements(path, late=late, typed=typed):
        if isinstance(node, ast.Import):
            results |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                results.add(inner if inner in FILES else base)
    return results


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_only_what_lies_below(package: str) -> None:
    for name in FILES:
        if layer_of(name) == package:
            for wanted in imports(name):
                top = wanted.partition(".")[0]
                assert top not in (*MOUNTED, "tests", "benchmarks"), f"{name} imports {wanted} by its bare name"
                assert top != "segjudge" or layer_of(wanted) in LAYERS[package], f"{name} imports {wanted}"


@pytest.mark.parametrize("path", paths("segjudge.evaluation_script"), ids=lambda path: path.stem)
def test_the_upload_imports_its_own_modules_relatively(path: Path) -> None:
    rooms = {entry.stem for entry in SCRIPT.iterdir()} | {"segjudge"}
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= len(path.relative_to(SCRIPT).parts), f"{path} imports what is not uploaded"
        else:
            named = [node.module] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]  # type: ignore[attr-defined]
            for name in named:
                assert name.split(".")[0] not in rooms, f"{path} imports {name}: EvalAI cannot"


def _circles(arrows: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the groups whose members import each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for item in arrows.get(pending.pop(), set()) - seen:
                seen.add(item)
                pending.append(item)
        return seen

    reach = {name: reached(name) for name in arrows}
    return {
        frozenset(second for second in reach[name] if name in reach.get(second, ()))
        for name in arrows
        if name in reach[name]
    }


def test_no_files_import_each_other_in_a_circle() -> None:
    arrows = {name: {item for item in imports(name) if item in FILES and item != name} for name in FILES}
    assert _circles(arrows) == set()


def room_of(name: str) -> str:
    """Return the room of a file: its folder in ours, the upload, `families` or `platforms`; else the file itself."""
    parts = name.split(".")
    depth = 2 + (parts[1:2] == ["evaluation_script"])
    inner = parts[depth - 1 : depth] in (["families"], ["platforms"]) and len(parts) > depth
    return ".".join(parts[: depth + inner])


def test_no_rooms_import_each_other_in_a_circle() -> None:
    arrows: dict[str, set[str]] = {}
    for name in FILES:
        results = {room_of(item) for item in imports(name) if item in FILES} - {room_of(name)}
        arrows.setdefault(room_of(name), set()).update(results)
    assert _circles(arrows) == set()


def test_masks_import_no_family() -> None:
    masks = [name for name in FILES if room_of(name) in ("segjudge.masks", "segjudge.evaluation_script.masks")]
    assert masks
    assert [(name, module) for name in masks for module in imports(name) if ".families" in module] == []


def test_the_upload_shows_its_rooms_and_evaluate_alone() -> None:
    shown = {path.name for path in SCRIPT.iterdir() if path.name not in ("__pycache__", "phase_data")}
    assert shown == TOP | {"doctor", "families", "files", "masks", "runner", "scoring", "values"}
    assert evaluation_script.__all__ == ["evaluate"]


def test_every_room_says_what_it_is_for() -> None:
    for path in sorted(
        {*SCRIPT.rglob("__init__.py"), *TOOLKIT.glob("*/__init__.py"), *TOOLKIT.glob("*/*/__init__.py")}
    ):
        assert len(ast.get_docstring(tree_of(path)) or "") > 30, path


def test_the_folders_of_the_bundle_are_mounted_in_the_package() -> None:
    for folder in MOUNTED:
        assert (TOOLKIT / folder).readlink() == Path("..") / folder


def test_only_the_command_line_and_progress_print() -> None:
    for path in FILES.values():
        name = path.relative_to(ROOT).as_posix()
        calls = [node for node in nodes_of(path) if isinstance(node, ast.Call)]
        printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("print", "exit")]
        assert not printing or name in PRINTING, name


@pytest.mark.parametrize("package", [package for package in LAYERS if package != "segjudge"])
def test_what_workers_print_is_ascii(package: str) -> None:
    """EvalAI serves their output without its charset, so that browsers misread other characters."""
    for path in paths(package):
        docstrings = {
            id(node.body[0].value)
            for node in nodes_of(path)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            if node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes_of(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert node.value.isascii(), f"{path}:{node.lineno}: {node.value!a}"


def test_the_refusals_that_are_noted_are_ascii() -> None:
    """Workers print these rejections."""
    texts = (ROOT / "tests/families").glob("*/golden/*.txt")
    noted = "\n".join(path.read_text(encoding="utf-8") for path in texts)
    sentences = re.findall(r"SubmissionError: (.*(?:\n +(?:\d+\. |\.\.\. and).*)*)", noted)
    assert len(sentences) > 100
    for sentence in sentences:
        assert sentence.isascii(), sentence


def test_no_folder_of_ours_has_the_name_of_those_that_evalais_worker_deletes() -> None:
    calls = re.compile(r"(?:TemporaryDirectory|mkdtemp)\(([^)]*)")
    for path in FILES.values():
        for arguments in calls.findall(path.read_text(encoding="utf-8")):
            assert "prefix=" in arguments or "dir=" in arguments, path


def test_nothing_crosses_a_border_as_pickle_eval_or_shell() -> None:
    reader = FILES["segjudge.evaluation_script.families.referring.pickled"]  # RefCOCO is published as a pickle
    assert "def find_class" in reader.read_text(encoding="utf-8")
    for path in set(FILES.values()) - {reader}:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "eval(", "shell=True", "extractall(path", "allow_pickle=True"):
            assert word not in text.replace("Image.eval(", "").replace("COCOeval(", ""), f"{path}: {word}"
