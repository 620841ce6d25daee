"""The tables and pictures of detections add up: losses, confusions, and faults of each image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.instances.causes import describe_causes
from segjudge.families.instances.diagnosis import InstanceDiagnosis, diagnose
from segjudge.families.instances.players import VideoInstancePainter, draw_worst
from segjudge.families.instances.report import _list_costly
from segjudge.families.truths import TruthSource
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.report.page import PageOptions
from segjudge.scoring import score
from segjudge.scoring.request import ScoreRequest, find_protocol, prepare
from tests.data import GOLDEN

PLACES = GOLDEN / "places"
TRUTH, RESULTS = PLACES / "official_converter_gt.json.gz", PLACES / "preds.json.gz"


@pytest.fixture(scope="module")
def diagnosis() -> tuple[InstanceDiagnosis, Report]:
    protocol = find_protocol("places2017")
    job = prepare(ScoreRequest(str(RESULTS), TruthSource(str(TRUTH)), protocol))
    (report,) = score(RESULTS, TRUTH, protocol).reports
    return diagnose(job, report), report


def test_what_categories_cost_sums_to_the_loss(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    results, report = diagnosis
    rows = _list_costly(results, report)
    average = report.values["AP"]
    assert average is not None
    assert sum(row["costs"] for row in rows) == pytest.approx(1 - average)
    assert [row["costs"] for row in rows] == sorted((row["costs"] for row in rows), reverse=True)
    by_name = {row["name"]: row["AP50"] for row in report.rows()["categories"]}
    for row in rows:
        assert row["AP50"] == pytest.approx(by_name[row["name"]])


def test_the_area_below_each_curve_is_its_average_precision(diagnosis: tuple[InstanceDiagnosis, Report]) -> None:
    results, report = diagnosis
    areas = {iou: float(curve.mean()) for iou, curve in results.average_curves().items()}
    for metric, iou in (("AP50", 0.5), ("AP75", 0.75)):
        assert areas[iou] == pytest.approx(report.values[metric])
    assert np.mean(list(areas.values())) == pytest.approx(report.values["AP"])


def test_videos_are_judged_frame_by_frame_and_exchanged_tracks_are_moments(tmp_path: Path) -> None:
    masks = np.zeros((2, 4, 20, 30), np.uint8)  # instances, frames, rows, columns
    masks[0, :, 2:18, 2:12], masks[1, :, 4:16, 16:28] = 1, 1
    masks[1, 0] = 0
    tracks = masks.copy()
    tracks[:, 3] = masks[::-1, 3]

    def encode(track: Array) -> list[dict[str, Any] | None]:
        return [{"size": [20, 30], "counts": runs_of_mask(frame > 0)} if frame.any() else None for frame in track]

    video = {"id": 7, "width": 30, "height": 20, "length": 4, "file_names": [f"{frame}.jpg" for frame in range(4)]}
    truth = {"videos": [video], "categories": [{"id": 1, "name": "dog"}], "annotations": [
        {"id": number, "video_id": 7, "category_id": 1, "segmentations": encode(track), "iscrowd": 0,
         "areas": [int(frame.sum()) or None for frame in track], "bboxes": [[0, 0, 1, 1]] * 4}
        for number, track in enumerate(masks, 1)
    ]}  # fmt: skip
    sent = [{"video_id": 7, "category_id": 1, "score": 0.9, "segmentations": encode(track)} for track in tracks]
    for name, document in (("truth", truth), ("sent", sent)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    paths = str(tmp_path / "sent.json"), str(tmp_path / "truth.json")
    job = prepare(ScoreRequest(paths[0], TruthSource(paths[1]), find_protocol("youtube-vis-2019")))
    diagnosis = diagnose(job, score(*paths, find_protocol("youtube-vis-2019")).reports[0])
    swapped = "Dog 1 and dog 2 exchange their tracks from frame 3 of video 7 (both instances are swapped)."
    assert describe_causes(diagnosis) == swapped
    frames = [TruthFrame(str(number), (20, 30), [], lambda: LabelMap(np.zeros((20, 30)))) for number in range(4)]
    seen = list(VideoInstancePainter(diagnosis).read_frames(Unit("7", 4, list, {"index": 0}), frames, {3: (20, 30)}))
    assert [frame.truth.areas.tolist() for frame in seen] == [[160], *[[160, 144]] * 3]
    assert [frame.prediction.areas.tolist() for frame in seen] == [[160], [160, 144], [160, 144], [144, 160]]
    assert seen[3].shared.tolist() == [[0, 160], [144, 0]]
    assert seen[3].maps is not None
    assert (seen[3].maps[0] == masks[0, 3] + 2 * masks[1, 3]).all()
    assert (seen[3].maps[1] == 2 * masks[0, 3] + masks[1, 3]).all()
    pictures = draw_worst({"": diagnosis}, "val", PageOptions())
    assert pictures
    moments = [(moment["label"], moment["kind"], moment["worst"]) for moment in pictures.player.values["moments"]]
    assert sorted(moments) == [("dog 1", "swapped", "00003"), ("dog 2", "swapped", "00003")]
