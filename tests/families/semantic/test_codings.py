"""Labels of another coding are scored unchanged, with a line that names the likely coding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import SubmissionError, score
from segjudge.evaluation_script.families.base.suspicions import judge_pixels
from tests import published
from tests.builders import png, zipped
from tests.families.codings import TRUTH, list_warnings

CHECK = ": check the numbers of the classes"
CODED = "labels look like another encoding, such as 7 for 0, 11 for 1, 19 for 2 and 2 more" + CHECK


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda labels: labels, ""),
        (lambda labels: labels + 120, "labels look as if 120 was added to each" + CHECK),
        (lambda labels: labels + 1, "labels look as if 1 was added to each" + CHECK),
        (lambda labels: np.maximum(labels, 1) - 1, "labels look as if 1 was subtracted from each" + CHECK),
        (lambda labels: np.array([7, 11, 19, 5, 4, 26, 0])[labels], CODED),
        (
            lambda labels: np.where(labels == 3, 3, 99),
            "83 % of the scored pixels have labels that never occur in the truth",
        ),
        (lambda labels: labels * 0 + 99, "have labels that never occur in the truth (99)" + CHECK),
        (lambda labels: labels * 0 + 2, "all scored pixels have the same class, though the truth has 6" + CHECK),
        (
            lambda labels: (labels > 0) * 1,
            "all scored pixels have the label 0 or 1, though the truth has 6 classes" + CHECK,
        ),
        (lambda labels: (labels > 0) * 2, ""),
        (lambda labels: np.where(labels < 3, labels, 99), "60 % of the scored pixels outside the most frequent class"),
        (lambda labels: np.where(labels < 4, labels, 99), ""),
        (lambda labels: np.where(labels == 0, 0, (labels + 1) % 6), "labels look as if 1 was added to each" + CHECK),
    ],
)
def test_labels_of_another_coding_are_named(change: Any, message: str) -> None:
    labels = np.where(TRUTH == 255, 6, TRUTH).astype(int)
    lines = list_warnings(change(labels))
    assert len(lines) == bool(message)
    assert message in "".join(lines)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        ({(0, 0): 25, (1, 3): 35, (3, 1): 40}, "labels look like another encoding, such as 1 for 3, 3 for 1:"),
        ({(0, 0): 40, (1, 3): 30, (3, 1): 30}, "labels look like another encoding, such as 3 for 1, 1 for 3:"),
        ({(0, 0): 40, (1, 1): 20, (1, 3): 20, (3, 1): 20}, ""),
        ({(0, 0): 25, (0, 1): 25, (1, 0): 25, (1, 1): 25}, "50 % of the scored pixels have the right class, as many as by chance"),
        ({(0, 0): 26, (0, 1): 24, (1, 0): 24, (1, 1): 26}, ""),
        ({(0, 0): 80, (1, 0): 12, (2, 1): 8}, ""),  # 0 for 1 is a missed object
        ({(0, 0): 60, (1, 2): 20, (2, 3): 20}, "labels look as if 1 was added to each"),
        ({(0, 0): 24, (1, 3): 36, (3, 1): 40}, "labels look like another encoding, such as 1 for 3, 3 for 1:"),
        ({(1, 3): 25, (3, 1): 25, (1, 2): 25, (3, 2): 25}, "no pixel has the right class"),  # a half is explained
        ({(1, 3): 27, (3, 1): 26, (1, 2): 25, (3, 2): 25}, "such as 3 for 1, 1 for 3:"),
        ({(1, 3): 99, (3, 1): 1}, "such as 3 for 1, 1 for 3:"),
        ({(1, 3): 80, (0, 0): 20}, "80 % of the scored pixels have labels that never occur in the truth (3)"),  # 0 for 0 tells nothing
        ({(1, 3): 100, (3, 1): 1}, "no pixel has the right class"),  # less than a hundredth tells nothing, and one label alone neither
        ({(1, 2): 49, (2, 3): 1, (4, 4): 20, (0, 3): 15, (3, 0): 15}, "such as 2 for 1, 3 for 0, 0 for 3:"),
        ({(1, 2): 50, (2, 3): 1, (4, 4): 20, (0, 3): 15, (3, 0): 14}, "such as 2 for 1, 3 for 0, 0 for 3:"),  # more than 2 for 1 and 3 for 2
        ({(1, 2): 55, (2, 3): 1, (4, 4): 20, (0, 3): 6, (3, 0): 13}, "labels look as if 1 was added to each"),  # at least three quarters
        ({(2, 1): 55, (3, 2): 1, (4, 4): 20, (0, 3): 6, (3, 0): 13}, "labels look as if 1 was subtracted from each"),
        ({(2, 1): 52, (3, 2): 1, (4, 4): 20, (0, 3): 6, (3, 0): 13}, "such as 1 for 2, 0 for 3, 3 for 0:"),
        ({(0, 1): 90, (2, 2): 1, (2, 3): 5, (3, 3): 4}, "90 % of the scored pixels have labels that never occur in the truth (1)"),  # 3 stands for itself
        ({(1, 2): 49, (1, 3): 24, (1, 1): 9, (2, 3): 10, (2, 2): 8, (3, 2): 1}, "17 % of the scored pixels have the right class, as many as by chance"),  # frequent labels meet anyway
        ({(1, 1): 50, (1, 2): 50}, ""),
        ({(1, 1): 49, (1, 0): 20, (1, 2): 31}, "51 % of the scored pixels have labels that never occur in the truth (2, 0)"),
    ],
)  # fmt: skip
def test_a_coding_is_named_where_it_explains_more_than_a_half(pixels: Any, message: str) -> None:
    table = np.zeros((5, 5), np.int64)
    for (label, predicted), count in pixels.items():
        table[label, predicted] = count
    lines = judge_pixels(table)
    assert bool(lines) == bool(message)
    assert message in "".join(lines)


def test_maps_without_pixels_that_count_say_nothing() -> None:
    assert judge_pixels(np.zeros((4, 4), int)) == []
    assert list_warnings(TRUTH * 0 + 3, TRUTH * 0 + 255) == []


def test_classes_below_the_truth_s_are_named_too() -> None:
    labels = np.where(TRUTH == 255, 255, TRUTH + 10).astype(np.uint8)
    assert list_warnings(TRUTH % 255, labels) == [
        "labels look as if 10 was subtracted from each: check the numbers of the classes"
    ]


def test_files_say_it_too_and_strict_refuses_nobody_for_a_guess(tmp_path: Path) -> None:
    truth = published.published("vspw", tmp_path)
    files = {f"{name}/{k:08d}.png": png(published.labels(name, k) + np.uint8(6)) for name, k in published.frames()}
    (tmp_path / "results.zip").write_bytes(zipped(files))
    scores = score(tmp_path / "results.zip", truth, "vspw", strict=True)
    assert "val: labels look as if 1 was added to each: check the numbers of the classes" in scores.warnings


def test_a_colour_picture_is_no_map_of_classes(tmp_path: Path) -> None:
    truth = published.published("vspw", tmp_path)
    picture = published.labels("swan", 0)[:, :, None] + np.array([99, 98, 97], np.uint8)
    files = {f"{name}/{k:08d}.png": png(picture) for name, k in published.frames()}
    (tmp_path / "results.zip").write_bytes(zipped(files))
    with pytest.raises(SubmissionError, match="(?s)2 problems.*swan: each of 8 files .* is a colour image whose pixel"):
        score(tmp_path / "results.zip", truth, "vspw")
