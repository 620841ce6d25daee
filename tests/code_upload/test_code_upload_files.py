"""Images, compose file and locks of code upload agree with the code, and their lines run here; no image is built."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.platforms.evalai.bundle.fields import DEFAULT_IMAGE
from tests.builders import ROOT
from tests.environments import Served, dataset

FOLDER = ROOT / "code_upload_challenge_evaluation/docker"
IMAGES = ("environment", "agent", "static")


def lines(name: str) -> list[tuple[str, str]]:
    text = (FOLDER / f"{name}.Dockerfile").read_text()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word.isupper()]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_is_made_of_what_exists_and_runs_as_nobody(name: str) -> None:
    output = lines(name)
    arguments = dict(output)
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", arguments["FROM"]), "a full tag"
    assert arguments["USER"] in ("segjudge", "agent")
    assert output.index(("USER", arguments["USER"])) > max(
        k for k, (word, _) in enumerate(output) if word in ("RUN", "COPY")
    )
    for source in (rest.split()[0] for word, rest in output if word == "COPY"):
        assert source == "truth" or (ROOT / source).exists(), source
    packages = {rest.split()[0] for word, rest in output if word == "COPY"}
    assert {"evaluation_script", "segjudge", "code_upload_challenge_evaluation"} <= packages
    assert any("--require-hashes" in rest for word, rest in output if word == "RUN")


@pytest.mark.parametrize("name", ["environment", "agent"])
def test_every_package_of_a_lock_has_hashes(name: str) -> None:
    text = (FOLDER / f"{name}.lock").read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) >= 4
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.]+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\\n)?)+$", entry), entry
    assert "://" not in text


def test_compose_gives_both_sides_nothing_but_each_other() -> None:
    output = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert output["networks"]["duel"] == {"internal": True}
    for name, service in output["services"].items():
        assert Path(service["build"]["dockerfile"]).name == f"{name}.Dockerfile"
        assert (FOLDER / service["build"]["context"]).resolve() == ROOT
        assert service["networks"] == ["duel"]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "ports" not in service
    environment, agent = output["services"]["environment"], output["services"]["agent"]
    assert environment["volumes"][0].endswith(":ro")
    limits = {"init", "read_only", "tmpfs", "cap_drop", "security_opt", "pids_limit", "mem_limit"}
    given = {"build", "environment", "networks"}
    assert agent.keys() == limits | given, "the agent sees neither truth nor frames, nor the host's token"
    assert DEFAULT_IMAGE.startswith("segjudge-environment:")


def test_the_documented_variables_are_there() -> None:
    names = re.findall(r"^([A-Z_]+)=", (FOLDER / "docker.env").read_text(), re.MULTILINE)
    assert {
        "AUTH_TOKEN", "EVALAI_API_SERVER", "BODY", "SUBMISSION_TIME_LIMIT", "LOCAL_EVALUATION", "QUEUE_NAME",
    } <= set(names)  # fmt: skip


def installed(name: str, folder: Path) -> Path:
    """Create an environment by the install lines of an image."""
    made, source = folder / name, folder / "source"
    if not source.exists():  # otherwise pip would build inside the checkout
        ignored = shutil.ignore_patterns(".*", "dist", "build", "*.egg-info", "__pycache__", "tests")
        shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
    python = made / "bin/python"
    for word, rest in lines(name):
        if word == "RUN" and rest.startswith("pip install"):
            arguments = [item for item in shlex.split(rest)[1:] if item != "--no-cache-dir"]
            where = [str(FOLDER / word) if word.endswith(".lock") else word for word in arguments]
            done = subprocess.run(
                [str(python), "-m", "pip", *where, "--disable-pip-version-check", "--no-compile", "-q"],
                cwd=source, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-2000:]
    return python


@pytest.mark.long
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="THE LOCKS ARE FOR PYTHON 3.11")
def test_the_images_install_and_run(tmp_path: Path) -> None:
    """The environment and the agent run from their locks and entries, each in a fresh environment."""
    pythons = {name: installed(name, tmp_path) for name in ("environment", "agent")}
    entries: dict[str, Any] = {name: json.loads(dict(lines(name))["ENTRYPOINT"]) for name in IMAGES}
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert ("COPY", "examples/agents agents") in lines("agent")
    script = entries["agent"][1].replace("/opt/agent/agents", str(ROOT / "examples/agents"))
    agent = [str(pythons["agent"]), script]
    packages = subprocess.run(
        [agent[0], "-c", "import segjudge.agent, sys; print(*sorted(m for m in sys.modules if '.' not in m))"],
        env=clean, cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert {"grpc", "google", "numpy", "PIL"} <= set(packages)
    assert not {"yaml", "requests", "scipy", "pycocotools", "cv2"} & set(packages)
    served = Served(
        tmp_path, *dataset(tmp_path), python=[str(pythons["environment"]), *entries["environment"][1:]], cwd=tmp_path
    )
    done = subprocess.run(
        agent, env={**clean, "SEGJUDGE_ENVIRONMENT": served.address}, cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert served.outcome()["status"] == "finished"
