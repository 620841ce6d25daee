"""Kinds of error of detections: TIDE's numbers, to 1e-9, and made-up images with one known error."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_IMAGE
from segjudge.evaluation_script.families.instances.submission import read_records
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.families.instances.diagnosis import (
    KINDS,
    RIGHT,
    _find_errors,
    _judge_detections,
    _JudgedDetections,
    count_confusions,
    measure_calibration,
)
from tests.data import GOLDEN, INSTANCES, REPORTS
from tests.shared import needs_shared

HOTCOCO = REPORTS / "instances/golden_hotcoco.json"
TIDE = REPORTS / "instances/golden_tide.json"
HAND_MADE = REPORTS / "instances/hand_made.json"
EXACT = 1e-9
COCO = INSTANCES / "coco100"
FILES = {
    "coco100-mask": (COCO / "instances_val2014_100.json", COCO / "instances_val2014_fakesegm100_results.json"),
    "coco100-box": (COCO / "instances_val2014_100.json", COCO / "instances_val2014_fakebbox100_results.json"),
    "places": (GOLDEN / "places/official_converter_gt.json.gz", GOLDEN / "places/preds.json.gz"),
}
RUNS = json.loads(TIDE.read_text())["runs"] if TIDE.exists() else {}


def read_json(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def as_tide_reads(truth: Any, records: Any) -> tuple[bytes, bytes]:
    """Return the same documents as TIDE reads them: images in the file's order, all categories equal."""
    numbers = {image["id"]: number for number, image in enumerate(truth["images"])}
    for image in truth["images"]:
        image["id"] = numbers[image["id"]]
    for item in (*truth["annotations"], *records):
        item["image_id"] = numbers[item["image_id"]]
    listed = {category["id"] for category in truth["categories"]}
    unlisted = {entry["category_id"] for entry in truth["annotations"]} - listed
    truth["categories"] += [{"id": number, "name": str(number)} for number in sorted(unlisted)]
    return json.dumps(truth).encode(), json.dumps(records).encode()


def judged_as_in(run: dict[str, Any], key: str, folder: Path) -> _JudgedDetections:
    """Return the detections of a golden run, judged by its rules."""
    if key == "hand-made":
        document = read_json(HAND_MADE)
        sides = document["truth"], document["records"]
    else:
        sides = tuple(map(read_json, next(files for name, files in FILES.items() if key.startswith(name))))
    truth, results = as_tide_reads(*sides)
    (folder / "results.json").write_bytes(results)
    protocol = INSTANCE_PROTOCOLS["coco-box" if run["mode"] == "bbox" else "coco"]
    protocol = replace(protocol, cap=PER_IMAGE, detections=(run["cap"],))
    known = instance_truth.read_document(truth, key)
    records = read_records(str(folder / "results.json"), known.images, protocol, LOCAL_LIMITS)
    return _judge_detections(records, known, protocol, run["foreground"])


@needs_shared
@pytest.mark.parametrize("key", RUNS)
def test_errors_are_those_that_tide_finds(key: str, tmp_path: Path) -> None:
    run = RUNS[key]
    judged_as = judged_as_in(run, key, tmp_path)
    errors = _find_errors(judged_as, as_tide=True)

    names = [*KINDS]
    kinds = {
        str(record): names[kind]
        for record, kind in zip(judged_as.record.tolist(), errors.kind.tolist(), strict=True)
        if kind != RIGHT
    }
    assert kinds == run["kind_of_detection"]
    assert {**{name: list(kinds.values()).count(name) for name in names}, "Miss": int(errors.missed.sum())} == run[
        "count"
    ]
    assert int((~judged_as.hits & ~judged_as.crowd).sum()) == run["missed"]
    by_category = {
        str(category.id): value * 100
        for category, value in zip(judged_as.truth.categories, errors.precision.tolist(), strict=True)
        if not np.isnan(value)
    }
    assert by_category == pytest.approx(run["AP_by_category"], abs=EXACT)
    assert errors.average(errors.precision) * 100 == pytest.approx(run["AP"], abs=EXACT)
    costs = {name: 100 * cost for name, cost in errors.costs().items()}
    assert costs == pytest.approx({**run["main"], **run["special"]}, abs=EXACT)


def coco(key: str) -> _JudgedDetections:
    """Return the hundred images, with masks or with boxes, judged as COCO does."""
    truth, results = FILES[key]
    protocol = INSTANCE_PROTOCOLS["coco-box" if key.endswith("box") else "coco"]
    known = instance_truth.read(str(truth))["val"]
    return _judge_detections(read_records(str(results), known.images, protocol, LOCAL_LIMITS), known, protocol)


@needs_shared
@pytest.mark.parametrize(("key", "run"), [("coco100-mask", "coco100-segm"), ("coco100-box", "coco100-bbox")])
def test_calibration_and_confusion_are_those_that_hotcoco_finds(key: str, run: str) -> None:
    theirs, results = read_json(HOTCOCO)["runs"][run], coco(key)
    mine = measure_calibration(results)
    assert (mine.error, mine.largest_gap) == pytest.approx((theirs["calibration"]["ece"], theirs["calibration"]["mce"]))
    bins = theirs["calibration"]["bins"]
    assert mine.counts.tolist() == [item["count"] for item in bins]
    assert mine.scores == pytest.approx([item["avg_confidence"] for item in bins], abs=EXACT)
    assert mine.shares == pytest.approx([item["avg_accuracy"] for item in bins], abs=EXACT)
    table = count_confusions(results)
    rows, columns = np.nonzero(table)
    cells = [list(cell) for cell in zip(rows.tolist(), columns.tolist(), table[rows, columns].tolist(), strict=True)]
    assert cells == theirs["confusion"]["matrix"]


# ── made-up images ──────────────────────────────────────────────────────────


def made_up(instances_of: list[list[Any]], detections: list[list[Any]], folder: Path) -> _JudgedDetections:
    """Return boxes [image, category, box, crowd] and [image, category, box, score] in images of 100 x 100 pixels."""
    document = {
        "images": [{"id": number, "width": 100, "height": 100} for number in (1, 2, 3)],
        "categories": [{"id": number, "name": name} for number, name in ((1, "dog"), (2, "cat"))],
        "annotations": [
            {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": box[2] * box[3],
             "iscrowd": crowd, "segmentation": [[0, 0, 9, 0, 9, 9, 0, 9]]}
            for number, (image, category, box, crowd) in enumerate(instances_of, 1)
        ],
    }  # fmt: skip
    records = [
        {"image_id": image, "category_id": category, "bbox": box, "score": score}
        for image, category, box, score in detections
    ]
    (folder / "results.json").write_text(json.dumps(records))
    known, protocol = (
        instance_truth.read_document(json.dumps(document).encode(), "truth"),
        INSTANCE_PROTOCOLS["coco-box"],
    )
    return _judge_detections(
        read_records(str(folder / "results.json"), known.images, protocol, LOCAL_LIMITS), known, protocol
    )
