"""The container, the conda recipe and the devcontainer name files that exist, and the versions of pyproject.toml."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from segjudge.evaluation_script.scoring import VERSION
from tests.builders import ANNOTATIONS, ROOT, STRONG

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTAINERFILE = ROOT / "packaging/Containerfile"
WORKER = ROOT / "remote_challenge_evaluation/Dockerfile.jinja"
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
DEVCONTAINER: dict[str, Any] = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
INSTRUCTIONS = {"COPY", "ENTRYPOINT", "FROM", "RUN", "USER", "WORKDIR"}


def read_instructions(path: Path = CONTAINERFILE) -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile, one per line."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith(("#", "{"))]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def list_sources(instructions: list[tuple[str, str]]) -> list[str]:
    """Return the files and folders that a Containerfile copies from the checkout."""
    copies = [rest.split() for name, rest in instructions if name == "COPY" and not rest.startswith(("--from", "{"))]
    return [source for words in copies for source in words[:-1]]


def test_the_container_copies_files_that_exist_as_the_workers_image_does() -> None:
    instructions = read_instructions()
    assert {name for name, _ in instructions} == INSTRUCTIONS
    sources = list_sources(instructions)
    assert [source for source in sources if not (ROOT / source).exists()] == []
    first_stage = [rest for name, rest in read_instructions(WORKER) if name == "COPY"][: len(sources)]
    copied = [rest for name, rest in instructions if name == "COPY" and not rest.startswith("--from")]
    assert copied == first_stage[: len(copied)]


def test_the_containers_have_one_python_which_the_package_accepts() -> None:
    images = [rest.split()[0] for path in (CONTAINERFILE, WORKER) for name, rest in read_instructions(path) if name == "FROM"]  # fmt: skip
    versions = {re.fullmatch(r"python:(\d+\.\d+\.\d+)-(?:slim-)?bookworm", image)[1] for image in images}  # type: ignore[index]
    assert DEVCONTAINER["image"] in images
    (version,) = versions
    assert version in SpecifierSet(PROJECT["project"]["requires-python"])


@pytest.mark.long
def test_what_the_container_copies_builds_a_wheel_that_scores(tmp_path: Path) -> None:
    instructions = read_instructions()
    for source in list_sources(instructions):
        target = tmp_path / "source" / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "segjudge_kernel.*")
            shutil.copytree(ROOT / source, target, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(ROOT / source, target)
    (line,) = [rest for name, rest in instructions if name == "RUN" and rest.startswith("pip wheel")]
    command = line.replace("pip", f'"{sys.executable}" -m pip', 1).replace("/wheels", f'"{tmp_path}/wheels"')
    environment = {**os.environ, "SEGJUDGE_KERNEL": "off"}
    subprocess.run(["bash", "-ec", command], cwd=tmp_path / "source", env=environment, capture_output=True, check=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name.endswith("-py3-none-any.whl"), "without the kernel it is for all systems"
    with zipfile.ZipFile(wheel) as archive:
        assert not any("segjudge_kernel." in name for name in archive.namelist())
        archive.extractall(tmp_path / "installed")
    arguments = ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", "davis2017"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import segjudge, sys; print(segjudge.__file__); from segjudge.cli import main; sys.exit(main())", *arguments],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "installed"))
    assert re.search(r"^this submission +0\.933", done.stdout, re.MULTILINE)


def test_the_recipe_has_the_version_and_the_requirements_of_the_project() -> None:
    assert RECIPE["package"] == {"name": "segjudge", "version": VERSION}
    assert (ROOT / "packaging/conda" / RECIPE["source"]["path"]).resolve() == ROOT
    wanted = {"python": SpecifierSet(PROJECT["project"]["requires-python"])}
    wanted |= {
        row.name: row.specifier for row in map(Requirement, PROJECT["project"]["dependencies"]) if row.name != "deflate"
    }
    listed = {row.name: row.specifier for row in map(Requirement, RECIPE["requirements"]["run"])}
    assert listed == wanted
    (backend,) = map(Requirement, PROJECT["build-system"]["requires"])
    host = {row.name: row.specifier for row in map(Requirement, RECIPE["requirements"]["host"])}
    assert host == {"python": wanted["python"], "pip": SpecifierSet(), backend.name: backend.specifier}
    assert (ROOT / RECIPE["about"]["license_file"]).exists()
    assert RECIPE["about"]["license"] == PROJECT["project"]["license"]


def test_scoring_needs_no_deflate_which_the_recipe_leaves_out() -> None:
    code = "import sys; sys.modules['deflate'] = None; from segjudge.cli import main; sys.exit(main())"
    command = ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", "davis2017"]
    done = subprocess.run([sys.executable, "-c", code, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.search(r"^this submission +0\.933", done.stdout, re.MULTILINE), done.stderr


@pytest.mark.long
def test_the_tests_of_the_recipe_pass(tmp_path: Path) -> None:
    if not [*ROOT.glob("evaluation_script/masks/segjudge_kernel.*.so")]:
        pytest.skip("KERNEL ABSENT: ./run.sh compiles it where there is a C compiler")
    (commands,) = [row["script"] for row in RECIPE["tests"] if "script" in row]
    program = f'segjudge() {{ "{sys.executable}" -P -m segjudge "$@"; }}\n' + "\n".join(commands)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "0.933" in done.stdout
