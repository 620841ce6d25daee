"""Competitions for Codabench: their construction from phases, and their scoring program."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.kernel.compiling import WORKER_SYSTEM, Library
from segjudge.platforms.codabench.build import BuiltCompetitions, _chain_phases, _collect_phases, build
from segjudge.platforms.codabench.check import check
from segjudge.platforms.evalai.bundle import build as evalai_build
from segjudge.platforms.evalai.bundle import opened_bundle
from segjudge.platforms.evalai.bundle.build import build as evalai_bundle
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from tests.builders import written
from tests.demo_challenge import CODENAMES

ROOT = Path(__file__).resolve().parents[3]


def codenames(config: dict[str, Any]) -> list[list[str]]:
    return [
        [phase.codename for phase in chain] for chain in _chain_phases(_collect_phases(config, {}, hidden=False), {})
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltCompetitions:
    return build(find_bundle(str(ROOT)), str(tmp_path_factory.mktemp("competitions")))


@pytest.mark.long
def test_the_demo_becomes_a_competition_for_each_phase_that_check_finds_nothing_in(built: BuiltCompetitions) -> None:
    assert [competition.codenames for competition in built.competitions] == [[codename] for codename in CODENAMES]
    assert [str(problem) for competition in built.competitions for problem in check(competition.path)] == []


@pytest.mark.long
def test_the_same_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other copy has other dates and modes."""
    assert main(["new", str(tmp_path / "mine"), "--protocol", "davis2017", "--demo"]) == 0
    shutil.copytree(tmp_path / "mine", tmp_path / "copy", copy_function=shutil.copyfile)
    for path in (tmp_path / "copy").rglob("*.*"):
        os.utime(path, (0, 0))
        path.chmod(0o700)
    library = Library(tmp_path / "cache", WORKER_SYSTEM)
    written(library.folder, {library.path.name: b"a kernel", library.checksum.name: b"its checksum"})
    monkeypatch.setattr(evalai_build, "find_for_worker", lambda: library)
    (competition,) = build(find_bundle(str(tmp_path / "mine")), str(tmp_path / "out")).competitions
    previous = os.umask(0o077)
    try:
        (there,) = build(find_bundle(str(tmp_path / "copy")), str(tmp_path / "other")).competitions
    finally:
        os.umask(previous)
    assert Path(competition.path).read_bytes() == Path(there.path).read_bytes()
    assert "), with kernel: " in str(there)
    with zipfile.ZipFile(there.path) as archive:
        program = zipfile.ZipFile(io.BytesIO(archive.read("scoring_program.zip")))
    assert program.read(f"evaluation_script/masks/{library.path.name}") == b"a kernel"


@pytest.mark.long
def test_a_bundle_that_is_too_large_for_evalai_goes_to_other_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", str(tmp_path / "mine"), "--demo"]) == 0
    monkeypatch.setattr(opened_bundle, "UPLOAD_BYTES", 1000)
    assert main(["check", "--quick", str(tmp_path / "mine")]) == 3
    assert main(["build", "--platform", "codabench", str(tmp_path / "mine")]) == 0
    assert main(["check", "--quick", "--platform", "codabench", str(tmp_path / "mine")]) == 0
    assert main(["build", "--platform", "grand-challenge", str(tmp_path / "mine")]) == 0
    assert capsys.readouterr().out.count("EvalAI allows") == 1


def test_a_zip_that_is_no_bundle_is_a_sentence_for_other_platforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = evalai_bundle(str(ROOT), str(tmp_path / "b.zip"), kernel=False).path
    with zipfile.ZipFile(built) as whole, zipfile.ZipFile(tmp_path / "without.zip", "w") as rest:
        for name in whole.namelist():
            if name != "challenge_config.yaml":
                rest.writestr(name, whole.read(name))
    for platform in ("codabench", "grand-challenge"):
        assert main(["build", "--platform", platform, str(tmp_path / "without.zip")]) == 3
        assert "holds no challenge config" in capsys.readouterr().err
