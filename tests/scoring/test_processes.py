"""With several processes, the output and the sentences are those of one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.families.truths import TruthSource
from segjudge.scoring import request


def write_scans(root: Path) -> None:
    draw = np.random.default_rng(0)
    for number in range(4):
        for folder in ("labels", "predictions"):
            path = root / folder / "sequences/08" / folder / f"{number:06d}.label"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw.choice(np.array([10, 40, 50], "<u4"), 300).tobytes())


def test_the_output_of_several_processes_is_that_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_scans(tmp_path)
    outputs, document = [], tmp_path / "scores.json"
    for jobs in ("1", "2"):
        command = ["score", str(tmp_path / "predictions"), "--truth", str(tmp_path / "labels"), "--jobs", jobs]
        assert main([*command, "--protocol", "semantic-kitti", "--json", str(document)]) == 0
        outputs.append((*capsys.readouterr(), document.read_text()))
    assert outputs[0] == outputs[1]
    assert "Verdict: " in outputs[0][1]


def test_faulty_folders_are_refused_in_the_same_words(tmp_path: Path) -> None:
    write_scans(tmp_path)
    folder = tmp_path / "predictions"
    faults = ("broken.label", r"back\\slash.label", "inner.zip")
    for name in faults:
        errors = []
        path = folder / name
        path.write_bytes(b"") if "broken" not in name else path.symlink_to("nowhere")
        for jobs in (1, 2):
            try:
                scores = request.prepare(make_request(tmp_path, jobs)).score()
                errors.append(str(scores.warnings))
            except SubmissionError as error:
                errors.append(str(error))
        assert errors[0] == errors[1]
        assert name in errors[0] or "slash" in name
        path.unlink()
    missing = make_request(tmp_path / "elsewhere", 2)
    with pytest.raises(HostError, match="elsewhere"):
        request.prepare(missing)


def make_request(root: Path, jobs: int) -> request.ScoreRequest:
    source = TruthSource(str(root / "labels"))
    return request.ScoreRequest(str(root / "predictions"), source, PROTOCOLS["semantic-kitti"], jobs=jobs)
