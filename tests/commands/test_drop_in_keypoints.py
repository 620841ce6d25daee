"""Keypoints by the stand-in for pycocotools: the same numbers, from files, lists and objects of pycocotools."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import coco as incumbent
from pycocotools.cocoeval import COCOeval as Incumbent

from segjudge.drop_in.coco import COCO
from segjudge.drop_in.cocoeval import COCOeval

WAYS = ("file", "list", "objects")
Rows = list[dict[str, Any]]


def draw(points: int = 17, *, boxes: bool = True) -> tuple[dict[str, Any], Rows]:
    """A truth of people and dogs, some crowded, some unmarked, one with the id 0; detections with equal scores."""
    generator = np.random.default_rng(41)
    truth: dict[str, Any] = {
        "images": [{"id": number, "height": 480, "width": 640} for number in range(1, 31)],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
        "annotations": [],
    }
    sent: Rows = []
    for image in range(1, 29):
        for number in range(int(generator.integers(0, 4))):
            side = float(generator.choice([20, 60, 150]))
            corner = generator.uniform(0, 300, 2).round(1)
            marks = generator.integers(0, 3, points) * int(number < 2)
            places = (corner + generator.uniform(0, side, (points, 2))).round(1)
            truth["annotations"].append({
                "id": len(truth["annotations"]), "image_id": image, "category_id": int(generator.integers(1, 3)),
                "keypoints": np.column_stack((places, marks)).reshape(-1).tolist(), "area": side * side / 2,
                "num_keypoints": int((marks > 0).sum()), "iscrowd": int(generator.random() < 0.1),
                "bbox": [*corner.tolist(), side, side],
            })  # fmt: skip
            for _ in range(int(generator.integers(1, 9))):
                moved = places + generator.normal(0, generator.choice([0.5, 3, 30]), (points, 2))
                record = {
                    "image_id": image, "category_id": int(generator.integers(1, 3)),
                    "keypoints": np.column_stack((moved, np.ones(points))).reshape(-1).tolist(),
                    "score": float(generator.choice([0.25, 0.5, generator.random()])),
                }  # fmt: skip
                sent.append({**record, "bbox": [*corner.tolist(), side * 2, side]} if boxes else record)
    return truth, sent


def evaluate(ours: bool, way: str, folder: Path, given: tuple[dict[str, Any], Rows], changes: dict[str, Any]) -> Any:
    """Return an evaluation and its summary."""
    truth, sent = copy.deepcopy(given)
    with contextlib.redirect_stdout(io.StringIO()):
        if way == "objects":
            coco: Any = incumbent.COCO()
            coco.dataset = truth
            coco.createIndex()
            detections: Any = coco.loadRes(sent)
        else:
            (folder / "truth.json").write_text(json.dumps(truth))
            (folder / "sent.json").write_text(json.dumps(sent))
            coco = (COCO if ours else incumbent.COCO)(str(folder / "truth.json"))
            detections = coco.loadRes(str(folder / "sent.json") if way == "file" else sent)
        evaluation: Any = (COCOeval if ours else Incumbent)(coco, detections, "keypoints")
        for name, value in changes.items():
            setattr(evaluation.params, name, value)
        evaluation.evaluate()
        evaluation.accumulate()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        evaluation.summarize()
    return evaluation, output.getvalue()


def compare(way: str, folder: Path, given: tuple[dict[str, Any], Rows], changes: dict[str, Any]) -> tuple[Any, Any]:
    (ours, printed), (theirs, expected) = (evaluate(is_ours, way, folder, given, changes) for is_ours in (True, False))
    assert printed == expected
    assert np.array_equal(ours.stats, theirs.stats)
    assert ours.eval["counts"] == theirs.eval["counts"]
    for name in ("precision", "recall", "scores"):
        assert np.array_equal(ours.eval[name], theirs.eval[name]), name
    return ours, theirs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kpt_oks_sigmas": np.linspace(0.02, 0.2, 17)},
        {"areaRng": [[0, 1e10], [0, 300], [300, 9000], [9000, 1e10]]},
        {"maxDets": [20, 1, 5]},
        {"imgIds": [3, 9, 4, 3, 17]},
        {"imgIds": []},
    ],
    ids=lambda changes: "-".join(changes) or "COCO's",
)
def test_keypoints_have_the_numbers_of_pycocotools_with_any_parameters(
    way: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    ours, _ = compare(way, tmp_path, draw(), changes)
    assert ours._counts is not None  # matched here, not by pycocotools


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("boxes", [True, False], ids=["boxes", "no-boxes"])
def test_matches_and_similarities_of_keypoints_are_those_of_pycocotools(way: str, boxes: bool, tmp_path: Path) -> None:
    ours, theirs = compare(way, tmp_path, draw(boxes=boxes), {})
    assert ours._counts is not None
    assert ours.stats[0] > 0.05
    assert ours.ious.keys() == theirs.ious.keys()
    assert all(np.array_equal(ours.ious[key], value) for key, value in theirs.ious.items())
    for one, two in zip(ours.evalImgs, theirs.evalImgs, strict=True):
        assert (one is None) == (two is None)
        assert two is None or all(np.array_equal(one[key], value) for key, value in two.items())


@pytest.mark.parametrize("way", WAYS)
def test_other_skeletons_need_only_their_sigmas(way: str, tmp_path: Path) -> None:
    ours, _ = compare(way, tmp_path, draw(5), {"kpt_oks_sigmas": np.linspace(0.02, 0.2, 5)})
    assert ours._counts is not None


@pytest.mark.parametrize(
    "changes",
    [{"useCats": 0}, {"areaRng": [[0, math.inf], [0, 1e4], [1e4, 1e10]]}, {"iouThrs": np.linspace(0.5, 0.95, 19)}],
    ids=["no-categories", "endless-range", "thresholds"],
)
def test_what_is_compared_otherwise_is_left_to_pycocotools(changes: dict[str, Any], tmp_path: Path) -> None:
    ours, _ = compare("file", tmp_path, draw(), changes)
    assert ours._counts is None


@pytest.mark.parametrize("key", ["num_keypoints", "bbox", "area"])
def test_annotations_that_pycocotools_refuses_are_refused_alike(key: str, tmp_path: Path) -> None:
    truth, sent = draw()
    del truth["annotations"][3][key]
    for ours in (True, False):
        with pytest.raises(KeyError, match=key):
            evaluate(ours, "file", tmp_path, (truth, sent), {})
