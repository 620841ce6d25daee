"""What the commands write is there whole, or stays as it was."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.cli import main

from .builders import ANNOTATIONS, STRONG
from .test_participants import SHARP, TRUTH

BEFORE = "written before"


def places(folder: Path) -> list[str]:
    """A picture and its categories, as words for `convert`."""
    (folder / "png").mkdir()
    Image.fromarray(np.ones((8, 9, 3), np.uint8)).save(folder / "png/a.png")
    (folder / "categories.json").write_text('{"categories": [{"id": 1, "name": "bed"}]}')
    return ["convert", "places", str(folder / "png"), str(folder / "out.json"), "--categories",
            str(folder / "categories.json")]  # fmt: skip


def scoring(folder: Path) -> list[str]:
    return ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", "sav", "--csv", str(folder)]


def instances(folder: Path) -> list[str]:
    return ["score", SHARP, "--truth", TRUTH, "--protocol", "coco", "--csv", str(folder)]


def drawing(folder: Path) -> list[str]:
    return ["show", "--truth", TRUTH, "--out", str(folder)]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (places, "out.json"),
        (scoring, "global_results-dev.csv"),
        (scoring, "per-sequence_results-dev.csv"),
        (scoring, "results.csv"),
        (instances, "per-category_results-dev.csv"),
        (drawing, "index.html"),
        (drawing, "images/1.png"),
    ],
    ids=["convert", "global", "per-sequence", "padded", "per-category", "page", "picture"],
)
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    words: Any, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    command = words(tmp_path)
    out = tmp_path / file
    out.parent.mkdir(exist_ok=True)
    out.write_text(BEFORE)
    replace = os.replace

    def full(source: str, target: str) -> None:
        if target == str(out):
            raise OSError(errno.ENOSPC, "No space left on device", source)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert main(command) != 0

    assert f"{out}: cannot be written (No space left on device)" in capsys.readouterr().err
    assert out.read_text() == BEFORE
    assert not list(tmp_path.rglob("*.partial"))
    assert main(command) == 0
    assert out.read_bytes() != BEFORE.encode()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_defect(closed: str) -> None:
    command = f"exec {sys.executable} -m segjudge benchmarks {closed}"
    done = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
