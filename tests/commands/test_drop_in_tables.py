"""The tables of `COCOeval` beside a plain computation, and beside hotcoco where it is installed."""

from __future__ import annotations

import contextlib
import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import UsageError
from segjudge.drop_in.cocoeval import COCOeval
from tests.commands.test_drop_in import Incumbent, small
from tests.commands.test_drop_in_loops import truth_and_records

needs_hotcoco = pytest.mark.skipif(not find_spec("hotcoco"), reason="HOTCOCO ABSENT: pip install hotcoco to test it")


def run(evaluation: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def test_the_table_of_classes_is_read_from_pycocotools_curves() -> None:
    sides = small(8, "both")
    theirs, rows = run(Incumbent(*sides, "bbox")), run(COCOeval(*sides, "bbox")).per_class()
    precision, scores = (theirs.eval[name][..., 0, 2] for name in ("precision", "scores"))
    assert [row["class"] for row in rows] == ["1", "2", "3"]
    for index, row in enumerate(rows):
        averages = [table.mean() for table in (precision[..., index], precision[0, :, index], precision[5, :, index])]
        assert [row[name] for name in ("AP", "AP50", "AP75")] == averages
        assert row["AR"] == theirs.eval["recall"][:, index, 0, 2].mean()
        measures = [
            2 * value * recall / (value + recall) if value + recall else 0.0
            for value, recall in zip(precision[0, :, index], theirs.params.recThrs, strict=True)
        ]
        best = measures.index(max(measures))
        assert (row["F1"], row["score"]) == (pytest.approx(measures[best], abs=1e-12), scores[0, best, index])
        assert 0 < row["F1"] < 1


def test_a_confused_a_missed_and_an_invented_object() -> None:
    boxes = {1: [0, 0, 10, 10], 2: [30, 0, 10, 10], 3: [0, 30, 10, 10]}
    truth = {
        "images": [{"id": 1, "height": 60, "width": 60}],
        "categories": [{"id": number, "name": name} for number, name in ((4, "cat"), (7, "dog"))],
        "annotations": [
            {
                "id": number,
                "image_id": 1,
                "category_id": 7 if number == 3 else 4,
                "bbox": box,
                "area": 100,
                "iscrowd": 0,
            }
            for number, box in boxes.items()
        ],
    }
    sent = [(4, 0.9, boxes[1]), (7, 0.8, boxes[2]), (7, 0.7, boxes[1]), (4, 0.1, boxes[3])]
    records = [{"image_id": 1, "category_id": name, "score": score, "bbox": box} for name, score, box in sent]
    evaluation = COCOeval(truth, records, "bbox")
    known = evaluation.confusion_matrix(min_score=0.5)
    assert known["matrix"].tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert known["normalized"].tolist() == [[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0]]
    assert known["cat_names"] == ["cat", "dog"]
    assert evaluation.confusion_matrix()["matrix"].tolist() == [[1, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert evaluation.confusion_matrix(max_det=1)["matrix"].tolist() == [[1, 0, 1], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(UsageError, match="call accumulate"):
        evaluation.per_class()


@needs_hotcoco
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_measures_and_confusions_are_hotcocos(kind: str, tmp_path: Path) -> None:
    import hotcoco

    truth, sent = truth_and_records(4, tmp_path)
    document, records = (json.loads(path.read_text()) for path in (truth, sent))
    for number, row in enumerate(document["annotations"], 1):
        row["id"] = number
    for number, row in enumerate(records):
        row["score"] += number * 1e-5  # hotcoco orders equal scores otherwise
    truth.write_text(json.dumps(document))
    sent.write_text(json.dumps(records))
    opened = hotcoco.COCO(str(truth))
    theirs = run(hotcoco.COCOeval(opened, opened.load_res(str(sent)), kind))
    ours = run(COCOeval(str(truth), str(sent), kind))
    for beta in (1.0, 0.5):
        assert ours.f_scores(beta) == pytest.approx(theirs.f_scores(beta), abs=1e-12)
    for choice in ({}, {"iou_thr": 0.3, "max_det": 3}, {"min_score": 0.5}):
        expected, matrix = theirs.confusion_matrix(**choice), ours.confusion_matrix(**choice)
        assert matrix.keys() == expected.keys()
        np.testing.assert_array_equal(matrix["matrix"], expected["matrix"])
        np.testing.assert_allclose(matrix["normalized"], expected["normalized"], atol=1e-12)
