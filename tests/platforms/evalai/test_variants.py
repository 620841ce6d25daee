"""A variant of the bundle differs in a few keys, and every line stays in place."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import FLAGS, VARIANTS, build, with_variant
from segjudge.platforms.evalai.bundle.check import check, refusal
from segjudge.platforms.evalai.bundle.fields import DEFAULT_IMAGE
from tests.builders import ROOT
from tests.demo_challenge import CODENAMES

TEXT = (ROOT / "challenge_config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_accepted(variant: str, tmp_path: Path) -> None:
    built = build(str(ROOT), str(tmp_path / "x.zip"), variant, "registry.example/env:1" * (variant == "code-upload"))
    problems = check(built.path)
    assert [str(problem) for problem in problems] == []
    assert refusal(problems) == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_the_keys_of_the_table_change_and_lines_stay(variant: str) -> None:
    after, changes = with_variant(TEXT, variant)
    before, now = TEXT.splitlines(), after.splitlines()
    assert len(before) == len(now)
    differing = [number for number, (old, new) in enumerate(zip(before, now), 1) if old != new]
    assert differing == [change.line for change in changes]
    assert [now[change.line - 1].strip() for change in changes] == [change.after for change in changes]
    config = yaml.safe_load(after)
    assert tuple(config[key] for key in FLAGS) == VARIANTS[variant]
    for phase in config["challenge_phases"]:
        assert ("test_annotation_file" in phase) == (variant not in ("remote", "code-upload"))
        assert phase.get("environment_image") == (DEFAULT_IMAGE if variant == "code-upload" else None)


def test_the_config_of_this_repository_is_the_prediction_variant() -> None:
    assert with_variant(TEXT, "prediction") == (TEXT, [])


@pytest.mark.parametrize("variant", ["remote", "code-upload"])
def test_annotations_stay_with_the_host(variant: str, tmp_path: Path) -> None:
    built = build(str(ROOT), str(tmp_path / "x.zip"), variant, "registry.example/env:1" * (variant == "code-upload"))
    with zipfile.ZipFile(built.path) as files:
        assert [name for name in files.namelist() if "annotations" in name] == []


def test_flags_that_are_not_there_are_added_at_the_end() -> None:
    text = "title: x\nchallenge_phases:\n  - id: 1\n    test_annotation_file: a.zip"
    after, changes = with_variant(text, "static-code-upload")
    assert after.splitlines()[:4] == text.splitlines()
    assert after.splitlines()[4:] == ["is_docker_based: True", "is_static_dataset_code_upload: True"]
    assert str(changes[0]) == "challenge_config.yaml:5: (nothing) → is_docker_based: True"


def test_an_image_that_the_host_named_is_kept_unless_another_is_asked_for() -> None:
    text = "challenge_phases:\n  - id: 1\n    environment_image: mine\n    test_annotation_file: a.zip\n"
    assert "environment_image: mine" in with_variant(text, "code-upload")[0]
    assert "environment_image: other" in with_variant(text, "code-upload", "other")[0]
    assert "test_annotation_file: a" not in with_variant(text, "code-upload", "other")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("challenge_phases:\n  - {id: 1, test_annotation_file: a.zip}\n", "on its own line", id="flow"),
        pytest.param("challenge_phases:\n  - test_annotation_file: a.zip\n    id: 1\n", "on its own line", id="first"),
        pytest.param("- a\n", "not a mapping", id="list"),
        pytest.param("challenge_phases:\n  - id: 1\n", r"yaml:2: the phase has no environment_image", id="no-line"),
    ],
)
def test_what_cannot_be_changed_by_lines_is_reported(text: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        with_variant(text, "code-upload")


def test_the_command_prints_what_it_changed(tmp_path: Path) -> None:
    out = str(tmp_path / "x.zip")
    done = subprocess.run(
        [sys.executable, "-m", "segjudge", "build", "--variant", "remote", "--out", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "remote_evaluation: False → remote_evaluation: True" in done.stderr
    changed_lines = [line for line in done.stderr.splitlines() if line.startswith("challenge_config.yaml:")]
    assert sum("test_annotation_file" in line for line in changed_lines) == len(CODENAMES)


def test_comments_and_line_ends_stay() -> None:
    text = "\ufeffremote_evaluation: False   # keep me\r\nchallenge_phases:\r\n  - id: 1\r\n"
    after = with_variant(text, "static-code-upload")[0]
    assert after.startswith("\ufeffremote_evaluation: False   # keep me\r\n")
    assert after.endswith("is_docker_based: True\r\nis_static_dataset_code_upload: True\r\n")
    assert with_variant(text, "remote")[0].splitlines()[0] == "\ufeffremote_evaluation: True  # keep me"


def test_what_the_change_did_not_reach_is_said(tmp_path: Path) -> None:
    config = (ROOT / "challenge_config.yaml").read_text()
    first = "    test_annotation_file: annotations/sequences-dev.zip\n"
    for name in ("annotations", "templates", "evaluation_script"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "challenge_config.yaml").write_text(config.replace(first, first + first))
    with pytest.raises(HostError, match="still names annotations/sequences-dev.zip"):
        build(str(tmp_path), str(tmp_path / "x.zip"), "remote")


def test_the_zip_is_not_written_over_a_file_of_the_bundle(tmp_path: Path) -> None:
    (tmp_path / "challenge_config.yaml").write_text("title: x\n")
    (tmp_path / "evaluation_script").mkdir()
    with pytest.raises(HostError, match="would be overwritten"):
        build(str(tmp_path), str(tmp_path / "challenge_config.yaml"))
    assert (tmp_path / "challenge_config.yaml").read_text() == "title: x\n"


def test_a_page_that_nobody_would_see_is_said_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, truth = tmp_path / "mine", str(ROOT / "annotations/sequences-dev.zip")
    assert main(["new", str(folder), "--protocol", "davis2017", "--truth", truth]) == 0
    phases = folder / "evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace('codename="dev",', 'codename="dev", report=True, detail="all",'))
    capsys.readouterr()
    text = "phases.py, dev: has report=True, but EvalAI accepts no result file from a remote worker"
    for variant, output in (("remote", True), ("prediction", False)):
        path = str(tmp_path / f"{variant}.zip")
        assert main(["build", "--bundle", str(folder), "--variant", variant, "--no-kernel", "--out", path]) == 0
        assert (text in capsys.readouterr().err) == output
        assert bool([problem for problem in check(path) if text in str(problem)]) == output


def test_a_code_upload_without_an_image_is_refused(tmp_path: Path) -> None:
    """Only lenient builds, for rehearsals on this machine, accept an image that no registry has."""
    with pytest.raises(HostError) as refused:
        build(str(ROOT), str(tmp_path / "x.zip"), "code-upload")
    assert "no environment_image that EvalAI can pull in sequences-dev" in str(refused.value)
    assert "--environment-image REGISTRY/NAME:TAG" in str(refused.value)
    assert not (tmp_path / "x.zip").exists()
    assert build(str(ROOT), str(tmp_path / "x.zip"), "code-upload", lenient=True).path
