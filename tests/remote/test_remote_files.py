"""The worker's unit, image and compose file say what exists."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import yaml

from segjudge.remote_challenge_evaluation.settings import WorkerSettings
from tests.builders import ROOT

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


def test_what_is_printed_needs_no_checkout(tmp_path: Path) -> None:
    def printed(name: str) -> str:
        command = [sys.executable, "-P", "-m", "segjudge", "worker", "--print", name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.read_string(printed("service"))
    assert unit["Service"]["WorkingDirectory"] == str(tmp_path)
    assert unit["Service"]["ExecStart"].startswith(f"{sys.executable} -P -m segjudge.remote_challenge_evaluation ")
    image = printed("dockerfile")
    assert re.findall(r"^COPY (.+)$", image, re.MULTILINE) == ["segjudge-*.whl /wheels/"]
    assert len(re.findall(r"^FROM ", image, re.MULTILINE)) == 1
    worker = yaml.safe_load(printed("compose"))["services"]["worker"]
    assert worker["build"] == {"context": ".", "dockerfile": "Dockerfile"}
    assert {".:/challenge:ro", "./annotations:/annotations:ro"} < set(worker["volumes"])
    assert worker["working_dir"] == "/challenge"
    assert all("remote_challenge_evaluation/" not in printed(name) for name in ("service", "dockerfile", "compose"))


def test_compose_runs_that_image_without_rights() -> None:
    worker = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["worker"]
    assert Path(worker["build"]["dockerfile"]) == Path("remote_challenge_evaluation/Dockerfile")
    assert worker["cap_drop"] == ["ALL"]
    assert worker["read_only"] is True
    assert "AUTH_TOKEN" not in str(worker)
