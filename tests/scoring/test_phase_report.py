"""The data that a phase stores for a submission's page, which changes no score."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from segjudge.evaluation_script.families.sequences import losses
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring import answer as answers
from segjudge.evaluation_script.scoring.phase import DETAILS
from tests.builders import ROOT


def left_by(number: int = 0, **changes: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(answer_of(number, **changes)["submission_result"])))


def answer_of(number: int = 0, **changes: Any) -> dict[str, Any]:
    phase = replace(PHASES[number], **changes)
    sample = {0: "sequences-dev/lagging.zip", 2: "instances-dev/coarse.json"}[number]
    return evaluate_phase(phase, str(ROOT / phase.annotations), str(ROOT / "examples" / sample))


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Return the maximum size of a phase's data."""
    return left_by(detail="all", report=True)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("number", [0, 2])
def test_a_report_changes_no_score(number: int, detail: str) -> None:
    bare, full = (answer_of(number, detail=detail, report=report) for report in (False, True))
    more = {
        key: full["submission_result"].pop(key)
        for key in ("errors", "intervals", "losses")
        if key in full["submission_result"]
    }
    for answer in (bare, full):
        answer["submission_metadata"].pop("seconds")
        answer["submission_result"].pop("provenance", None)
    assert full == bare
    levels = {"means": {"intervals"}, "sequences": {"intervals", "losses"}, "all": {"errors", "intervals", "losses"}}
    assert set(more) == levels[detail]
    assert bool(more.get("losses")) == (detail != "means" and number == 0)


def test_what_kinds_take_of_the_whole_is_left_of_a_truth_that_is_not_public(whole: dict[str, Any]) -> None:
    losses = left_by(detail="sequences", report=True)["losses"]["dev"]
    assert losses["shares"] == [round(share, 3) for share in whole["losses"]["dev"]["shares"]]
    assert losses["sequences"] == []


def test_nothing_is_left_of_hidden_splits() -> None:
    split = replace(PHASES[0].splits[0], hidden=True)
    left = left_by(splits=(split,), detail="all", report=True)
    assert (left["losses"], left["intervals"], left["errors"]) == ({}, [], [])


@pytest.mark.parametrize("failure", [MemoryError("none"), SystemExit(3), RuntimeError("secret"), KeyboardInterrupt()])
def test_scores_stay_whatever_happens_to_the_report(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(losses, "view_sequence", broken)
    answer = answer_of(detail="all", report=True)
    assert answer["result"] == answer_of(detail="all")["result"]
    assert "losses" not in answer["submission_result"]
    assert "the page of a submission lacks the causes of loss" in capfd.readouterr().err


def test_a_report_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(losses, "view_sequence", lambda *_, **__: time.sleep(600))
    monkeypatch.setattr(answers, "_TIME", 1 / 7200)  # of an hour, half a second
    answer = answer_of(detail="all", report=True)
    assert "losses" not in answer["submission_result"]
    assert answer["result"][0]["dev"]["J-Mean"] > 0
    assert "UnfinishedError" in capfd.readouterr().err
