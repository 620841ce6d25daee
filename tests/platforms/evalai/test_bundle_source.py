"""The place and kind of a bundle, and whose phases are read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.phases import PHASES
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.bundle_source import BUNDLE, BundleKind, find_bundle
from segjudge.platforms.evalai.bundle.scorers import FAMILIES_FILE, ScoredProtocol, list_protocols
from segjudge.system.errors import UsageError
from tests.builders import ROOT, zipped

ONE_PHASE = """
from .scoring import Phase, PhaseSplit

PHASES = (Phase("only", "annotations/only.zip", (PhaseSplit("val", "davis2017", ("J-Mean",)),)),)
"""


def bundle(folder: Path, script: dict[str, str], config: str = "challenge_config.yaml") -> Path:
    (folder / "evaluation_script").mkdir(parents=True)
    (folder / config).write_text("title: x\n")
    for name, text in script.items():
        (folder / "evaluation_script" / name).write_text(text)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return bundle(tmp_path / "small", {"phases.py": ONE_PHASE})


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    return bundle(tmp_path / "foreign", {"__init__.py": "", "main.py": "", "phases.py": ""}, "challenge_config.yml")


def test_a_checkout_has_all_our_scorers() -> None:
    bundle = find_bundle(str(ROOT))
    assert (bundle.root, bundle.kind, bundle.phases()) == (str(ROOT), BundleKind.FORK, PHASES)


def test_a_phase_is_found_by_its_name_alone() -> None:
    bundle = find_bundle(str(ROOT))
    assert [bundle.phase(phase.codename) for phase in PHASES] == list(PHASES)
    with pytest.raises(UsageError, match=r"no phase 'sequences-dve' .* Did you mean sequences-dev\?"):
        bundle.phase("sequences-dve")


def test_phases_are_those_of_the_bundle_itself(small: Path, tmp_path: Path) -> None:
    assert find_bundle(str(small)).kind is BundleKind.SMALL
    assert [phase.codename for phase in find_bundle(str(small)).phases()] == ["only"]
    fork = tmp_path / "fork"
    fork.mkdir()
    shutil.copytree(ROOT / "evaluation_script", fork / "evaluation_script")
    shutil.copy(ROOT / "challenge_config.yaml", fork)
    (fork / "evaluation_script/phases.py").write_text(ONE_PHASE)
    assert find_bundle(str(fork)).kind is BundleKind.FORK
    built = find_bundle(build(str(fork), str(tmp_path / "b.zip"), lenient=True).path)
    assert (built.kind, [phase.codename for phase in built.phases()]) == (BundleKind.FORK, ["only"])


def test_any_other_bundle_is_foreign_and_has_no_phases_of_ours(foreign: Path) -> None:
    for path in (foreign, foreign / "challenge_config.yml"):
        bundle = find_bundle(str(path))
        assert (bundle.root, bundle.kind, bundle.config_name) == (
            str(foreign),
            BundleKind.FOREIGN,
            "challenge_config.yml",
        )
        with pytest.raises(HostError, match="has its own scorers"):
            bundle.phases()


@pytest.mark.parametrize("data", [b"", b"no zip", zipped({"evaluation_script.zip": b"PK"}), zipped({"a/b": b""})])
def test_a_zip_that_cannot_be_read_is_left_to_check(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(data)
    bundle = find_bundle(str(tmp_path / "b.zip"))
    assert (bundle.kind, bundle.archive) == (BundleKind.FOREIGN, str(tmp_path / "b.zip"))


def test_the_folder_one_stands_in_comes_first(small: Path, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv(BUNDLE, str(ROOT))
    monkeypatch.chdir(small)
    assert find_bundle().root == str(small)
    monkeypatch.chdir(tmp_path)
    assert find_bundle().root == str(ROOT)
    monkeypatch.setenv(BUNDLE, str(small))
    assert find_bundle().root == str(small)


def test_a_zip_belongs_to_the_bundle_in_which_it_lies(small: Path, tmp_path: Path) -> None:
    (small / "dist").mkdir()
    for folder, root in ((small / "dist", small), (small, small), (tmp_path, tmp_path)):
        (folder / "built.zip").write_bytes(zipped({}))
        assert find_bundle(str(folder / "built.zip")).root == str(root)


def test_what_is_no_bundle_is_said_so(small: Path, tmp_path: Path) -> None:
    (small / "config.yaml").write_text("")
    (small / "challenge_config.yml").write_text("")
    for path, sentence in (
        (tmp_path / "none", "there is no such file or folder"),
        (tmp_path, f"holds no challenge_config.yaml; there is one in {tmp_path / 'small'}"),
        (small, "holds challenge_config.yaml and challenge_config.yml, but EvalAI accepts only one; remove the other"),
        (small / "config.yaml", "EvalAI reads only challenge_config.yaml; rename it"),
    ):
        with pytest.raises(UsageError) as caught:
            find_bundle(str(path))
        assert str(caught.value) == f"{path}: {sentence}"


EMPTY = ("is empty", "Build it again.", "EvalAI: The submitted file is empty.")
TEXT = ("is not a zip (File is not a zip file)", "Make it with segjudge build.", "EvalAI: The zip file contents cannot be extracted. Please check the format!")  # fmt: skip


@pytest.mark.parametrize(("data", "lines"), [(b"", EMPTY), (b"text", TEXT)])
def test_a_file_that_is_no_zip_is_refused(data: bytes, lines: tuple[str, ...], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "b.zip").write_bytes(data)
    assert main(["check", str(tmp_path / "b.zip")]) == 3
    assert capsys.readouterr().out.split("\n\n")[0] == f"error: {tmp_path}/b.zip: " + "\n    ".join(lines)


def test_two_names_of_two_bundles_are_an_error(small: Path, foreign: Path, capsys: Any) -> None:
    assert main(["check", str(small), "--bundle", str(foreign)]) == 2
    assert "name two bundles; name only one" in capsys.readouterr().err
    assert main(["check", str(small), "--bundle", f"{small}/.", "--quick"]) == 3
    assert "ERROR: There is no key for dataset splits." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PHASES = (", ", line 1: SyntaxError: '(' was never closed (phases.py, line 1)"),
        ("\n\nPHASES = 1 / 0", ", line 3: ZeroDivisionError: division by zero"),
        (
            "from .nothing import X",
            ", line 1: ModuleNotFoundError: No module named 'segjudge.evaluation_script.nothing'",
        ),
        ("x = 1", ": PHASES is not a tuple of phases"),
        ("PHASES = ()", ": PHASES is not a tuple of phases"),
        ("PHASES = 3", ": PHASES is not a tuple of phases"),
        ("raise SystemExit(0)", ", line 1: SystemExit: 0"),
        ("# coding: none-such\n", ", line 1: SyntaxError: unknown encoding: none-such (phases.py, line 0)"),
        ("PHASES = \0", ", line 1: SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_a_mistake_in_phases_is_a_sentence(text: str, message: str, small: Path) -> None:
    (small / "evaluation_script/phases.py").write_text(text)
    with pytest.raises(HostError) as caught:
        find_bundle(str(small)).phases()
    assert str(caught.value) == f"{small}/evaluation_script/phases.py{message}"


FAMILIES_OF_A_BUNDLE = """
from types import SimpleNamespace
PROTOCOLS = {"mine": SimpleNamespace(name="mine", family="own", revision=3, metrics={"Score": 1, "Error": 2})}
FAMILIES = {"own": SimpleNamespace(needs_packages=True)}
"""


def test_the_scorers_of_a_bundle_describe_the_protocols_that_only_they_know() -> None:
    script = {"__init__.py": b"", FAMILIES_FILE: FAMILIES_OF_A_BUNDLE.encode()}
    assert list_protocols(script, ["mine", "davis2017", "mine"]) == {
        "mine": ScoredProtocol("mine", "own", 3, ("Score", "Error"), needs_packages=True)
    }
    assert list(list_protocols(script, ["davis2017", "coco"])) == ["davis2017", "coco"]
    with pytest.raises(HostError) as caught:
        list_protocols({**script, FAMILIES_FILE: b"raise ValueError('no such limit')"}, ["mine"])
    assert re.sub(r"\(.*: ", "(", str(caught.value)) == (
        "evaluation_script: its families cannot be imported (no such limit)"
    )
