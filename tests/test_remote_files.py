"""The worker's unit, image and compose file say what exists."""

from __future__ import annotations

import configparser
import re
from dataclasses import fields
from pathlib import Path

import yaml

from segjudge.remote_challenge_evaluation.settings import WorkerSettings

from .builders import ROOT

FOLDER = ROOT / "remote_challenge_evaluation"
DOCS = (ROOT / "docs/operators.md").read_text(encoding="utf-8")


def test_every_setting_is_documented() -> None:
    assert [one.name for one in fields(WorkerSettings) if one.name.upper() not in DOCS] == []


def test_the_unit_starts_the_worker_and_gives_it_time_to_end() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(FOLDER / "segjudge-worker.service")
    service = unit["Service"]
    assert "-m segjudge.remote_challenge_evaluation" in service["ExecStart"]
    grace = next(one.default for one in fields(WorkerSettings) if one.name == "grace_seconds")
    assert int(service["TimeoutStopSec"]) > float(grace)  # type: ignore[arg-type]
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"].split() == ["2", "3", "4"]


def test_the_image_copies_what_is_there_and_is_nobodys_root() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    for name in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / one).exists() for one in name.split()), name
    assert re.search(r"^USER segjudge$", text, re.MULTILINE)
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all(re.fullmatch(r"python:\d+\.\d+\.\d+-\S+", image) for image in images), "a full tag"
    assert images[-1].endswith("-slim-bookworm")
    names = {one.name.upper() for one in fields(WorkerSettings)}
    environment = re.search(r"^ENV (.+)$", text, re.MULTILINE)
    assert environment
    assert {pair.split("=")[0] for pair in environment.group(1).split()} <= names


def test_compose_runs_that_image_without_rights() -> None:
    worker = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["worker"]
    assert Path(worker["build"]["dockerfile"]) == Path("remote_challenge_evaluation/Dockerfile")
    assert worker["cap_drop"] == ["ALL"]
    assert worker["read_only"] is True
    assert "AUTH_TOKEN" not in str(worker)
