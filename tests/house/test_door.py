"""`./run.sh` on a fresh copy: sets up, runs, and repairs itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from segjudge.evaluation_script.scoring import VERSION
from tests.builders import ROOT
from tests.demo_challenge import SAMPLE_COUNT
from tests.shared import IN_CI

READY = shutil.which("bash") and shutil.which("git") and (ROOT / ".git").exists()
pytestmark = [
    pytest.mark.skipif(not READY and not IN_CI, reason="NO GIT CHECKOUT, or no bash"),
    pytest.mark.long,  # what is quick tries `run.sh` on a small checkout: test_set_up.py
]


def run(folder: Path, *arguments: str, expected: int = 0) -> str:
    done = subprocess.run(
        [str(folder / "run.sh"), *arguments], cwd=folder.parent, capture_output=True, text=True, timeout=1200,
        check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the result of `git clone`: the files that git tracks or would add."""
    folder = tmp_path_factory.mktemp("clone") / "segjudge"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def test_one_command_runs_a_whole_challenge(copy: Path) -> None:
    printed = run(copy)

    assert "Setting up" in printed
    assert "Checked: EvalAI would accept it." in printed
    assert printed.count("finished in") == SAMPLE_COUNT
    assert (copy / "dist/challenge_config.zip").exists()
    assert "Next:" in printed or "Next (in" in printed
    assert "  upload " in printed


def test_a_moved_checkout_repairs_itself(copy: Path) -> None:
    moved = copy.parent / "moved here"
    copy.rename(moved)
    try:
        assert f"segjudge {VERSION}" in run(moved, "--version")
        assert "6 files" not in run(moved, "check")
    finally:
        moved.rename(copy)


def test_paths_are_relative_to_where_one_stands(copy: Path) -> None:
    shutil.copy(ROOT / "examples/sequences-dev/strong.zip", copy.parent / "mine.zip")
    assert "0.933" in run(copy, "score", "mine.zip", "--phase", "sequences-dev")


def test_exit_codes_come_through(copy: Path) -> None:
    (copy.parent / "empty.zip").write_bytes(b"")
    assert "is empty" in run(copy, "score", "empty.zip", "--phase", "sequences-dev", expected=1)
    run(copy, "dance", expected=2)
