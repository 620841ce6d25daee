"""Tracks of other sequences and classes are named; those that no exchange explains are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.masks import run_lengths as rle

SIZE, FRAMES = (60, 100), 9


def draw(sequence: int, frame: int, track: int) -> str:
    """Return the run lengths of a square that moves to the right."""
    pixels = np.zeros(SIZE, np.uint8)
    top, left = 5 + 8 * track + 6 * sequence, 3 + 20 * track + frame
    pixels[top : top + 9, left : left + 13] = 1
    down = pixels.T.reshape(-1)
    borders = np.flatnonzero(np.diff(down, prepend=0))
    return rle.compress(np.diff([0, *borders.tolist(), down.size]).tolist())


def write_mots(folder: Path, order: list[int], names: str) -> Path:
    """Write the files of sequences that show squares in places of their own, in another order."""
    for name, sequence in zip("abcd", order, strict=True):
        rows = [f"{frame} 1 2 {SIZE[0]} {SIZE[1]} {draw(2 * sequence, frame, 0)}\n" for frame in range(1, FRAMES + 1)]
        path = folder / names.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(rows))
        size = f"seqLength={FRAMES}\nimWidth={SIZE[1]}\nimHeight={SIZE[0]}\n"
        (path.parents[1] / "seqinfo.ini").write_text(f"[Sequence]\n{size}")
    return folder


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ([1, 0, 3, 2], "each looks exchanged with the one beside it, in pairs"),
        ([3, 2, 1, 0], "the order of sequences looks reversed"),
        ([0, 2, 1, 3], "those of b fit c, those of c fit b"),
    ],
)
def test_files_of_other_sequences_are_named(order: list[int], named: str, tmp_path: Path) -> None:
    truth = write_mots(tmp_path / "truth", [0, 1, 2, 3], "{}/gt/gt.txt")
    lines = score(write_mots(tmp_path / "sent", order, "{}.txt"), truth, "mots").warnings
    (line,) = (line for line in lines if "Check which sequence each of them belongs to" in line)
    assert f"{named}: corrected, the IoU over all pixels would be 1.00 instead of 0.00" in line
    assert score(tmp_path / "sent", truth, "mots", jobs=2).warnings == lines


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 1, 3]])
def test_files_that_no_exchange_explains_are_not_named(order: list[int], tmp_path: Path) -> None:
    truth = write_mots(tmp_path / "truth", [0, 1, 2, 3], "{}/gt/gt.txt")
    lines = score(write_mots(tmp_path / "sent", order, "{}.txt"), truth, "mots").warnings
    assert not [line for line in lines if "which sequence each of them" in line]
