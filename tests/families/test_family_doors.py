"""The families that count by unit, from Python, by commands, and in a phase of a challenge."""

from __future__ import annotations

from pathlib import Path

import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.families import PROTOCOLS
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
