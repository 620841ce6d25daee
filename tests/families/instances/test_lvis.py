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
