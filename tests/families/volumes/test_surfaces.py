"""Overlaps and distances of surfaces: every number of the libraries with the same definition."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from segjudge.evaluation_script.families.volumes.engine import count_case
from segjudge.evaluation_script.families.volumes.measures import _relative_volume_error
from segjudge.evaluation_script.families.volumes.overlaps import Overlap
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.families.volumes.surfaces import (
    Sides,
    distance_by_side,
    distance_by_weight,
    distance_pooled,
    mean_by_side,
    mean_of_side,
    mean_pooled,
    measure_borders,
    share_within,
)
from tests.families.volumes.volumes import measure_elements, read_golden, read_pair

GOLDEN = read_golden("pairs")["cases"]
BOTH = [case for case, golden in GOLDEN.items() if not golden["safe"]["empty"]]
EXACT: dict[str, Any] = {"rel": 1e-12, "abs": 1e-12}
IN_32_BITS: dict[str, Any] = {"rel": 1e-5, "abs": 1e-6}


def masks_of(case: str) -> tuple[Any, Any, Any]:
    truth, prediction = read_pair("pairs", case)
    return truth.labels > 0, prediction.labels > 0, tuple(GOLDEN[case]["spacing"])


def overlap_of(truth: Any, prediction: Any) -> Overlap:
    return Overlap(int(truth.sum()), int(prediction.sum()), int((truth & prediction).sum()))


@pytest.mark.parametrize("case", GOLDEN)
def test_overlaps_are_those_of_the_libraries(case: str) -> None:
    truth, prediction, _ = masks_of(case)
    overlap, official, safe = overlap_of(truth, prediction), GOLDEN[case]["official"], GOLDEN[case]["safe"]
    assert overlap == (safe["truth_voxels"], safe["prediction_voxels"], safe["both"])
    if overlap.is_empty:
        assert (overlap.dice, overlap.iou, overlap.volume_similarity) == (None, None, None)
        return
    assert overlap.dice == official["deepmind"]["dice"] == official["nnunet"]["Dice"] == safe["dice"]
    assert overlap.iou == official["nnunet"]["IoU"]
    assert overlap.volume_similarity == pytest.approx(official["pymia"]["volume_similarity"], **EXACT)
    if overlap.truth and overlap.prediction:
        counts = official["nnunet"]
        assert overlap.recall == counts["TP"] / (counts["TP"] + counts["FN"])
        assert overlap.precision == counts["TP"] / (counts["TP"] + counts["FP"])
        assert overlap.recall == pytest.approx(official["reloaded"]["sensitivity"], **IN_32_BITS)
        assert overlap.precision == pytest.approx(official["reloaded"]["ppv"], **IN_32_BITS)
        error = _relative_volume_error(SimpleNamespace(overlap=overlap))  # type: ignore[arg-type]
        assert error == pytest.approx(100 * abs(official["medpy"]["ravd"]), **EXACT)
    else:
        assert overlap.dice == 0


def elements_of(sides: Sides) -> dict[str, Any]:
    return {
        "hd": distance_by_weight(sides, 100),
        "hd95": distance_by_weight(sides, 95),
        "average_truth_to_prediction": mean_of_side(sides.truth),
        "average_prediction_to_truth": mean_of_side(sides.prediction),
        "surface_elements": [len(side.distances) for side in sides],
        "areas": [float(side.weights.sum()) for side in sides],
    }


@pytest.mark.parametrize("case", BOTH)
def test_elements_are_those_of_surface_distance(case: str) -> None:
    *masks, spacing = masks_of(case)
    sides, official = measure_elements(*masks, spacing), GOLDEN[case]["official"]
    for name, value in elements_of(sides).items():
        assert value == pytest.approx(official["deepmind"][name], **EXACT), name
    for tolerance in GOLDEN[case]["tolerances"]:
        nsd = share_within(sides, tolerance)
        assert nsd == pytest.approx(official["deepmind"][f"nsd@{tolerance}"], **EXACT)
        assert nsd == pytest.approx(official["pymia"][f"nsd@{tolerance}"], **EXACT)
        if case != "tolerance-float":  # where a distance of 32 bits equals the tolerance
            assert nsd == pytest.approx(official["monai"][f"nsd_subvoxels@{tolerance}"], **IN_32_BITS)


@pytest.mark.parametrize("case", BOTH)
def test_borders_are_those_of_metrics_reloaded_medpy_and_monai(case: str) -> None:
    *masks, spacing = masks_of(case)
    sides, official = measure_borders(masks, spacing), GOLDEN[case]["official"]
    reloaded, medpy, monai = (official[library] for library in ("reloaded", "medpy", "monai"))
    assert distance_by_side(sides, 100) == pytest.approx(reloaded["hd"], **EXACT)
    assert distance_pooled(sides, 100) == pytest.approx(medpy["hd"], **EXACT)
    assert distance_by_side(sides, 95) == pytest.approx(reloaded["hd95"], **EXACT)
    assert distance_pooled(sides, 95) == pytest.approx(medpy["hd95"], **EXACT)
    assert mean_pooled(sides) == pytest.approx(reloaded["assd"], **EXACT)
    assert mean_pooled(sides) == pytest.approx(medpy["assd"], **EXACT)
    assert mean_by_side(sides) == pytest.approx(reloaded["masd"], **EXACT)
    assert mean_of_side(sides.prediction) == pytest.approx(medpy["asd"], **EXACT)
    assert mean_of_side(sides.truth) == pytest.approx(medpy["asd_exchanged"], **EXACT)
    assert distance_by_side(sides, 95) == pytest.approx(monai["hd95"], **IN_32_BITS)
    assert mean_pooled(sides) == pytest.approx(monai["asd_symmetric"], **IN_32_BITS)
    for tolerance in GOLDEN[case]["tolerances"]:
        assert share_within(sides, tolerance) == pytest.approx(reloaded[f"nsd@{tolerance}"], **EXACT)


@pytest.mark.parametrize("case", [case for case in GOLDEN if case not in BOTH])
def test_the_distance_to_an_empty_surface_is_infinite(case: str) -> None:
    *masks, spacing = masks_of(case)
    for side in (*measure_elements(*masks, spacing), *measure_borders(masks, spacing)):
        assert np.isinf(side.distances).all()


@pytest.mark.parametrize("seed", range(6))
def test_distances_are_exact(seed: int) -> None:
    """SciPy's exact transform agrees on random places of any density, to the last bit but one."""
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(1, 14, 3)), tuple(draw.choice([0.3, 0.75, 1.0, 2.5], 3).tolist())
    for density in (0.01, 0.1, 0.5, 0.95):
        masks = [draw.random(shape) < density for _ in range(2)]
        borders = [mask & ~ndimage.binary_erosion(mask) for mask in masks]
        sides = measure_borders(masks, spacing)
        for side, own, other in zip(sides, borders, borders[::-1]):
            if not other.any():
                assert np.isinf(side.distances).all()
                continue
            wanted = ndimage.distance_transform_edt(~other, sampling=spacing[::-1])[own]
            np.testing.assert_allclose(side.distances, wanted, rtol=1e-15, atol=0)


@pytest.mark.parametrize(("truth", "sent", "distance"), [(2, 4, math.sqrt(48)), (4, 2, math.sqrt(48)), (4, 4, 0.0)])
def test_a_mask_that_fills_a_volume_with_open_ends_has_the_worst_distance(
    truth: int, sent: int, distance: float
) -> None:
    volumes = [np.zeros((4, 4, 4), np.uint8) for _ in range(2)]
    for index, side in enumerate((truth, sent)):
        volumes[index][:side] = 1
    tables = count_case(*volumes, (1.0, 1.0, 1.0), VOLUME_PROTOCOLS["chaos"])

    assert tables["values"][0, 2:].tolist() == [distance, distance]
