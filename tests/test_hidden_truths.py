"""What participants read of a hidden split is the same whatever its truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script import main as scoring
from segjudge.evaluation_script.phase import DETAILS
from segjudge.evaluation_script.phases import PHASES
from segjudge.stored_report import stored_page

from .builders import png, zipped
from .published import FRAMES, VIDEOS, davis, labels


def other_truth(folder: Path) -> Path:
    """The same videos with other masks: larger, elsewhere, absent in the middle, an object less."""
    root = davis(folder)
    for name in VIDEOS:
        for frame in range(FRAMES):
            moved = np.roll(labels(name, frame), 9, axis=0)
            moved[moved == 2] = 0 if name == "goat" or frame == 4 else 2
            (root / f"Annotations/480p/{name}/{frame:05d}.png").write_bytes(png(moved))
    return root


@pytest.mark.parametrize("report", [False, True])
@pytest.mark.parametrize("detail", DETAILS)
def test_two_truths_give_the_same_bytes_where_the_split_is_hidden(
    detail: str, report: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    split = replace(PHASES[0].splits[0], codename="val", hidden=True)
    monkeypatch.setattr(scoring, "PHASES", (replace(PHASES[0], splits=(split,), detail=detail, report=report),))
    submission = tmp_path / "results.zip"
    extra = {1: 0, 2: 0, 3: 1}  # an object that neither truth has, and one that one of them lacks
    masks = {
        f"{name}/{frame:05d}.png": png(np.where(labels(name, frame) > 0, labels(name, frame), extra.get(frame, 0) * 3))
        for name in VIDEOS
        for frame in range(FRAMES)
    }
    submission.write_bytes(zipped(masks))
    read, scores = [], []
    for number, root in enumerate((davis(tmp_path / "one"), other_truth(tmp_path / "two"))):
        packed = tmp_path / f"{number}.zip"
        assert main(["pack", "--layout", "davis2017", "--root", str(root), "--out", str(packed)]) == 0
        capsys.readouterr()
        answer = evaluate(str(packed), str(submission), PHASES[0].codename)
        scores.append((answer.pop("result"), answer.pop("error"), answer.pop("interval", None)))
        assert answer.pop("submission_metadata")["provenance"]["truth"]  # which hosts read
        page = stored_page(answer["submission_result"], "results.zip")
        read.append((json.dumps(answer, sort_keys=True), page, *capsys.readouterr()))
    assert scores[0] != scores[1]
    assert read[0] == read[1]
