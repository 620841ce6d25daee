"""The wheel installs one package, next to a host's own packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from segjudge import cli
from segjudge.kernel import compiling
from tests.builders import ANNOTATIONS, ROOT, STRONG
from tests.made_once import make_once

assert cli  # what is installed here is not the wheel, but its dependencies are


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("NO GIT CHECKOUT: what belongs to the project is not known")

    def make(folder: Path) -> None:
        for name in tracked.stdout.split("\0"):
            source, target = ROOT / name, folder / "source" / name
            beside = name.startswith(("tests/", "examples/", "docs/")) and name != "docs/adding-a-family.md"
            if name and source.exists() and not beside:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        command = [
            sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(folder / "source"),
        ]  # fmt: skip
        environment = {**os.environ, "SEGJUDGE_KERNEL": ""}
        subprocess.run(command, env=environment, capture_output=True, check=True)

    return next(make_once("wheel", tmp_path_factory.mktemp("wheel"), make).glob("*.whl"))


@pytest.mark.long
def test_one_package_holds_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"segjudge"}
    for name in (
        "evaluation_script/main.py", "evaluation_script/requirements.txt", "remote_challenge_evaluation/worker.py",
        "remote_challenge_evaluation/Dockerfile.jinja", "remote_challenge_evaluation/compose.yaml.jinja",
        "remote_challenge_evaluation/segjudge-worker.service.jinja",
        "code_upload_challenge_evaluation/environment/service.py", "platforms/evalai/bundle/worker-3.9.txt",
        "platforms/codabench/page-wheels.txt", "families/panoptic/published.json",
        "server/templates/base.html", "report/pages/page.html", "interactive/davis_sequences.csv",
        "starting/logo.png", "starting/CHANGELOG.md", "starting/adding-a-family.md", "starting/family/tests.yml",
        "starting/files/challenge_config.yaml.jinja", "platforms/github/files/board.yml.jinja",
        "families/tracking/texts.html.jinja", "report/pages/frames.js", "masks/material/planet.webp",
    ):  # fmt: skip
        assert f"segjudge/{name}" in names


@pytest.mark.long
def test_it_holds_the_licence_of_all_that_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = [archive.read(name) for name in archive.namelist() if ".dist-info/licenses/" in name]
        assert texts == [(ROOT / "LICENSE").read_bytes()]
        others = [
            name
            for name in archive.namelist()
            if name.endswith((".py", ".c", ".h", ".js", ".css"))
            and re.search(rb"(?i)copyright|licen[cs]ed under", archive.read(name))
        ]
    assert others == [], "whose licence text is missing"


@pytest.mark.long
def test_it_holds_the_kernel_for_this_kind_of_machine(wheel: Path) -> None:
    if not any(map(shutil.which, compiling.COMPILERS)):
        pytest.skip("NO C COMPILER: the wheel is without a kernel")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    library = f"segjudge/evaluation_script/masks/segjudge_kernel.{compiling.this_system()}.so"
    assert {library, f"{library}.sha256", "segjudge/kernel/frames.c", "segjudge/kernel/kernel.h"} <= set(names)
    assert re.fullmatch(r"segjudge-[^-]+-py3-none-(linux|macosx)_\w+\.whl", wheel.name)


def linked(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel; its dependencies are those of the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    # No symbolic links: the sandbox of scoring scripts shows the environment and nothing beside it.
    for path in {
        Path(path).resolve() for path in sys.path if path.endswith("site-packages")
    }:  # another test may add it again
        for entry in path.iterdir():
            if not entry.name.startswith(("segjudge", "__editable__", "_in_use", "__pycache__")):
                target = packages / entry.name
                shutil.copytree(entry, target, copy_function=linked) if entry.is_dir() else linked(entry, target)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def run_in(fresh: Path, folder: Path, *arguments: str) -> str:
    """Run `segjudge` in a folder, with only the environment of this machine, and return its output."""
    done = subprocess.run(
        [str(fresh / "bin/python"), "-m", "segjudge", *arguments],
        cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_a_challenge_starts_from_nothing_but_the_wheel(wheel: Path, fresh: Path, tmp_path: Path) -> None:
    run_in(fresh, tmp_path, "new", "mine", "--demo")
    mine = tmp_path / "mine"
    (carried,) = (mine / "wheels").iterdir()
    assert (mine / "requirements.txt").read_text().startswith(f"segjudge[serve] @ file:./wheels/{carried.name}#sha256=")
    with zipfile.ZipFile(carried) as ours, zipfile.ZipFile(wheel) as built:
        for name in [name for name in built.namelist() if not name.endswith(("/WHEEL", "/RECORD", "/top_level.txt"))]:
            assert ours.read(name) == built.read(name), name

    out = run_in(fresh, mine, "run")
    assert re.search(r"^1\. good\.zip +0\.\d{4}", out, re.MULTILINE)
    assert "EvalAI's own rules would accept this bundle by push and by its web form." in run_in(
        fresh, mine, "check", "--quick"
    )


@pytest.mark.long
def test_it_scores_beside_a_foreign_evaluation_script(fresh: Path, tmp_path: Path) -> None:
    packages = next(fresh.glob("lib/python*/site-packages"))
    foreign = packages / "evaluation_script"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("MINE = 'a host has one too'\n")
    code = "import evaluation_script, segjudge.evaluation_script as s; print(evaluation_script.MINE, s.__file__)"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    python = str(fresh / "bin/python")
    output = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == f"a host has one too {packages}/segjudge/evaluation_script/__init__.py"
    assert "J&F" in run_in(
        fresh, tmp_path, "score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", "davis2017"
    )
