"""Keypoints: every number of pycocotools on golden and random sets, rejections, and the report's texts about points."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.families.instances.diagnosis import diagnose
from segjudge.families.instances.keypoints import list_keypoints
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, find_protocol, prepare
from tests.backends import use_numpy
from tests.data import FAMILIES_DATA
from tests.families.instances.family import coco_keypoints
from tests.shared import needs_shared

SAFE, OFFICIAL = "coco-keypoints", "coco-keypoints-official"
NAMES = ("AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl")
FOLDER = FAMILIES_DATA / "keypoints"
POINTS = 17


def golden() -> dict[str, Any]:
    path = FOLDER / "golden.json"
    return json.loads(path.read_text())["cases"] if path.exists() else {}


def metrics(results: Path, truth: Path, protocol: str, **options: Any) -> dict[str, float | None]:
    (values,) = segjudge.score(results, truth, protocol, **options).metrics.values()
    return values


def golden_truth(case: dict[str, Any], folder: Path) -> Path:
    document = json.loads((FOLDER / case["truth"]).read_text())
    for category in document["categories"] if "sigmas" in case else ():
        category["sigmas"] = case["sigmas"]
    (folder / "truth.json").write_text(json.dumps(document))
    return folder / "truth.json"


def check(values: dict[str, float | None], expected: dict[str, float], exact: float = 1e-12) -> None:
    assert list(values) == list(NAMES)
    for name, number in expected.items():
        if number in (None, -1):
            assert values[name] is None, name
        else:
            assert values[name] == pytest.approx(number, abs=exact), name


#: Inputs at which pycocotools stops or which it misreads, with a part of the message here; empty where the input is
#: scored.
SAFE_RULES = {
    "count-0-flags-set": "num_keypoints is not the number of their marked points: 2",
    "count-set-flags-0": "num_keypoints is not the number of their marked points: 2",
    "with-boxes": "",
}
STOPS = {
    "no-count": "",
    "no-area": "",
    "empty": "",
    "sixteen-points": "has 48 numbers in its keypoints, not 51",
    "unknown-image": "has an image_id that the truth lacks",
    "five-points-default": "has 5 keypoints, without sigmas",
}


@needs_shared
@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("protocol", [SAFE, OFFICIAL])
@pytest.mark.parametrize("name", golden())
def test_every_golden_number_is_that_of_pycocotools(
    name: str, protocol: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "numpy":
        use_numpy(monkeypatch)
    case = golden()[name]
    results, truth = FOLDER / case["submission"], golden_truth(case, tmp_path)
    refusal = STOPS.get(name) or (SAFE_RULES.get(name) if protocol == SAFE else None)
    if refusal:
        with pytest.raises((HostError, SubmissionError), match=refusal):
            metrics(results, truth, protocol)
        return
    values = metrics(results, truth, protocol)
    if "official_error" in case["official"]:
        assert name in STOPS
        assert values["AP"] == (0 if name == "empty" else pytest.approx(0.504950495049505))
    elif name in SAFE_RULES and protocol == SAFE:
        check(values, golden()["without-boxes"]["official"]["stats"])
    else:
        check(values, case["official"]["stats"])


def write(folder: Path, document: Any, records: Any) -> tuple[Path, Path]:
    paths = folder / "results.json", folder / "truth.json"
    for path, content in zip(paths, (records, document)):
        path.write_text(json.dumps(content))
    return paths


TRUTH = {
    "images": [{"id": 1, "height": 100, "width": 100}],
    "categories": [{"id": 1, "name": "person"}],
    "annotations": [
        {
            "id": 1, "image_id": 1, "category_id": 1, "area": 2500, "iscrowd": 0, "num_keypoints": 17,
            "bbox": [10, 10, 50, 50], "keypoints": [20, 30, 2] * POINTS,
        }
    ],
}  # fmt: skip
RECORD = {"image_id": 1, "category_id": 1, "score": 0.5, "keypoints": [20, 30, 1] * POINTS}


def with_point(number: str, index: int = 0) -> str:
    numbers = list(map(str, [20, 30, 1] * POINTS))
    numbers[index] = number
    return json.dumps({**RECORD, "keypoints": "HERE"}).replace('"HERE"', f"[{', '.join(numbers)}]")


def changed(**change: Any) -> str:
    return json.dumps({**RECORD, **change})


def without(key: str) -> str:
    return json.dumps({name: value for name, value in RECORD.items() if name != key})


HOSTILE = {
    "NaN": (with_point("NaN"), "not finite"),
    "infinite": (with_point("-Infinity", 1), "not finite"),
    "flag is NaN": (with_point("NaN", 2), "not finite"),
    "flag is infinite": (with_point("Infinity", 50), "not finite"),
    "huge": (with_point("1e300"), "far outside"),
    "huge and negative": (with_point("-1e9", 49), "far outside"),
    "whole number beyond floats": (with_point("9" * 400), "far outside"),
    "flag beyond floats": (with_point("9" * 400, 2), "not finite"),
    "overflows to infinity": (with_point("1e999"), "far outside"),
    "more digits than are read": (with_point("9" * 5000), "cannot be read"),
    "text": (with_point('"20"'), "not numbers"),
    "null": (with_point("null"), "not numbers"),
    "true": (with_point("true"), "not numbers"),
    "flag is true": (with_point("true", 2), "not numbers"),
    "an object for a number": (with_point("{}"), "not numbers"),
    "rows of three": (changed(keypoints=[[20, 30, 1]] * POINTS), "has 17 numbers in its keypoints, not 51"),
    "without flags": (changed(keypoints=[20, 30] * POINTS), "has 34 numbers in its keypoints, not 51"),
    "no numbers": (changed(keypoints=[]), "has 0 numbers in its keypoints, not 51"),
    "a body of 133 points": (changed(keypoints=[1] * 399), "has 399 numbers in its keypoints, not 51"),
    "a million numbers": (changed(keypoints=[0] * 1_000_000), "has 1,000,000 numbers"),
    "points are text": (changed(keypoints="1, 2, 1"), "not a list"),
    "points are null": (changed(keypoints=None), "not a list"),
    "no keypoints": (without("keypoints"), "lacks keypoints"),
    "a key twice": (changed()[:-1] + ', "score": 0.9}', "twice"),
    "a record of masks": (
        changed(segmentation={"size": [9, 9], "counts": "…"}).replace('"keypoints"', '"points"'), "lacks keypoints",
    ),
    "a box is text": (changed(bbox="1 2 3 4"), "a bbox that is not"),
    "a box of three": (changed(bbox=[1, 2, 3]), "a bbox that is not"),
    "a box is negative": (changed(bbox=[1, 2, -3, 4]), "negative or not finite"),
    "a box is NaN": (changed(bbox=[1, 2, math.nan, 4]), "negative or not finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_honest_tool_writes_is_a_sentence(name: str, tmp_path: Path) -> None:
    text, sentence = HOSTILE[name]
    results, truth = write(tmp_path, TRUTH, [])
    for protocol in (SAFE, OFFICIAL):
        results.write_text(f"[{json.dumps(RECORD)}, {text}, {json.dumps(RECORD)}]")
        if protocol == SAFE and name.startswith("a box"):
            assert metrics(results, truth, protocol)["AP"] == pytest.approx(1)
            continue
        with pytest.raises(SubmissionError, match=sentence) as refusal:
            metrics(results, truth, protocol)
        assert name in ("more digits than are read", "a key twice") or "record 1 (image" in str(refusal.value)


def broken(**change: Any) -> dict[str, Any]:
    (annotation,) = TRUTH["annotations"]
    kept = {key: value for key, value in {**annotation, **change}.items() if value is not ...}
    return {**TRUTH, "annotations": [kept]}


@pytest.mark.parametrize(("document", "sentence"), [
    (broken(keypoints=...), "holds no keypoints, which coco-keypoints compares|segmentation"),
    (broken(keypoints=[1, 2] * POINTS), "has keypoints of 34 numbers"),
    (broken(keypoints=[1, 2, 2] * 5, num_keypoints=5), 'without sigmas.*Write "sigmas"'),
    (broken(keypoints=[math.nan, 2, 2] * POINTS), "not finite"),
    (broken(keypoints=["a", 2, 2] * POINTS), "keypoints that cannot be read"),
    (broken(num_keypoints=3), "num_keypoints is not the number of their marked points: 1.*coco-keypoints-official"),
    (broken(keypoints=[0, 0, 0] * POINTS, num_keypoints=0, bbox=...), "neither marked keypoints nor a bbox: 1"),
    (broken(area=...), "segmentation"),
    ({**TRUTH, "categories": [{"id": 1, "name": "person", "sigmas": [0.1]}]}, "sigmas for category 1"),
    ({**TRUTH, "categories": [{"id": 1, "name": "person", "sigmas": [0] * POINTS}]}, "positive numbers"),
])  # fmt: skip
def test_a_host_hears_what_is_wrong_with_the_truth(document: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=sentence):
        metrics(*write(tmp_path, document, [RECORD]), SAFE)


def test_masks_are_not_compared_where_there_are_none(tmp_path: Path) -> None:
    results, truth = write(tmp_path, TRUTH, [])
    with pytest.raises(HostError, match="has annotations without masks, which coco compares"):
        metrics(results, truth, "coco")
    results.write_text(json.dumps([{"image_id": 1, "category_id": 1, "score": 1, "bbox": [10, 10, 50, 50]}]))
    assert metrics(results, truth, "coco-box")["AP"] == pytest.approx(1)


@pytest.mark.parametrize("masks", [{}, {"segmentation": []}], ids=["absent", "empty"])
def test_boxes_are_compared_without_masks(masks: dict[str, Any], tmp_path: Path) -> None:
    row = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 2500, "bbox": [10, 10, 50, 50], **masks}
    document = {**TRUTH, "categories": [{"id": 1, "name": "a"}], "annotations": [row]}
    record = {"image_id": 1, "category_id": 1, "score": 1, "bbox": [10, 10, 50, 50]}
    assert metrics(*write(tmp_path, document, [record]), "coco-box")["AP"] == pytest.approx(1)
    with pytest.raises(HostError, match="has annotations without masks, which coco compares"):
        metrics(*write(tmp_path, document, []), "coco")


def test_the_report_says_where_points_lie(tmp_path: Path) -> None:
    from segjudge.cli import main

    far_points = [(70, 80, 2)] * POINTS
    near_points = [(20 + point, 30, 2) for point in range(0, 34, 2)]
    near_points[5] = (20, 60, 2)
    people = [
        {**TRUTH["annotations"][0], "id": number, "keypoints": np.array(points).reshape(-1).tolist()}
        for number, points in enumerate((near_points, far_points), 1)
    ]
    sent = [[*point] for point in near_points]
    sent[0], sent[1], sent[2], sent[4] = [*near_points[16]], [*far_points[1]], [99, 5, 1], [*near_points[5]]
    record = {**RECORD, "keypoints": np.array(sent).reshape(-1).tolist()}
    results, truth = write(tmp_path, {**TRUTH, "annotations": people}, [record])

    scores = segjudge.score(results, truth, SAFE)
    job = prepare(ScoreRequest(str(results), TruthSource(str(truth)), find_protocol(SAFE)))
    diagnosis = diagnose(job, scores.reports[0])
    rows = {row["point"]: row for row in list_keypoints(diagnosis)}
    kinds = {name: [rows[point][name] for point in "12345"] for name in ("exact", "near", "swapped", "foreign", "far")}
    assert kinds == {
        "exact": [0, 0, 0, 1, 0], "near": [0] * 5, "swapped": [1, 0, 0, 0, 1], "foreign": [0, 1, 0, 0, 0], "far": [0, 0, 1, 0, 0],
    }  # fmt: skip
    assert sum(row["costs"] for row in rows.values()) == pytest.approx(4 / POINTS, abs=1e-3)
    assert scores.metrics["val"]["AR50"] == 0.5
    page = tmp_path / "report.html"
    assert main(["report", str(results), "--truth", str(truth), "--protocol", SAFE, "--out", str(page)]) == 0
    text = page.read_text()
    assert "AP at an OKS of .50" in text
    assert 'id="keypoints"' in text


@pytest.mark.long
def test_one_command_builds_what_both_platforms_take_of_a_truth_of_many_images(tmp_path: Path, capsys: Any) -> None:
    from segjudge.cli import main

    truth = coco_keypoints(tmp_path)
    document = json.loads(truth.read_text())
    document["images"] += [{"id": number, "height": 90, "width": 90} for number in range(3, 10_103)]
    truth.write_text(json.dumps(document))
    out = tmp_path / "mine"
    assert main(["host", SAFE, "--truth", str(truth), "--out", str(out), "--build"]) == 0
    assert "records=1_010_200, json_bytes=482 << 20" in (out / "evaluation_script/phases.py").read_text()
    printed = capsys.readouterr().out
    for name in ("challenge_config.zip", "codabench/val.zip"):
        assert (out / "dist" / name).exists()
        assert name in printed
    assert main(["check", "--bundle", str(out)]) == 0
