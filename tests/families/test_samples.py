"""The sample submission of a new challenge scores by the shift of its masks, in every family."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.starting.new_challenge import write_demo_truth
from tests.builders import zipped
from tests.families.contract import examples, merge_rows, value_of
from tests.published import published

#: What is said of samples, whose masks are shifted to the right.
MOVED = re.compile(r" look moved by (about (\d+ pixels|this many pixels: \d+)|-?\d+) along x")


def score_samples(name: str, truth: str, folder: Path) -> list[Report]:
    """Score two samples of a truth's first split; the second one is shifted further."""
    protocol, sample, reports = PROTOCOLS[name], folder / "sample.zip", []
    source = TruthSource(truth, "", "", "", "")
    scorer = next(iter(prepare(ScoreRequest(str(sample), source, protocol)).scorers.values()))
    for share in (0.001, 0.05):
        sample.write_bytes(zipped(dict(tools_of(protocol.family).make_sample([scorer.truth], protocol, share))))
        reports.append(scorer.score(str(sample)))
    return reports


@pytest.mark.parametrize("name", examples("samples"))
def test_a_sample_is_as_good_as_its_masks_are_near(name: str, tmp_path: Path) -> None:
    reports = score_samples(name, str(published(name, tmp_path)), tmp_path)
    lines = [line for report in reports for line in report.warnings if "nothing to average" not in line]
    assert [line for line in lines if not MOVED.search(line)] == []
    metric = next(iter(merge_rows("UPLOADS")[name][1]))
    near, moved = (report.values[metric] for report in reports)
    assert near is not None
    assert moved is not None
    assert 0.6 < near < 1
    assert 0.05 < moved < near


@pytest.mark.parametrize("name", list(PROTOCOLS)[::2])
def test_what_the_demo_holds_can_be_missed(name: str, tmp_path: Path) -> None:
    protocol = PROTOCOLS[name]
    reports = score_samples(name, write_demo_truth(protocol, str(tmp_path / "demo")), tmp_path)
    near, moved = (report.values[protocol.metrics[0]] for report in reports)
    noted = value_of(name, "SAMPLE_SCORES", {}).get(name, ())
    assert (near, moved) == pytest.approx(noted, rel=0, abs=1e-9), f"note {name}: ({near}, {moved}) in SAMPLE_SCORES"
    is_better = near < moved if tools_of(protocol.family).prefers_smaller(protocol.metrics[0]) else near > moved
    assert is_better
