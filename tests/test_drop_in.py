"""Stand-ins beside the evaluators whose names they have: the same numbers from the same calls."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval as Incumbent

from segjudge import UsageError
from segjudge.drop_in.cocoeval import COCOeval

from .data import INSTANCES
from .shared import needs_shared
from .test_in_memory import SIZE, images, records


def small(seed: int, kind: str) -> tuple[Any, Any]:
    """A truth and detections as pycocotools holds them; one annotation has the id 0."""
    found = images(seed, 12)
    truths: list[Any] = []
    for image, (_, truth) in enumerate(found):
        truths += records(truth, image, len(truths))
    document = {
        "images": [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(found))],
        "categories": [{"id": number, "name": str(number)} for number in (3, 1, 2)],
        "annotations": truths,
        "info": {},
    }
    sent = [record for image, (prediction, _) in enumerate(found) for record in records(prediction, image)]
    unwanted = {"segm": "bbox", "bbox": "segmentation", "both": ""}[kind]
    sent = [{key: value for key, value in record.items() if key != unwanted} for record in sent]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = document
        coco.createIndex()
        return coco, coco.loadRes(sent)


def both(truth: Any, sent: Any, kind: str, **changes: Any) -> tuple[Any, Any, list[str]]:
    """Ours and theirs, evaluated, and what each printed as its summary."""
    made, printed = [], []
    for evaluator in (COCOeval, Incumbent):
        one = evaluator(truth, sent, kind)
        for name, value in changes.items():
            setattr(one.params, name, value)
        with contextlib.redirect_stdout(io.StringIO()):
            one.evaluate()
            one.accumulate()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            one.summarize()
        made.append(one)
        printed.append(output.getvalue())
    return made[0], made[1], printed


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"useCats": 0},
        {"maxDets": [1, 2, 3]},
        {"maxDets": [1, 2, 100]},
        {"imgIds": [1, 2, 3, 5, 7, 8], "catIds": [1, 2]},
        {"areaRng": [[0, 1e10], [0, 200], [200, 500], [500, 1e10]]},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["segm", "bbox", "both"])
def test_cocoeval_has_the_verbs_and_numbers_of_pycocotools(kind: str, changes: dict[str, Any]) -> None:
    ours, theirs, printed = both(*small(8, kind), "segm" if kind == "both" else kind, **changes)
    assert ours.stats.tolist() == theirs.stats.tolist()
    assert printed[0] == printed[1]
    assert ours.eval["counts"] == theirs.eval["counts"]
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[name], theirs.eval[name], err_msg=name)
    assert (ours.eval["precision"] > 0).any()


@needs_shared
@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_cocoeval_has_the_numbers_of_pycocotools_on_its_own_data(kind: str) -> None:
    folder = INSTANCES / "coco100"
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(folder / "instances_val2014_100.json"))
        sent = truth.loadRes(str(folder / f"instances_val2014_fake{kind}100_results.json"))
    ours, theirs, printed = both(truth, sent, kind)
    assert ours.stats.tolist() == theirs.stats.tolist()
    assert printed[0] == printed[1]
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[name], theirs.eval[name], err_msg=name)


def test_what_cocoeval_cannot_do_is_a_sentence() -> None:
    truth, sent = small(8, "segm")
    for name, value, sentence in (
        ("iouType", "keypoints", "iouType 'keypoints' is not scored"),
        ("iouThrs", np.array([0.5]), "iouThrs and recThrs are those of COCO"),
        ("maxDets", [100], "maxDets three numbers"),
    ):
        evaluation = COCOeval(truth, sent)
        setattr(evaluation.params, name, value)
        with pytest.raises(UsageError, match=sentence):
            evaluation.evaluate()
    with pytest.raises(UsageError, match="call evaluate"):
        COCOeval(truth, sent).accumulate()
    with pytest.raises(UsageError, match="call accumulate"):
        COCOeval(truth, sent).summarize()
