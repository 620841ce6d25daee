"""Records are read while another process reads their truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families.instances import submission
from segjudge.evaluation_script.files import archive, limits
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.scoring import request, score
from tests.families.instances.test_instances import document


@pytest.mark.long
def test_records_that_are_read_before_the_truth_score_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, results = document(3, images=40, categories=7)
    paths = [tmp_path / "found.json", tmp_path / "truth.json"]
    strange, broken = [{**results[0], "image_id": 999}], [{**results[0], "score": None}]
    monkeypatch.setattr(submission, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(limits, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(archive, "CHUNK_BYTES", 4000)
    paths[1].write_text(json.dumps(truth))
    begun: list[object] = []
    meanwhile = request.Meanwhile
    monkeypatch.setattr(request, "Meanwhile", lambda read: (begun.append(read), meanwhile(read))[1])
    for sent in (results, results + strange, strange + results, results + broken + results, broken + results, []):
        paths[0].write_text(json.dumps(sent))
        answers: list[Any] = []
        begun.clear()
        for jobs, large in ((1, 0), (2, 0), (2, 1 << 30)):
            monkeypatch.setattr(request, "_LARGE", large)
            try:
                answers.append(score(*paths, "coco", jobs=jobs))
            except SubmissionError as error:
                answers.append(str(error))
        assert answers[0] == answers[1] == answers[2]
        assert len(begun) == 1, "with several jobs, where the truth is large"


def test_a_truth_that_cannot_be_read_is_said_before_what_is_wrong_with_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "_LARGE", 0)
    (tmp_path / "truth.json").write_text("[]")
    for results in ("missing.json", "truth.json"):
        with pytest.raises(HostError, match="not an annotation file in COCO's format: not an object"):
            score(tmp_path / results, tmp_path / "truth.json", "coco", jobs=2)
