"""Volumes along other axes, elsewhere, with other labels or of other cases are named; those of poor methods are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from tests.builders import zipped
from tests.families.volumes.family import encode_volume

Cases = dict[str, Any]


def draw_organs(number: int) -> Any:
    """Return two different organs and a lesion, none of them in the middle, with different sizes and places by case."""
    z, y, x = np.mgrid[:32, :32, :32]
    labels = np.zeros((32, 32, 32), np.uint8)
    shift = np.random.default_rng(number).integers(-5, 6, 3)
    labels[(z - 22 - shift[0]) ** 2 + (y - 12 - number % 4) ** 2 + (x - 7 - shift[1]) ** 2 < 30] = 3
    labels[4:10, 3 + (shift[2] + 5) // 2 : 11, 8 + number % 4 : 20 + shift[2]] = 2
    labels[6:9, 7:10, 12:15] = 1
    return labels


def list_lines(folder: Path, sent: Cases, truth: Cases, protocol: str = "volumes") -> list[str]:
    sides = []
    for name, cases in (("truth", truth), ("sent", sent)):
        path = folder / f"{name}.zip"
        path.write_bytes(
            zipped({f"{case}.nii.gz": encode_volume(labels.astype(np.uint8)) for case, labels in cases.items()})
        )
        sides.append(path)
    (report,) = segjudge.score(sides[1], sides[0], protocol).reports
    return report.suspicions


def each(change: Any) -> Any:
    return lambda cases: {case: change(labels) for case, labels in cases.items()}


ORGANS = {f"case_{number}": draw_organs(number) for number in range(6)}
SLIPS: dict[str, Any] = {
    "volumes look mirrored along x, y and z": each(lambda labels: labels[::-1, ::-1, ::-1]),
    "x and y look exchanged": each(lambda labels: labels.transpose(0, 2, 1)),
    "x and z look exchanged": each(lambda labels: labels.transpose(2, 1, 0)),
    "y and z look exchanged": each(lambda labels: labels.transpose(1, 0, 2)),
    "slices look rotated by 90 degrees": each(lambda labels: np.rot90(labels, 1, (1, 2))),
    "volumes look moved by 6 along y (in voxels)": each(lambda labels: np.roll(labels, 6, 1)),
    "volumes look moved by 9 along x and -3 along z (in voxels)": each(lambda labels: np.roll(labels, (-3, 9), (0, 2))),
    "volumes cover the objects and": each(lambda labels: np.maximum(labels, 1)),
    "nothing in the volumes of 6 cases tried matches the truth": each(lambda labels: np.where(labels, 0, 9 * (np.arange(32) > 25))),
}  # fmt: skip
POOR: dict[str, Any] = {
    "each moved otherwise": lambda labels: np.roll(labels, int(labels.sum()) % 7 - 3, 1),
    "a label with the name of its neighbour": lambda labels: np.choose(labels, [0, 2, 2, 3]),
    "mirrored both ways": lambda labels: np.where(labels == 0, labels[:, :, ::-1], labels),
    "surplus": lambda labels: np.where((labels == 0) & (np.arange(32) < 4), 9, labels),
}


@pytest.mark.parametrize("message", SLIPS)
def test_a_slip_is_named(message: str, tmp_path: Path) -> None:
    (line,) = list_lines(tmp_path, SLIPS[message](ORGANS), ORGANS)
    assert message in line


@pytest.mark.parametrize("method", POOR)
def test_poor_methods_are_not_suspected(method: str, tmp_path: Path) -> None:
    assert list_lines(tmp_path, each(POOR[method])(ORGANS), ORGANS) == []


def test_volumes_in_the_order_of_memory_are_named(tmp_path: Path) -> None:
    truth = each(lambda labels: labels[:26])(ORGANS)
    sent = each(lambda labels: labels.transpose(2, 1, 0).reshape(labels.shape))(truth)
    (line,) = list_lines(tmp_path, sent, truth)
    assert "volumes look reshaped from (x, y, z) to (z, y, x): corrected, the IoU over all voxels would be 1.00" in line
