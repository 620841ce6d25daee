"""Tracks of samples have the keys that SA-Co/VEval's script reads in addition to masks."""

from __future__ import annotations

import json
from pathlib import Path

import pycocotools.mask as coco

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.starting.new_challenge import write_demo_truth


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
