"""The sample submission that a new challenge makes from its truth scores by how far its masks were moved, in every family."""

from __future__ import annotations

import json
from pathlib import Path

import pycocotools.mask as coco
import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.scoring.scores import ScoreRequest, prepare
from segjudge.starting.new_challenge import write_demo_truth
from tests.builders import zipped
from tests.published import UPLOADS, published

PROTOCOL_NAMES = (
    "davis2017", "mevis", "ref-davis17", "coco", "ovis", "coco-panoptic", "vipseg", "kitti-step", "vspw", "mots",
    "kitti-mots", "burst",
)  # fmt: skip


def score_samples(name: str, truth: str, folder: Path) -> list[Report]:
    """Score two samples of a truth's first split, the second of which is moved further."""
    protocol, sample, reports = PROTOCOLS[name], folder / "sample.zip", []
    source = TruthSource(truth, "", "", "", "")
    scorer = next(iter(prepare(ScoreRequest(str(sample), source, protocol)).scorers.values()))
    for share in (0.001, 0.05):
        sample.write_bytes(zipped(dict(tools_of(protocol.family).make_sample([scorer.truth], protocol, share))))
        reports.append(scorer.score(str(sample)))
    return reports


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_a_sample_is_as_good_as_its_masks_are_near(name: str, tmp_path: Path) -> None:
    reports = score_samples(name, str(published(name, tmp_path)), tmp_path)
    assert [line for report in reports for line in report.warnings if "nothing to average" not in line] == []
    metric = next(iter(UPLOADS[name][1]))
    near, moved = (report.values[metric] for report in reports)
    assert near is not None
    assert moved is not None
    assert 0.6 < near < 1
    assert 0.05 < moved < near


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_the_demo_holds_can_be_missed(name: str, tmp_path: Path) -> None:
    protocol = PROTOCOLS[name]
    reports = score_samples(name, write_demo_truth(protocol, str(tmp_path / "demo")), tmp_path)
    near, moved = (report.values[protocol.metrics[0]] for report in reports)
    assert near is not None
    assert moved is not None
    is_better = near < moved if tools_of(protocol.family).prefers_smaller(protocol.metrics[0]) else near > moved
    assert is_better


def test_tracks_of_a_sample_have_the_areas_and_boxes_of_their_masks(tmp_path: Path) -> None:
    protocol = PROTOCOLS["sa-co-veval"]
    source = TruthSource(write_demo_truth(protocol, str(tmp_path / "demo")), "", "", "", "")
    (scorer,) = prepare(ScoreRequest(str(tmp_path / "sample.zip"), source, protocol)).scorers.values()
    ((_, content),) = tools_of(protocol.family).make_sample([scorer.truth], protocol, 0.05)
    records = json.loads(content)
    assert records
    for record in records:
        masks = [mask or {"size": [1, 1], "counts": "1"} for mask in record["segmentations"]]
        assert record["areas"] == [int(coco.area(mask)) for mask in masks]
        assert record["bboxes"] == [coco.toBbox(mask).tolist() for mask in masks]
