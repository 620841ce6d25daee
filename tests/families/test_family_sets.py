"""The data that `benchmarks/tracks.py` generates is what each benchmark's readers take, and is neither perfect nor wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import segjudge
from benchmarks import tracks
from segjudge.evaluation_script.families import PROTOCOLS


@pytest.mark.parametrize("name", tracks.SETS)
def test_a_generated_set_scores_by_each_of_its_protocols(name: str, tmp_path: Path) -> None:
    one = tracks.SETS[name]
    one.make(tmp_path, np.random.default_rng(1), 0.001, (64, 96))
    for protocol in one.peers:
        (values,) = segjudge.score(tmp_path / one.results, tmp_path / one.truth, protocol).metrics.values()
        first = values[PROTOCOLS[protocol].metrics[0]]
        assert first is not None
        assert 0 < first < 1


def test_numbers_that_differ_are_reported() -> None:
    mine = {"a": 0.5, "b": None, "c": 0.25, "d": None}
    assert tracks.differences(mine, {"a": 0.5 + 1e-12, "b": None, "c": 0.26, "d": 0.0}) == [
        "c 0.25, there 0.26", "d None, there 0.0",
    ]  # fmt: skip


def test_an_evaluators_numbers_stand_beside_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A peer that prints one of our numbers, one other, and lines before them."""
    script = "import json; print('loading {'); print(json.dumps({'mIoU': 0.0, 'VC8': None}))"
    one = tracks.SETS["vspw"]
    peer = tracks.TrackSet(one.make, one.size, {"vspw": ("vspw", script)}, one.truth, one.results)
    peer.make(tmp_path, np.random.default_rng(1), 0.003, (16, 16))
    args = tracks.parsed(["vspw", "--repeat", "1", "--vspw", "installed"])
    (odd,) = [text for text in tracks.compare(args, peer, tmp_path) if "mIoU" in text]
    assert odd.startswith("vspw: mIoU 0.")
    printed = capsys.readouterr().out
    assert "ratio" in printed
    assert "of 2 numbers equal" in printed
    assert args.python == sys.executable
