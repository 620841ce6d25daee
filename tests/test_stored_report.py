"""The page of what a phase leaves of a submission, made without its truth."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from segjudge.errors import UsageError
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.evaluation_script.phase import DETAILS
from segjudge.evaluation_script.phases import PHASES
from segjudge.stored_report import stored_page

from .builders import ROOT


@pytest.fixture(scope="module", params=DETAILS)
def left(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a phase of each level leaves of a sample."""
    return left_by(detail=request.param)


def left_by(number: int = 0, **changes: Any) -> dict[str, Any]:
    phase = replace(PHASES[number], **changes)
    sample = {0: "sequences-dev/lagging.zip", 2: "instances-dev/coarse.json"}[number]
    answer = evaluate_phase(phase, str(ROOT / phase.annotations), str(ROOT / "examples" / sample))
    return dict(json.loads(json.dumps(answer["submission_result"])))


def test_every_level_has_its_page(left: dict[str, Any]) -> None:
    text = stored_page(left, "Ours <b>")
    assert "Ours &lt;b&gt;" in text
    value = left["result"][0]["dev"]["J&F-Mean"]
    assert f'<p class="big">{value:.3f} <small>J&amp;F-Mean' in text
    assert ("All sequences" in text) == ("sequences" in left)
    assert stored_page(left, "Ours <b>") == text


def test_instances_have_one_too() -> None:
    text = stored_page(left_by(2, detail="all"), "coarse")
    assert "All categories" in text
    assert "Protocol places2017" in text


def test_a_phase_that_shows_nothing_has_a_page_that_says_so() -> None:
    split = replace(PHASES[0].splits[0], hidden=True)
    text = stored_page(left_by(splits=(split,), detail="all"), "hidden")
    assert "The scores of this phase are not shown." in text
    assert "J-Mean" not in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("result", None),
        ("result", {}),
        ("result", [["dev"]]),
        ("result", [{"dev": {}}]),
        ("result", [{"dev": {"J-Mean": "0.5"}}]),
        ("result", [{"dev": {"J-Mean": float("inf")}}]),
        ("intervals", [{"dev": {"J-Mean": [0.5]}}]),
        ("intervals", [{"dev": {"J-Mean": [0.5, None]}}]),
        ("errors", 7),
        ("warnings", "no list"),
        ("provenance", ["no names"]),
        ("provenance", {"protocols": {"dev": "davis2017"}}),
        ("sequences", [{"sequence": "no split"}]),
        ("sequences", [{"split": "dev", "J": 0.5}, {"split": "dev", "F": 0.5}]),
        ("sequences", [{"split": "dev", "J": [0.5]}]),
        ("sequences", ["dev"]),
    ],
)
def test_another_shape_is_refused_in_a_sentence(left: dict[str, Any], key: str, value: object) -> None:
    broken = copy.deepcopy(left)
    broken[key] = value
    with pytest.raises(UsageError, match=r"^this is no result that was stored: it has "):
        stored_page(broken, "broken")
