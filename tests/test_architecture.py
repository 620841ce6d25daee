"""Arrows point down only.  When this fails, move the code, not the line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge import evaluation_script
from segjudge.evaluation_script.families import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "evaluation_script"
TOOLKIT = ROOT / "segjudge"
MOUNTED = ("evaluation_script", "remote_challenge_evaluation", "code_upload_challenge_evaluation")

#: Packages, by the names they are imported by → what of ours they may import.
LAYERS = {
    "segjudge.evaluation_script": {"segjudge.evaluation_script"},
    "segjudge": {"segjudge", "segjudge.evaluation_script"},
    "segjudge.remote_challenge_evaluation": {
        "segjudge", "segjudge.evaluation_script", "segjudge.remote_challenge_evaluation",
    },
    "segjudge.code_upload_challenge_evaluation": {
        "segjudge", "segjudge.evaluation_script", "segjudge.code_upload_challenge_evaluation",
    },
}  # fmt: skip

#: Rooms of the uploaded folder, from the ground up; a room imports from those before it.
ROOMS = (
    (
        "errors guard_messages inflate instance_protocols masks panoptic_protocols positioned_file progress "
        "semantic_protocols sequence_protocols supervisor tracks_protocols tuning version"
    ),
    "accumulator archive_limits intervals kernel_frames mask_texts matching truth",
    "codings kernel_runs tracks_metrics",
    "kernel_matches",
    "kernel",
    ("guard instance_counts instance_matching json_limits label_maps packed_file parallel png polygons rle similarity"),
    (
        "archive_folder archive_gzip archive_zip dataset_layouts "
        "instance_json instance_overlaps instance_precision instance_tubes mask_packing phase sequence_metrics"
    ),
    "archive_tar instance_flaws mask_files notify phases provenance",
    "mask_run_lengths sequence_truth unit_counts unit_truth",
    "archive dataset_masks failure_kinds instance_columns mask_stream sequence_counts",
    "dataset_expressions unit_files",
    (
        "dataset_reader instance_accumulator instance_records instance_video_truth panoptic_files sequence_accumulator "
        "sequence_counting sequence_submission tracks_files"
    ),
    "instance_truth panoptic_counting reports tracks_counting",
    "answer",
    "engine",
    "annotation_file instances sequences unit_scoring",
    "panoptic semantic sequence_losses tracks",
    "phase_report",
    "main",
    "__init__",
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()}

#: Only these print.
PRINTING = {
    "evaluation_script/main.py",
    *(f"segjudge/commands/{path.name}" for path in (ROOT / "segjudge/commands").glob("*.py")),
    "segjudge/drop_in/vos_benchmark.py",
    "segjudge/platforms/evalai/hosted_worker/program.py",
    "remote_challenge_evaluation/scoring_process.py",
}


def paths(package: str) -> list[Path]:
    """The files of a layer; the mounted folders are layers of their own."""
    folder = TOOLKIT if package == "segjudge" else ROOT / package.partition(".")[2]
    found = sorted(folder.rglob("*.py"))
    return [path for path in found if package != "segjudge" or path.relative_to(TOOLKIT).parts[0] not in MOUNTED]


FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if package == "segjudge"
    else "segjudge." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in LAYERS
    for path in paths(package)
}


def layer_of(module: str) -> str:
    return max((layer for layer in LAYERS if f"{module}.".startswith(f"{layer}.")), key=len)


def statements(path: Path, *, late: bool = True) -> Iterator[ast.AST]:
    """The imports of a file, with or without those that wait inside functions or are for types alone."""
    pending = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif late or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += list(ast.iter_child_nodes(node))


def imports(name: str, *, late: bool = True) -> set[str]:
    """What a file imports of anybody's, as absolute module names."""
    path = FILES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in statements(path, late=late):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in FILES else base)
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_only_what_lies_below(package: str) -> None:
    for name in FILES:
        if layer_of(name) == package:
            for wanted in imports(name):
                top = wanted.partition(".")[0]
                assert top not in (*MOUNTED, "tests", "benchmarks"), f"{name} imports {wanted} by its bare name"
                assert top != "segjudge" or layer_of(wanted) in LAYERS[package], f"{name} imports {wanted}"


@pytest.mark.parametrize("path", paths("segjudge.evaluation_script"), ids=lambda path: path.stem)
def test_rooms_of_the_upload_import_only_what_lies_below(path: Path) -> None:
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, "relative to the flat folder"
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                assert FLOOR[name] < FLOOR[path.stem], f"{path.stem} imports {name}"
        else:
            named = [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]  # type: ignore[attr-defined]
            for name in named:
                assert name.split(".")[0] not in {*FLOOR, "segjudge"}, f"{path.stem} imports {name}: EvalAI cannot"


def test_a_track_names_a_module_above_phases() -> None:
    for name, track in FAMILIES.items():
        assert FLOOR[track.module] > FLOOR["engine"] > FLOOR["phase"], name
        assert {protocol.track for protocol in track.protocols.values()} == {name}


def test_every_room_has_its_floor() -> None:
    assert {path.stem for path in paths("segjudge.evaluation_script")} == set(FLOOR)


def _circles(arrows: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups whose members reach each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for one in arrows.get(pending.pop(), set()) - seen:
                seen.add(one)
                pending.append(one)
        return seen

    reach = {name: reached(name) for name in arrows}
    return {
        frozenset(other for other in reach[name] if name in reach.get(other, ()))
        for name in arrows
        if name in reach[name]
    }


def test_no_files_import_each_other_in_a_circle() -> None:
    arrows = {name: {one for one in imports(name) if one in FILES and one != name} for name in FILES}
    assert _circles(arrows) == set()


def test_no_packages_import_each_other_in_a_circle() -> None:
    def package(name: str) -> str:
        """The folder directly in ours; a file that stands there is a package of its own."""
        return ".".join(name.split(".")[:2])

    arrows: dict[str, set[str]] = {}
    for name in FILES:
        found = {package(one) for one in imports(name) if one in FILES} - {package(name)}
        arrows.setdefault(package(name), set()).update(found)
    assert _circles(arrows) == set()


def test_the_upload_is_flat_and_shows_evaluate_alone() -> None:
    assert not [path for path in SCRIPT.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert evaluation_script.__all__ == ["evaluate"]


def test_the_folders_of_the_bundle_are_mounted_in_the_package() -> None:
    for folder in MOUNTED:
        assert (TOOLKIT / folder).readlink() == Path("..") / folder


def test_only_the_command_line_and_progress_print() -> None:
    for path in FILES.values():
        name = path.relative_to(ROOT).as_posix()
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("print", "exit")]
        assert not printing or name in PRINTING, name


def test_no_folder_of_ours_has_the_name_of_those_that_evalais_worker_deletes() -> None:
    calls = re.compile(r"(?:TemporaryDirectory|mkdtemp)\(([^)]*)")
    for path in FILES.values():
        for arguments in calls.findall(path.read_text(encoding="utf-8")):
            assert "prefix=" in arguments or "dir=" in arguments, path


def test_nothing_crosses_a_border_as_pickle_eval_or_shell() -> None:
    for path in FILES.values():
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "eval(", "shell=True", "extractall(path", "allow_pickle=True"):
            assert word not in text.replace("Image.eval(", "").replace("COCOeval(", ""), f"{path}: {word}"
