"""The families that count by unit, from Python, by commands, and in a phase of a challenge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.limits import UNIT_LIMITS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from tests.data import TRACKS_DATA
from tests.families.contract import merge_rows
from tests.shared import needs_shared

pytestmark = needs_shared

#: Protocol → layout, published truth, submission.
SETS: dict[str, tuple[str, str, str]] = merge_rows("SHARED_UPLOADS")


def paths(protocol: str) -> tuple[str, str]:
    _, truth, submission = SETS[protocol]
    return str(TRACKS_DATA / truth), str(TRACKS_DATA / submission)


#: What the shortest tests take.
PROTOCOL, (LAYOUT, *_) = next(iter(SETS.items()))
FAMILY, (TRUTH, SUBMISSION) = PROTOCOLS[PROTOCOL].family, paths(PROTOCOL)


@pytest.mark.parametrize("protocol", SETS)
def test_published_truth_and_packed_truth_score_alike_by_command_and_in_python(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, submission = paths(protocol)
    packed = str(tmp_path / "truth.zip")
    assert cli(["pack", "--layout", SETS[protocol][0], "--root", truth, "--out", packed]) == 0
    assert "split val, " in capsys.readouterr().out
    scores = segjudge.score(submission, truth, protocol)
    assert list(scores.metrics["val"])[: len(PROTOCOLS[protocol].metrics)] == list(PROTOCOLS[protocol].metrics)
    assert segjudge.score(submission, packed, protocol, jobs=2).metrics == scores.metrics
    assert (
        cli(["score", submission, "--truth", packed, "--protocol", protocol, "--json", "-", "--csv", str(tmp_path)])
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["result"] == [scores.metrics]
    assert answer["categories"] == scores.tables["categories"]
    assert (tmp_path / "global_results-val.csv").read_text().startswith(PROTOCOLS[protocol].metrics[0])
    assert (tmp_path / "per-category_results-val.csv").read_text().startswith("Category,Id,")


@pytest.mark.parametrize("protocol", SETS)
def test_a_phase_of_a_challenge_scores_them_guarded(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, submission = paths(protocol)
    packed = str(tmp_path / "truth.zip")
    assert cli(["pack", "--layout", SETS[protocol][0], "--root", truth, "--out", packed]) == 0
    split = PhaseSplit("val", protocol, PROTOCOLS[protocol].metrics)
    monkeypatch.setattr(main, "PHASES", (Phase("p", "truth.zip", (split,), limits=UNIT_LIMITS),))
    answer: dict[str, Any] = main.evaluate(packed, submission, "p")
    expected = segjudge.score(submission, truth, protocol).metrics["val"]
    assert answer["result"] == [{"val": {name: expected[name] or 0.0 for name in split.metrics}}]
    (tmp_path / "empty.zip").write_bytes(b"")
    with pytest.raises(SubmissionError, match="is empty"):
        main.evaluate(packed, str(tmp_path / "empty.zip"), "p")


def test_two_truths_go_into_one_file(tmp_path: Path) -> None:
    out = str(tmp_path / "truth.zip")
    for split in ("val", "test"):
        assert cli(["pack", "--layout", LAYOUT, "--root", TRUTH, "--out", out, "--split", split]) == 0
    scores = segjudge.score(SUBMISSION, out, PROTOCOL)
    assert scores.metrics["val"] == scores.metrics["test"]


def test_what_does_not_go_together_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "truth.zip")
    assert cli(["pack", "--layout", LAYOUT, "--root", TRUTH, "--out", out]) == 0
    for protocol in ("davis2017", "coco", *list(SETS)[1:]):
        assert cli(["score", SUBMISSION, "--truth", out, "--protocol", protocol]) != 0
        assert f"holds {FAMILY}" in capsys.readouterr().err
    assert cli(["score", SUBMISSION, "--truth", out, "--protocol", PROTOCOL, "--cap", "image"]) != 0
    assert f"--cap does not apply to {FAMILY}" in capsys.readouterr().err
