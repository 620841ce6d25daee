"""Volumes along other axes or with other labels are named, with their corrected score; poor methods are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from tests.builders import written
from tests.families.volumes.family import encode_volume


def draw_organs(number: int) -> Any:
    """Return a cube with two different organs and a lesion, none of them in the middle."""
    z, y, x = np.mgrid[:32, :32, :32]
    labels = np.zeros((32, 32, 32), np.uint8)
    labels[(z - 22) ** 2 + (y - 12 - number) ** 2 + (x - 7) ** 2 < 30] = 3
    labels[4:10, 3:9, 10 + number : 20] = 2
    labels[6:9, 4:7, 12:17] = 1
    return labels


TRUTH = {f"case_{number}": draw_organs(number) for number in range(4)}
SLIPS: dict[str, Any] = {
    "volumes look mirrored along x": lambda labels: labels[:, :, ::-1],
    "volumes look mirrored along y": lambda labels: labels[:, ::-1],
    "volumes look mirrored along z": lambda labels: labels[::-1],
    "volumes look mirrored along x and y": lambda labels: labels[:, ::-1, ::-1],
    "x and y look exchanged": lambda labels: labels.transpose(0, 2, 1),
    "x and z look exchanged": lambda labels: labels.transpose(2, 1, 0),
    "volumes look mirrored along x, y and z": lambda labels: labels[::-1, ::-1, ::-1],
    "y and z look exchanged": lambda labels: labels.transpose(1, 0, 2),
    "slices look rotated by 90 degrees": lambda labels: np.rot90(labels, 1, (1, 2)),
    "volumes look moved by this many voxels: 6 along y": lambda labels: np.roll(labels, 6, 1),
    "volumes look moved by this many voxels: 9 along x, -3 along z": lambda labels: np.roll(labels, (-3, 9), (0, 2)),
    "labels look 1 too high": lambda labels: labels + 1,
    "labels look 1 too low": lambda labels: np.maximum(labels, 1) - 1,
}
POOR: dict[str, Any] = {
    "each moved otherwise": lambda labels: np.roll(labels, int(labels.sum()) % 9 - 4, 1),
    "everything": lambda labels: np.maximum(labels, 1),
    "one label": lambda labels: (labels > 0) * 2,
    "a label with the name of its neighbour": lambda labels: np.choose(labels, [0, 2, 2, 3]),
    "a corner": lambda labels: labels * (np.arange(32) < 6),
    "noise": lambda labels: np.random.default_rng(3).integers(0, 4, labels.shape),
    "thin": lambda labels: labels * (np.arange(32) % 4 == 0),
    "mirrored both ways": lambda labels: np.where(labels == 0, labels[:, :, ::-1], labels),
}  # fmt: skip


def list_lines(folder: Path, change: Any) -> list[str]:
    sides = {
        name: written(folder / name, {f"{case}.nii.gz": encode_volume(item.astype(np.uint8)) for case, item in maps.items()})
        for name, maps in (("truth", TRUTH), ("sent", {case: change(labels) for case, labels in TRUTH.items()}))
    }  # fmt: skip
    return [line for line in segjudge.score(sides["sent"], sides["truth"], "volumes").warnings if " look" in line]


@pytest.mark.parametrize("message", SLIPS)
def test_a_slip_is_named_with_what_would_be_scored(message: str, tmp_path: Path) -> None:
    (line,) = list_lines(tmp_path, SLIPS[message])
    assert f"{message}: corrected, Dice over all labels would be " in line


@pytest.mark.parametrize(("low", "high"), [(1, 2), (1, 3), (2, 3)])
def test_exchanged_labels_are_named_whatever_the_others_score(low: int, high: int, tmp_path: Path) -> None:
    swapped = np.arange(4)
    swapped[[low, high]] = high, low
    (line,) = list_lines(tmp_path, lambda labels: swapped[labels])
    slip = f"labels {low} and {high} look exchanged: corrected, Dice of both would be 1.00 instead of 0.00 (tried on 4 of 4 cases)"
    assert f"{slip}. Write the labels of the truth" in line


def test_a_false_label_in_the_place_of_a_missing_one_is_named(tmp_path: Path) -> None:
    (line,) = list_lines(tmp_path, lambda labels: np.choose(labels, [0, 255, 2, 3]))
    slip = "label 255 looks like label 1: corrected, its Dice would be 1.00 instead of 0.00 (tried on 4 of 4 cases)"
    assert f"{slip}. Write the labels of the truth" in line
    assert (
        list_lines(tmp_path / "beside", lambda labels: np.where((labels == 0) & (np.arange(32) < 4), 9, labels)) == []
    )


def test_a_label_that_another_case_has_is_a_mistake_of_the_method() -> None:
    cases = {"both": draw_organs(0), "one": np.where(draw_organs(1) == 3, 3, 0)}
    truth = {case: {"labels": labels, "spacing": [1.0, 1.0, 1.0]} for case, labels in cases.items()}
    for label, lines in ((1, 0), (7, 1)):
        sent = {**cases, "one": np.where(cases["one"] == 3, label, 0)}
        warnings = segjudge.score_arrays(sent, truth, "volumes").warnings
        assert [f"label {label} looks like label 3" in line for line in warnings].count(True) == lines


def test_the_cases_of_exchanged_labels_are_counted(tmp_path: Path) -> None:
    exchanged = iter([True, False, False, False])
    (line,) = list_lines(tmp_path, lambda labels: np.choose(labels, [0, 2, 1, 3]) if next(exchanged) else labels)
    assert line.startswith("val: labels 1 and 2 look exchanged")
    assert "tried on 1 of 4 cases" in line


@pytest.mark.parametrize("axis", range(3))
def test_a_mirrored_volume_is_named_although_half_of_it_overlaps(axis: int, tmp_path: Path) -> None:
    """A large organ lies near the middle, so that a mirrored volume has a Dice far above 0."""
    z, y, x = np.mgrid[:32, :32, :32]
    organ = ((z - 18) / 9) ** 2 + ((y - 18) / 9) ** 2 + ((x - 18) / 9) ** 2 < 1
    truth = {
        case: {"labels": np.maximum(labels, 4 * organ), "spacing": [1.0, 1.0, 1.0]} for case, labels in TRUTH.items()
    }
    sent = {case: np.flip(entry["labels"], axis) for case, entry in truth.items()}
    (line,) = [line for line in segjudge.score_arrays(sent, truth, "volumes").warnings if " look" in line]
    assert (
        f"volumes look mirrored along {'zyx'[axis]}: corrected, Dice over all labels would be 1.00 instead of 0."
        in line
    )


def test_volumes_of_the_next_case_are_named_by_the_sizes_of_their_regions() -> None:
    truth = {}
    for number, side in enumerate((3, 11, 5, 8, 4, 10)):
        labels = np.zeros((32, 32, 32), np.uint8)
        labels[2 : 2 + side, 3 * number : 3 * number + side, 1 : 1 + side] = 1
        truth[f"case_{number}"] = {"labels": labels, "spacing": [1.0, 1.0, 1.0]}
    cases = list(truth)
    for step, word, other in ((1, "low", "next"), (-1, "high", "previous")):
        sent = {case: truth[cases[(at + step) % 6]]["labels"] for at, case in enumerate(cases)}
        (line,) = [line for line in segjudge.score_arrays(sent, truth, "volumes").warnings if " look" in line]
        assert f"volumes look named one case too {word}: the sizes of regions differ by" in line
        assert f"from those of the truth, but by 0 % from the truth of the {other} case, such as case_" in line


def test_a_label_that_no_prediction_has_is_named() -> None:
    truth = {case: {"labels": labels, "spacing": [1.0, 1.0, 1.0]} for case, labels in TRUTH.items()}
    sent = {case: labels > 0 for case, labels in TRUTH.items()}
    warnings = "\n".join(segjudge.score_arrays(sent, truth, "volumes").warnings)
    assert (
        "no prediction has these labels of the truth: 2 (in 4 cases), 3 (in 4 cases). Write the labels of" in warnings
    )
    warnings = "\n".join(segjudge.score_arrays(sent, truth, "kits23").warnings)
    assert "no prediction has these regions of the truth: mass (in 4 cases), tumor (in 4 cases)." in warnings
    sent["case_3"] = TRUTH["case_3"]
    assert "no prediction" not in "".join(segjudge.score_arrays(sent, truth, "volumes").warnings)


@pytest.mark.parametrize("method", POOR)
def test_poor_methods_are_not_suspected(method: str, tmp_path: Path) -> None:
    assert list_lines(tmp_path, POOR[method]) == []


def test_volumes_in_memory_are_suspected_too() -> None:
    sent = {case: SLIPS["x and z look exchanged"](labels) for case, labels in TRUTH.items()}
    truth = {case: {"labels": labels, "spacing": [1.0, 1.0, 1.0]} for case, labels in TRUTH.items()}
    scores = segjudge.score_arrays(sent, truth, "volumes")
    assert "x and z look exchanged" in "".join(scores.warnings)
