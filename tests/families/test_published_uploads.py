"""A phase scores the uploads for the benchmarks' own servers unchanged, on the truth as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.cli import main as cli
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.families import layout_of
from segjudge.families.truths import TruthSource, open_truth, pack
from tests.families.contract import examples, merge_rows, module_of
from tests.published import published

UPLOADS = merge_rows("UPLOADS")
LIMITS = {"sequences": ArchiveLimits(), "instances": INSTANCE_LIMITS}


@pytest.mark.parametrize("protocol", UPLOADS)
def test_a_phase_scores_an_upload_of_the_published_form(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, (make, expected) = published(protocol, tmp_path), UPLOADS[protocol]
    upload = tmp_path / "upload"
    upload.write_bytes(make(truth))
    if protocol in examples("packed first"):
        packed = str(tmp_path / "val.zip")
        assert cli(["pack", "--layout", layout_of(PROTOCOLS[protocol]), "--root", str(truth), "--out", packed]) == 0
        truth = tmp_path / "val.zip"
    track, metrics = PROTOCOLS[protocol].family, PROTOCOLS[protocol].metrics
    phase = Phase("val", "val.zip", (PhaseSplit("val", protocol, metrics),), limits=LIMITS.get(track, UNIT_LIMITS))
    monkeypatch.setattr(main, "PHASES", (phase,))

    answer = main.evaluate(str(truth), str(upload), "val")
    results = answer["result"][0]["val"]
    assert [line for line in answer["submission_result"]["warnings"] if "check" in line] == []
    assert {metric: results[metric] for metric in expected} == pytest.approx(expected)

    assert cli(["host", protocol, "--truth", str(truth), "--out", str(tmp_path / "mine")]) == 0
    packed = str(tmp_path / "mine/annotations/val.zip")
    assert main.evaluate(packed, str(upload), "val")["result"] == [{"val": results}]


@pytest.mark.parametrize("protocol", [next(iter(module_of(folder).PUBLISHED)) for folder in FOLDERS])
def test_a_truth_is_packed_into_a_folder_that_is_made(protocol: str, tmp_path: Path) -> None:
    packed = tmp_path / "new/folder/val.zip"
    source = TruthSource(str(published(protocol, tmp_path)), layout=layout_of(PROTOCOLS[protocol]))
    written = pack(source, str(packed))
    truth = open_truth(TruthSource(str(packed)), PROTOCOLS[protocol])
    assert list(truth.splits) == [written.split]
