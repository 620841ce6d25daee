"""The wheel installs one package, beside whatever a host has of their own."""

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

from .builders import ANNOTATIONS, ROOT, STRONG

assert cli  # what is installed here is not the wheel, but its dependencies are


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("NO GIT CHECKOUT: what belongs to the project is not known")
    for name in tracked.stdout.split("\0"):
        source, target = ROOT / name, folder / "source" / name
        if name and source.exists() and not name.startswith(("tests/", "examples/", "docs/")):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(folder / "source")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_one_package_holds_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"segjudge"}
    for name in (
        "evaluation_script/main.py", "evaluation_script/requirements.txt", "remote_challenge_evaluation/worker.py",
        "code_upload_challenge_evaluation/environment/service.py", "bundle/worker-3.9.txt", "report/published.json",
        "rehearsal/pages/templates/base.html", "interactive/page/page.html", "interactive/davis_sequences.csv",
    ):  # fmt: skip
        assert f"segjudge/{name}" in names


def test_it_holds_the_kernel_for_this_kind_of_machine(wheel: Path) -> None:
    if not any(map(shutil.which, compiling.COMPILERS)):
        pytest.skip("NO C COMPILER: the wheel is without a kernel")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    library = f"segjudge/evaluation_script/segjudge_kernel.{compiling.this_system()}.so"
    assert {library, f"{library}.sha256", "segjudge/kernel/frames.c", "segjudge/kernel/kernel.h"} <= set(names)
    assert re.fullmatch(r"segjudge-[^-]+-py3-none-(linux|macosx)_\w+\.whl", wheel.name)


def test_it_scores_beside_a_foreign_evaluation_script(wheel: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    packages = next(fresh.glob("lib/python*/site-packages"))
    # The dependencies are those of the environment that runs the tests; the package itself must come from the wheel.
    ours = [path for path in sys.path if path.endswith("site-packages")]
    links = packages / "dependencies"
    links.mkdir()
    for path in ours:
        for entry in Path(path).iterdir():
            if not entry.name.startswith(("segjudge", "__editable__", "_in_use")) and not (links / entry.name).exists():
                (links / entry.name).symlink_to(entry)
    (packages / "dependencies.pth").write_text(f"{links}\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
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
    command = [
        str(fresh / "bin/python"), "-m", "segjudge", "score", str(STRONG), "--truth", str(ANNOTATIONS),
        "--protocol", "davis2017",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "J&F" in done.stdout
