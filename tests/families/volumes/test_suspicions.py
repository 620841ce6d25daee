"""Volumes along other axes or with other labels are named, with their corrected score; poor methods are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.base.units import UnitCounts
from segjudge.evaluation_script.families.volumes.case_order import (
    SampledLabels,
    find_percentile,
    judge_case_order,
    list_cycles,
)
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
    "each moved otherwise": lambda labels: np.roll(labels, int(np.argmax(labels == 3)) % 7 - 3, 1),
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


@pytest.mark.parametrize("is_reshaped", [True, False])
def test_volumes_in_the_order_of_memory_are_named(is_reshaped: bool) -> None:
    truth = {case: {"labels": labels[:26], "spacing": [1.0, 1.0, 1.0]} for case, labels in TRUTH.items()}
    sent = {case: labels[:26] for case, labels in TRUTH.items()}
    if is_reshaped:
        sent = {case: labels.transpose(2, 1, 0).reshape(labels.shape) for case, labels in sent.items()}
    lines = [line for line in segjudge.score_arrays(sent, truth, "volumes").warnings if "look" in line]
    slip = "volumes look reshaped from (x, y, z) to (z, y, x): corrected, Dice over all labels would be 1.00 instead"
    assert [slip in line for line in lines] == [True] * is_reshaped


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
        sent = {case: truth[cases[(index + step) % 6]]["labels"] for index, case in enumerate(cases)}
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


# ── slips of volumes that score well, and of few cases ──────────────────────


def draw_body(number: int) -> Any:
    """Return a large organ near the middle with two small ones, each case of another size and place."""
    z, y, x = np.mgrid[:24, :40, :48]
    labels = np.zeros((24, 40, 48), np.uint8)
    offset = np.random.default_rng(number).integers(-3, 4, 3)
    labels[
        ((z - 12 - offset[0]) / 7) ** 2 + ((y - 20 - offset[1]) / (11 + number % 3)) ** 2 + ((x - 23) / 14) ** 2 < 1
    ] = 1
    labels[((z - 12 - offset[0]) / 3) ** 2 + ((y - 16) / 4) ** 2 + ((x - 17 - offset[2]) / 5) ** 2 < 1] = 2
    labels[((z - 10) / 3) ** 2 + ((y - 25 - offset[1]) / 3) ** 2 + ((x - 28 - offset[2]) / 4) ** 2 < 1] = 3
    return labels


BODIES = {f"case_{number}": draw_body(number) for number in range(6)}


def spoil(labels: Any, share: float, seed: int) -> Any:
    """Return labels some of whose voxels have the label of a neighbour, as along an uncertain border."""
    draw, spoiled = np.random.default_rng(seed), labels.copy()
    for axis in range(3):
        chosen = draw.random(labels.shape) < share
        spoiled[chosen] = np.roll(labels, int(draw.choice([-1, 1])), axis)[chosen]
    return spoiled


def thicken(labels: Any, seed: int) -> Any:
    """Return labels that have grown into many voxels beside them, as of a method that finds too much."""
    draw, grown = np.random.default_rng(seed), labels.copy()
    for axis in range(3):
        for step in (-1, 1):
            grown = np.where((grown == 0) & (draw.random(labels.shape) < 0.4), np.roll(labels, step, axis), grown)
    return grown


def list_suspicions(sent: dict[str, Any], cases: dict[str, Any], protocol: str = "volumes") -> list[str]:
    truth = {case: {"labels": labels, "spacing": [1.0, 1.0, 1.0]} for case, labels in cases.items()}
    return [line for line in segjudge.score_arrays(sent, truth, protocol).warnings if " look" in line]


@pytest.mark.parametrize(("protocol", "share"), [("volumes", 0.0), ("volumes", 0.1), ("volumes", 0.3), ("kits23", 0.0)])
def test_two_exchanged_cases_are_named_and_honest_ones_are_not(protocol: str, share: float) -> None:
    sent = {case: spoil(labels, share, seed) for seed, (case, labels) in enumerate(BODIES.items())}
    assert list_suspicions(sent, BODIES, protocol) == []
    (line,) = list_suspicions({**sent, "case_1": sent["case_4"], "case_4": sent["case_1"]}, BODIES, protocol)
    pairs = "case_1 has the volume of case_4, case_4 has the volume of case_1"
    assert f"the volumes of 2 cases look exchanged, by the sizes and places of all regions: {pairs}. Check" in line


def draw_mass(number: int) -> Any:
    """Return a mass in a place of its case."""
    z, y, x = np.mgrid[:24, :40, :48]
    center, radius = np.random.default_rng(number).integers((7, 9, 9), (17, 31, 39)), 4 + number % 3
    inside = ((z - center[0]) / radius) ** 2 + ((y - center[1]) / (radius + 1)) ** 2 + (
        (x - center[2]) / (radius + 2)
    ) ** 2 < 1
    return inside.astype(np.uint8)


@pytest.mark.parametrize("step", [2, 3])
def test_exchanged_cases_are_named_although_their_masses_are_too_large(step: int) -> None:
    cases = {f"case_{number}": draw_mass(number) for number in range(6)}
    sent = {case: thicken(labels, seed) for seed, (case, labels) in enumerate(cases.items())}
    names = list(cases)
    exchanged = {case: sent[names[(index + step) % 6]] for index, case in enumerate(names)}
    (line,) = list_suspicions(exchanged, cases)
    slip = "the volumes of 6 cases look exchanged, by the sizes and places of all regions"
    assert f"{slip}: case_0 has the volume of {names[step]}" in line


@pytest.mark.parametrize("share", [0.001, 0.003])
@pytest.mark.parametrize("protocol", ["volumes", "kits23"])
def test_exchanged_cases_are_named_although_specks_fill_their_volumes(protocol: str, share: float) -> None:
    draw = np.random.default_rng(5)
    sent = {case: np.where(draw.random(labels.shape) < share, 2, labels) for case, labels in BODIES.items()}
    assert list_suspicions(sent, BODIES, protocol) == []
    (line,) = list_suspicions({**sent, "case_1": sent["case_4"], "case_4": sent["case_1"]}, BODIES, protocol)
    assert "the volumes of 2 cases look exchanged, by the sizes and places of all regions: case_1 has the" in line


def waver(labels: Any, seed: int, share: float) -> Any:
    """Return labels whose smoothed borders waver, as of a method that segments poorly."""
    draw, wavering = np.random.default_rng(seed), np.zeros_like(labels)
    noise = smooth(draw.normal(size=labels.shape))
    for label in np.unique(labels[labels > 0]):
        wavering[smooth((labels == label).astype(float)) + share * noise / noise.std() > 0.5] = label
    return wavering


def smooth(field: Any) -> Any:
    for axis in range(3):
        for _ in range(4):
            field = (np.roll(field, 1, axis) + field + np.roll(field, -1, axis)) / 3
    return field


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_volumes_of_a_poor_method_are_named_if_nearly_all_are_mirrored_alike(axis: int) -> None:
    sent = {case: waver(labels, seed, 0.3) for seed, (case, labels) in enumerate(BODIES.items())}
    assert list_suspicions(sent, BODIES) == []
    (line,) = list_suspicions({case: np.flip(labels, axis) for case, labels in sent.items()}, BODIES)
    assert f"volumes look mirrored along {'zyx'[axis]}: corrected, Dice over all labels would be 0." in line


@pytest.mark.parametrize("protocol", ["volumes", "kits23"])
def test_exchanged_cases_of_a_poor_method_are_named_by_sampled_voxels(protocol: str) -> None:
    cases = {f"case_{number}": draw_mass(number) for number in range(6)}
    sent, names = {case: waver(labels, seed, 0.25) for seed, (case, labels) in enumerate(cases.items())}, list(cases)
    assert list_suspicions(sent, cases, protocol) == []
    (line,) = list_suspicions({case: sent[names[index - 3]] for index, case in enumerate(names)}, cases, protocol)
    assert "the volumes of 6 cases look exchanged, by the labels of sampled voxels: case_0 has the volume of" in line
    assert list_suspicions(dict.fromkeys(cases, sent["case_2"]), cases, protocol) == []


def draw_lesions(number: int, find: float = 1.0) -> Any:
    """Return small lesions, or those that a method finds, with others in place of those that it misses."""
    draw, finds, labels = *map(np.random.default_rng, (number, number + 100)), np.zeros((48, 168, 168), np.uint8)
    for _ in range(draw.integers(2, 9)):
        center, radius = draw.integers(8, (40, 160, 160)), draw.uniform(1.2, 2.5)
        if finds.random() >= find:
            center = finds.integers(8, (40, 160, 160))
        if find < 1:
            radius *= finds.uniform(0.8, 1.25)
        box = tuple(slice(start - 4, start + 5) for start in center.tolist())
        labels[box][sum(axis**2 for axis in np.ogrid[-4:5, -4:5, -4:5]) <= radius**2] = 1
    return labels


@pytest.mark.parametrize("protocol", ["volumes", "autopet"])
def test_exchanged_cases_with_small_lesions_are_named(protocol: str) -> None:
    names = [f"case_{number}" for number in range(8)]
    cases = {case: draw_lesions(number) for number, case in enumerate(names)}
    sent = {case: draw_lesions(number, 0.7) for number, case in enumerate(names)}
    assert list_suspicions(sent, cases, protocol) == []
    (line,) = list_suspicions({case: sent[names[index - 5]] for index, case in enumerate(names)}, cases, protocol)
    slip = "the volumes of 7 cases look exchanged, by the places of small regions"
    assert f"{slip}: case_0 has the volume of case_3" in line


@pytest.mark.parametrize("sample", [[], [1 << 60, -1], [1, 1 << 62], [2, 5 << 32]])
@pytest.mark.parametrize("key", ["sample", "cells"])
def test_odd_samples_of_a_part_name_no_case(key: str, sample: list[int]) -> None:
    voxels = np.array([[9, 9, 0]])
    tables = {"labels": [1], "voxels": voxels, "ends": np.zeros((1, 2, 6), np.int64), key: np.array(sample)}
    units = [UnitCounts(name, {key: np.asarray(table) for key, table in tables.items()}) for name in "ab"]
    assert judge_case_order(units) == []


def test_percentiles_have_the_bits_of_numpy() -> None:
    draw = np.random.default_rng(7)
    for length in range(1, 120):
        numbers = draw.integers(0, 5000, length).astype(np.float64)
        for percent in (0, 7, 10, 50):
            assert find_percentile(numbers, percent) == float(np.percentile(numbers, percent))


def test_all_cases_with_the_names_of_the_next_are_named_although_one_fits_its_own_nearly_as_well() -> None:
    names = list(BODIES)
    sent = {case: spoil(BODIES[names[index - 5]], 0.05, index) for index, case in enumerate(names)}
    (line,) = list_suspicions(sent, BODIES)
    assert "the volumes of 6 cases look exchanged, by the sizes and places of all regions: case_0 has the" in line


def test_few_cases_with_the_names_of_the_next_are_named() -> None:
    names = list(BODIES)[:3]
    cases = {case: BODIES[case] for case in names}
    (line,) = list_suspicions({case: BODIES[names[index - 2]] for index, case in enumerate(names)}, cases)
    assert (
        "the volumes of 3 cases look exchanged, by the sizes and places of all regions: case_0 has the volume of"
        in line
    )


def test_one_volume_for_all_cases_is_not_taken_for_exchanged_ones() -> None:
    assert list_suspicions(dict.fromkeys(BODIES, BODIES["case_2"]), BODIES) == []


@pytest.mark.parametrize("protocol", ["volumes", "kits23"])
def test_labels_that_are_exchanged_in_a_circle_are_named(protocol: str) -> None:
    (line,) = list_suspicions(
        {case: np.choose(labels, [0, 2, 3, 1]) for case, labels in BODIES.items()}, BODIES, protocol
    )
    assert "labels 1, 2 and 3 look exchanged: corrected, Dice of all of them would be 1.00 instead of 0.00" in line


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_a_shift_of_one_slice_is_named_although_volumes_score_well(share: float) -> None:
    sent = {case: np.roll(spoil(labels, share, 5), 1, 0) for case, labels in BODIES.items()}
    (line,) = list_suspicions(sent, BODIES)
    assert "volumes look moved by this many voxels: 1 along z: corrected" in line
    before = float(line.partition("instead of ")[2][:4])
    assert before >= 0.8


def test_a_shift_of_noisy_volumes_is_named_if_nearly_all_move_alike() -> None:
    masses = {f"case_{number}": draw_mass(number) for number in range(6)}
    sent = {case: thicken(labels, seed) for seed, (case, labels) in enumerate(masses.items())}
    assert list_suspicions(sent, masses) == []
    moved = {case: np.roll(labels, 1, 0) for case, labels in sent.items()}
    (line,) = list_suspicions(moved, masses)
    assert (
        "volumes look moved by this many voxels: 1 along z: corrected, Dice over all labels would be 0.88 instead of 0.83"
        in line
    )
    assert list_suspicions({**moved, "case_1": sent["case_1"]}, masses) == []


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("step", [-1, 1])
def test_a_shift_of_one_voxel_is_named_although_a_poor_method_loses_little_by_it(step: int, axis: int) -> None:
    coarse = tuple(slice(None, None, 2 if side == axis else 1) for side in range(3))
    cases = {case: labels[coarse] for case, labels in BODIES.items()}
    sent = {case: waver(labels, seed, 0.2) for seed, (case, labels) in enumerate(cases.items())}
    assert list_suspicions(sent, cases) == []
    (line,) = list_suspicions({case: np.roll(labels, step, axis) for case, labels in sent.items()}, cases)
    assert f"volumes look moved by this many voxels: {step} along {'zyx'[axis]}: corrected, Dice over all" in line
    before, after = (float(line.partition(word)[2][:4]) for word in ("instead of ", "would be "))
    assert 0.6 < before < 0.85
    assert after < 1.15 * before


@pytest.mark.parametrize("axis", range(3))
def test_one_mirrored_case_is_named_although_it_scores_well(axis: int) -> None:
    z, y, x = np.mgrid[:24, :24, :24]
    organ = (((z - 12.5) / 8) ** 2 + ((y - 12.5) / 8) ** 2 + ((x - 12.5) / 8) ** 2 < 1).astype(np.uint8)
    cases = {"a": organ, "b": np.roll(organ, 1, 0)}
    (line,) = list_suspicions({**cases, "a": np.flip(spoil(organ, 0.02, 1), axis)}, cases)
    assert f"volumes look mirrored along {'zyx'[axis]}: corrected, Dice over all labels would be" in line
    assert float(line.partition("instead of ")[2][:4]) >= 0.8


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_one_mirrored_case_of_many_is_named(share: float) -> None:
    cases = {f"case_{number:02d}": draw_body(number) for number in range(20)}
    sent = {case: spoil(labels, share, seed) for seed, (case, labels) in enumerate(cases.items())}
    assert list_suspicions(sent, cases) == []
    (line,) = list_suspicions({**sent, "case_07": sent["case_07"][::-1]}, cases)
    slip = "volumes look mirrored along z in 1 of 20 cases, case_07: corrected, their Dice over all labels would be"
    assert f"{slip} {0.98 if share else 1:.2f} instead of 0." in line


def test_two_exchanged_cases_are_named_beside_poor_ones() -> None:
    cases = {f"case_{number:02d}": draw_body(number) for number in range(12)}
    steps = zip(cases, [0, 4, 0, -4] * 3)
    sent = {case: np.roll(cases[case], step, 2) for case, step in steps}
    assert list_suspicions(sent, cases) == []
    (line,) = list_suspicions({**sent, "case_02": sent["case_10"], "case_10": sent["case_02"]}, cases)
    assert ": case_02 has the volume of case_10, case_10 has the volume of case_02. Check which case" in line


def test_exchanged_cases_are_followed_once_each() -> None:
    partners = {0: 3, 1: 2, 2: 4, 3: 0, 4: 1, 5: 2, 6: 7}
    assert list(list_cycles(partners)) == [[0, 3], [1, 2, 4]]
    count = 20_000  # following the others anew from each would never end
    assert list(list_cycles({row: (row + 1) % count for row in range(count)})) == [list(range(count))]


@pytest.mark.parametrize("seed", range(20))
def test_samples_of_boxes_are_every_so_many_voxels_of_each(seed: int) -> None:
    """Large boxes are slices of a copy, small ones of the volume."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 9, draw.integers(1, 14, 3)).astype(np.uint8)
    sampled = SampledLabels(labels)
    for _ in range(30):
        ends = [np.sort(draw.choice(side + 1, 2, replace=False)).tolist() for side in labels.shape]
        box, step = tuple(slice(*pair) for pair in ends), int(draw.integers(1, 5))
        taken = sampled.take(box, step)
        assert taken.tolist() == labels[box][::step, ::step, ::step].tolist()
