"""Arrows point down only.  When this fails, move the code, not the line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evaluation_script

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "evaluation_script"

#: Packages → what of ours they may import.
LAYERS = {
    "evaluation_script": set(),
    "linejudge": {"evaluation_script", "linejudge"},
    "remote_challenge_evaluation": {"evaluation_script", "linejudge", "remote_challenge_evaluation"},
    "code_upload_challenge_evaluation": {"evaluation_script", "linejudge", "code_upload_challenge_evaluation"},
    "set_up": set(),
}

#: Rooms of the uploaded folder, from the ground up; a room imports from those before it.
ROOMS = (
    "errors version keeper messages",
    "masks tar members workers",
    "png rle polygons matching similarity zipped folder sequence_protocols instance_protocols",
    "archive mask_files summaries phase precision",
    "truth phases tree",
    "published submission lives averages",
    "sequences pieces notify",
    "record_flaws",
    "records",
    "instance_truth",
    "instances",
    "answer guard",
    "main",
    "__init__",
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()}

#: Only these print, and only these may look at the clock of a deployable.
PRINTING = {
    "evaluation_script/main.py",
    *(
        f"linejudge/commands/{name}.py"
        for name in ("arena", "bundle", "data", "interactive", "push", "rehearse", "score", "shared")
    ),
    "linejudge/rehearsal/hosted_worker.py",
    "remote_challenge_evaluation/child.py",
}


def imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            if node.module:
                found.append((node.level, node.module))
            else:
                found += [(node.level, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
    return found


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_only_what_lies_below(package: str) -> None:
    ours = set(LAYERS) | {"tests", "benchmarks"}
    for path in modules(package):
        for level, name in imports(path):
            top = name.split(".")[0]
            assert level or top not in ours or top in LAYERS[package], f"{path} imports {name}"


@pytest.mark.parametrize("path", modules("evaluation_script"), ids=lambda path: path.stem)
def test_rooms_of_the_upload_import_only_what_lies_below(path: Path) -> None:
    for level, name in imports(path):
        if level:
            assert level == 1, "relative to the flat folder"
            assert FLOOR[name] < FLOOR[path.stem], f"{path.stem} imports {name}"
        else:
            assert name.split(".")[0] not in FLOOR, f"{path.stem} imports {name} absolutely: EvalAI cannot"


def test_every_room_has_its_floor() -> None:
    assert {path.stem for path in modules("evaluation_script")} == set(FLOOR)


def test_the_upload_is_flat_and_shows_evaluate_alone() -> None:
    assert not [path for path in SCRIPT.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert evaluation_script.__all__ == ["evaluate"]


def test_only_the_command_line_and_progress_print() -> None:
    for package in LAYERS:
        for path in modules(package):
            name = path.relative_to(ROOT).as_posix()
            calls = [
                node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
            ]
            printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("print", "exit")]
            assert not printing or name in PRINTING, name


def test_nothing_crosses_a_border_as_pickle_eval_or_shell() -> None:
    for package in LAYERS:
        for path in modules(package):
            text = path.read_text(encoding="utf-8")
            for word in ("import pickle", "eval(", "shell=True", "extractall(path", "allow_pickle=True"):
                assert word not in text.replace("Image.eval(", ""), f"{path}: {word}"
