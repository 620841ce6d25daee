"""The commonest slips of participants are named next to the scores, which they never change; good results have none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from segjudge import compare, rank, score
from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.families.base.suspicions import ScoreRange
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.evaluation_script.runner.parallel import Part
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.testing import CHECKS, Case
from tests import published
from tests.families.contract import examples, merge_rows
from tests.families.slips import Slip
from tests.families.test_samples import MOVED

SLIPS: dict[str, tuple[str, Slip, str]] = merge_rows("SLIPS")


def publish(protocol: str, folder: Path) -> tuple[Path, bytes]:
    """Write a truth; return it, and an upload that equals it."""
    truth = published.published(protocol, folder)
    return truth, published.upload(protocol, truth)


def write(folder: Path, data: bytes) -> Path:
    ending = "zip" if data[:2] == b"PK" else "jsonl" if data[:1] == b"{" and b"}\n{" in data else "json"
    path = folder / f"upload.{ending}"
    path.write_bytes(data)
    return path


def suspicions(truth: Path, results: Path, protocol: str) -> list[str]:
    request = ScoreRequest(str(results), TruthSource(str(truth)), PROTOCOLS[protocol])
    prepared = prepare(request)
    return [line for scorer in prepared.scorers.values() for line in scorer.score(str(results)).suspicions]


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named(slip: str, tmp_path: Path) -> None:
    protocol, change, message = SLIPS[slip]
    truth, data = publish(protocol, tmp_path)
    results = write(tmp_path, change(data))
    lines = [line for line in score(results, truth, protocol, strict=False).warnings if message in line]
    (line,) = lines
    assert line.isascii()
    assert suspicions(truth, results, protocol).count(line) == 1


@pytest.mark.parametrize("protocol", sorted({*merge_rows("UPLOADS"), *examples("good results")}))
def test_good_results_are_not_suspected(protocol: str, tmp_path: Path) -> None:
    truth, data = publish(protocol, tmp_path)
    lines = suspicions(truth, write(tmp_path, data), protocol)
    is_moved = protocol not in merge_rows("UPLOADS")  # samples are moved to the right
    assert [line for line in lines if not (is_moved and MOVED.search(line))] == []


@pytest.mark.parametrize("slip", ["percent", "percent of phrases", "percent of tracks"])
def test_parts_and_processes_say_the_same(slip: str, tmp_path: Path) -> None:
    protocol, change, message = SLIPS[slip]
    truth, data = publish(protocol, tmp_path)
    results = write(tmp_path, change(data))
    whole = score(results, truth, protocol)
    assert any(message in line for line in whole.warnings)
    assert score(results, truth, protocol, jobs=2).warnings == whole.warnings
    (scorer,) = prepare(ScoreRequest(str(results), TruthSource(str(truth)), PROTOCOLS[protocol])).scorers.values()
    merged, part = (scorer.count(str(results), Part(number, 2)) for number in (1, 2))
    restored = type(part).make_empty(part.protocol, json.loads(json.dumps(part.describe())), strict=part.strict)
    restored.load_state_dict(part.state_dict())
    merged.merge(restored)
    assert report_of(scorer.split, merged).warnings == scorer.score(str(results)).warnings


@pytest.mark.parametrize("slip", {protocol: slip for slip, (protocol, *_) in SLIPS.items()}.values())
def test_results_with_a_slip_are_compared_with_good_ones(slip: str, tmp_path: Path) -> None:
    protocol, change, message = SLIPS[slip]
    truth, data = publish(protocol, tmp_path)
    (tmp_path / "wrong").mkdir()
    good = score(write(tmp_path, data), truth, protocol)
    wrong = score(write(tmp_path / "wrong", change(data)), truth, protocol, strict=False)
    assert any(message in line for line in wrong.warnings)
    assert " good " in compare({"good": good, "wrong": wrong}).text()
    assert " good " in rank({"good": good, "wrong": wrong}).text()


@pytest.mark.parametrize("slip", ["channels", "inverted maps", "percent"])
def test_a_hidden_split_says_nothing_and_strict_refuses_nobody(
    slip: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    protocol, change, message = SLIPS[slip]
    truth, data = publish(protocol, tmp_path)
    results = write(tmp_path, change(data))
    for hidden in (False, True):
        phase = replace(Case(protocol, truth, {}).phase(hidden=hidden), strict=True)
        result = evaluate_phase(phase, str(truth), str(results))["submission_result"]
        assert any(message in line for line in result["warnings"]) == (not hidden)
        assert (message in capfd.readouterr().out) == (not hidden)


def test_scores_are_confidences_percentages_or_logits() -> None:
    lines = []
    for scores in ([0.0, 0.4, 1.0], [0.5, 98.0, 42.0], [-0.1, 0.2], [3.0, 120.0]):
        seen = ScoreRange()
        seen.add(scores)
        lines += seen.judge() or [""]
    assert lines == [
        "",
        "2 of 3 scores lie outside of 0 to 1, as percentages do (all lie from 0.5 to 98): write confidences from 0 to 1",
        "1 of 2 scores lies outside of 0 to 1, as logits do (all lie from -0.1 to 0.2): write confidences from 0 to 1",
        "2 of 2 scores lie outside of 0 to 1, as logits do (all lie from 3 to 120): write confidences from 0 to 1",
    ]


def test_the_kit_tells_what_is_suspected_wrongly_or_not_at_all(tmp_path: Path) -> None:
    protocol, change, _ = SLIPS["inverted maps"]
    truth, data = publish(protocol, tmp_path)
    (tmp_path / "inverted").mkdir()
    good, inverted = write(tmp_path, data), write(tmp_path / "inverted", change(data))
    holds = CHECKS["suspicions"]
    holds(Case(protocol, truth, {"good": good}, slips={inverted: "maps look inverted"}))
    with pytest.raises(AssertionError, match=r"upload\.zip: no warning says 'inverted': none"):
        holds(Case(protocol, truth, {"good": good}, slips={good: "inverted"}))
    with pytest.raises(AssertionError, match="bad: gets an unexpected warning: val: maps look inverted"):
        holds(Case(protocol, truth, {"bad": inverted}))
