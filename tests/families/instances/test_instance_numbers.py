"""Rules of the instance track, one by one, on masks whose scores are known by hand or from pycocotools."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.reports import standard_errors
from segjudge.evaluation_script.families.instances import engine as instances
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.metrics import averages
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring import scorer
from tests.backends import use_numpy
from tests.builders import count_results, score_instances, zipped
from tests.families.instances.test_instances import EVERY_PAIR, box, encoded

EXACT = 1e-9
RIGHT = pytest.approx(1.0, abs=EXACT)
#: All masks lie in images of this size.
SIZE = (120, 130)
PLACES = INSTANCE_PROTOCOLS["places2017-official"]


def mask(height: int, width: int, top: int = 0, left: int = 0) -> Any:
    return encoded(box(top, left, height, width, SIZE))


def document(*annotations: Any, images: int = 1, categories: int = 1, first: int = 1) -> Any:
    """Return a document of annotations (image, category, area, mask) with ids from `first`."""
    return {
        "images": [{"id": k, "height": SIZE[0], "width": SIZE[1]} for k in range(images)],
        "categories": [{"id": k, "name": f"c{k}"} for k in range(categories)],
        "annotations": [
            {
                "id": first + k, "image_id": image, "category_id": category, "area": area, "iscrowd": 0,
                "segmentation": item,
            }
            for k, (image, category, area, item) in enumerate(annotations)
        ],
    }  # fmt: skip


def detection(score: float, segmentation: Any, image: int = 0, category: int = 0) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "score": score, "segmentation": segmentation}


def scored(truth: Any, prediction: Any, folder: Path, protocol: Any = PLACES) -> instances.InstanceScore:
    path = folder / "found.json"
    path.write_text(json.dumps(prediction))
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    return score_instances(str(path), read, protocol, INSTANCE_LIMITS)


# ── matching ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("height", "matched"), [(11, 1), (10, 1), (9, 0)])
def test_an_overlap_of_exactly_a_threshold_is_a_match(height: int, matched: int, tmp_path: Path) -> None:
    score = scored(document((0, 0, 9, mask(20, 10))), [detection(0.9, mask(height, 10))], tmp_path)
    assert score.values["AP50"] == (RIGHT if matched else 0.0)


# ── standard errors ─────────────────────────────────────────────────────────


def some_images(count: int) -> tuple[Any, Any]:
    """Return images with two instances of two categories; some are detected, with scores without ties."""
    annotations = [(k, c, 400, mask(20, 20, 40 * c)) for k in range(count) for c in (0, 1)]
    results = [
        detection(0.99 - 0.01 * (7 * k % 11) - 0.001 * c, mask(20, 20 - 3 * (k % 4), 40 * c + 30 * (k % 3 == 2)), k, c)
        for k in range(count)
        for c in (0, 1)
        if (k + c) % 5
    ]
    return document(*annotations, images=count, categories=2), results


def copied(truth: Any, prediction: Any, chosen: Any) -> tuple[Any, Any]:
    """Return a truth and detections with these images, repeated as listed."""
    drawn = {**truth, "images": [{**truth["images"][item], "id": k} for k, item in enumerate(chosen)]}
    of_image = [[a for a in truth["annotations"] if a["image_id"] == item] for item in chosen]
    annotations = [{**a, "image_id": k} for k, some in enumerate(of_image) for a in some]
    drawn["annotations"] = [{**a, "id": k + 1} for k, a in enumerate(annotations)]
    return drawn, [
        {**item, "image_id": k} for k, place in enumerate(chosen) for item in prediction if item["image_id"] == place
    ]


def counted_of(truth: Any, prediction: Any, folder: Path) -> Any:
    path = folder / "found.json"
    path.write_text(json.dumps(prediction))
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    counts: Any = count_results(str(path), read, ScoringRules(PLACES, INSTANCE_LIMITS))
    return counts


def values_of(truth: Any, prediction: Any, folder: Path) -> Any:
    counted = counted_of(truth, prediction, folder)
    return averages(counted.rank_detections().curves(EVERY_PAIR), PLACES, [""] * len(counted.categories))


def errors_of(truth: Any, prediction: Any, folder: Path, metrics: Any = ()) -> Any:
    return standard_errors(counted_of(truth, prediction, folder).without_groups(metrics))


@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("count", [7, 45])
def test_standard_errors_are_of_scoring_without_each_of_twenty_groups(
    count: int, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are fewer images than groups, each is a group; the random groups are the same in every run."""
    truth, results = some_images(count)
    groups = min(20, count)
    dealt = np.random.Generator(np.random.PCG64(0)).permutation(count) % groups
    without = [np.flatnonzero(dealt != group).tolist() for group in range(groups)]
    draws = [values_of(*copied(truth, results, kept), tmp_path) for kept in without]
    if path == "numpy":
        use_numpy(monkeypatch)
    errors = errors_of(truth, results, tmp_path)

    assert set(errors) == {name for name, value in draws[0].items() if value is not None}
    for name, error in errors.items():
        values = [draw[name] for draw in draws]
        assert error == pytest.approx(np.std(values) * np.sqrt(groups - 1), abs=EXACT), name
    assert errors["AP"] > 0.01
    for some in (["AP50"], ["AP", "AR@1"], ["AP", "APs"]):
        assert errors_of(truth, results, tmp_path, some) == {name: errors[name] for name in some}


# ── the cap, and what is counted ────────────────────────────────────────────


@pytest.mark.parametrize("cap", ["image", "category"])
def test_the_cap_keeps_the_highest_scores_of_each_image_or_category(cap: str, tmp_path: Path) -> None:
    """Three detections are allowed; an image has two of one category and two of the other."""
    protocol = replace(PLACES, detections=(1, 2, 3), cap=cap, id_zero_quirk=False)
    first, second = mask(10, 10), mask(10, 10, 50)
    truth = document(
        *((k, c, 100, item) for k in (0, 1) for c in (0, 1) for item in (first, second)), images=2, categories=2
    )
    results = [
        detection(0.9 - 0.1 * place, item, image, category)
        for image in (0, 1)
        for place, (category, item) in enumerate([(1, first), (0, first), (1, second), (0, second)])
    ]
    score = scored(truth, results, tmp_path, protocol)
    rows = {row["id"]: row["AR"] for row in score.categories}
    assert rows == {0: 0.5 if cap == "image" else 1.0, 1: 1.0}
    dropped = "2 records beyond 3 in 2 images were dropped"
    assert score.warnings == ([dropped] if cap == "image" else [])


# ── the annotation file ─────────────────────────────────────────────────────


def test_a_truth_is_read_plain_gzipped_zipped_or_packed(tmp_path: Path) -> None:
    data = json.dumps(document((0, 0, 9, mask(3, 3)))).encode()
    path = tmp_path / "truth"
    for upload in (data, gzip.compress(data), zipped({"a/truth.json": data, "readme.txt": b"x"})):
        path.write_bytes(upload)
        (name, read), *others = instance_truth.read(str(path), "x").items()
        assert (name, read.ids.tolist(), others) == ("x", [1], [])
        assert list(scorer.read_truth(str(path), "coco").splits) == ["val"]
    for upload in (zipped({"a.json": data, "b.json": data}), zipped({"a.txt": b"x"})):
        path.write_bytes(upload)
        with pytest.raises(HostError, match="holds (2 JSON files|no JSON file); an annotation file has one"):
            instance_truth.read(str(path))
    instance_truth.write(str(path), {"a": data, "b": data})
    assert list(instance_truth.read(str(path))) == list(scorer.read_truth(str(path), "coco").splits) == ["a", "b"]
