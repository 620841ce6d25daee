"""Annotation files that no scorer can open are problems of a bundle, reported before any upload."""

from __future__ import annotations

import io
import re
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.platforms.evalai.bundle import annotations
from segjudge.platforms.evalai.bundle.annotations import check_annotations, read_annotations
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.rules.problems import BundleProblem
from tests.builders import ROOT, zipped

from .bundles import read_files, write_files

PACKED = (ROOT / "annotations/sequences-dev.zip").read_bytes()
TRUTH = "annotations/truth.zip"
#: What a host may put where an annotation file should be.
DAMAGED = {
    "a NUL byte": b"\0",
    "a text": b"to be added\n",
    "an empty object": b"{}",
    "an empty zip": zipped({}),
    "another zip": zipped({"readme.txt": b"hello"}),
    "a truncated pack": PACKED[: len(PACKED) // 2],
    "a manifest that is none": zipped({"manifest.json": b"{"}),
    "a pack of nothing": zipped(
        {"manifest.json": b'{"track": "sequences", "format": "segjudge truth 1", "splits": {}}'}
    ),
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build(str(ROOT), str(tmp_path_factory.mktemp("dist") / "challenge_config.zip")).path)


def problems_of(data: bytes, phase: Phase, tmp_path: Path) -> list[BundleProblem]:
    path = write_files(tmp_path / "bundle.zip", {"challenge_config.yaml": b"title: a", phase.annotations: data})
    with Bundle(path) as opened:
        return [*check_annotations(opened, phase)]


def phase_of(protocol: str, split: str = "dev") -> Phase:
    return Phase("first", TRUTH, (PhaseSplit(split, protocol, ()),))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_no_scorer_can_open_is_a_problem_in_every_family(family: str, tmp_path: Path) -> None:
    phase = phase_of(next(iter(FAMILIES[family].protocols)))
    for name, data in DAMAGED.items():
        (problem,) = problems_of(data, phase, tmp_path)
        assert problem.severity == "error", name
        assert problem.accepted, name
        sentence = str(problem)
        assert sentence.startswith(f"{TRUTH}: "), name
        assert str(tmp_path) not in sentence, name
        assert "segjudge-" not in sentence, name
        assert "incident" not in sentence, name
        assert sentence.count("Write the file with `segjudge pack`") == 1, name
        assert "Pack it again" not in sentence, name


def with_damaged_masks(data: bytes, number: int, folder: str = "masks") -> bytes:
    """Return a pack with a correct table of contents, and one block of damaged masks."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        block = [info for info in archive.infolist() if info.filename.startswith(f"{folder}/")][number]
    start = block.header_offset + 30 + len(block.filename)
    return data[:start] + bytes(block.compress_size) + data[start + block.compress_size :]


def test_the_first_masks_are_read_at_once(tmp_path: Path) -> None:
    (problem,) = problems_of(with_damaged_masks(PACKED, 0), phase_of("davis2017"), tmp_path)
    assert "annotation file: dev/" in problem.fault


@pytest.mark.long
def test_masks_that_are_damaged_are_found_where_all_are_read(bundle: Path, tmp_path: Path) -> None:
    files = {**read_files(bundle), "annotations/sequences-dev.zip": with_damaged_masks(PACKED, -1)}
    path = write_files(tmp_path / "bundle.zip", files)
    assert check(path) == []
    problems, not_checked = read_annotations(path)
    assert [problem.subject for problem in problems] == ["annotations/sequences-dev.zip"]
    assert not_checked == []


@pytest.mark.parametrize("folder", ["maps", "units"])
def test_units_that_are_damaged_are_named(folder: str, bundle: Path, tmp_path: Path) -> None:
    files = read_files(bundle)
    name = "annotations/photo-panoptic.zip"
    path = write_files(tmp_path / "bundle.zip", {**files, name: with_damaged_masks(files[name], -1, folder)})
    ((problem,), _) = read_annotations(path)
    assert problem.subject == name
    assert "annotation file: " in problem.fault


@pytest.mark.long
def test_a_truth_that_takes_too_long_or_too_much_memory_is_no_error(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotations, "_readings", {})
    monkeypatch.setattr(annotations, "_OPENING_SECONDS", 0.0)
    monkeypatch.setattr(annotations, "_read_packed", lambda *_, **__: time.sleep(600))  # otherwise it may end at once
    (slow,) = problems_of(PACKED, phase_of("davis2017"), tmp_path)
    assert (slow.severity, slow.fault) == (
        "warning",
        "cannot be opened within the limits of a worker: takes longer than 0 seconds",
    )
    monkeypatch.undo()
    images = b",".join([b'{"id": 1, "height": 9, "width": 9}'] * 1_000_000)  # which take more than is free by chance
    large = b'{"annotations": [], "categories": [], "images": [%s]}' % images
    monkeypatch.setattr(annotations, "_WORKER_BYTES", 32 << 20)
    (greedy,) = problems_of(large, phase_of("coco"), tmp_path)
    assert (greedy.severity, greedy.fault) == (
        "warning",
        "cannot be opened within the limits of a worker: needs more than 32 MB of memory",
    )
    monkeypatch.setattr(annotations, "_readings", {})
    monkeypatch.setattr(annotations, "_READING_SECONDS", 0.0)
    monkeypatch.setattr(annotations, "_read_packed", lambda *_, **__: time.sleep(600))
    problems, not_checked = read_annotations(str(bundle))
    assert problems == []
    assert "whether all masks of annotations/sequences-dev.zip can be read (takes longer than 0 seconds)" in not_checked


def test_a_file_of_a_foreign_bundle_is_not_ours_to_read(bundle: Path, tmp_path: Path) -> None:
    script = zipped(
        {"__init__.py": b"from .main import evaluate\n", "main.py": b"def evaluate(*_a, **_k): return {}\n"}
    )
    files = {**read_files(bundle), "evaluation_script.zip": script, "annotations/sequences-dev.zip": b"\0"}
    path = write_files(tmp_path / "bundle.zip", files)
    assert [problem for problem in check(path) if problem.subject.startswith("annotations/")] == []
    assert read_annotations(path) == ([], [])


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a small challenge whose truth was overwritten by text, without samples."""
    folder = tmp_path / "challenge"
    assert main(["new", str(folder), "--protocol", "davis2017", "--demo"]) == 0
    shutil.rmtree(folder / "examples")
    (folder / "annotations/val.zip").write_bytes(DAMAGED["a text"])
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--quick"],
        ["run"],
        ["build", "--platform", "codabench"],
        ["build", "--platform", "grand-challenge"],
        ["check", "--platform", "codabench", "--quick"],
    ],
    ids=" ".join,
)
def test_no_door_takes_a_truth_that_no_scorer_opens(arguments: list[str], damaged: Path, capfd: Any) -> None:
    capfd.readouterr()
    assert main([*arguments, str(damaged)]) != 0
    printed = "".join(capfd.readouterr())
    assert "annotations/val.zip: is neither a zip nor a tar archive nor JSON" in printed
    assert not re.search(r"would accept (it|this bundle)[,.]", printed)


def test_a_damaged_pack_is_a_sentence_of_new(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "truth.zip").write_bytes(with_damaged_masks(PACKED, 0))
    arguments = ["new", str(tmp_path / "new"), "--protocol", "davis2017", "--truth", str(tmp_path / "truth.zip")]
    assert main(arguments) != 0
    sentence = capfd.readouterr().err
    assert "annotation file: dev/" in sentence
    assert "defect" not in sentence
