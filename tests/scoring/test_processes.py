"""With several processes, others list folders and compute digests and verdicts; the output is that of one process."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.archive import ListedFolder, open_files
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner import parallel
from segjudge.families.truths import TruthSource
from segjudge.scoring import request


def write_scans(root: Path) -> None:
    draw = np.random.default_rng(0)
    for number in range(4):
        for folder in ("labels", "predictions"):
            path = root / folder / "sequences/08" / folder / f"{number:06d}.label"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw.choice(np.array([10, 40, 50], "<u4"), 300).tobytes())


@pytest.mark.parametrize("may_fork", [True, False])
def test_files_digests_and_verdicts_of_other_processes_are_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, may_fork: bool
) -> None:
    write_scans(tmp_path)
    begun: list[object] = []
    meanwhile = request.Meanwhile
    monkeypatch.setattr(request, "Meanwhile", lambda work: (begun.append(work), meanwhile(work))[1])
    monkeypatch.setattr(request, "_MANY_UNITS", 4)  # all scans that are written
    if not may_fork:
        monkeypatch.setattr(parallel, "_may_fork", lambda: False)
    outputs, document = [], tmp_path / "scores.json"
    for more in ([], ["--json", str(document)]):
        for jobs in ("1", "2"):
            begun.clear()
            command = ["score", str(tmp_path / "predictions"), "--truth", str(tmp_path / "labels")]
            assert main([*command, "--protocol", "semantic-kitti", "--jobs", jobs, *more]) == 0
            outputs.append((*capsys.readouterr(), document.read_text() if more else ""))
            assert len(begun) == (0 if jobs == "1" else 2 + len(more) // 2)
    assert outputs[0] == outputs[1]
    assert outputs[2] == outputs[3]
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


def test_listed_folders_are_listed_again_for_other_limits(tmp_path: Path) -> None:
    write_scans(tmp_path)
    path = str(tmp_path / "predictions")
    listed = pickle.loads(pickle.dumps(ListedFolder.list_files(path, LOCAL_LIMITS)))
    files = open_files(listed, LOCAL_LIMITS)
    assert listed == path
    assert open_files(listed, replace(LOCAL_LIMITS, send="Send it")) is files
    again = open_files(listed, replace(LOCAL_LIMITS, ratio=5))
    assert again is not files
    assert again.sizes == files.sizes == open_files(path, LOCAL_LIMITS).sizes
    name = next(iter(files.sizes))
    assert files.read(name) == again.read(name)
    with pytest.raises(SubmissionError, match="more than 3 files"):
        open_files(listed, replace(LOCAL_LIMITS, members=3))
    (tmp_path / r"predictions/a\b.label").write_bytes(b"")
    listed = ListedFolder.list_files(path, LOCAL_LIMITS)
    assert open_files(listed, LOCAL_LIMITS) is not open_files(listed, LOCAL_LIMITS)
