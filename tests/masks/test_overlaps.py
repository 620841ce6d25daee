"""Overlaps of masks and boxes, compared with short formulas and values computed by hand."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.masks import overlaps as instance_overlaps
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.masks.overlaps import LabelMap, Pairs, _keep_boundary, reach_of
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from tests.builders import run_length_text
from tests.data import TRACKS_DATA
from tests.families.unit_counts import close
from tests.shared import needs_shared

pytestmark = pytest.mark.usefixtures("without_kernel")

#: Boundaries and reaches as LVIS's evaluator has them.
_FILE = TRACKS_DATA / "instances/golden.json"
GOLDEN: Any = json.loads(_FILE.read_text()) if _FILE.exists() else {"boundaries": {}, "reach": {}}


def masks_of(masks: list[Any]) -> Masks:
    area, sizes = np.array([mask.sum() for mask in masks]), np.array([mask.shape for mask in masks])
    return Masks(pack_texts([run_length_text(mask) for mask in masks]), area, sizes)


def two_groups(seed: int) -> tuple[list[Any], list[Any], Pairs]:
    """Return blots of two sizes on each side, and the pairs of those of one size."""
    rng = np.random.default_rng(seed)

    def blots(size: tuple[int, int], count: int) -> list[Any]:
        results = []
        for _ in range(count):
            entry, (y, x) = np.zeros(size, bool), rng.integers(0, 6, 2)
            entry[y : y + rng.integers(4, 12), x : x + rng.integers(4, 12)] = True
            results.append(entry & (rng.random(size) < 0.97))
        return results

    sent, real = blots((15, 20), 3) + blots((60, 80), 2), blots((15, 20), 2) + blots((60, 80), 2)
    item, two = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 1, 0, 1, 0, 1, 2, 3, 2, 3]
    return sent, real, Pairs(np.array(item), np.array(two), np.array([0, 0, 6, 10]))


CROWD = np.array([False, True, False, True])


def overlap_of(one: Any, two: Any, crowd: bool = False) -> float:
    return float((one & two).sum() / (one.sum() if crowd else (one | two).sum()))


def test_masks_share_their_intersection_over_union_and_in_crowds_over_the_detection() -> None:
    sent, real, pairs = two_groups(1)
    mask_overlaps = backend().mask_overlaps(pairs, masks_of(sent), masks_of(real), CROWD)
    expected = [overlap_of(sent[i], real[j], CROWD[j]) for i, j in zip(pairs.prediction, pairs.truth)]
    assert mask_overlaps.tolist() == expected


def test_empty_masks_share_nothing() -> None:
    pair, nothing = Pairs(np.array([0]), np.array([0]), np.array([0, 1])), masks_of([np.zeros((3, 4), bool)])
    assert backend().mask_overlaps(pair, nothing, nothing, CROWD).tolist() == [0]


def test_empty_runs_are_joined_for_pycocotools() -> None:
    for runs, plain in (
        ([3, 0, 2, 4, 3], [5, 4, 3]), ([0, 2, 0, 3, 7], [0, 5, 7]), ([0, 12], [0, 12]), ([12, 0], [12]),
        ([2, 3, 0, 0, 0, 4, 3], [2, 7, 3]), ([0, 0, 0, 12], [0, 12]), ([4, 1, 0, 7, 0], [4, 8]),
    ):  # fmt: skip
        assert rle._drop_empty_runs(np.array(runs)).tolist() == plain
        masks = Masks(pack_texts([rle.compress([12]), rle.compress(runs)]), np.zeros(2), np.array([[3, 4]] * 2), True)
        assert rle.encode_masks(masks, np.array([1])) == [{"size": [3, 4], "counts": rle.compress(plain)}]


def test_boxes_that_only_touch_share_nothing() -> None:
    sent = np.array([[0, 0, 4, 2], [4, 0, 4, 2], [1, 1, 4, 4], [0, 2, 4, 2], [9, 9, 1, 1]], float)
    real = np.array([[0, 0, 4, 2], [2, 0, 4, 2]], float)
    pairs = Pairs(np.array([0, 1, 2, 3, 4, 0, 2]), np.array([0, 0, 0, 0, 0, 1, 1]), np.array([0, 7]))
    box_overlaps = instance_overlaps.box_overlaps(pairs, sent, real, np.array([False, True]))
    assert box_overlaps.tolist() == close([1, 0, 3 / 21, 0, 0, 4 / 8, 3 / 16])


def test_boxes_without_any_area_share_nothing() -> None:
    point, pair = np.array([[2, 2, 0, 0]], float), Pairs(np.array([0]), np.array([0]), np.array([0, 1]))
    assert instance_overlaps.box_overlaps(pair, point, point, CROWD).tolist() == [0]


def edges(mask: Any, reach: int) -> Any:
    """Return the pixels of a mask with a pixel outside it, or outside the image, within reach."""
    wide, side = np.pad(mask, reach), 2 * reach + 1
    near = [wide[y : y + mask.shape[0], x : x + mask.shape[1]] for y, x in itertools.product(range(side), repeat=2)]
    return mask & ~np.stack(near).all(0)


@pytest.mark.parametrize("seed", range(4))
def test_boundaries_lower_the_iou_where_it_is_wanted(seed: int) -> None:
    sent, real, pairs = two_groups(seed)
    for item in (sent[2], sent[4], real[1], real[2]):
        item[...] = False
        item[: item.shape[0] - seed, seed // 2 :] = True
    for item in (sent[0], real[0]):
        item[...] = False
        item[0, 3 + seed : 9] = True
    ious = np.array([overlap_of(sent[i], real[j]) for i, j in zip(pairs.prediction, pairs.truth)])
    wanted = np.array([True] * 5 + [False] + [True] * 4)
    results = instance_overlaps.smaller_of_both(pairs, masks_of(sent), masks_of(real), ious, wanted, 0.02)
    expected = []
    for i, j, iou, flag in zip(pairs.prediction, pairs.truth, ious, wanted):
        reach = {15: 1, 60: 2}[len(sent[i])]
        expected.append(min(iou, overlap_of(edges(sent[i], reach), edges(real[j], reach))) if flag else iou)
    assert results.tolist() == expected
    assert ious.tolist() != expected


def test_the_best_assignment_is_scipys() -> None:
    quality = np.array([[0.5, 0.9, 0.0], [0.4, 0.9, 0.1]])
    rows, columns = instance_overlaps.best_assignment(quality)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [0, 1])
    assert instance_overlaps.best_proposals(quality) == [0, 1, 0]


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
