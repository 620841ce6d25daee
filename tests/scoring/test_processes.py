"""With several processes, others compute digests and verdicts; the output is that of one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.runner import parallel
from segjudge.scoring import request


@pytest.mark.parametrize("may_fork", [True, False])
def test_digests_and_verdicts_of_other_processes_are_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, may_fork: bool
) -> None:
    draw = np.random.default_rng(0)
    for number in range(4):
        for folder in ("labels", "predictions"):
            path = tmp_path / folder / "sequences/08" / folder / f"{number:06d}.label"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw.choice(np.array([10, 40, 50], "<u4"), 300).tobytes())
    begun: list[object] = []
    meanwhile = request.Meanwhile
    monkeypatch.setattr(request, "Meanwhile", lambda work: (begun.append(work), meanwhile(work))[1])
    if not may_fork:
        monkeypatch.setattr(parallel, "_may_fork", lambda: False)
    outputs, document = [], tmp_path / "scores.json"
    for more in ([], ["--json", str(document)]):
        for jobs in ("1", "2"):
            begun.clear()
            command = ["score", str(tmp_path / "predictions"), "--truth", str(tmp_path / "labels")]
            assert main([*command, "--protocol", "semantic-kitti", "--jobs", jobs, *more]) == 0
            outputs.append((*capsys.readouterr(), document.read_text() if more else ""))
            assert len(begun) == (0 if jobs == "1" else 1 + len(more) // 2)
    assert outputs[0] == outputs[1]
    assert outputs[2] == outputs[3]
    assert "Verdict: " in outputs[0][1]
