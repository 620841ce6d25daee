"""Lesions: components, growing, and every lesion-wise number of BraTS' scripts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from segjudge.evaluation_script.families.volumes import boxes as boxes_room
from segjudge.evaluation_script.families.volumes import components as components_room
from segjudge.evaluation_script.families.volumes import lesions as lesions_room
from segjudge.evaluation_script.families.volumes import surfaces as surfaces_room
from segjudge.evaluation_script.families.volumes.boxes import cover, find_boxes
from segjudge.evaluation_script.families.volumes.components import compare_components, find_components, grow
from segjudge.evaluation_script.families.volumes.engine import count_case, find_region_box
from segjudge.evaluation_script.families.volumes.lesions import find_lesions, match_lesions, score_lesions
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.files.problems import Flaw
from tests.families.volumes.volumes import read_golden, read_pair

GOLDEN = read_golden("brats")["cases"]
NOISE = "Check the labels of the truth, which look like noise"
CASES = [case for case in GOLDEN if case != "other-shape"]
#: The year and task of each protocol, as the golden numbers name them.
TASKS = {
    "brats-2023": [("official_2023", "GLI")], "brats-2023-men": [("official_2023", "MEN")],
    "brats-2023-met": [("official_2023", "MET")], "brats-2024-ssa": [("official_2024", "SSA")],
    "brats-2024-gli": [("official_2024", "GLI")], "brats-2024-met": [("official_2024", "MET")],
    "brats-2024-ped": [("official_2024", "PED")], "brats-2024-men": [("official_2024", "MEN")],
    "brats-2024-men-rt": [("official_2024", "MEN_RT")],
}  # fmt: skip
EXACT: dict[str, Any] = {"rel": 1e-12, "abs": 1e-12}


@pytest.mark.parametrize("protocol", TASKS)
@pytest.mark.parametrize("case", CASES)
def test_lesion_wise_scores_are_those_of_brats(case: str, protocol: str) -> None:
    truth, prediction = read_pair("brats", case)
    # The scripts take the spacing of the prediction; the truth's is equal but for one case, which is rejected.
    spacing, row = prediction.geometry.spacing, VOLUME_PROTOCOLS[protocol]
    nsd = "LesionNSD1" in row.measures
    for year, task in TASKS[protocol]:
        for region in row.regions:
            official = GOLDEN[case][year][task][region.name]
            tissues = row.tissues_of(region)
            rule = tissues[0].lesions
            if rule.penalty < 0:
                rule = rule._replace(penalty=math.sqrt(sum(side * side for side in truth.labels.shape)))
            lesions = find_lesions((truth.labels, prediction.labels), tissues)
            scores = score_lesions(match_lesions(lesions, rule, spacing, nsd=nsd), rule)
            wanted = {
                "Num_TP": scores.met,
                "Num_FN": scores.missed,
                "Num_FP": scores.false,
                "LesionWise_Score_Dice": scores.dice,
                "LesionWise_Score_HD95": scores.hd95,
            }
            if nsd:
                wanted["LesionWise_Score_NSD @ 0.5"], wanted["LesionWise_Score_NSD @ 1.0"] = scores.nsd
            if not rule.counts_false:
                del wanted["Num_FP"]
            for name, value in wanted.items():
                assert value == pytest.approx(official[name], **EXACT), (region.name, name)


@pytest.mark.parametrize("seed", range(8))
def test_components_are_those_of_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for density in (0.05, 0.2, 0.4, 0.7, 1.0):
        mask = draw.random(tuple(draw.integers(1, 14, 3))) < density
        for neighbours, rank in ((6, 1), (18, 2), (26, 3)):
            components = find_components(mask, neighbours)
            wanted, count = ndimage.label(mask, ndimage.generate_binary_structure(3, rank))
            assert components.total == count
            np.testing.assert_array_equal(components.number(), wanted)
            np.testing.assert_array_equal(components.sizes, np.bincount(wanted.reshape(-1))[1:])
            boxes = [tuple(slice(*side) for side in zip(row[::2], row[1::2])) for row in components.ends.tolist()]
            assert boxes == ndimage.find_objects(wanted)
            chosen = np.flatnonzero(draw.random(count) < 0.5)
            if chosen.size:
                box = cover(boxes[number] for number in chosen.tolist())
                np.testing.assert_array_equal(components.draw(chosen, box), np.isin(wanted, chosen + 1)[box])
        steps = int(draw.integers(1, 4))
        structure = ndimage.generate_binary_structure(3, 2)
        np.testing.assert_array_equal(grow(mask, steps), ndimage.binary_dilation(mask, structure, iterations=steps))


@pytest.mark.parametrize("chunk", [7, 1 << 18])
@pytest.mark.parametrize("seed", range(5))
def test_components_of_both_sides_share_the_voxels_that_scipy_finds(
    seed: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components_room, "_CHUNK", chunk)
    monkeypatch.setattr(boxes_room, "_SLAB", 40 * chunk)
    draw = np.random.default_rng(seed)
    for density in (0.0, 0.05, 0.2, 0.4, 1.0):
        shape = tuple(draw.integers(0 if density else 1, 14, 3))
        sides = draw.random(shape) < density, draw.random(shape) < 0.3
        for neighbours, rank in ((6, 1), (18, 2), (26, 3)):
            shared = compare_components(*sides, neighbours)
            numbers = [ndimage.label(side, ndimage.generate_binary_structure(3, rank))[0] for side in sides]
            for sizes, wanted in zip((shared.true_sizes, shared.predicted_sizes), numbers):
                np.testing.assert_array_equal(sizes, np.bincount(wanted.reshape(-1), minlength=1)[1:])
            both = sides[0] & sides[1]
            pairs, voxels = np.unique(np.stack([side[both] - 1 for side in numbers]), axis=1, return_counts=True)
            np.testing.assert_array_equal(np.stack([shared.true, shared.predicted]), pairs)
            np.testing.assert_array_equal(shared.voxels, voxels)
            for sizes, names, left in zip((shared.true_sizes, shared.predicted_sizes), pairs, shared.list_untouched()):
                assert left.tolist() == [size for name, size in enumerate(sizes.tolist()) if name not in names]


def test_a_prediction_of_far_more_pieces_than_the_truth_is_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components_room, "_MOST_RUNS", 100)
    truth, noise = np.zeros((4, 9, 9), bool), np.zeros((4, 9, 9), bool)
    noise[:, :, ::2] = True
    truth[1, :3, 4] = True
    with pytest.raises(Flaw, match="^has a region of more than 100 runs of voxels$") as rejection:
        compare_components(truth, noise, 26)
    assert rejection.value.remedy == "Check the labels, and remove isolated voxels"
    truth[:, ::3, 4] = True
    assert len(compare_components(truth, noise, 26).predicted_sizes) == 5


@pytest.mark.parametrize("name", ["volumes", "components", "brats-2023"])
def test_a_truth_that_is_noise_is_named_as_the_cause(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, organ = np.zeros((4, 9, 9), np.uint8), np.zeros((4, 9, 9), np.uint8)
    noise[:, :, ::2], organ[1, :3, 4] = 1, 1
    monkeypatch.setattr(components_room, "_MOST_TRUE_RUNS", 179)
    monkeypatch.setattr(surfaces_room, "_MOST_TRUE_PLACES", 499)
    with pytest.raises(Flaw) as rejection:
        count_case(noise, organ, (1.0, 1.0, 1.0), VOLUME_PROTOCOLS[name])
    sentence = (
        "whose surface has 500 places; the limit is 499" if name == "volumes" else "of more than 179 runs of voxels"
    )
    assert (rejection.value.fault, rejection.value.remedy) == (f"has a truth with a region {sentence}", NOISE)
    monkeypatch.setattr(components_room, "_MOST_TRUE_RUNS", 180)
    monkeypatch.setattr(surfaces_room, "_MOST_TRUE_PLACES", 500)
    count_case(noise, organ, (1.0, 1.0, 1.0), VOLUME_PROTOCOLS[name])


@pytest.mark.parametrize("name", ["volumes", "kits23", "msd", "brats-2023", "brats-2024-ped"])
def test_a_truth_of_isolated_voxels_is_named_as_the_cause(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surfaces_room, "_MOST_SPECKS", 100)
    row = VOLUME_PROTOCOLS[name]
    specks = np.zeros((24, 24, 24), np.uint8)
    specks[2::3, 2::3, 2::3] = 2
    organ, thin = specks * 0, specks * 0
    organ[4:20, 4:20, 4:20] = thin[3, 5, 2:20] = thin[3:20, 5, 2] = 2
    spacing = (1.0, 1.0, 1.0) if name[:5] != "brats" else (4.0, 4.0, 4.0)
    with pytest.raises(Flaw) as rejection:
        count_case(specks, organ, spacing, row)
    fault = "has a truth with a region of isolated voxels:"
    assert rejection.value.fault == f"{fault} 4,096 places on the surface of 512 voxels"
    assert rejection.value.remedy == NOISE
    monkeypatch.setattr(lesions_room, "_MOST_SPECKS", 511)
    with pytest.raises(Flaw, match=f"^{fault} (4,096 places on .*|512 voxels in 512 runs)$") as rejection:
        count_case(specks, organ, spacing, row)
    assert rejection.value.remedy == NOISE
    for prediction in (organ, thin, specks):
        assert count_case(organ, prediction, spacing, row)["known"].any()


def test_a_prediction_that_meets_many_lesions_in_large_boxes_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, filled = np.zeros((9, 9, 30), np.uint8), np.ones((9, 9, 30), np.uint8)
    truth[4, 2:7, 2:28:8] = 3
    row = replace(VOLUME_PROTOCOLS["brats-2023-met"], regions=VOLUME_PROTOCOLS["brats-2023-met"].regions[:1])
    monkeypatch.setattr(lesions_room, "_MOST_SEARCHED", 4 * filled.size)
    assert count_case(truth, filled, (1.0, 1.0, 1.0), row)["values"][0, 0] > 0
    monkeypatch.setattr(lesions_room, "_MOST_SEARCHED", 4 * filled.size - 1)
    monkeypatch.setattr(lesions_room, "_measure_masks", None)  # no lesion is measured first
    with pytest.raises(Flaw, match="touch many true ones: the boxes around them have more than 9,719 voxels in all"):
        count_case(truth, filled, (1.0, 1.0, 1.0), row)


def test_a_region_is_measured_around_its_labels_and_the_growth_of_its_lesions() -> None:
    labels = np.zeros((9, 9, 20), np.uint8)
    labels[4, 1, 10] = 1
    boxes, protocol = find_boxes(labels, 4), VOLUME_PROTOCOLS["brats-2023"]
    whole_tumour = protocol.regions[0]
    assert find_region_box(whole_tumour, (boxes, boxes), labels.shape, protocol) == (
        slice(1, 8),
        slice(0, 5),
        slice(7, 14),
    )
    without_lesions = replace(protocol, lesions=None)
    tight = (slice(4, 5), slice(1, 2), slice(10, 11))
    assert find_region_box(whole_tumour, (boxes, boxes), labels.shape, without_lesions) == tight
