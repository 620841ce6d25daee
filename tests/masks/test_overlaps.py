"""Overlaps of masks and boxes, compared with short formulas and values computed by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend
from segjudge.evaluation_script.masks.overlaps import LabelMap, _keep_boundary, reach_of
from tests.data import TRACKS_DATA
from tests.shared import needs_shared

pytestmark = pytest.mark.usefixtures("without_kernel")

#: Boundaries and reaches as LVIS's evaluator has them.
_FILE = TRACKS_DATA / "instances/golden.json"
GOLDEN: Any = json.loads(_FILE.read_text()) if _FILE.exists() else {"boundaries": {}, "reach": {}}


# ── boundaries ──────────────────────────────────────────────────────────────


@needs_shared
@pytest.mark.parametrize("name", GOLDEN["boundaries"])
def test_boundaries_are_the_official_ones(name: str) -> None:
    item = GOLDEN["boundaries"][name]
    height, width = item["mask"]["size"]
    flags, expected = (
        np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height)
        for runs in (rle.runs_of(item[key]["counts"], height * width) for key in ("mask", "boundary"))
    )
    reach = reach_of(height, width, 0.02)
    assert reach == item["reach"]
    assert np.array_equal(_keep_boundary(flags, reach), expected)


@needs_shared
def test_halves_of_the_reach_are_rounded_to_even_numbers() -> None:
    for size, reach in GOLDEN["reach"].items():
        height, width = map(int, size.split("x"))
        assert reach_of(height, width, 0.02) == reach


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
@pytest.mark.parametrize("labels", [16, 17, 200])
def test_every_pair_of_labels_is_counted_whatever_their_type(kind: Any, labels: int) -> None:
    random = np.random.default_rng(labels)
    truth, prediction = (random.integers(0, labels, (410, 410)).astype(kind) for _ in range(2))
    pairs = NumpyBackend().count_label_pairs(LabelMap(truth), LabelMap(prediction))
    counted = np.zeros((labels, labels), int)
    np.add.at(counted, (truth.ravel(), prediction.ravel()), 1)
    assert [column.tolist() for column in pairs] == [
        *(side.tolist() for side in np.nonzero(counted)),
        counted[counted > 0].tolist(),
    ]
