"""The stand-in for faster-coco-eval next to it, and next to pycocotools where it is absent."""

from __future__ import annotations

import contextlib
import io
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import UsageError
from segjudge.drop_in import cocoeval
from segjudge.drop_in import faster_coco_eval as stand_in
from segjudge.drop_in.faster_coco_eval import COCO, COCOeval_faster, install
from tests.commands.test_drop_in_loops import truth_and_records

needs_faster_coco_eval = pytest.mark.skipif(
    not find_spec("faster_coco_eval"), reason="FASTER-COCO-EVAL ABSENT: pip install faster-coco-eval to test it"
)


def run(package: Any, folder: Path, kind: str = "bbox", **changes: Any) -> Any:
    """Evaluate as Ultralytics does; no annotation is a crowd."""
    truth, sent = truth_and_records(4, folder)
    document = json.loads(truth.read_text())
    for number, row in enumerate(document["annotations"], 1):
        row.update(iscrowd=0, id=number)
    truth.write_text(json.dumps(document))
    with contextlib.redirect_stdout(io.StringIO()):
        printed: list[str] = []
        opened = package.COCO(str(truth), print_function=printed.append)
        evaluation = package.COCOeval_faster(
            opened, opened.loadRes(str(sent)), iouType=kind, lvis_style=False, print_function=printed.append
        )
        vars(evaluation.params).update(changes)
        evaluation.run()
    evaluation.printed = re.sub(r"t=[\d.]+s", "", "\n".join(printed))
    assert "Average Precision" in evaluation.printed
    return evaluation


def test_its_names_are_of_the_numbers_that_pycocotools_prints(tmp_path: Path) -> None:
    ours = run(stand_in, tmp_path)
    plain = cocoeval.COCOeval(vars(ours)["cocoGt"], vars(ours)["cocoDt"], "bbox")
    with contextlib.redirect_stdout(io.StringIO()):
        plain.evaluate()
        plain.accumulate()
        plain.summarize()
    assert ours.stats.tolist() == plain.stats.tolist()
    assert list(ours.stats_as_dict)[:7] == ["AP_all", "AP_50", "AP_75", "AP_small", "AP_medium", "AP_large", "AR_all"]
    best = ours.extended_metrics["class_map"][-1]
    assert best["map@50"] == plain.stats[1]
    assert 0 < best["precision"] <= 1
    assert vars(ours)["cocoGt"].loadRes([]).getAnnIds() == []
    with pytest.raises(UsageError, match="lvis_style: only faster-coco-eval has this option"):
        COCOeval_faster(vars(ours)["cocoGt"], vars(ours)["cocoDt"], "bbox", lvis_style=True)


@needs_faster_coco_eval
@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize("changes", [{}, {"maxDets": [1, 10, 500]}, {"imgIds": [1, 3, 4]}], ids=str)
def test_all_its_numbers_are_theirs(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    import faster_coco_eval

    theirs = run(faster_coco_eval, tmp_path, kind, **changes)
    ours = run(stand_in, tmp_path, kind, **changes)
    assert ours.printed == theirs.printed
    assert ours.stats_as_dict == pytest.approx(theirs.stats_as_dict, abs=1e-12)
    assert ours.stats.tolist() == pytest.approx(theirs.stats.tolist(), abs=1e-12)
    for name in ("precision", "recall"):
        np.testing.assert_allclose(ours.eval[name], theirs.eval[name], atol=1e-12)
    if "imgIds" not in changes:  # theirs counts detections of images that are not compared
        assert [*_round(ours.extended_metrics).items()] == [*_round(theirs.extended_metrics).items()]


def _round(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 9))


@needs_faster_coco_eval
def test_installed_it_is_what_programs_import(monkeypatch: pytest.MonkeyPatch) -> None:
    import faster_coco_eval

    for name in ("COCO", "COCOeval_faster"):
        monkeypatch.setattr(faster_coco_eval, name, getattr(faster_coco_eval, name))
    install()
    assert (faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster) == (COCO, COCOeval_faster)
