"""Boundary AP and LVIS: the official numbers, federated categories, crowds, boundaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families.instances import engine as instances
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.backends import use_numpy
from tests.builders import score_instances
from tests.data import TRACKS_DATA
from tests.shared import needs_shared

DATA = TRACKS_DATA / "instances"
#: The official evaluator → our row.
ROWS = {"segm": "coco", "boundary": "coco-boundary", "lvis_segm": "lvis", "lvis_boundary": "lvis-boundary"}
#: Its areas come from boxes; an annotation-free image and an unknown one end the official run.
NOT_EQUALLED = ("with-boxes",)
EXACT = 1e-9


def golden() -> Any:
    path = DATA / "golden.json"
    return json.loads(path.read_text()) if path.exists() else {"cases": {}}


def cases() -> list[tuple[str, str]]:
    cases = golden()["cases"]
    return [
        (case, evaluator)
        for case in cases
        for evaluator in ROWS
        if case not in NOT_EQUALLED and "stats" in cases[case][evaluator]
    ]


def scored(path: Path, truth: Path, protocol: str) -> instances.InstanceScore:
    known = instance_truth.read(str(truth))["val"]
    return score_instances(str(path), known, INSTANCE_PROTOCOLS[protocol], INSTANCE_LIMITS)


def agree(score: instances.InstanceScore, run: Any) -> None:
    for name, number in run["stats"].items():
        assert score.values[name] == (None if number is None else pytest.approx(number, abs=EXACT)), name
    rows = {str(row["id"]): row for row in score.categories}
    assert set(run["per_category"]) <= set(rows)
    for number, numbers in run["per_category"].items():
        for name, value in numbers.items():
            assert rows[number][name] == (None if value is None else pytest.approx(value, abs=EXACT)), (number, name)


@needs_shared
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("case", "evaluator"), cases())
def test_each_number_of_the_official_evaluators(
    case: str, evaluator: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        pytest.importorskip("pycocotools")
        use_numpy(monkeypatch)
    run = golden()["cases"][case]
    score = scored(DATA / f"{case}.json", DATA / run["truth"], ROWS[evaluator])
    agree(score, run[evaluator])
    assert list(score.values) == list(INSTANCE_PROTOCOLS[ROWS[evaluator]].metrics)


@needs_shared
@pytest.mark.parametrize("protocol", ROWS.values())
def test_what_ends_the_official_run_is_a_sentence_or_zero(protocol: str) -> None:
    score = scored(DATA / "empty.json", DATA / "truth.json", protocol)
    assert score.values["AP"] == 0
    assert score.warnings == ["the submission holds no records"]
    with pytest.raises(SubmissionError, match="has an image_id that the truth lacks"):
        scored(DATA / "unknown-image.json", DATA / "truth.json", protocol)


# ── rules, one by one ───────────────────────────────────────────────────────

SIZE = HEIGHT, WIDTH = 20, 30


def mask(first: int, count: int) -> Any:
    """Return the mask of some columns."""
    runs = [first * HEIGHT, count * HEIGHT, (WIDTH - first - count) * HEIGHT]
    return {"size": list(SIZE), "counts": rle.compress(runs)}


def truth(**image: Any) -> dict[str, Any]:
    """Return one instance of category 1, and two categories without statements about it."""
    return {
        "images": [{"id": 1, "height": HEIGHT, "width": WIDTH, **image}],
        "categories": [{"id": k, "name": str(k), "frequency": "rcf"[k - 1]} for k in (1, 2, 3)],
        "annotations": [
            {"id": 7, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 200, "segmentation": mask(0, 10)}
        ],
    }


def found(category: int, score: float, first: int = 0, count: int = 10) -> dict[str, Any]:
    return {"image_id": 1, "category_id": category, "score": score, "segmentation": mask(first, count)}


def score_of(document: Any, records: Any, folder: Path, protocol: str = "lvis") -> Any:
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "sent.json").write_text(json.dumps(records))
    return scored(folder / "sent.json", folder / "truth.json", protocol)


@pytest.mark.parametrize(
    ("image", "ap"),
    [
        ({"neg_category_ids": [], "not_exhaustive_category_ids": []}, 0.5),
        ({"neg_category_ids": [], "not_exhaustive_category_ids": [1]}, 1.0),
        ({"neg_category_ids": [], "not_exhaustive_category_ids": [2]}, 0.5),
    ],
)
def test_what_is_not_exhaustive_refuses_no_detection(image: Any, ap: float, tmp_path: Path) -> None:
    """The first detection is wrong; it counts only if its whole category is annotated."""
    score = score_of(truth(**image), [found(1, 0.9, 20), found(1, 0.8)], tmp_path)
    assert score.values["AP"] == score.values["APr"] == pytest.approx(ap)
    assert score.values["APc"] is None


@pytest.mark.parametrize(("negative", "counted"), [([], False), ([2], True), (None, True)])
def test_detections_count_where_their_category_was_looked_for(negative: Any, counted: bool, tmp_path: Path) -> None:
    document = truth() if negative is None else truth(neg_category_ids=negative)
    document["images"].append({"id": 2, "height": HEIGHT, "width": WIDTH, "neg_category_ids": []})
    document["annotations"].append({**document["annotations"][0], "id": 8, "image_id": 2, "category_id": 2})
    if negative is None:
        del document["images"][1]["neg_category_ids"]
    records = [found(2, 0.9), {**found(2, 0.8), "image_id": 2}]
    score = score_of(document, records, tmp_path)
    assert score.values["APc"] == pytest.approx(0.5 if counted else 1.0)


def test_what_is_empty_does_not_exist(tmp_path: Path) -> None:
    document = truth(neg_category_ids=[], not_exhaustive_category_ids=[])
    document["annotations"].append({**document["annotations"][0], "id": 8, "segmentation": mask(0, 0), "area": 0})
    records = [found(1, 0.9, count=0), found(1, 0.8)]
    assert score_of(document, records, tmp_path).values["AP"] == pytest.approx(1.0)
    assert score_of(document, records, tmp_path, "coco").values["AP"] < 0.5


def test_the_cap_is_of_an_image_and_takes_what_is_left_out_later(tmp_path: Path) -> None:
    document = truth(neg_category_ids=[], not_exhaustive_category_ids=[])
    records = [found(3, 0.9) for _ in range(300)]
    score = score_of(document, [*records, found(1, 0.8)], tmp_path)
    assert score.values["AP"] == 0
    assert score.warnings == ["1 record beyond 300 in 1 image was dropped"]
    assert score_of(document, [*records[1:], found(1, 0.8)], tmp_path).values["AP"] == pytest.approx(1.0)


@pytest.mark.parametrize(("protocol", "value"), [("lvis", 0.5), ("lvis-boundary", 1.0)])
def test_a_crowd_counts_as_any_other_only_without_boundaries(protocol: str, value: float, tmp_path: Path) -> None:
    document = truth(neg_category_ids=[], not_exhaustive_category_ids=[])
    crowd = {**document["annotations"][0], "id": 8, "iscrowd": 1, "segmentation": mask(15, 10)}
    document["annotations"].append(crowd)
    assert score_of(document, [found(1, 0.8)], tmp_path, protocol).values["AR@300"] == value


def test_a_coarse_outline_of_a_large_mask_has_a_small_boundary_iou(tmp_path: Path) -> None:
    document, records = truth(), [found(1, 0.8, 0, 9)]
    assert score_of(document, records, tmp_path, "coco").values["AR@100"] == 0.9  # an IoU of .9
    assert score_of(document, records, tmp_path, "coco-boundary").values["AR@100"] < 0.5


def test_the_annotation_with_id_zero_cannot_be_matched(tmp_path: Path) -> None:
    document = truth()
    document["annotations"][0]["id"] = 0
    assert score_of(document, [found(1, 0.8)], tmp_path).values["AP"] == 0
    assert score_of(document, [found(1, 0.8)], tmp_path, "coco-boundary").values["AP"] == pytest.approx(1.0)
