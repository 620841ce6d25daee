"""Unchanged programs that evaluate by pycocotools, with the stand-ins installed.

torchmetrics is the real package if it is installed.  The loops of Ultralytics 8.2 and RF-DETR 1.11 are written here
after their published code: a validator's `eval_json`, and `CocoEvaluator`, which imports faster-coco-eval there.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest

from segjudge.drop_in import cocoeval
from segjudge.drop_in.coco import COCO
from tests.families.instances.memory_images import SIZE, images, records


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """Return a program's results with pycocotools, and with the stand-ins installed."""

    def compare(program: Callable[[], Any]) -> tuple[Any, Any]:
        for module, name in (
            (pycocotools.cocoeval, "COCOeval"),
            (pycocotools.cocoeval, "Params"),
            (pycocotools.coco, "COCO"),
        ):
            monkeypatch.setattr(module, name, getattr(module, name))
        with contextlib.redirect_stdout(io.StringIO()):
            before = program()
            cocoeval.install()
            return before, program()

    return compare


def truth_and_records(seed: int, folder: Path) -> tuple[Path, Path]:
    """Write a truth and detections with masks and boxes."""
    truths: list[Any] = []
    sent: list[Any] = []
    for image, (prediction, truth) in enumerate(images(seed, 9), 1):
        truths += records(truth, image, len(truths) + 1)
        sent += records(prediction, image)
    document = {
        "images": [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(1, 10)],
        "categories": [{"id": number, "name": str(number)} for number in (1, 2, 3)],
        "annotations": truths,
    }
    for name, content in (("instances", document), ("predictions", sent)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "instances.json", folder / "predictions.json"


@pytest.mark.parametrize("kinds", [("bbox",), ("bbox", "segm")], ids=str)
def test_ultralytics_validates_with_the_stand_ins(kinds: tuple[str, ...], compared: Any, tmp_path: Path) -> None:
    truth_path, results_path = truth_and_records(4, tmp_path)

    def eval_json() -> list[float]:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        anno = COCO(str(truth_path))
        detections = anno.loadRes(str(results_path))
        stats: list[float] = []
        for kind in kinds:
            evaluation = COCOeval(anno, detections, kind)
            evaluation.params.imgIds = [int(Path(f"{image:012d}.jpg").stem) for image in range(1, 8)]
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            stats += evaluation.stats.tolist()
        return stats

    theirs, ours = compared(eval_json)
    assert ours == theirs
    assert len(set(ours)) > 3


@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize("most", [3, 500])
def test_rf_detr_evaluates_with_the_stand_ins(kind: str, most: int, compared: Any, tmp_path: Path) -> None:
    """It fills an empty truth, copies it, adds detections late, and has a summary of its own."""
    truth_path, results_path = truth_and_records(6, tmp_path)
    shape = {"bbox": "bbox", "segm": "segmentation"}[kind]
    sent = [
        {key: record[key] for key in ("image_id", "category_id", "score", shape)}
        for record in json.loads(results_path.read_text())
    ]

    def evaluate() -> list[float]:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth = COCO()
        truth.dataset = copy.deepcopy(COCO(str(truth_path)).dataset)
        truth.createIndex()
        truth = copy.deepcopy(truth)
        values = []
        for rows in (sent, sent[:0]):
            evaluation = COCOeval(truth, iouType=kind)
            evaluation.params.maxDets = [1, 2, most]
            if rows:
                detections = truth.loadRes(copy.deepcopy(rows))
            else:
                detections = COCO()
                detections.dataset = {**copy.deepcopy(truth.dataset), "annotations": []}
                detections.createIndex()
            vars(evaluation)["cocoDt"] = detections
            evaluation.params.imgIds = list(np.unique([1, 2, 3, 5, 8]))
            evaluation.evaluate()
            evaluation.accumulate()
            for area, _ in enumerate(evaluation.params.areaRngLbl):
                precision = evaluation.eval["precision"][:, :, :, [area], [2]]
                half = precision[np.where(evaluation.params.iouThrs == 0.5)[0]]
                recalls = [evaluation.eval["recall"][:, :, [area], [cap]] for cap in range(3)]
                tables = [table[table > -1] for table in (precision, half, *recalls)]
                values += [float(table.mean()) if len(table) else -1.0 for table in tables]
        return values

    theirs, ours = compared(evaluate)
    assert ours == theirs
    assert len(set(ours)) > 5


def test_polygons_without_boxes_are_read_though_pycocotools_rejects_them(tmp_path: Path) -> None:
    truth, sent = truth_and_records(4, tmp_path)
    rows = [
        {"image_id": row["image_id"], "category_id": 1, "score": 0.5, "segmentation": [[1, 1, 9, 1, 9, 9, 1, 9]]}
        for row in json.loads(sent.read_bytes())
    ]
    sent.write_text(json.dumps(rows))
    with contextlib.redirect_stdout(io.StringIO()):
        with pytest.raises(TypeError):
            pycocotools.coco.COCO(str(truth)).loadRes(str(sent))
        opened = COCO(str(truth))
        evaluation = cocoeval.COCOeval(opened, opened.loadRes(str(sent)), "segm")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    assert evaluation.stats[0] >= 0
