"""Sequences, frames and classes without masks: a mistake is named, a method that finds few objects is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.masks import run_lengths as rle

SIZE, FRAMES = (60, 100), 8
NONE = "not one mask was matched with one of its class"
#: The sequence, the number and the class of a track.
Track = tuple[int, int, int]


def draw(number: int, shift: int = 0) -> str:
    """Return the run lengths of a square that stands still."""
    pixels = np.zeros(SIZE, np.uint8)
    pixels[4 + shift : 16 + shift, 12 * number : 12 * number + 10] = 1
    down = pixels.T.reshape(-1)
    borders = np.flatnonzero(np.diff(down, prepend=0))
    return rle.compress(np.diff([0, *borders.tolist(), down.size]).tolist())


def write(folder: Path, sequences: int, tracks: list[Track], frames: int = FRAMES, shift: int = 0) -> Path:
    """Write a text of tracks for each sequence, and their list."""
    folder.mkdir()
    for sequence in range(sequences):
        rows = [
            f"{frame} {1000 * kind + number} {kind} {SIZE[0]} {SIZE[1]} {draw(number, shift)}\n"
            for frame in range(frames)
            for of, number, kind in tracks
            if of == sequence
        ]
        (folder / f"{sequence:04d}.txt").write_text("".join(rows))
    listing = "".join(f"{sequence:04d} empty 000000 {FRAMES:06d}\n" for sequence in range(sequences))
    (folder / "val.seqmap").write_text(listing)
    return folder


def judge(folder: Path, truth: list[Track], sent: list[Track], shift: int = 0) -> list[str]:
    sequences = 1 + max(track[0] for track in truth)
    sides = write(folder / "truth", sequences, truth), write(folder / "sent", sequences, sent, shift=shift)
    (sides[1] / "val.seqmap").unlink()
    lines = score(sides[1], sides[0], "kitti-mots").warnings
    assert score(sides[1], sides[0], "kitti-mots", jobs=2).warnings == lines
    return lines


def tracks(counts: list[int], kind: Callable[[int], int] = lambda number: 1 + number % 2) -> list[Track]:
    return [(sequence, number, kind(number)) for sequence, count in enumerate(counts) for number in range(count)]


@pytest.mark.parametrize(("lacking", "missed", "named"), [(2, 0, True), (6, 2, True), (2, 3, False), (1, 1, False)])
def test_a_sequence_is_named_unless_few_objects_may_all_be_missed(
    lacking: int, missed: int, named: bool, tmp_path: Path
) -> None:
    truth = tracks([6, 6, 6, lacking])
    sent = [track for track in truth if track[0] < 3 and (track[1] >= missed)]
    lines = judge(tmp_path, truth, sent)
    line = "val: 1 sequence has no mask of a class that counts: 0003. Send the masks of all sequences"
    assert lines == [line] * named


def test_frames_of_a_sequence_that_may_be_missed_are_not_missing(tmp_path: Path) -> None:
    assert judge(tmp_path, tracks([3, 1]), [(0, 0, 1), (0, 1, 2)]) == []


@pytest.mark.parametrize(("rest", "named"), [([(0, 1, 1), (0, 2, 1)], True), ([], False)])
def test_one_class_is_named_if_its_masks_cover_objects_of_others(
    rest: list[Track], named: bool, tmp_path: Path
) -> None:
    truth = [(0, 0, 1), (0, 1, 2), (0, 2, 2), (1, 0, 1), (1, 1, 2)]
    lines = judge(tmp_path, truth, [(0, 0, 1), (1, 0, 1), *rest])
    assert [line for line in lines if "same class" in line] == [
        "val: all 32 masks have the same class, though the truth has 2: check the numbers of the classes"
    ] * named


@pytest.mark.parametrize(("shift", "named"), [(5, False), (25, True)])
def test_inexact_masks_do_not_speak_of_wrong_classes(shift: int, named: bool, tmp_path: Path) -> None:
    lines = judge(tmp_path, tracks([2, 2]), tracks([2, 2]), shift)
    assert any(NONE in line for line in lines) == named
