"""Each rule by which EvalAI rejects a bundle has a bundle that breaks it."""

from __future__ import annotations

import copy
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation_script.phases import PHASES
from linejudge.bundle.build import build, files_named, read_config
from linejudge.bundle.check import check
from linejudge.bundle.finding import Finding
from linejudge.bundle.lines import read, unreadable

from .builders import ROOT


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build(str(ROOT), str(tmp_path_factory.mktemp("dist") / "challenge_config.zip")))


def changed(bundle: Path, tmp_path: Path, change: Any = None, files: Any = None) -> list[Finding]:
    """The findings of a bundle with another config or other files."""
    with zipfile.ZipFile(bundle) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    config = yaml.safe_load(content["challenge_config.yaml"])
    if change is not None:
        returned = change(config)
        content["challenge_config.yaml"] = yaml.safe_dump(config if returned is None else returned).encode()
    content.update(files or {})
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)
    return check(str(path))


def test_the_bundle_of_this_repository_is_accepted(bundle: Path) -> None:
    assert [str(finding) for finding in check(str(bundle))] == []


def test_the_same_files_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    assert Path(build(str(ROOT), str(tmp_path / "again.zip"))).read_bytes() == bundle.read_bytes()


def test_the_bundle_holds_what_the_config_names_and_no_more(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        with zipfile.ZipFile(io.BytesIO(archive.read("evaluation_script.zip"))) as script:
            assert {name for name in script.namelist() if "/" in name} == set()
            assert {"__init__.py", "main.py", "phases.py", "requirements.txt"} <= set(script.namelist())
    assert names == {"challenge_config.yaml", "evaluation_script.zip", *files_named(read_config(str(ROOT)))}


def test_config_and_phases_agree() -> None:
    config = read_config(str(ROOT))
    labels = {board["id"]: board["schema"]["labels"] for board in config["leaderboard"]}
    splits = {split["id"]: split["codename"] for split in config["dataset_splits"]}
    for phase, told in zip(PHASES, config["challenge_phases"]):
        assert (phase.codename, phase.annotations) == (told["codename"], told["test_annotation_file"])
        rows = [row for row in config["challenge_phase_splits"] if row["challenge_phase_id"] == told["id"]]
        assert [splits[row["dataset_split_id"]] for row in rows] == [shown.codename for shown in phase.splits]
        for row, shown in zip(rows, phase.splits):
            assert labels[row["leaderboard_id"]] == list(shown.metrics)


def put(*path: Any, value: Any) -> Any:
    """A change that sets (or with None removes) a value in the config."""

    def change(config: Any) -> None:
        for step in path[:-1]:
            config = config[step]
        if value is None:
            del config[path[-1]]
        else:
            config[path[-1]] = value

    return change


def twice(block: str) -> Any:
    return lambda config: config[block].append(copy.deepcopy(config[block][0]))


PHASE, BOARD, SPLIT, ROW = (
    ("challenge_phases", 0),
    ("leaderboard", 0),
    ("dataset_splits", 0),
    ("challenge_phase_splits", 0),
)
SCHEMA = (*BOARD, "schema")

BROKEN = [
    pytest.param(put("title", value=None), "Please add the challenge title", id="8-title"),
    pytest.param(put("title", value=2026), "is no text", id="8-title-number"),
    pytest.param(put("title", value="x" * 101), "no more than 100 characters", id="24-title-length"),
    pytest.param(put("description", value=None), "Please add the challenge description", id="10"),
    pytest.param(put("evaluation_details", value=None), "Please add the evaluation details", id="11"),
    pytest.param(put("terms_and_conditions", value=None), "Please add the terms and conditions.", id="12"),
    pytest.param(put("submission_guidelines", value=None), "Please add the submission guidelines.", id="13"),
    pytest.param(put("description", value="../x.html"), "Invalid file path for description.", id="14"),
    pytest.param(put("description", value="nowhere.html"), "File at path description not found", id="15"),
    pytest.param(put("description", value="logo.png"), "File description is not a HTML file", id="16"),
    pytest.param(put("image", value="nowhere.png"), "The submitted data was not a file", id="24-image"),
    pytest.param(put("evaluation_script", value=None), "There is no key for the evaluation script", id="17"),
    pytest.param(put("evaluation_script", value="evaluation_script"), "Please pass in a zip file", id="18"),
    pytest.param(put("evaluation_script", value="other.zip"), "No evaluation script is present", id="19"),
    pytest.param(put("start_date", value=None), "Please add the start_date and end_date.", id="20"),
    pytest.param(put("start_date", value="2026-01-01 00:00:00"), "no date with a time", id="22-quoted"),
    pytest.param(
        lambda c: c.update(start_date=c["end_date"], end_date=c["start_date"]),
        "Start date cannot be greater than end date.",
        id="21",
    ),
    pytest.param(put("worker_python_version", value="3.10"), '"3.10" is not a valid choice.', id="24-python"),
    pytest.param(put("leaderboard", value=[]), "There is no key for the leaderboard", id="25"),
    pytest.param(put(*BOARD, "id", value=None), "There is no leaderboard ID", id="26"),
    pytest.param(put(*SCHEMA, value=None), "There is no leaderboard schema", id="27"),
    pytest.param(put(*SCHEMA, "labels", value=None), "There is no 'labels' key", id="28"),
    pytest.param(put(*SCHEMA, "default_order_by", value=None), "There is no 'default_order_by' key", id="29"),
    pytest.param(put(*SCHEMA, "default_order_by", value="mAP"), "is not a valid label", id="30"),
    pytest.param(
        put(*SCHEMA, "metadata", "J-Mean", value={"description": "x"}), "lacks sort_ascending", id="sorts-upwards"
    ),
    pytest.param(put("challenge_phases", value=[]), "No challenge phase key found", id="34"),
    pytest.param(put(*PHASE, "codename", value=None), "No codename found", id="35"),
    pytest.param(twice("challenge_phases"), "Duplicate codename sequences-dev", id="36"),
    pytest.param(put(*PHASE, "description", value=None), "There is no key for description in phase", id="37"),
    pytest.param(put(*PHASE, "test_annotation_file", value="x.zip"), "No test annotation file found", id="38"),
    pytest.param(put(*PHASE, "test_annotation_file", value=None), "EvalAI's worker dies without", id="no-annotation"),
    pytest.param(
        put(*PHASE, "is_restricted_to_select_one_submission", value=True),
        "is_submission_public can't be 'True'",
        id="39",
    ),
    pytest.param(put(*PHASE, "end_date", value=None), "end_date in challenge phase 1", id="40"),
    pytest.param(
        put(*PHASE, "submission_meta_attributes", value=[{"name": "x"}]), "Please enter the following fields", id="41"
    ),
    pytest.param(
        put(*PHASE, "submission_meta_attributes", value=[{"name": "x", "description": "x", "type": "number"}]),
        "submission meta attribute types",
        id="42",
    ),
    pytest.param(
        put(*PHASE, "submission_meta_attributes", value=[{"name": "x", "description": "x", "type": "radio"}]),
        "at least one option",
        id="43",
    ),
    pytest.param(put(*PHASE, "max_submissions_per_day", value="many"), "A valid integer is required.", id="44"),
    pytest.param(put(*PHASE, "id", value=None), "error 500", id="45"),
    pytest.param(put("dataset_splits", value=[]), "There is no key for dataset splits.", id="47"),
    pytest.param(put(*SPLIT, "name", value=None), "There is no name for dataset split", id="48"),
    pytest.param(put(*SPLIT, "codename", value=None), "There is no codename for dataset split", id="49"),
    pytest.param(twice("dataset_splits"), "Duplicate codename dev", id="50"),
    pytest.param(put(*SPLIT, "id", value=None), "error 500", id="52"),
    pytest.param(put("challenge_phase_splits", value=[]), "There is no key for challenge phase splits.", id="55"),
    pytest.param(twice("challenge_phase_splits"), "Duplicate combinations", id="56"),
    pytest.param(put(*ROW, "visibility", value=None), "lacks visibility", id="57"),
    pytest.param(put(*ROW, "leaderboard_id", value=9), "Invalid leaderboard id 9", id="58-leaderboard"),
    pytest.param(put(*ROW, "challenge_phase_id", value=9), "Invalid phased id 9", id="58-phase"),
    pytest.param(put(*ROW, "dataset_split_id", value="1"), "Invalid dataset split id 1", id="58-split"),
    pytest.param(put(*ROW, "visibility", value=4), '"4" is not a valid choice.', id="59"),
    pytest.param(put("tags", value=list("abcde")), "Tags are limited to 4.", id="64"),
    pytest.param(put("domain", value="AL"), "Domain name is incorrect.", id="65"),
    pytest.param(put(*PHASE, "codename", value="other"), "lacks the phase other", id="phases-py"),
    pytest.param(put(*SCHEMA, "labels", value=["J&F-Mean"]), "not the labels of its leaderboard", id="labels"),
    pytest.param(
        put(*PHASE, "test_annotation_file", value="annotations/sequences-test.zip"),
        "not the file of the YAML",
        id="annotations",
    ),
]


@pytest.mark.parametrize(("change", "words"), BROKEN)
def test_a_broken_rule_is_reported(change: Any, words: str, bundle: Path, tmp_path: Path) -> None:
    findings = [str(finding) for finding in changed(bundle, tmp_path, change)]
    assert any(words in finding for finding in findings), findings


def test_an_annotation_file_of_the_other_track_is_reported(bundle: Path, tmp_path: Path) -> None:
    other = (ROOT / "annotations/sequences-dev.zip").read_bytes()
    findings = [str(finding) for finding in changed(bundle, tmp_path, files={"annotations/instances-dev.zip": other})]
    assert any("holds sequences, not instances" in finding for finding in findings), findings


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"challenge_config.yml": b"title: x"}, "2 challenge config YAML files instead of 1", id="4"),
        pytest.param({"challenge_config.yaml": None}, "There is no YAML file", id="3"),
        pytest.param({"challenge_config.yaml": b"a: [b"}, "is not valid YAML", id="5"),
        pytest.param({"challenge_config.yaml": b""}, "is empty or no mapping", id="7"),
        pytest.param({"challenge_config.yaml": b"- a"}, "is empty or no mapping", id="7-list"),
        pytest.param({"logo.png": b"no picture"}, "not an image or a corrupted image", id="24-picture"),
        pytest.param({"templates/description.html": b" "}, "is empty", id="blank"),
        pytest.param({"annotations/sequences-dev.zip": b""}, "The submitted file is empty.", id="empty-annotation"),
    ],
)
def test_a_broken_file_is_reported(files: Any, words: str, bundle: Path, tmp_path: Path) -> None:
    findings = [str(finding) for finding in changed(bundle, tmp_path, files=files)]
    assert any(words in finding for finding in findings), findings


TEXT = """\
title: x
leaderboard:
  - id: 1
    schema:
      labels: ["J"]
challenge_phases:
  - id: 1
  - name: second
    max_submissions: many
title: y
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("title", "10:1", id="last-of-two-keys"),
        pytest.param("leaderboard", "2:1", id="block"),
        pytest.param("leaderboard[0].schema.labels", "5:7", id="key"),
        pytest.param("leaderboard[0].schema.default_order_by", "4:5", id="missing-key"),
        pytest.param("challenge_phases[1].max_submissions", "9:5", id="second-item"),
        pytest.param("challenge_phases[1]", "8:5", id="item"),
        pytest.param("challenge_phases[7]", "6:1", id="no-such-item"),
    ],
)
def test_a_finding_has_line_and_column(path: str, place: str) -> None:
    _, lines = read("c.yaml", TEXT.encode())
    assert lines.place(path) == f"c.yaml:{place}"


@pytest.mark.parametrize("path", ["description", "phases.py, sequences-dev", "annotations/a.zip"])
def test_what_is_not_in_the_yaml_has_no_line(path: str) -> None:
    assert read("c.yaml", TEXT.encode())[1].place(path) == ""


def test_the_line_is_that_of_the_file_that_the_host_edits(tmp_path: Path, bundle: Path) -> None:
    text = (ROOT / "challenge_config.yaml").read_text()
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("image:"))
    broken = text.replace("image: logo.png", "image: nowhere.png").encode()
    findings = [str(finding) for finding in changed(bundle, tmp_path, files={"challenge_config.yaml": broken})]
    assert [finding.split(" names ")[0] for finding in findings] == [f"challenge_config.yaml:{line}:1: image:"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"a: 1\nb: [c\n", "c.yaml:3:1: is not valid YAML: expected ',' or ']'", id="unclosed"),
        pytest.param(b"a: 1\nb: 2026-13-45\n", "c.yaml:2:4: is not valid YAML: month must be in 1..12", id="date"),
        pytest.param(b"a: \xff\n", "c.yaml: is not valid YAML", id="no-utf-8"),
        pytest.param(b"\ta: 1\n", "c.yaml:1:1: is not valid YAML: found character '\\t'", id="tab"),
    ],
)
def test_no_yaml_names_the_place(text: bytes, words: str) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        read("c.yaml", text)
    assert str(unreadable("c.yaml", raised.value)).startswith(words)


def test_broken_yaml_is_quoted_as_the_server_says_it() -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        read("c.yaml", b"a: 1\nb: [c\n")
    assert "Expected ',' or ']'" in unreadable("c.yaml", raised.value).quote
    assert unreadable("c.yaml", raised.value).quote.endswith("in line 3, column 1")
