"""The worker's unit, image and compose file agree with the code."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from segjudge.cli import main
from segjudge.platforms.evalai.remote_worker import render_file
from segjudge.remote_challenge_evaluation.settings import WorkerSettings
from tests.builders import ROOT

DOCS = (ROOT / "docs/operators.md").read_text(encoding="utf-8")


def test_every_setting_is_documented() -> None:
    assert [field.name for field in fields(WorkerSettings) if field.name.upper() not in DOCS] == []


def test_the_unit_starts_the_worker_and_gives_it_time_to_end() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(render_file("service"))
    service = unit["Service"]
    assert "-m segjudge.remote_challenge_evaluation" in service["ExecStart"]
    grace = next(field.default for field in fields(WorkerSettings) if field.name == "grace_seconds")
    assert int(service["TimeoutStopSec"]) > float(grace)  # type: ignore[arg-type]
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"].split() == ["2", "3", "4"]


def test_the_image_of_a_checkout_copies_its_files_and_is_nobodys_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = render_file("dockerfile")
    for name in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / part).exists() for part in name.split()), name
    assert re.search(r"^USER segjudge$", text, re.MULTILINE)
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all(re.fullmatch(r"python:\d+\.\d+\.\d+-\S+", image) for image in images), "a full tag"
    assert images[-1].endswith("-slim-bookworm")
    names = {field.name.upper() for field in fields(WorkerSettings)}
    environment = re.search(r"^ENV (.+)$", text, re.MULTILINE)
    assert environment
    assert {pair.split("=")[0] for pair in environment.group(1).split()} <= names


@pytest.mark.long
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
    assert re.findall(r"^COPY (.+)$", image, re.MULTILINE) == ["wheels /wheels"]
    assert len(re.findall(r"^FROM ", image, re.MULTILINE)) == 1
    worker = yaml.safe_load(printed("compose"))["services"]["worker"]
    assert worker["build"] == {"context": ".", "dockerfile": "Dockerfile"}
    assert {".:/challenge:ro", "./annotations:/annotations:ro"} < set(worker["volumes"])
    assert worker["working_dir"] == "/challenge"
    assert all("remote_challenge_evaluation/" not in printed(name) for name in ("service", "dockerfile", "compose"))


@pytest.mark.long
def test_the_printed_image_installs_what_a_new_challenge_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The image's steps run without Docker: the copied files exist, and pip accepts its arguments."""
    monkeypatch.chdir(tmp_path)
    assert main(["worker", "--print", "dockerfile"]) == 0
    assert "wheels/: holds no wheel of Segjudge" in capfd.readouterr().err
    assert main(["new", str(tmp_path / "mine"), "--protocol", "davis2017", "--demo"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    capfd.readouterr()
    assert main(["worker", "--print", "dockerfile"]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    ((source, target),) = re.findall(r"^COPY (\S+) (\S+)$", printed.out, re.MULTILINE)
    assert Path(source).is_dir()
    ((command),) = re.findall(r"^RUN (pip install .*)$", printed.out, re.MULTILINE)
    command = command.replace(f"{target}/", f"{source}/").replace(
        "pip install", "pip install --no-deps --dry-run --target x"
    )
    script = f'pip() {{ "{sys.executable}" -m pip "$@"; }}\n{command}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install segjudge-" in done.stdout


def test_compose_runs_that_image_without_rights() -> None:
    worker = yaml.safe_load(render_file("compose"))["services"]["worker"]
    assert worker["cap_drop"] == ["ALL"]
    assert worker["read_only"] is True
    assert "AUTH_TOKEN" not in str(worker)
